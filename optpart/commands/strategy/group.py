"""The group ``optpart strategy``."""

from __future__ import annotations

from typer.core import TyperGroup


class StrategyGroup(TyperGroup):
    """Find, bound and check strategies of training on unlike devices."""
