"""Predictions of iteration times and of run times, on cases whose times are known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.reality import amp, sailor
from bench.reality.__main__ import with_fitted
from bench.reality.cuts import Layout
from bench.reality.layouts import best, ring_allreduce
from bench.reality.summary import Compared, correlation, groups, in_order, shared, tau
from bench.store import Row
from optpart.interop.costs.calibration import Measurement
from optpart.problem.graph import GraphBuilder
from optpart.problem.workload import Work, Workload

NANOSECONDS = 10**9


def test_a_ring_sends_all_but_one_part_twice() -> None:
    assert ring_allreduce(1, 100.0, 10.0) == 0
    assert ring_allreduce(2, 100.0, 10.0) == 10
    assert ring_allreduce(4, 100.0, 10.0) == 15


def of_stage(layout: Layout, way: str, pipeline: int, stage: int, held: slice) -> float:
    """Seconds of some layers on a stage."""
    return float(getattr(layout, way)[pipeline, stage, held].sum()) / NANOSECONDS


# --- plans ---------------------------------------------------------------------------------------


TRIALS = (
    "rank 0: ((1, {'mp_deg'\n"
    "Simulating result: None, [0, 10, 30], 2, {'mp_deg': tensor([4.]), 'dp_deg': tensor([2.]), "
    "'pp_deg': tensor([2.])}, with p_cost: tensor([1.5000]), r_cost: 1.25 \n"
    "Simulating result: None, [0, 30], 8, {'mp_deg': tensor([4.]), 'dp_deg': tensor([4.]), "
    "'pp_deg': tensor([1.])}, with p_cost: tensor([2.0000]), r_cost: inf \n"
)


def write_amp(folder: Path, launch: float, work: float) -> None:
    """Write trials, with equal times of all layers: on four GPUs, and on one."""
    folder.mkdir()
    for node in ("P3", "G4"):
        np.save(folder / f"gpt2_{node}_4.npy", np.full(30, launch))
        np.save(folder / f"gpt2_{node}_1.npy", np.full(30, work))
    (folder / "het_cluster_results.txt").write_text(TRIALS)


def test_a_trial_of_amp_that_launches_has_the_times_of_its_profile(tmp_path: Path) -> None:
    write_amp(tmp_path / "amp", launch=0.5, work=0.001)
    ran, failed = amp.plans(tmp_path)
    assert (ran.measured, ran.claimed, ran.doubt, ran.cuts) == (1.25, 1.5, "", (0, 10, 30))
    assert (failed.measured, failed.doubt) == (math.inf, "did not run")
    layout = ran.layout(blocking=True)
    assert layout.microbatches == 32 // (2 * 2)
    assert len(layout.forward) == 1  # both pipelines are alike
    assert of_stage(layout, "forward", 0, 0, slice(0, 10)) == pytest.approx(10 * 0.5)
    assert of_stage(layout, "forward", 0, 1, slice(10, 30)) == pytest.approx(20 * 0.5)
    assert of_stage(layout, "backward", 0, 1, slice(10, 30)) == pytest.approx(2 * 20 * 0.5)
    # From node 0 to node 2: 2 samples of 1024 × 1024 numbers of 2 bytes at 10 Gbit/s.
    assert of_stage(layout, "transfer", 0, 0, slice(9, 10)) == pytest.approx(2**22 / (10e9 / 8))
    # Layers 2 to 9 and the embedding, on four GPUs each of two nodes that share 10 Gbit/s.
    held = (12 * 1024**2 * 8 + 1024 * 52256) * 4
    assert layout.finish[0, 0, 10] / NANOSECONDS == pytest.approx(held / (10e9 / 8))


def test_a_trial_of_amp_that_computes_has_the_times_of_its_samples(tmp_path: Path) -> None:
    """Node 3 has T4, the others V100; two samples on four GPUs, all-reduces inside the node."""
    write_amp(tmp_path / "amp", launch=0.001, work=1.0)
    ran, _ = amp.plans(tmp_path)
    layout, slower = ran.layout(blocking=True), ran.layout(20, blocking=True)
    ring = 2 * 3 / 4 * 2 * 2**20 * 2
    fast, slow = ring / (170e9 / 8), ring / (50e9 / 8)
    # The first stage has layers 0 to 9, of which 2 to 9 are transformers; the last has 16.
    first, last = (0, 0, slice(0, 10)), (1, 1, slice(10, 30))
    on_v100 = 2 * 2 / 4 + 8 * (2 / 4 * 320 / 900 + 2 * fast)
    assert of_stage(layout, "forward", *first) == pytest.approx(on_v100)
    on_t4 = 4 * 2 / 4 + 16 * (2 / 4 + 2 * slow)
    assert of_stage(layout, "forward", *last) == pytest.approx(on_t4)
    on_t4 = 2 * 4 * 2 / 4 + 16 * (2 * 2 / 4 + 2 * slow)
    assert of_stage(layout, "backward", *last) == pytest.approx(on_t4)
    assert of_stage(slower, "forward", *last) > of_stage(layout, "forward", *last)
    assert (slower.forward[0, 0] == layout.forward[0, 0]).all()


def test_a_constant_is_fitted_to_the_other_plans() -> None:
    def row(measured: float) -> Row:
        result = {"variants": {"a": 1.0, "b": 2.0}, "measured": measured, "doubt": ""}
        return Row({}, result, {})

    rows = [row(1.0), row(1.0), row(2.0), row(2.0), row(2.0)]
    with_fitted(rows)
    assert [each.result["variant"] for each in rows] == ["b", "b", "a", "a", "a"]
    rows = [row(2.0), row(2.0), row(1.0)]
    with_fitted(rows)
    assert [each.result["fitted"] for each in rows] == [1.0, 1.0, 2.0]


def test_a_plan_of_sailor_has_the_times_of_its_layers(tmp_path: Path) -> None:
    write_sailor(tmp_path / "sailor", replicas=1, reduction=0.001)
    (plan,) = sailor.plans(tmp_path)
    assert (plan.name, plan.measured, plan.doubt, plan.cuts) == ("lab/N2", 3.5, "", (0, 2, 3))
    assert plan.traits["cluster"] == "mixed"
    layout = plan.layout(blocking=True)
    assert layout.microbatches == 8 // 2
    assert of_stage(layout, "forward", 0, 0, slice(0, 2)) == pytest.approx(0.1 + 0.1)
    assert of_stage(layout, "backward", 0, 0, slice(0, 2)) == pytest.approx(0.2 + 0.2)
    assert of_stage(layout, "forward", 0, 1, slice(2, 3)) == pytest.approx(0.3)
    # 50 bytes a sample at 5 bytes per second, the slower of both nodes.
    assert of_stage(layout, "transfer", 0, 0, slice(1, 2)) == pytest.approx(2 * 50 / 5)
    updates = [layout.finish[0, 0, 2], layout.finish[1, 2, 3]]
    assert np.array(updates) / NANOSECONDS == pytest.approx([0.02, 0.01])


def test_gradients_of_a_plan_of_sailor_are_reduced_between_nodes(tmp_path: Path) -> None:
    write_sailor(tmp_path / "sailor", replicas=2, reduction=2.0)
    (plan,) = sailor.plans(tmp_path)
    assert plan.doubt == ""
    # Two layers of 100 bytes on each of two GPUs, at 10 bytes per second; and the updates.
    finish = plan.layout(blocking=True).finish / NANOSECONDS
    expected = (2 * 200 / 10 + 0.02, 2 * 100 / 5 + 0.01)
    assert (finish[0, 0, 2], finish[1, 2, 3]) == pytest.approx(expected)


def test_a_reduction_without_replicas_is_doubted(tmp_path: Path) -> None:
    write_sailor(tmp_path / "sailor", replicas=1, reduction=5.0)
    (plan,) = sailor.plans(tmp_path)
    assert "without data parallelism" in plan.doubt


def write_sailor(folder: Path, *, replicas: int, reduction: float) -> None:
    def put(path: str, content: Any) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content))

    layer = {"params_bytes": 100, "act_output_bytes": 50, "act_mem_bytes": 60}
    put("llm_info.json", {"OPT-350": {"2": dict.fromkeys("012", layer)}})
    for gpu, forward, backward in (("RTX-3090", 0.1, 0.2), ("RTX-2080", 0.3, 0.6)):
        times = {"2": {"2": {key: [forward, backward, 0.01] for key in "012"}}}
        put(f"profiles/OPT-350/{gpu}/profile.json", times)
    rates = {"RTX-3090": {"2": [[0, 0, 0], 10]}, "RTX-2080": {"2": [[0, 0, 0], 5]}}
    put("network_coeffs_all_homo.json", {"inter": rates, "intra": {}})
    stages = [[[[[gpu, 2, "lab"]], 2]] * replicas for gpu in ("RTX-3090", "RTX-2080")]
    pipeline = {"layers_per_stage": [[0, 1], [2]], "tmp_per_stage": stages}
    plan = {"pipeline_list": [pipeline], "mbs": 2, "gbs": 8, "real": 3.5, "red_grads": reduction}
    plan["max_mem"] = 2400
    put("validation/lab/plan_config_N2.json", plan)


# --- best plans ----------------------------------------------------------------------------------


def test_the_best_plan_may_leave_a_slow_node_out(tmp_path: Path) -> None:
    """Crossing takes 20 s; the fast node alone takes 0.9 s for each of four microbatches."""
    write_sailor(tmp_path / "sailor", replicas=1, reduction=0.0)
    (case,) = sailor.cases(tmp_path, blocking=True)
    assert case.plans == ("lab/N2",)
    assert len(case.choices) == 5  # either node, both as replicas, or as stages in either order
    found = best(case)
    assert found.seconds == pytest.approx(4 * 3 * (0.1 + 0.2) + 3 * 0.01)
    assert found.bound == found.seconds
    assert found.plan == "1 × 1 stages, microbatch 2: 1 RTX-3090 3"


def test_memory_is_scaled_by_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan was modelled to hold 1,280 bytes, and held 2,400."""
    write_sailor(tmp_path / "sailor", replicas=1, reduction=0.0)
    # Two layers of 4 × 100 bytes, with 60 bytes of each of 2 × 2 samples under way.
    modelled = 2 * 4 * 100 + 2 * 2 * 2 * 60
    (case,) = sailor.cases(tmp_path, blocking=True)
    assert case.memory == f" (memory × {2400 / modelled:.2f})"
    whole = (3 * 4 * 100 + 3 * 2 * 60) * 2400 / modelled
    monkeypatch.setitem(sailor.MEMORY, "RTX-3090", whole - 1)
    (case,) = sailor.cases(tmp_path, blocking=True)
    assert best(case).plan == "1 × 1 stages, microbatch 2: 1 RTX-2080 3"


