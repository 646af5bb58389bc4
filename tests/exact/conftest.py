"""Data that the tests of several exact methods read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"


@pytest.fixture(scope="session")
def classic() -> Any:
    """Small problems of the literature with their known optima."""
    path = SHARED / "data" / "classic" / "classic.json"
    if not path.exists():
        pytest.skip(f"no benchmark data at {path}")
    return json.loads(path.read_text())
