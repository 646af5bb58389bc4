"""Names to choose from, and the remedy for an unknown one: those close to it, or all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Literal

#: What is minimised; ``lexicographic`` is the makespan, then the traffic.
Objective = Literal["makespan", "traffic", "lexicographic", "bottleneck"]

#: How transfers and memory count (design §2).
Communication = Literal["delay", "sendrecv", "link", "port"]
Memory = Literal["none", "estimate", "edges", "refcount"]

#: The parts of a schedule that can be fixed.
Fix = Literal["placement", "order", "both"]

#: So many characters may a list of all choices have.
_LISTED = 120

#: Names beyond these are not compared: the time grows with their number and the square of lengths.
_COMPARED, _LONGEST = 5000, 60


def close(name: object, known: Iterable[str], cutoff: float = 0.5) -> list[str]:
    """Return up to three known names that begin with a name or resemble it, the closest first."""
    from difflib import get_close_matches

    wanted = str(name)
    if not wanted or len(wanted) > _LONGEST:
        return []
    by_lower = {each.lower(): each for each in islice(known, _COMPARED) if len(each) <= _LONGEST}
    wanted = wanted.lower()
    near = [each for each in by_lower if len(wanted) > 2 and each.startswith(wanted)]
    near += get_close_matches(wanted, by_lower, 3, cutoff)
    return [by_lower[each] for each in dict.fromkeys(near)][:3]


def choice(
    name: object, known: Iterable[str], listing: str = "", lead: str = "choose one of"
) -> str:
    """Return the remedy for an unknown name, in a line of bounded length.

    Parameters
    ----------
    known : iterable of str
        All names that would be right.
    listing : str
        The command that lists them, such as ``optpart methods``.
    lead : str
        What comes before the list.

    Examples
    --------
    >>> choice("makspan", ["makespan", "traffic"])
    'did you mean makespan? There are makespan, traffic'
    >>> choice("cpsta", ["cpsat"] * 100, "optpart methods")
    "did you mean cpsat? 'optpart methods' lists all"
    >>> choice("x", ["one", "two"])
    'choose one of one, two'
    """
    names = list(dict.fromkeys(known)) if not isinstance(known, dict) else [*known]
    near = close(name, names, 0.7) if isinstance(name, str) else []
    said = f"did you mean {' or '.join(near)}?" if near else ""
    if listing:
        return f"{said} '{listing}' lists all" if said else f"'{listing}' lists the names"
    if not names:
        return "leave it out: there are none"
    listed, left = _listed(names)
    if left:
        listed += f" and {left} more"
    return f"{said} There are {listed}" if said else f"{lead} {listed}"


def _listed(names: list[str]) -> tuple[str, int]:
    """Return as many names as fit, and how many are left out."""
    text = ", ".join(names)
    if len(text) <= _LISTED:
        return text, 0
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join((*shown, name))) > _LISTED:
            break
        shown.append(name)
    return ", ".join(shown), len(names) - len(shown)
