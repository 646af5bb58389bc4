"""A worker process on another machine, whose messages a Dask worker passes on."""

from __future__ import annotations

import asyncio
import signal
import weakref

from optpart.base.children.worker import Worker, WorkerDiedError
from optpart.base.surroundings import ignore_settings_here


class WorkerActor:
    """A Dask actor with a worker process, which ends with the actor.

    Dask drops the actor if the client lets go of it, ends or is lost.

    Parameters
    ----------
    module : str
        Module whose ``main`` the process runs.
    """

    def __init__(self, module: str) -> None:
        self._worker = Worker(module)
        weakref.finalize(self, self._worker.stop)

    def send(self, content: bytes) -> None:
        """Pass a packed message on to the process."""
        self._worker.forward(content)

    async def receive(self, seconds: float) -> list[bytes]:
        """Return what the process has said since the last call; wait up to so long for it.

        Raises
        ------
        WorkerDiedError
            If the process has died and all its messages have been received.
        """
        return await asyncio.to_thread(self._received, seconds)

    def _received(self, seconds: float) -> list[bytes]:
        messages: list[bytes] = []
        while True:
            try:
                messages.append(self._worker.packed(0.0 if messages else seconds))
            except TimeoutError:
                return messages
            except WorkerDiedError:
                if not messages:
                    raise
                return messages


def dask_setup(_worker: object) -> None:
    """Leave Ctrl-C to the client: a terminal also sends it to workers on the same machine.

    Settings in the folder where they start count as little as for the client.
    """
    ignore_settings_here()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