def test_what_did_not_run_is_no_choice(tmp_path: Path) -> None:
    write_amp(tmp_path / "amp", launch=0.01, work=0.03)
    (case,) = amp.cases(tmp_path, blocking=True)
    assert {choice.name for choice in case.choices} == {"mp4 dp2 pp2 mb2"}
    assert {choice.where for choice in case.choices} == {
        ("2 P3", "1 G4+1 P3"),
        ("1 G4+1 P3", "2 P3"),
    }
    layout = case.choices[0].layout
    assert not layout.fits[1, 29, 30]  # the loss alone


# --- summaries -----------------------------------------------------------------------------------


def test_errors_are_above_zero_where_too_much_was_predicted() -> None:
    assert Compared(3.0, 2.0).error == 0.5


def test_only_the_order_counts_for_the_correlation() -> None:
    pairs = [Compared(1, 1), Compared(100, 2), Compared(101, 50)]
    assert correlation(pairs) == pytest.approx(1)
    assert correlation([Compared(-p.predicted, p.measured) for p in pairs]) == pytest.approx(-1)


def test_groups_are_in_the_order_of_their_numbers() -> None:
    found = [Compared(1, 1, {"microbatch": text}) for text in ("16", "2", "2")]
    assert {k: len(v) for k, v in groups(found)["microbatch"].items()} == {"2": 2, "16": 1}
    assert list(groups(found)["microbatch"]) == ["2", "16"]


