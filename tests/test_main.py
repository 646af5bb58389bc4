"""What runs before the command line itself is loaded."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from optpart.__main__ import main


class Interrupted:
    """A finder that is interrupted as soon as the command line is looked for."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "optpart.cli":
            raise KeyboardInterrupt


def test_an_interrupt_while_the_program_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "optpart.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (130, "optpart: interrupted\n")
