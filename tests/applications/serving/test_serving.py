"""Throughput of serving: brute force on tiny clusters, published values, and forged plans."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart.applications.serving import helix
from optpart.applications.serving.bound import area, area_bound
from optpart.applications.serving.exact import solve
from optpart.applications.serving.plan import Interval, route, violations
from optpart.applications.serving.problem import Machine, Serving, read
from optpart.applications.serving.search import improved, in_blocks
from optpart.applications.serving.serve import faults, serve, write
from optpart.applications.serving.sweep import Sweep
from optpart.base.clock import now

HELIX = Path(__file__).parents[4] / "shared" / "data" / "helix"
EVALUATION = HELIX / "artifact_evaluation"

SMALL = """
layers = 4
activation = 10
bandwidth = 70
[[device]]
name = "a"
count = 2
rates = [9, 5, "7/2"]
[[device]]
name = "b"
rates = [6, 4]
"""


def drawn(seed: int) -> Serving:
    """Draw up to three machines on up to four layers, with links that may be slow or missing."""
    rng = random.Random(seed)
    n, layers = rng.randint(1, 3), rng.randint(2, 4)
    machines = tuple(
        Machine(f"m{i}", tuple(Fraction(rng.randint(1, 12), 2) for _ in range(rng.randint(1, 3))))
        for i in range(n)
    )
    links = {
        (u, v): rng.choice((None, None, Fraction(rng.randint(1, 4))))
        for u, v in product(range(n + 1), [*range(n), n + 1])
        if u != v and (u, v) != (n, n + 1) and rng.random() < 0.85
    }
    return Serving(f"drawn-{seed}", layers, machines, links)


def optimum(serving: Serving) -> Fraction:
    """Try all layers of all machines."""
    ranges = [*combinations(range(serving.layers + 1), 2)]
    choices: list[list[Interval]] = [
        [None, *(held for held in ranges if held[1] - held[0] <= len(machine.rates))]
        for machine in serving.machines
    ]
    return max(route(serving, held).through(serving.sink) for held in product(*choices))


@pytest.mark.parametrize("seed", range(12))
def test_plans_bounds_and_the_model_agree_with_brute_force(seed: int) -> None:
    serving = drawn(seed)
    best, bound, end = optimum(serving), area_bound(serving), now() + 60
    assert bound >= best
    assert area(serving, bound) == serving.layers * bound  # with any more, it is too little
    assert area(serving, bound + 1) < serving.layers * (bound + 1)
    if best:
        assert Sweep(serving, int(best * serving.unit), end).passes()
    solved = solve(serving, Fraction(0), bound, end)
    assert solved is not None
    assert solved[1] == best == route(serving, solved[0]).through(serving.sink)
    plan = in_blocks(serving, bound, end)
    better = improved(serving, plan, best, now() + 0.05, seed)
    assert plan.through(serving.sink) <= better.through(serving.sink) <= best
    assert list(violations(serving, plan)) == list(violations(serving, better)) == []


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path / "small.toml"


def test_a_small_cluster_is_solved(small: Path, run: Run) -> None:
    served = op.serve(small, seconds=20)
    assert (served.throughput, served.status, served.gap) == (Fraction(6), "OPTIMAL", 0)
    assert optimum(served.serving) == 6
    shown = run("serve", str(small), "--time-limit", "20")
    line = f"small: OPTIMAL, 6 tokens/s, at most 6 (by {served.proof}), gap 0"
    assert (shown.code, shown.out.splitlines()[0].rpartition(",")[0]) == (0, line)
    small.write_text(SMALL.replace("layers = 4", "layers = 9"))
    assert run("serve", str(small)).code == 3
    assert run("serve", str(small), "--model", "x").code == 2


@pytest.mark.parametrize(
    ("mutate", "fault"),
    [
        (lambda d: d.update(throughput="5"), "throughput is 6, not 5"),
        (lambda d: d.update(bound="4"), "bound 4 is below"),
        (lambda d: d.update(bound="7"), "status is OPTIMAL, but"),
        (lambda d: d.update(proof="area"), "not proven by the area"),
        (lambda d: d.update(throughput="0", bound="1", flows=[]), "not proven by the sweep"),
        (lambda d: d.update(proof="faith"), "proof 'faith' is unknown"),
        (lambda d: d["layers"].update(a0=None, a1=None, b=None), "do not follow each other"),
        (lambda d: d["layers"].update(b=[0, 3]), "b cannot hold layers 0 to 2"),
        (lambda d: d["flows"].append(["b", "b", "1"]), "there is no link"),
        (lambda d: d["flows"].pop(), "tokens/s enter"),
        (lambda d: d["flows"][0].__setitem__(2, "8"), "exceed"),
        (lambda d: d["flows"][0].__setitem__(2, "-1"), "the flow is negative"),
    ],
)
def test_forged_plans_are_rejected(
    small: Path, mutate: Callable[[dict[str, Any]], None], fault: str, run: Run
) -> None:
    path, serving = small.with_suffix(".json"), read(small)
    write(serve(serving, 20), path)
    assert faults(serving, path) == []
    document = json.loads(path.read_text())
    document["proof"] = "sweep"
    mutate(document)
    path.write_text(json.dumps(document))
    assert any(fault in each for each in faults(serving, path))
    assert run("serve", str(small), "--check", str(path)).code == 1


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("layers = 4", "layers = 0", "layers: is 0"),
        ("rates = [6, 4]", "rates = []", "rates: has no number"),
        ("rates = [6, 4]", "rates = [6, 0]", r"device\[1\].rates: has no"),
        ('name = "b"', 'name = "a1"', "'a1' is taken"),
        ("bandwidth = 70", "bandwith = 70", "unknown key"),
    ],
)
def test_faults_of_files_are_one_line(small: Path, old: str, new: str, fault: str) -> None:
    small.write_text(SMALL.replace(old, new))
    with pytest.raises(op.InputError, match=fault):
        read(small)


needs_helix = pytest.mark.skipif(not HELIX.exists(), reason="needs the data of Helix")


def helix_cluster(cluster: str) -> Serving:
    model = "llama2_70b" if re.search("24|42", cluster) else "llama1_30b"
    return helix.read(EVALUATION / cluster, HELIX / "simulator" / "model_manager" / model)


@needs_helix
@pytest.mark.parametrize(
    ("cluster", "plan"),
    [
        ("single_cluster/config/l4.ini", "single_cluster/layout_llama30b/ilp/l4"),
        ("distributed_clusters/config/t4.ini", "distributed_clusters/layout_llama30b/ilp/t4"),
        ("ablation/config/cluster10.ini", "ablation/layouts/quality"),
        ("single_cluster/config/cluster24.ini", "single_cluster/layout_llama70b/ilp"),
        ("ablation/config/3cluster24.ini", "ablation/layouts/raw_24"),
        ("ablation/config/cluster42.ini", "ablation/layouts/no_prune_42"),
    ],
)
def test_published_plans_have_their_published_value(cluster: str, plan: str) -> None:
    serving = helix_cluster(cluster)
    routed = route(serving, helix.read_layers(EVALUATION / plan / "ilp_sol.ini", serving))
    assert list(violations(serving, routed)) == []
    stated = (EVALUATION / plan / "ilp_solution.sol").read_text().split("value =")[1].split()[0]
    exact = 1e-8 if serving.layers == 80 else 1e-15  # the solver's tolerances are in larger ones
    assert float(routed.through(serving.sink)) == pytest.approx(float(stated), rel=exact)


@needs_helix
@pytest.mark.parametrize(
    ("cluster", "best"),
    [("ablation/config/cluster10.ini", 286.5874097546421),
     ("single_cluster/config/cluster24.ini", 2045.6410473362616)],
)  # fmt: skip
def test_the_best_plans_of_helix_are_proven(cluster: str, best: float) -> None:
    served = op.serve(helix_cluster(cluster))
    assert (served.status, float(served.throughput)) == ("OPTIMAL", best)
