"""Small tables are filled row by row, with a look at the clock before each row."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optpart.exact.pipeline.clock._STEPS", 1)
