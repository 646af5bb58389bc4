"""Faults in files: one line that names the file, the place and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from optpart import InputError


@contextmanager
def one_line_fault(place: object, part: str) -> Iterator[None]:
    """Assert that what runs within ends with an error at a place that says some part."""
    with pytest.raises(InputError) as error:
        yield
    message = str(error.value)
    assert message.startswith(f"{place}: ")
    assert part in message
    assert "\n" not in message
