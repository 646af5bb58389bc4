"""The example of the page on training strategies prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from optpart.applications.training import compiled

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    code, printed = found
    exec(code, {})
    assert capsys.readouterr().out == printed


def test_every_choice_that_is_not_the_default_is_explained() -> None:
    choices = {
        option: get_args(kind)
        for option, kind in get_type_hints(compiled.Options).items()
        if get_origin(kind) is Literal
    }
    assert len(choices) == 6
    for option, values in choices.items():
        for value in set(values) - {getattr(compiled.DEFAULT, option)}:
            assert f'{option}="{value}"' in PAGE
