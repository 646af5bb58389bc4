"""What all tests share: the modules of this folder, and the command line as a function."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Whatever pytest's import mode.
sys.path.insert(0, str(Path(__file__).parent))

from commandline import Outcome, Run

from optpart.cli import main
from optpart.methods.parts import TABLES

# Most tests take milliseconds: to look for cycles among all that is loaded, as often as usual,
# would take a seventh of the time.
gc.set_threshold(20_000, 20, 50)

settings.register_profile("optpart", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("optpart")


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    """Forget what a test has registered, so that another may use the same name."""
    tables = [table.added for table in TABLES.values()]
    before = [dict(table) for table in tables]
    yield
    for table, names in zip(tables, before, strict=True):
        table.clear()
        table.update(names)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process."""

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["optpart", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        code = stop.value.code
        return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call
