"""Whoever ends ``optpart solve``, and however, all that it has started ends as well."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from processes import PATIENCE, descendants, gone, wait_for

from optpart.interop.formats import native
from optpart.testing.draw import draw_instance

#: Methods, and what the last process is called that they start.
METHODS = {
    "cpsat": "optpart.exact.worker",
    "search": "optpart.search.worker",
    "milp": "optpart.exact.milp_worker",
    "milp-cbc": "cbc",
    "minizinc": "gecode",
}


def _cbc() -> bool:
    """Whether there is a CBC, in PuLP or elsewhere; PuLP cannot be loaded where OR-Tools is."""
    program = "import json, pulp; print(json.dumps(pulp.PULP_CBC_CMD().available()))"
    command = [sys.executable, "-P", "-c", program]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    return bool(json.loads(printed)) or which("cbc") is not None


@pytest.mark.parametrize(
    ("method", "number"),
    [
        *((method, signal.SIGKILL) for method in METHODS),
        ("cpsat", signal.SIGTERM),
        ("search", signal.SIGINT),
    ],
)
def test_nothing_is_left(method: str, number: signal.Signals, tmp_path: Path) -> None:
    if method == "minizinc" and which("minizinc") is None:
        pytest.skip("the command minizinc is not installed")
    if method == "milp-cbc" and not _cbc():
        pytest.skip("CBC is not installed")
    # No bound closes it, and no method proves its optimum soon.
    native.write(draw_instance(49, vertices=25, devices=3), tmp_path / "i.json")
    program = "from optpart.cli import main; main()"
    command = [sys.executable, "-P", "-c", program, "solve", str(tmp_path / "i.json")]
    command += ["--method", method, "--workers", "2", "--time-limit", "600"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path
    ) as solving:

        def under_way() -> bool:
            assert solving.poll() is None
            return any(METHODS[method] in run for run in descendants(solving.pid).values())

        wait_for(under_way)
        started = descendants(solving.pid)
        solving.send_signal(number)
        solving.wait(PATIENCE)
    wait_for(lambda: all(map(gone, started)))
