"""Text about a plan's sensitivity to errors of its costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optpart.formats import result as result_format
from optpart.formats.json import pretty
from optpart.rounding import number, percent
from optpart.solution.result import Result
from optpart.study.sensitivity import Sensitivity
from optpart.terminal import say


def say_sensitivity(found: Sensitivity) -> None:
    """Print in a few lines how far from optimal the plan can be."""
    count = len(found.draws)
    say(f"if every run time and transfer time is off by up to {_shown(found.error)}:")
    if count:
        longest = max(draw.makespan for draw in found.draws)
        say(
            f"  in {count:,} draws (seed {found.seed}), the plan is at most "
            f"{_above(found.median)} above the best in the median and {_above(found.worst)} in "
            f"the worst; its makespan reaches {number(longest, up=True)}"
        )
    if found.overfull:
        say(f"  in {found.overfull:,} draws its order exceeds a limit of memory")
    if found.guarantee is None:
        say(f"  nothing is proven for all such costs: {found.unproven}")
    else:
        say(f"  proven for all such costs: at most {_above(found.guarantee)} above the best")


def dumps_with(result: Result, found: Sensitivity) -> str:
    """Return a JSON document of a result and its sensitivity."""
    return pretty({"result": result_format.to_dict(result), "sensitivity": to_dict(found)})


def to_dict(found: Sensitivity) -> dict[str, Any]:
    """Return the figures for a JSON document; exact numbers are texts."""
    return {
        "error": str(found.error),
        "seed": found.seed,
        "draws": len(found.draws),
        "overfull": found.overfull,
        "median": _text(found.median),
        "worst": _text(found.worst),
        "guarantee": _text(found.guarantee),
        "unproven": found.unproven,
    }


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _shown(value: Fraction) -> str:
    return f"{number(100 * value, up=True)}%"


def _above(value: Fraction | None) -> str:
    return "an unknown share" if value is None else percent(value)
