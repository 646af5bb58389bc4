"""The table of commands, in the order of ``optpart --help``.

A new command is a file in this folder and a row here; its docstring is its help. The commands below
``generate`` come from the table of generators (:mod:`optpart.interop.generate.registry`), except
``generate replica`` and ``generate set``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperGroup

from optpart.base.registry import load

#: The module and function of each command.
COMMANDS = {
    "place": "place:place",
    "solve": "solve:solve",
    "gap": "gap:gap",
    "worst": "worst:worst",
    "robust": "robust:robust",
    "recommend": "recommend:recommend",
    "bound": "bound:bound",
    "verify": "verify:verify",
    "certify": "certify:certify",
    "check": "check:check",
    "archive": "archive:archive",
    "plot": "plot:plot",
    "report": "report:report",
    "lesson": "lesson:lesson",
    "simulate": "simulate:simulate",
    "pipeline": "pipeline:pipeline",
    "serve": "serve:serve",
    "apart": "apart:apart",
    "recompute": "recompute:recompute",
    "import": "import_:import_",
    "convert": "convert:convert",
    "export": "export:export",
    "devices": "devices:devices",
    "methods": "methods:methods",
    "ordering": "ordering:ordering",
    "reduce": "reduce:reduce",
    "generate replica": "generate:generate_replica",
    "generate set": "generate:generate_set",
    "strategy compare": "strategy.compare:compare",
    "strategy solve": "strategy.solve:solve",
    "strategy bound": "strategy.bound:bound",
    "strategy verify": "strategy.verify:verify",
    "strategy compile": "strategy.compile_:compile_",
    "strategy plot": "strategy.plot:plot",
    "strategy export": "strategy.export:export",
    "warm-up": "warm_up:warm_up",
    "profile fit": "profile:fit",
}

#: The class of each command group; its docstring is the help.
GROUPS = {
    "generate": "generate:Generate",
    "strategy": "strategy.options:StrategyGroup",
    "profile": "profile:Profile",
}


def command(name: str) -> Callable[..., Any]:
    """Return the function behind a command."""
    found: Callable[..., Any] = load(f"optpart.commands.{COMMANDS[name]}")
    return found


def group(name: str) -> type[TyperGroup]:
    """Return the class of a group."""
    found: type[TyperGroup] = load(f"optpart.commands.{GROUPS[name]}")
    return found
