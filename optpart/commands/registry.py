"""The table of commands, in the order of ``optpart --help``.

A new command is a file in this folder and a row here; its docstring is its help.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: The module and function of each command.
COMMANDS = {
    "certify": "certify:certify",
    "check": "check:check",
    "ordering": "ordering:ordering",
    "reduce": "reduce:reduce",
    "solve": "solve:solve",
    "gap": "gap:gap",
    "bound": "bound:bound",
    "verify": "verify:verify",
    "simulate": "simulate:simulate",
    "methods": "methods:methods",
    "plot": "plot:plot",
    "import": "import_:import_",
    "convert": "convert:convert",
    "generate heterog-worst": "generate_heterog_worst:generate_heterog_worst",
    "generate replica": "generate_replica:generate_replica",
    "generate thesis": "generate_thesis:generate_thesis",
    "generate small": "generate_small:generate_small",
    "generate lstm": "generate_lstm:generate_lstm",
    "generate layered": "generate_layered:generate_layered",
    "generate cluster": "generate_cluster:generate_cluster",
}

#: The help of each group of commands.
GROUPS = {"generate": "Draw random instances."}


def command(name: str) -> Callable[..., Any]:
    """Return the function behind a command."""
    module, _, function = COMMANDS[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(f"optpart.commands.{module}"), function)
    return found
