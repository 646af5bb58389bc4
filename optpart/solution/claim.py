"""A claim of a file, until it is proven again or its certificate is accepted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

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
    lower_bound, traffic_bound, bottleneck_bound : Fraction or None
        As in a :class:`~optpart.solution.result.Result`.
    infeasible : bool
        Whether the file says that there is no schedule.
    method : str
        The method or bound that proved it, as the file says; empty if it does not.
    code : str
        The fingerprint of the code that proved it, as the file says; empty if it does not.
    """

    file: str
    lower_bound: Fraction | None = None
    traffic_bound: Fraction | None = None
    bottleneck_bound: Fraction | None = None
    infeasible: bool = False
    method: str = ""
    code: str = ""

    def __str__(self) -> str:
        """Return ``claimed by FILE``, with the method and the code that the file names."""
        code = next((p for p in self.code.split(", ") if p.startswith("optpart ")), self.code)
        origin = ", ".join(part for part in (self.method, code) if part)
        return f"claimed by {self.file}" + (f" ({origin})" if origin else "")

    def beyond(
        self,
        lower_bound: Fraction | None,
        traffic_bound: Fraction | None = None,
        bottleneck_bound: Fraction | None = None,
    ) -> Claim | None:
        """Return what is claimed beyond proven bounds; ``None`` if nothing is."""

        def rest(claimed: Fraction | None, proven: Fraction | None) -> Fraction | None:
            more = claimed is not None and (proven is None or claimed > proven)
            return claimed if more else None

        left = replace(
            self,
            lower_bound=rest(self.lower_bound, lower_bound),
            traffic_bound=rest(self.traffic_bound, traffic_bound),
            bottleneck_bound=rest(self.bottleneck_bound, bottleneck_bound),
        )
        bounds = left.lower_bound, left.traffic_bound, left.bottleneck_bound
        return left if left.infeasible or bounds != (None,) * 3 else None

    def to_dict(self) -> dict[str, object]:
        """Return the claim for JSON, with exact numbers as text."""
        bounds = {
            "lower_bound": self.lower_bound,
            "traffic_bound": self.traffic_bound,
            "bottleneck_bound": self.bottleneck_bound,
        }
        document: dict[str, object] = {"by": self.file}
        document |= {name: str(value) for name, value in bounds.items() if value is not None}
        if self.infeasible:
            document["infeasible"] = True
        texts = {"method": self.method, "code": self.code}
        return document | {name: text for name, text in texts.items() if text}