def test_only_pairs_of_one_set_that_took_unlike_times_are_in_order_or_not() -> None:
    one = [Compared(1, 1), Compared(2, 3), Compared(3, 2)]
    other = [Compared(9, 1), Compared(8, 1)]
    assert in_order([one, other]) == (2, 3)
    assert tau(one) == pytest.approx(1 / 3)


def test_what_is_far_off_has_in_common_what_the_others_have_not() -> None:
    def plan(microbatch: int, cluster: str) -> Compared:
        return Compared(1, 1, {"microbatch": str(microbatch), "cluster": cluster})

    off = [plan(1, "mixed"), plan(2, "mixed")]
    found = shared(off, [plan(1, "like"), plan(16, "mixed"), plan(4, "like")])
    assert found.conditions == ("microbatch ≤ 2", "cluster = mixed")
    assert (found.off, found.others) == (2, 0)


# --- models --------------------------------------------------------------------------------------


def linear(flops: int, moved: int) -> float:
    return 1e-6 + 2e-11 * flops + 1e-10 * moved


def test_a_linear_device_is_predicted_at_every_level() -> None:
    from bench.reality.fits import LEVELS, fitted, predicted

    sizes = [(10**k, 10**m) for k in (3, 5, 7) for m in (3, 6)]
    rows = [Measurement("Conv", "contraction", f, m, linear(f, m)) for f, m in sizes]
    moved = np.array([20_000], dtype=np.int64)
    work = Work(("Conv",), ("float32",), np.array([50_000]), moved, moved)
    workload = Workload(GraphBuilder().vertex("a").build(), work)
    time = linear(50_000, 40_000)
    for level in LEVELS:
        found = predicted(workload, {"a": time}, fitted(rows, level))
        assert found.total == pytest.approx(time, rel=1e-3)
        assert found.error == pytest.approx(0, abs=1e-3)


