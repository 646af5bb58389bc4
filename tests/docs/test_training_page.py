"""The example of the page on training strategies prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from optpart.training import compiled

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    code, printed = found
    exec(code, {})
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("replicas", compiled.Replicas),
        ("resharding", compiled.Resharding),
        ("auxiliary", compiled.Auxiliary),
        ("collectives", compiled.Collectives),
        ("topology", compiled.Topology),
        ("memory", compiled.MemoryModel),
    ],
)
def test_every_choice_that_is_not_the_default_is_explained(option: str, choices: Any) -> None:
    for choice in set(get_args(choices)) - {getattr(compiled.DEFAULT, option)}:
        assert f'{option}="{choice}"' in PAGE
