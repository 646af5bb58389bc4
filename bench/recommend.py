"""Which heuristic is best where, measured against proven optima of small instances of all families.

    python bench/recommend.py measure [-o FILE] [--cases 10000] [--part 0/1]
    python bench/recommend.py train [-o FILE]

``measure`` draws one instance after another, proves its optimum and runs every strategy. It goes
on where it was stopped; ``--part 0/2`` and ``1/2`` share the cases among two processes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from bench.store import RESULTS
from optpart.exact.enumeration import enumerate_all
from optpart.interop.generate import families
from optpart.interop.generate.small import small
from optpart.interop.generate.workflow import instance as workflow
from optpart.methods.cpsat import cpsat
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.result import Budget, Status
from optpart.study.run import Run, execute
from optpart.study.worst import FAMILIES
from optpart.study.worst.draft import drawn

#: The strategies that are compared.
STRATEGIES = (
    "heft", "heft+pct", "heft-groups", "heft-lookahead", "peft", "cpop", "etf", "dls", "min-min",
    "sufferage", "critical-path+pct", "mite+pct", "hash+pct", "fastest+pct",
    "contiguous-split+pct",
)  # fmt: skip

_CCR = (0.1, 0.3, 1.0, 3.0, 10.0)

#: Up to this many vertices, enumeration proves the optimum, beyond it CP-SAT, in this
#: deterministic time.
_ENUMERATED, _EFFORT = 8, 0.5

_Rng = np.random.Generator


def _small(rng: _Rng, seed: int, devices: int, **constraints: object) -> Instance:
    return small(int(rng.integers(6, 13)), devices, seed=seed, ccr=_ccr(rng), **constraints)  # type: ignore[arg-type]


def _ccr(rng: _Rng) -> float:
    return float(rng.choice(_CCR))


def _draft(name: str) -> Callable[[_Rng, int, int], Instance]:
    def draw(rng: _Rng, seed: int, devices: int) -> Instance:
        ratio = Fraction(str(_ccr(rng)))
        return drawn(FAMILIES[name], int(rng.integers(6, 11)), devices, ratio, rng).instance(name)

    return draw


def _workflow(shape: str, low: int, high: int) -> Callable[[_Rng, int, int], Instance]:
    return lambda rng, seed, k: workflow(shape, int(rng.integers(low, high)), k, seed)  # type: ignore[arg-type]


def _layers(rng: _Rng, seed: int, k: int) -> Instance:
    layers, width = ((2, 4), (3, 3), (4, 2), (5, 2))[rng.integers(4)]
    return families.stg_layers(layers, width, int(rng.integers(1, 3)), k, ccr=_ccr(rng), seed=seed)


#: Every family: a function of a generator, a seed and a number of devices.
DRAWN: dict[str, Callable[[_Rng, int, int], Instance]] = {
    "small": _small,
    "small-loose": lambda rng, seed, k: _small(rng, seed, k, memory="loose"),
    "small-tight": lambda rng, seed, k: _small(rng, seed, k, memory="tight"),
    "small-groups": lambda rng, seed, k: _small(rng, seed, k, groups=True, memory="loose"),
    "small-types": lambda rng, seed, k: _small(rng, seed, k, types=True),
    **{name: _draft(name) for name in FAMILIES},
    "chain": _workflow("chain", 5, 9),
    "fork-join": _workflow("fork-join", 3, 7),
    "blast": _workflow("blast", 3, 6),
    "epigenomics": _workflow("epigenomics", 1, 2),
    "fork-join-stages": lambda rng, seed, k: families.fork_join(
        int(rng.integers(2, 5)), 2, k, ccr=_ccr(rng), seed=seed),
    "in-tree": lambda rng, seed, k: families.tree("in", 3, int(rng.integers(2, 4)), k,
                                                  ccr=_ccr(rng), seed=seed),
    "out-tree": lambda rng, seed, k: families.tree("out", 3, int(rng.integers(2, 4)), k,
                                                   ccr=_ccr(rng), seed=seed),
    "fft": lambda rng, seed, k: families.fft(2, k, ccr=_ccr(rng), seed=seed),
    "gauss": lambda rng, seed, k: families.gauss(int(rng.integers(3, 5)), k, ccr=_ccr(rng),
                                                 seed=seed),
    "cholesky": lambda rng, seed, k: families.cholesky(3, k, ccr=_ccr(rng), seed=seed),
    "stencil": lambda rng, seed, k: families.stencil(3, int(rng.integers(2, 5)), k, ccr=_ccr(rng),
                                                     seed=seed),
    "gnp": lambda rng, seed, k: families.gnp(int(rng.integers(6, 13)), float(rng.uniform(0.1, 0.5)),
                                             k, ccr=_ccr(rng), seed=seed),
    "stg-layers": _layers,
}  # fmt: skip


def case(number: int) -> tuple[str, Instance]:
    """Return the family and the instance of a case; three in ten have transfers that queue."""
    rng = np.random.default_rng(number)
    family = [*DRAWN][number % len(DRAWN)]
    instance = DRAWN[family](rng, number, int(rng.integers(2, 5)))
    rule = rng.choice(["delay", "link", "port"], p=[0.7, 0.15, 0.15])
    return family, replace(instance, model=Model(str(rule), instance.model.memory))  # type: ignore[arg-type]


def measured(number: int) -> str:
    """Return a line: case, optimum (empty if it was not proven) and all makespans, exact."""
    _, instance = case(number)
    budget = Budget(10, 1, deterministic=_EFFORT)
    solve = enumerate_all if instance.vertices <= _ENUMERATED else cpsat
    best = solve(instance, budget=budget)
    if best.status is not Status.OPTIMAL:
        return f"{number},{',' * (len(STRATEGIES) - 1)}"
    found = [execute(Run(instance, name, 0, Budget(10, 1))).makespan for name in STRATEGIES]
    return ",".join(
        [str(number), *(str(x) if x is not None else "" for x in (best.makespan, *found))]
    )


def measure(path: Path, cases: int, part: str) -> None:
    """Append the lines of all cases of a part that are missing."""
    index, parts = map(int, part.split("/"))
    known = (
        {line.split(",")[0] for line in path.read_text().splitlines()} if path.exists() else set()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", buffering=1) as file:
        if not known:
            file.write(",".join(["case", "optimum", *STRATEGIES]) + "\n")
        for number in range(index, cases, parts):
            if str(number) not in known:
                file.write(measured(number) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["measure", "train"])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "recommend" / "runs.csv")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    measure(options.output, options.cases, options.part)


if __name__ == "__main__":
    main()
