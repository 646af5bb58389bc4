"""A claim of a file, until it is proven again or its certificate is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from optpart.solution.goal import BOUND_KEYS, Measure

#: The file of claims of the instance library.
LIBRARY = "the instance library"


@dataclass(frozen=True)
class Claim:
    """Bounds that a file states and that were not proven in this run.

    Anybody can write a number into a file, so a claim decides nothing: it ends and prunes no
    search, and it makes no result ``OPTIMAL`` or ``INFEASIBLE``.

    Attributes
    ----------
    file : str
        The file, or ``the instance library``.
    bounds : mapping from measure to Fraction
        As in a :class:`~optpart.solution.result.Result`.
    infeasible : bool
        Whether the file says that there is no schedule.
    method : str
        The method or bound that proved it, as the file says; empty if it does not.
    code : str
        The fingerprint of the code that proved it, as the file says; empty if it does not.
    """

    file: str
    bounds: Mapping[Measure, Fraction] = field(default_factory=dict)
    infeasible: bool = False
    method: str = ""
    code: str = ""

    def __str__(self) -> str:
        """Return ``claimed by FILE``, with the method and the code that the file names."""
        code = next((p for p in self.code.split(", ") if p.startswith("optpart ")), self.code)
        origin = ", ".join(part for part in (self.method, code) if part)
        return f"claimed by {self.file}" + (f" ({origin})" if origin else "")

    @property
    def lower_bound(self) -> Fraction | None:
        """The bound on the makespan."""
        return self.bounds.get("makespan")

    def beyond(self, bounds: Mapping[Measure, Fraction]) -> Claim | None:
        """Return what is claimed beyond proven bounds; ``None`` if nothing is."""
        more: dict[Measure, Fraction] = {
            measure: claimed
            for measure, claimed in self.bounds.items()
            if measure not in bounds or claimed > bounds[measure]
        }
        return replace(self, bounds=more) if self.infeasible or more else None

    def to_dict(self) -> dict[str, object]:
        """Return the claim for JSON, with exact numbers as text."""
        document: dict[str, object] = {"by": self.file}
        for measure, key in BOUND_KEYS.items():
            if measure in self.bounds:
                document[key] = str(self.bounds[measure])
        if self.infeasible:
            document["infeasible"] = True
        texts = {"method": self.method, "code": self.code}
        return document | {name: text for name, text in texts.items() if text}
