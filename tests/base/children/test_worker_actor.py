"""What a Dask worker does for a client: a worker process whose messages it passes on."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from processes import PATIENCE, gone, wait_for

from optpart.base.children.framing import pack, unpack
from optpart.base.children.worker import WorkerDiedError
from optpart.base.children.worker_actor import WorkerActor


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes find the module ``echo``."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}")


def heard(actor: WorkerActor, count: int = 1) -> list[object]:
    found: list[object] = []
    while len(found) < count:
        found += map(unpack, asyncio.run(actor.receive(PATIENCE)))
    return found


def test_messages_pass_in_their_order() -> None:
    actor = WorkerActor("echo")
    for number in range(5):
        actor.send(pack(number))
    assert heard(actor, 5) == [*range(5)]


def test_silence_is_an_answer() -> None:
    assert asyncio.run(WorkerActor("echo").receive(0.0)) == []


def test_a_death_comes_after_the_last_message() -> None:
    actor = WorkerActor("echo")
    actor.send(pack("last words"))
    actor.send(pack(("die", 9)))
    assert heard(actor) == ["last words"]
    with pytest.raises(WorkerDiedError, match="signal 9"):
        heard(actor)


def test_the_process_ends_with_the_relay() -> None:
    actor = WorkerActor("echo")
    process = actor._worker.process.pid
    del actor
    gc.collect()
    wait_for(lambda: gone(process))
