"""Throughput of serving: brute force on tiny clusters, published values, and forged plans."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart.applications.serving import helix
from optpart.applications.serving.bound import area_bound
from optpart.applications.serving.exact import solve
from optpart.applications.serving.plan import Interval, Plan, route, violations
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
    choices: list[list[Interval]] = [
        [
            None,
            *(
                (s, s + k)
                for k in range(1, len(machine.rates) + 1)
                for s in range(serving.layers - k + 1)
            ),
        ]
        for machine in serving.machines
    ]
    return max(route(serving, held).through(serving.sink) for held in product(*choices))


@pytest.mark.parametrize("seed", range(12))
def test_plans_bounds_and_the_model_agree_with_brute_force(seed: int) -> None:
    serving = drawn(seed)
    best, bound, end = optimum(serving), area_bound(serving), now() + 60
    assert bound >= best
    if best:
        assert Sweep(serving, int(best * serving.unit), end).passes()
    solved = solve(serving, Fraction(0), bound, end)
    assert solved is not None
    assert solved[1] == best == route(serving, solved[0]).through(serving.sink)
    plan = in_blocks(serving, bound, end)
    better = improved(serving, plan, best, now() + 0.05, seed)
    assert plan.through(serving.sink) <= better.through(serving.sink) <= best
    assert list(violations(serving, plan)) == list(violations(serving, better)) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_area_bound_is_where_the_area_ends(seed: int) -> None:
    from optpart.applications.serving.bound import area

    serving = drawn(seed)
    bound, step = area_bound(serving), Fraction(1, 10**6)
    assert area(serving, bound) == serving.layers * bound
    assert area(serving, bound + step) < serving.layers * (bound + step)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_a_small_cluster_is_solved(small: Path, run: Run) -> None:
    served = op.serve(small, seconds=20)
    assert (served.throughput, served.status, served.gap) == (Fraction(6), "OPTIMAL", 0)
    assert optimum(served.serving) == 6
    shown = run("serve", str(small), "--time-limit", "20")
    assert (shown.code, shown.out.splitlines()[0].rpartition(",")[0]) == (
        0,
        f"small: OPTIMAL, 6 tokens/s, at most 6 (by {served.proof}), gap 0",
    )
    (small.parent / "long.toml").write_text(SMALL.replace("layers = 4", "layers = 9"))
    assert run("serve", str(small.parent / "long.toml")).code == 3


def _first(change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def mutate(document: dict[str, Any]) -> None:
        document["flows"][0] = change(document["flows"][0])

    return mutate


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
        (_first(lambda f: [f[1], f[1], f[2]]), "there is no link"),
        (_first(lambda f: [*f[:2], "1/2"]), "tokens/s enter"),
        (_first(lambda f: [*f[:2], "8"]), "exceed"),
        (_first(lambda f: [*f[:2], "-1"]), "the flow is negative"),
    ],
)
def test_forged_plans_are_rejected(
    small: Path, mutate: Callable[[dict[str, Any]], None], fault: str, run: Run
) -> None:
    path, serving = small.parent / "plan.json", read(small)
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
        ("rates = [6, 4]", "rates = []", "rates: is empty"),
        ("rates = [6, 4]", "rates = [6, 0]", r"device\[1\].rates\[1\]: is 0"),
        ('name = "b"', 'name = "a1"', "'a1' is taken"),
        ("bandwidth = 70", "bandwith = 70", "unknown key"),
    ],
)
def test_faults_of_files_are_one_line(small: Path, old: str, new: str, fault: str) -> None:
    small.write_text(SMALL.replace(old, new))
    with pytest.raises(op.InputError, match=fault):
        read(small)


needs_helix = pytest.mark.skipif(not HELIX.exists(), reason="needs the data of Helix")


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
    large = "24" in cluster or "42" in cluster
    model = "llama2_70b" if large else "llama1_30b"
    serving = helix.read(EVALUATION / cluster, HELIX / "simulator" / "model_manager" / model)
    routed = route(serving, helix.read_layers(EVALUATION / plan / "ilp_sol.ini", serving))
    stated = re.search(r"value = (\S+)", (EVALUATION / plan / "ilp_solution.sol").read_text())
    assert stated is not None
    assert list(violations(serving, routed)) == []
    # Of the larger ones, the solver's tolerances are in the value.
    assert float(routed.through(serving.sink)) == pytest.approx(
        float(stated[1]), rel=1e-8 if large else 1e-15
    )


@needs_helix
def test_the_best_plans_of_helix_are_proven() -> None:
    models = HELIX / "simulator" / "model_manager"
    for cluster, model, best in (
        ("ablation/config/cluster10.ini", "llama1_30b", 286.5874097546421),
        ("single_cluster/config/cluster24.ini", "llama2_70b", 2045.6410473362616),
    ):
        served = serve(helix.read(EVALUATION / cluster, models / model), 60)
        assert (served.status, float(served.throughput)) == ("OPTIMAL", best)


def test_a_plan_without_flow_is_valid() -> None:
    serving = drawn(0)
    assert list(violations(serving, Plan((None,) * len(serving.machines), {}))) == []
