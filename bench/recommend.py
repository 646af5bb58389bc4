"""Which heuristic is best where, measured against proven optima of small instances of all families.

    python bench/recommend.py measure [-o FILE] [--cases 10000] [--part 0/1]
    python bench/recommend.py train [FILE ...] [-o TREE]

``measure`` draws one instance after another, proves its optimum and runs every strategy. It goes
on where it was stopped; ``--part 0/2`` and ``1/2`` share the cases among two processes, each with
a file of its own. ``train`` needs ``optpart[recommend]``; it writes the tree of ``optpart
recommend``. What was measured is kept in ``bench/results/recommend/runs.csv.xz``.
"""

from __future__ import annotations

import argparse
import lzma
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.store import RESULTS, ROOT
from optpart.base.files import ANY, write_text
from optpart.exact.enumeration import enumerate_all
from optpart.interop.formats.json import pretty
from optpart.interop.generate import families
from optpart.interop.generate.small import small
from optpart.interop.generate.workflow import instance as workflow
from optpart.methods.cpsat import cpsat
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.result import Budget, Status
from optpart.study.recommend import FAILED, features
from optpart.study.run import Run, execute
from optpart.study.worst import FAMILIES
from optpart.study.worst.draft import drawn

#: The strategies that are compared.
STRATEGIES = (
    "heft", "heft+pct", "heft-groups", "heft-lookahead", "peft", "cpop", "etf", "dls", "min-min",
    "sufferage", "critical-path+pct", "mite+pct", "hash+pct", "fastest+pct",
    "contiguous-split+pct",
)  # fmt: skip

RUNS = RESULTS / "recommend" / "runs.csv.xz"
TREE = ROOT / "optpart" / "study" / "recommend.json"

#: Strategies to choose from, leaves of the tree, and instances in each, at least.
_CHOSEN, _LEAVES, _IN_LEAF = 8, 16, 60

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


def lines(path: Path) -> list[str]:
    """Return the lines of a file, which may be compressed, without its header."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        return file.read().splitlines()[1:]


def table(paths: list[Path]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return families, features and logarithms of ratios of all cases with a proven optimum."""
    families_, known, ratios = [], [], []
    for line in (line for path in paths for line in lines(path)):
        number, best, *found = line.split(",")
        if best and Fraction(best):
            family, instance = case(int(number))
            families_.append(family)
            known.append([*features(instance).values()])
            ratios.append([math.log(Fraction(x) / Fraction(best)) if x else math.log(FAILED)
                           for x in found])  # fmt: skip
    found = np.array(ratios)
    assert found.min() >= 0, "a schedule is shorter than an optimum"
    return families_, np.array(known), np.minimum(found, math.log(FAILED))


def shortlist(ratios: np.ndarray) -> list[int]:
    """Return the strategies of which the best for each instance is best, added one by one."""
    chosen: list[int] = []
    for _ in range(_CHOSEN):
        rest = [i for i in range(ratios.shape[1]) if i not in chosen]
        chosen.append(min(rest, key=lambda i: ratios[:, [*chosen, i]].min(axis=1).mean()))
    return chosen


def fitted(known: np.ndarray, ratios: np.ndarray) -> Any:
    """Fit a tree that predicts the logarithm of the ratio of every strategy."""
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_leaf_nodes=_LEAVES, min_samples_leaf=_IN_LEAF).fit(
        known, ratios
    )


def held_out(known: np.ndarray, ratios: np.ndarray, folds: np.ndarray) -> dict[str, Any]:
    """Return geometric means of ratios on instances of each fold, without it in the training."""
    tree, single, oracle = [], [], []
    for fold in np.unique(folds):
        test, train = folds == fold, folds != fold
        chosen = shortlist(ratios[train])
        picked = fitted(known[train], ratios[train][:, chosen]).predict(known[test]).argmin(axis=1)
        mine = ratios[test][:, chosen]
        tree += mine[np.arange(len(mine)), picked].tolist()
        single += ratios[test][:, ratios[train].mean(axis=0).argmin()].tolist()
        oracle += ratios[test].min(axis=1).tolist()
    means = {"tree": tree, "single": single, "oracle": oracle}
    failed = {name: np.mean(np.array(each) >= math.log(FAILED)) for name, each in means.items()}
    print(
        {name: round(float(share), 4) for name, share in failed.items()},
        "at 10 or without schedule",
    )
    return {
        "best": STRATEGIES[int(ratios.mean(axis=0).argmin())],
        **{name: round(math.exp(np.mean(each)), 4) for name, each in means.items()},
    }


def train(paths: list[Path], output: Path) -> None:
    """Measure the held-out error, and write the tree of all cases."""
    names, known, ratios = table(paths)
    rng = np.random.default_rng(0)
    folds = {
        "seed": held_out(known, ratios, rng.integers(10, size=len(names))),
        "family": held_out(known, ratios, np.unique(names, return_inverse=True)[1]),
    }
    chosen = shortlist(ratios)
    tree = fitted(known, ratios[:, chosen]).tree_
    columns = [*features(case(0)[1])]

    def node(i: int) -> dict[str, Any]:
        if tree.children_left[i] < 0:
            means = [round(float(x), 4) for x in tree.value[i][:, 0]]
            return {"instances": int(tree.n_node_samples[i]), "mean_log": means}
        return {
            "feature": columns[tree.feature[i]],
            "limit": float(f"{tree.threshold[i]:.4g}"),
            "low": node(tree.children_left[i]),
            "high": node(tree.children_right[i]),
        }

    document = {
        "instances": len(names),
        "families": sorted({*names}),
        "strategies": [STRATEGIES[i] for i in chosen],
        "ranges": {name: [float(known[:, i].min()), float(known[:, i].max())]
                   for i, name in enumerate(columns)},
        "held_out": folds,
        "root": node(0),
    }  # fmt: skip
    write_text(output, pretty(document) + "\n", ANY)
    means = sorted(zip(np.exp(ratios.mean(axis=0)).round(3), STRATEGIES, strict=True))
    print(len(names), "instances;", ", ".join(f"{name} {mean}" for mean, name in means))
    print(folds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    one = steps.add_parser("measure")
    one.add_argument("-o", "--output", type=Path, default=RUNS.with_suffix(""))
    one.add_argument("--cases", type=int, default=10_000)
    one.add_argument("--part", default="0/1")
    other = steps.add_parser("train")
    other.add_argument("tables", type=Path, nargs="*", default=[RUNS])
    other.add_argument("-o", "--output", type=Path, default=TREE)
    options = parser.parse_args()
    if options.step == "measure":
        measure(options.output, options.cases, options.part)
    else:
        train(options.tables, options.output)


if __name__ == "__main__":
    main()
