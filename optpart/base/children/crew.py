"""Where the workers of a method run."""

from __future__ import annotations

from typing import Protocol

from optpart.base.children.worker import Channel, Worker
from optpart.base.limits import available_processors


class Crew(Protocol):
    """Workers of a method, on this machine or on others.

    Attributes
    ----------
    remote : bool
        Whether they run on other machines, or as if they did.
    """

    remote: bool

    @property
    def workers(self) -> int:
        """The number that can work at once, this process included."""

    def hire(self, module: str, threads: int = 1) -> Channel:
        """Start a worker without waiting.

        Parameters
        ----------
        module : str
            Module whose ``main`` it runs.
        threads : int
            How many threads or processes it would use; it may get fewer.
        """


class _Here:
    remote = False

    @property
    def workers(self) -> int:
        return available_processors()

    def hire(self, module: str, threads: int = 1) -> Channel:
        return Worker(module, threads)


#: Processes on this machine.
HERE: Crew = _Here()