def event(name: str, microseconds: int) -> dict[str, Any]:
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": microseconds}


def test_a_profile_gives_the_median_of_the_runs_after_the_warm_up() -> None:
    pytest.importorskip("onnxruntime")
    from bench.reality.runtime import medians

    other = {"cat": "Session", "name": "model_run", "dur": 7}
    events = [event("a", t) for t in (90, 1, 2, 9)] + [event("b", t) for t in (8, 5, 5, 5)]
    assert medians([*events, other], 1) == pytest.approx({"a": 2e-6, "b": 5e-6})


def test_a_profile_with_missing_runs_is_refused() -> None:
    pytest.importorskip("onnxruntime")
    from bench.reality.runtime import medians

    with pytest.raises(ValueError, match="number of executions"):
        medians([event("a", 1), event("a", 1), event("b", 1)], 0)


def test_the_nodes_of_a_written_model_are_the_vertices_of_the_workload(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from bench.reality import models
    from bench.reality.runtime import options, session
    from optpart.interop.formats.onnx import read

    path = tmp_path / "model.onnx"
    models.write("squeezenet", path)
    workload = read(models.FOLDER / "light_squeezenet.onnx")
    nodes = onnx.load(str(path), load_external_data=False).graph.node
    assert sorted(node.name for node in nodes) == sorted(workload.graph.names)
    loaded = session(path, options(threads=1))
    (output,) = loaded.run(None, models.inputs(loaded))
    assert np.isfinite(output).all()
    assert output.std() > 0


def test_drawn_weights_are_seeded_and_no_negative_variances() -> None:
    pytest.importorskip("onnxruntime")
    from bench.reality.models import weights

    assert (weights((8, 4), "a") == weights((8, 4), "a")).all()
    assert (weights((8, 4), "a") != weights((8, 4), "b")).any()
    assert (weights((100,), "a") > 0).all()
