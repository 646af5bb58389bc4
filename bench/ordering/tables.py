"""Measurements as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.ordering.cases import Case, bounds, cases, instance
from bench.ordering.findings import Finding
from bench.ordering.measure import BASELINE, LEVELS, MECHANISMS, TAO, TIO, WORKERS, Measured, gap
from bench.output import columns

ORDERS = ("tao", "tio", "as-received", "pct", "random-order")


def judged(rows: Sequence[Finding]) -> str:
    text = []
    for number, row in enumerate(rows, 1):
        text.append(
            f"{number:2}. {row.where}: {row.verdict}\n"
            f"    published: {row.published}\n"
            f"    measured:  {row.measured}\n"
        )
    return "".join(text)


def fit(found: Measured) -> str:
    names = (BASELINE, TIO, TAO)
    header = ["noise", "R²", "random"] + [f"{m} {q}th" for q in (5, 95) for m in names]
    rows = [
        [
            f"{noise:.0%}",
            f"{found.r_squared(noise, BASELINE, TAO):.4f}",
            f"{found.r_squared(noise, BASELINE):.4f}",
            *(f"{found.percentile(noise, m, q):.4f}" for q in (5, 95) for m in names),
        ]
        for noise in LEVELS
    ]
    return columns(header, rows)


def mechanisms(found: Measured) -> str:
    """Lay out one table for every measure of figure 9, and one for figure 10 and disorder."""
    others = MECHANISMS[1:]
    return "\n".join(
        (
            "Gain in throughput over the baseline:\n",
            _by_case(others, lambda case, m: signed(found.speedup(case, m), 1)),
            "Mean ordering efficiency E:\n",
            _by_case(MECHANISMS[:3], lambda case, m: f"{found.efficiency(case, m):.3f}"),
            "Mean straggler effect:\n",
            _by_case(MECHANISMS, lambda case, m: f"{found.straggler(case, m):.1%}"),
            "Gain of TAO with 1 worker and with several, and step time under TAO with transfers "
            "out of order over\nthat without:\n",
            columns(
                ["model", "batch", "S", "1 worker", f"{WORKERS} workers", "disorder"],
                [_scaled(found, case) for case in cases()],
            ),
        )
    )


def _by_case(names: Sequence[str], cell: Callable[[Case, str], str]) -> str:
    return columns(
        ["model", *names], [[case.name, *(cell(case, name) for name in names)] for case in cases()]
    )


def _scaled(found: Measured, case: Case) -> list[str]:
    longer = found.disordered[case].time.mean() / found.step_time(case, TAO) - 1
    return [
        case.name,
        str(case.batch),
        f"{float(bounds(case).speedup):.2f}",
        signed(found.speedup_alone(case, TAO), 1),
        signed(found.speedup(case, TAO), 1),
        signed(longer, 2),
    ]


def signed(value: float, digits: int) -> str:
    """Write a change; none has no sign."""
    text = f"{value:+.{digits}%}"
    return text[1:] if float(text[1:-1]) == 0 else text


def attainable(found: Measured) -> str:
    """Lay out what is proven, and the gap and the share of ``E*`` of every order."""
    header = ["model", "ops", "status", "makespan", "proven", "E*", "over eq. 2"]
    shares = {case: [_share(found, case, name) for name in ORDERS] for case in cases()}
    return "\n".join(
        (
            columns(header, [_row(found, case) for case in cases()]),
            "Gap to the best known order, mean and worst:\n",
            _by_case(ORDERS, lambda case, name: "{:.3%} {:.3%}".format(*gap(found, case, name))),
            "Mean E by that of the best known order, E/E*:\n",
            columns(["model", *ORDERS], [[case.name, *row] for case, row in shares.items()]),
        )
    )


def _share(found: Measured, case: Case, name: str) -> str:
    best = float(found.attainable[case].efficiency[0])
    return f"{gap(found, case, name)[2] / best:.4f}" if best else "–"


def _row(found: Measured, case: Case) -> list[str]:
    best, result = found.attainable[case], found.solved[case]
    low, high = map(float, best.efficiency)
    loose = [*map(float, best.looseness)]
    return [
        case.name,
        str(instance(case).vertices),
        str(result.status),
        str(best.makespan),
        str(best.proven),
        f"{high:.4f}" if best.optimal else f"{low:.4f}–{high:.4f}",
        f"{loose[0]:.2%}" if best.optimal else f"{loose[0]:.2%}–{loose[1]:.2%}",
    ]
