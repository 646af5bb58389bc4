"""A headless Chromium for tests, driven over the pipe of its DevTools protocol."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The program, as Debian and others name it; ``None`` if there is none.
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None
)

#: Seconds after which a command of the browser counts as failed.
_PATIENCE = 60.0


class Browser:
    """One page of a running browser.

    Attributes
    ----------
    complaints : list of str
        Errors and warnings on the console, and uncaught exceptions.
    requests : list of str
        Addresses that the page asked for, besides its own file.
    """

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._text = b""
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._to, rest) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._text:
            ready, _, _ = select.select([self._back], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            piece = os.read(self._back, 1 << 20)
            assert piece, "the browser has ended"
            self._text += piece
        text, _, self._text = self._text.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.complaints.append(
                str(details.get("exception", {}).get("description", details["text"]))
            )
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.complaints.append(str([arg.get("value") for arg in about["args"]]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            address = about["request"]["url"]
            if address != self.address and not address.startswith("data:"):
                self.requests.append(address)

    address = ""

    def open(
        self,
        path: Path,
        *,
        part: str = "",
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
    ) -> None:
        """Open a file, at a part such as ``#top``, and wait until it has drawn itself."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.address = path.resolve().as_uri()
        self.call("Page.navigate", url=self.address + part)
        self.wait("document.readyState === 'complete' && document.body.dataset.ready === 'yes'")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        deadline = time.monotonic() + _PATIENCE
        while not self.value(expression):
            assert time.monotonic() < deadline, (expression, self.complaints)
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Dispatch a mouse event."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Move to a point and click the left button."""
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the page, by default in its whole length."""
        answer = self.call(
            "Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole)
        )
        path.write_bytes(base64.b64decode(answer["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "scale": 1, **{k: size[k] for k in ("width", "height")}}}

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Run a browser, whose own files go to a folder, and end it."""
    assert CHROMIUM is not None
    pipes = [*os.pipe(), *os.pipe()]
    # Out of the way of descriptors 3 and 4, from which the browser reads and to which it writes.
    its_end, our_end, back, its_back = (
        fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pipes
    )
    for end in pipes:
        os.close(end)
    arguments = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
        "--no-first-run", "--disable-dev-shm-usage", "--force-color-profile=srgb",
        "--disable-background-networking", "--disable-component-update",
        f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    redirected = f'exec "$@" 3</proc/self/fd/{its_end} 4>/proc/self/fd/{its_back}'
    running = subprocess.Popen(
        ["sh", "-c", redirected, "sh", *arguments],
        pass_fds=(its_end, its_back),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_end)
    os.close(its_back)
    try:
        yield Browser(our_end, back)
    finally:
        os.close(our_end)
        os.close(back)
        running.terminate()
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
