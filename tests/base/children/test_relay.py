"""What a Dask worker does for a client: a worker process whose messages it passes on."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from processes import PATIENCE, gone, wait_for

from optpart.base.children.framing import pack, unpack
from optpart.base.children.relay import Relay
from optpart.base.children.worker import WorkerDiedError


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes find the module ``echo``."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}")


def heard(relay: Relay, count: int = 1) -> list[object]:
    found: list[object] = []
    while len(found) < count:
        found += map(unpack, asyncio.run(relay.receive(PATIENCE)))
    return found


def test_messages_pass_in_their_order() -> None:
    relay = Relay("echo")
    for number in range(5):
        relay.send(pack(number))
    assert heard(relay, 5) == [*range(5)]


def test_silence_is_an_answer() -> None:
    assert asyncio.run(Relay("echo").receive(0.0)) == []


def test_a_death_comes_after_the_last_message() -> None:
    relay = Relay("echo")
    relay.send(pack("last words"))
    relay.send(pack(("die", 9)))
    assert heard(relay) == ["last words"]
    with pytest.raises(WorkerDiedError, match="signal 9"):
        heard(relay)


def test_the_process_ends_with_the_relay() -> None:
    relay = Relay("echo")
    process = relay._worker.process.pid
    del relay
    gc.collect()
    wait_for(lambda: gone(process))
