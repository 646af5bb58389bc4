"""Predicted times against measured ones: models on this processor, and training on clusters.

    python bench/reality --data ../shared [--only models] [-o bench/results/reality]

First, ONNX Runtime runs the nine models of the onnx wheel here with one thread and with two, as two
devices ``cpu-1`` and ``cpu-2``. The time of a model is predicted from the measured times of its own
operations, and from fits to the other eight models. Then plans over both devices, with and without
limits of memory that force a split, are cut, executed part by part, and compared with what they
promise.

Then the iteration times that Sailor and AMP measured on clusters are predicted from their layer
times, and the best plans for the same clusters are searched; this measures nothing here.

Each measurement is kept in ``runs.jsonl``, so a stopped command continues where it was. The machine
should be idle and have two cores. ``--only`` does no more than that part.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from bench.output import machine
from bench.reality import amp, models, sailor
from bench.reality.fits import LEVELS, fitted, measurements, predicted
from bench.reality.layouts import Case, Plan, best
from bench.reality.runtime import Parts, options, profile, session, whole
from bench.reality.summary import Compared, correlation, groups, in_order, shared, signed, tau
from bench.store import RESULTS, Row, Store, Values
from optpart.api import solve
from optpart.base.files import ANY, write_text
from optpart.exporters.onnx_parts import write as write_parts
from optpart.exporters.plan import plan_of
from optpart.interop.costs.from_file import from_file
from optpart.interop.costs.offload import in_a_row
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats.onnx import read
from optpart.problem.cluster import Cluster, Device
from optpart.problem.workload import Workload

#: Devices, and the threads of each.
DEVICES = {"cpu-1": 1, "cpu-2": 2}
#: Bytes of the tensors whose handing over is measured.
HANDED = (2**14, 2**21)
#: Part of a model's weights that a device may hold, at most: without a limit, and split.
PARTS = (None, 0.6)
#: How long a plan is searched for, in seconds.
SEARCH = 20.0
RUNS = 15
SOURCES = {"Sailor": sailor, "AMP": amp}
PACKAGES = ("onnxruntime", "onnx", "numpy")
#: Predictions that are off by more than this are listed.
FAR_OFF = 0.15


# --- measuring -----------------------------------------------------------------------------------


def measure(store: Store, name: str) -> None:
    """Measure a model on both devices, and plans over both, as far as there are no rows."""
    asked: list[Values] = [
        {"part": "model", "model": name, "device": device, "runs": RUNS} for device in DEVICES
    ]
    plans: list[Values] = [
        {"part": "plan", "model": name, "most": most, "runs": RUNS} for most in PARTS
    ]
    if all(store.known(run) for run in (*asked, *plans)):
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        path = folder / "model.onnx"
        models.write(name, path)
        rows = []
        for run in asked:
            rows.append(store.run(run, partial(measured_model, path, run, folder)))
            said(rows[-1])
        times = {row.run["device"]: scaled(row.result) for row in rows}
        handed = store.run({"part": "hand over", "runs": RUNS}, partial(handing_over, folder))
        for run in plans:
            where = folder / str(run["most"])
            said(store.run(run, partial(measured_plan, path, times, handed.result, run, where)))


def measured_model(path: Path, run: Values, folder: Path) -> Values:
    """Measure a model as a whole, and each of its operations."""
    threads = DEVICES[run["device"]]
    loaded = session(path, options(threads))
    feeds = models.inputs(loaded)
    times = whole(partial(loaded.run, None, feeds), run["runs"])
    del loaded
    nodes = profile(path, threads, feeds, folder, run["runs"])
    return timed(times) | {"operations": nodes, "machine": machine(*PACKAGES)}


def scaled(result: Values) -> dict[str, float]:
    """Return the times of operations without what profiling adds: they make up the whole model."""
    times: dict[str, float] = result["operations"]
    factor = result["seconds"] / sum(times.values())
    return {name: seconds * factor for name, seconds in times.items()}


def handing_over(folder: Path) -> Values:
    """Measure what a part costs beyond its operations: a call, and tensors in and out.

    Two parts of one operation, one on each device, call each other; the operation itself takes as
    long as one of many in a row.
    """
    found = {}
    for size in HANDED:
        one, many = folder / f"one-{size}.onnx", folder / f"many-{size}.onnx"
        models.write_row(one, size, 1)
        models.write_row(many, size, 50)
        alternating = [session(one, options(threads)) for threads in DEVICES.values()]
        feeds = models.inputs(alternating[0])
        (name,) = feeds

        def passed(parts: list[Any] = alternating, given: Any = feeds, name: str = name) -> None:
            value = given[name]
            for _ in range(10):
                for part in parts:
                    (value,) = part.run(None, {name: value})

        both = median(whole(passed, RUNS)) / 10
        for threads in DEVICES.values():
            row = session(many, options(threads))
            both -= median(whole(partial(row.run, None, feeds), RUNS)) / 50
        found[str(size)] = max(both / 2, 0.0)
    return {"hand over": found, "seconds": found[str(HANDED[0])], "machine": machine(*PACKAGES)}


def measured_plan(
    path: Path, times: dict[str, dict[str, float]], handed: Values, run: Values, folder: Path
) -> Values:
    """Plan a model over both devices by its measured times, cut it, and run the parts."""
    workload = with_times(read(path), times)
    workload = replace(workload, graph=in_a_row(workload.graph))  # both share two cores
    small, large = (Fraction(round(handed["hand over"][str(size)] * 1e9)) for size in HANDED)
    rate = (HANDED[1] - HANDED[0]) / max(large - small, Fraction(1))
    limit = most_held(workload, run["most"])
    devices = Cluster.of(
        [Device(name, memory=limit) for name in DEVICES], latency=small, bandwidth=rate
    )
    costed = from_file(workload, NamedCluster(devices, (None,) * len(devices), fixed_units=True))
    result = solve(costed.instance, seconds=SEARCH, workers=2)
    plan = plan_of(result)
    folder.mkdir()
    write_parts(plan, path, folder / "parts")
    parts = Parts(folder / "parts", {device: DEVICES[device] for device in plan.devices})
    loaded = session(path, options(threads=1))
    feeds = models.inputs(loaded)
    expected = loaded.run(None, feeds)
    del loaded
    for output, value in zip(parts.run(feeds), expected, strict=True):
        if not np.allclose(output, value, rtol=1e-3, atol=1e-5):
            raise AssertionError(f"{path}: the parts compute something else")
    where = list(plan.device.values())
    assert result.makespan is not None
    return timed(whole(lambda: parts.run(feeds), RUNS)) | {
        "parts": len(parts.parts),
        "operations": {device: where.count(device) for device in DEVICES},
        "predicted": float(result.makespan) / 1e9,
        "status": str(result.status),
        "machine": machine(*PACKAGES),
    }


def most_held(workload: Workload, most: float | None) -> int | None:
    """Return the memory of a device, which holds the largest operation in any case."""
    if most is None:
        return None
    graph = workload.graph
    held = [int(size) for size in graph.memory.fractions()]
    tensors = [int(size) for size in graph.tensor_size.fractions()]
    return max(int(most * sum(held)), max(held)) + 4 * max(tensors)


def timed(times: list[float]) -> Values:
    """Return median and interquartile range in seconds."""
    low, middle, high = quantiles(times, n=4)
    return {"seconds": middle, "range": high - low}


def with_times(workload: Workload, times: dict[str, dict[str, float]]) -> Workload:
    """Give a workload measured times, in whole nanoseconds."""
    names = workload.graph.names
    return replace(
        workload,
        measured={
            device: tuple(Fraction(round(column[name] * 1e9)) for name in names)
            for device, column in times.items()
        },
    )


def said(row: Row) -> None:
    parts = ", ".join(str(value) for value in row.run.values())
    print(f"{parts}: {row.result['seconds']:.4g} s", file=sys.stderr, flush=True)


# --- predicting training -------------------------------------------------------------------------


def predicted_plan(plan: Plan) -> Values:
    return {
        "measured": plan.measured if math.isfinite(plan.measured) else None,
        "blocking": plan.seconds(blocking=True),
        "overlapping": plan.seconds(blocking=False),
        "claimed": plan.claimed,
        "variants": {f"{rate} Gbit/s": plan.seconds(rate, blocking=True) for rate in plan.rates},
        "traits": dict(plan.traits),
        "doubt": plan.doubt,
    }


def best_plan(case: Case) -> Values:
    found = best(case)
    return {
        "predicted": found.seconds,
        "bound": found.bound,
        "plan": found.plan,
        "layouts": found.layouts,
        "measured_plans": list(case.plans),
        "memory": case.memory,
    }


def train(store: Store, data: Path) -> None:
    """Predict all plans, and search the best ones, as far as there are no rows."""
    for name, source in SOURCES.items():
        for blocking in (True, False):
            for case in source.cases(data / "data", blocking=blocking):
                run = {"part": "best", "source": name, "cluster": case.name, "blocking": blocking}
                store.run(run, partial(best_plan, case))
    for name, source in SOURCES.items():
        for plan in source.plans(data / "data"):
            run = {"part": "training", "source": name, "plan": plan.name}
            store.run(run, partial(predicted_plan, plan))


# --- the bench -----------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser("reality", description="compare predicted with measured times")
    parser.add_argument("--data", type=Path, required=True, help="with data/sailor and data/amp")
    parser.add_argument("--only", choices=("models", "training"), help="no more than that part")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "reality")
    given = parser.parse_args()
    store = Store(given.output / "runs.jsonl")
    for name in models.NAMES if given.only != "training" else ():
        measure(store, name)
    if given.only != "models":
        train(store, given.data)
    rows = store.rows()
    text = "\n".join([*of_models(rows), *of_plans(rows), *of_training(rows)])
    write_text(given.output / "table.txt", text + "\n", ANY)
    print(text)


# --- tables --------------------------------------------------------------------------------------


def of_models(rows: list[Row]) -> Iterator[str]:
    """Compare models with predictions."""
    chosen = [row for row in rows if row.run["part"] == "model"]
    if not chosen:
        return
    yield "MODELS IN ONNX RUNTIME"
    yield from sorted({row.result["machine"] for row in chosen})
    yield (
        "The models of the onnx wheel, batch 1, float32, drawn weights; graph optimisations are "
        "off, so that every\nnode is executed as it stands. cpu-1: one thread, cpu-2: two. "
        f"measured: median of {chosen[0].run['runs']} runs after a warm-up, ±\n"
        "half of the interquartile range; ops: sum of the medians of its own operations, in a "
        "profile of other runs;\nall, class, type: fitted to the operations of the other models, "
        "launch + FLOPs + bytes, with coefficients for\nall operations, each class of them, or "
        "each operator type. Errors: (predicted − measured) / measured. Right: median\nerror of a "
        "single operation against its own profile, without sign."
    )
    yield ""
    yield (
        f"{'model':14}{'device':8}{'ops':>5}{'measured':>17}{'ops':>8}"
        + "".join(f"{level:>8}" for level in LEVELS)
        + "   one op:"
        + "".join(f"{level:>7}" for level in LEVELS)
    )
    workloads = {row.run["model"]: workload_of(row.run["model"]) for row in chosen}
    errors: dict[str, dict[str, list[float]]] = {device: {} for device in DEVICES}
    for device in DEVICES:
        here = {row.run["model"]: row.result for row in chosen if row.run["device"] == device}
        table = {name: measurements(workloads[name], here[name]["operations"]) for name in here}
        for name, result in here.items():
            others = [each for other, found in table.items() if other != name for each in found]
            total, own = result["seconds"], sum(result["operations"].values())
            values = [own / total - 1]
            single = []
            for level in LEVELS if others else ():
                found = predicted(workloads[name], result["operations"], fitted(others, level))
                values.append(found.total / total - 1)
                single.append(found.error)
            for key, value in zip(("ops", *LEVELS), values, strict=False):
                errors[device].setdefault(key, []).append(value)
            for key, value in zip(LEVELS, single, strict=False):
                errors[device].setdefault(f"one {key}", []).append(value)
            yield (
                f"{name:14}{device:8}{len(result['operations']):>5}"
                f"{1e3 * total:>9.2f} ms ±{result['range'] / total / 2:<4.0%}"
                + "".join(f"{value:>+8.0%}" for value in values)
                + " " * 10
                + "".join(f"{value:>7.0%}" for value in single)
            )
    kinds = ("ops", *LEVELS)
    for device, by_kind in errors.items():
        yield (
            f"{'median error':14}{device:8}{'':22}"
            + "".join(f"{middle(by_kind.get(key, [])):>8}" for key in kinds)
            + " " * 10
            + "".join(f"{middle(by_kind.get(f'one {key}', [])):>7}" for key in LEVELS)
        )
    yield ""


def middle(errors: list[float]) -> str:
    return f"{median(map(abs, errors)):.0%}" if errors else "–"


@cache
def workload_of(name: str) -> Workload:
    return read(models.FOLDER / f"light_{name}.onnx")


def of_plans(rows: list[Row]) -> Iterator[str]:
    """Compare executed plans with the sum of their operations."""
    chosen = [row for row in rows if row.run["part"] == "plan"]
    if not chosen:
        return
    yield "PLANS CUT AND EXECUTED"
    handed = next(row.result["hand over"] for row in rows if row.run["part"] == "hand over")
    took = ", ".join(
        f"{seconds * 1e6:.0f} µs for {int(size) // 1024} KiB" for size, seconds in handed.items()
    )
    yield (
        f"Planned by optpart in at most {SEARCH:g} s on the measured times of both devices, scaled "
        "so that they make up the\nmeasured whole, and the measured cost of handing over "
        f"({took}). most: what a device\nmay hold of the weights. Operations one after the other, "
        "as the devices share two cores. Cut into a model per device\nand block, and run. "
        "predicted: the makespan of the plan; measured: median of the runs; alone: the uncut model "
        "on the\nfaster device, measured. ?: not proven optimal."
    )
    yield ""
    yield (
        f"{'model':14}{'most':>6}{'parts':>6}{'on cpu-1':>10}{'on cpu-2':>10}{'predicted':>14}"
        f"{'measured':>18}{'error':>8}{'alone':>12}"
    )
    errors = []
    alone: dict[str, list[float]] = {}
    for row in rows:
        if row.run["part"] == "model":
            alone.setdefault(row.run["model"], []).append(row.result["seconds"])
    for row in chosen:
        found, total = row.result, row.result["seconds"]
        errors.append(found["predicted"] / total - 1)
        yield (
            f"{row.run['model']:14}"
            + ("–" if row.run["most"] is None else f"{row.run['most']:.0%}").rjust(6)
            + f"{found['parts']:>6}"
            + "".join(f"{found['operations'][device]:>10}" for device in DEVICES)
            + f"{1e3 * found['predicted']:>11.2f} ms{'' if found['status'] == 'OPTIMAL' else '?':1}"
            + f"{1e3 * total:>8.2f} ms "
            f"±{found['range'] / total / 2:<4.0%}{errors[-1]:>+8.0%}"
            f"{1e3 * min(alone[row.run['model']]):>9.2f} ms"
        )
    yield f"median |error| {middle(errors)}"
    yield ""


NOTES = {
    "Sailor": (
        "OPT-350; layer times by Sailor, measured for the microbatch and tensor-parallel degree of "
        "the plan; update: the sum\nof its layers. A stage replica is one node. Activations cross "
        "once a node, at the fitted rate between nodes of the\nslower one, for messages without "
        "end; all-reduce: ring over nodes, parameters of all GPUs of a node, slowest node.\n"
        "That activations cross once a node, not once a GPU, and that transfers may block, was "
        "chosen in view of plans that\ntherefore do not count. Sailor's own predictions are in no "
        "file at hand."
    ),
    "AMP": (
        "GPT-2, 24 layers, 3 nodes of 4 V100 (10 Gbit/s out, 170 inside) and 1 "
        "of 4 T4 (50); layer times by AMP, forward, of one\n"
        "sample. A pass takes no less than that, and no less than the work of "
        "its samples: on the T4, what one GPU measured by\n"
        "the degree, and two all-reduces of activations; on a V100, a "
        "transformer layer has the T4's work · 320/900, the ratio of\n"
        "their memory bandwidths, since its profile shows launches: it is no "
        "shorter on four GPUs. Backward: twice the\n"
        "computation, as many all-reduces. float16, gradients float32, as in "
        "AMP's scripts; no update. No sum over the two tied\n"
        "embeddings either: plans with several stages would come out too slow. "
        "All-reduce: ring; the rings of a stage's\n"
        "tensor-parallel ranks share a node's link, as do transfers. fitted: "
        "blocking, with the rate inside the T4 node that fits\n"
        "all other plans best, instead of 50 Gbit/s (leave-one-out). claimed: "
        "AMP's own prediction.\n"
        "This model was chosen in view of the measured times. Before, a "
        "microbatch of b took b times the profile of one sample,\n"
        "all in float32: median 31%, rank correlation 0.53. The outliers have "
        "in common that they are tensor-parallel within\n"
        "several stages and have microbatches of one or two samples: they took "
        "up to twice as long as the same plan with four."
    ),
}


BEST = {
    "Sailor": (
        "The family: all or some of the nodes, each a tensor-parallel group of all of its GPUs; as "
        "many replicas of every stage;\nany node for each; contiguous layers, any cuts; any "
        "measured microbatch that divides the batch; 1F1B. Memory: parameters,\ngradients and two "
        "tensors of Adam, and what the profile says that layers keep of microbatches under way, "
        "times the factor\nbehind the cluster, the largest of measured to so modelled peaks there; "
        "96 GB for GH-96, 24 for RTX-3090 and Titan-RTX,\n11 for RTX-2080 (a measured plan held "
        "9.4 on each GPU, so these must be the larger variant)."
    ),
    "AMP": (
        "The family: all 16 GPUs; degrees and microbatches of trials that ran (the source gives no "
        "limits of memory, so what did\nnot run is left out); any place for the node of T4; "
        "contiguous layers, any cuts, but the loss stays with the logits; 1F1B.\nThe model was "
        "chosen in view of the trials, whose cuts AMP chose by its own, in which T4 and V100 are "
        "closer to each other."
    ),
}


def of_training(rows: list[Row]) -> Iterator[str]:
    """Compare iterations of training with predictions."""
    for source in SOURCES:
        here = [row for row in rows if row.run.get("source") == source]
        chosen = [row for row in here if row.run["part"] == "training"]
        if not chosen:
            continue
        yield f"TRAINING, MEASURED BY {source.upper()}"
        yield (
            "An instance per plan: passes of all microbatches in the order 1F1B, transfers, "
            "all-reduces, updates.\nblocking: transfers keep sender and "
            "receiver busy; overlapping: they keep a link busy.\nErrors: (predicted − measured) / "
            "measured."
        )
        yield NOTES[source]
        yield ""
        yield from of_source(chosen)
        searched = [row for row in here if row.run["part"] == "best"]
        yield from of_order(chosen, searched)
        yield from of_outliers(chosen)
        yield ""
        yield from of_best(chosen, searched)
        yield ""


def of_order(rows: list[Row], searched: list[Row]) -> Iterator[str]:
    """Compare the predicted with the measured order of plans for one cluster and batch."""
    result = {row.run["plan"]: row.result for row in rows if not row.result["doubt"]}
    sets = [row.result["measured_plans"] for row in searched if row.run["blocking"]]
    sets = [[result[name] for name in names if name in result] for names in sets]
    sets = [found for found in sets if len(found) > 1]
    if not sets:
        return
    kinds = ["blocking", "overlapping"]
    kinds += [kind for kind in ("fitted", "claimed") if sets[0][0].get(kind) is not None]
    yield (
        f"order of plans for the same cluster and batch ({len(sets)} of them, "
        f"{sum(map(len, sets))} plans that count):"
    )
    yield f"{'':35}" + "".join(f"{kind:>14}" for kind in kinds)
    compared = {kind: [[as_compared(one, kind) for one in each] for each in sets] for kind in kinds}
    pairs = {kind: in_order(found) for kind, found in compared.items()}
    yield f"{'pairs in the measured order':35}" + "".join(
        f"{f'{right} of {of}':>14}" for right, of in pairs.values()
    )
    if len(sets) == 1:
        yield f"{'rank correlation (Kendall)':35}" + "".join(
            f"{tau(found[0]):>14.2f}" for found in compared.values()
        )
    yield f"{'chosen / best, both measured':35}" + "".join(
        f"{median(chosen_over_best(each) for each in found):>13.2f}×" for found in compared.values()
    )


def chosen_over_best(found: list[Compared]) -> float:
    """Return how many times as long the plan predicted to be shortest took as the shortest."""
    chosen = min(found, key=lambda one: one.predicted)
    return chosen.measured / min(one.measured for one in found)


def of_outliers(rows: list[Row]) -> Iterator[str]:
    """List the predictions that are far off, and what they have in common."""
    yield ""
    yield (
        "What is far off, with at most three conditions that tell it best from the rest: they "
        "describe, and explain nothing."
    )
    counted = [row for row in rows if not row.result["doubt"]]
    wide = max(len(row.run["plan"]) for row in rows) + 2
    for kind in ("blocking", "overlapping"):
        compared = {row.run["plan"]: as_compared(row.result, kind) for row in counted}
        off = {
            "short": [name for name, each in compared.items() if each.error < -FAR_OFF],
            "long": [name for name, each in compared.items() if each.error > FAR_OFF],
        }
        for way, names in off.items():
            if not names:
                continue
            others = [each for name, each in compared.items() if name not in names]
            yield ""
            yield f"{kind}, more than {FAR_OFF:.0%} too {way}: {len(names)} of {len(counted)}"
            if len(names) > 1:
                common = shared([compared[name] for name in names], others)
                yield (
                    f"in common: {' and '.join(common.conditions) or 'nothing'} ({common.off} of "
                    f"these {len(names)}, {common.others} of the others)"
                )
            for name in sorted(names, key=lambda name: -abs(compared[name].error)):
                each = compared[name]
                traits = ", ".join(
                    f"{trait}: {value}"
                    for trait, value in each.traits.items()
                    if not trait.startswith("mp >")
                )
                yield f"  {name:{wide}}{each.error:>+5.0%}  {traits}"


def of_best(rows: list[Row], searched: list[Row]) -> Iterator[str]:
    """Put the best plans beside the best that were measured."""
    if not searched:
        return
    result = {row.run["plan"]: row.result for row in rows}
    yield f"BEST PLANS FOR THE CLUSTERS OF {searched[0].run['source'].upper()}"
    yield BEST[searched[0].run["source"]]
    yield (
        "measured: the shortest of the measured plans; predicted: the shortest prediction of any "
        "of them; ours: the\nprediction of our best plan; bound: no plan of the family is "
        "predicted to take less; gap: (ours − bound) / ours;\nsaved: (predicted − ours) / "
        "predicted. Nobody has measured ours."
    )
    for blocking, kind in ((True, "blocking"), (False, "overlapping")):
        yield ""
        yield f"{kind} transfers"
        yield (
            f"{'measured':>12}{'predicted':>13}{'ours':>13}{'bound':>13}{'gap':>7}{'saved':>8}"
            f"{'layouts':>9}  cluster, plan"
        )
        for row in searched:
            if row.run["blocking"] != blocking:
                continue
            found = row.result
            names = found["measured_plans"]
            measured = min(result[name]["measured"] for name in names)
            theirs = min(result[name][kind] for name in names)
            ours, bound = found["predicted"], found["bound"]
            yield (
                f"{measured:>10.3f} s{theirs:>11.3f} s{ours:>11.3f} s"
                f"{math.floor(1000 * bound) / 1000:>11.3f} s"
                f"{math.ceil(1000 * (1 - bound / ours)) / 1000:>7.1%}{1 - ours / theirs:>8.0%}"
                f"{found['layouts']:>9}  {row.run['cluster']}{found['memory']}\n"
                f"{'':77}{found['plan']}"
            )


def of_source(rows: list[Row]) -> Iterator[str]:
    with_fitted(rows)
    extra = [kind for kind in ("fitted", "claimed") if rows[0].result.get(kind) is not None]
    kinds = ("blocking", "overlapping", *extra)
    wide = max(len(row.run["plan"]) for row in rows) + 2
    yield f"{'plan':{wide}}{'measured':>11}" + "".join(f"{kind:>19}" for kind in kinds)
    for row in rows:
        yield line(row, kinds, wide)
    counted = [row.result for row in rows if not row.result["doubt"]]
    yield ""
    yield f"{len(counted)} of {len(rows)} plans count{'':8}{'':>7}" + "".join(
        f"{kind:>14}" for kind in kinds
    )
    compared = {kind: [as_compared(each, kind) for each in counted] for kind in kinds}
    summaries: dict[str, Callable[[list[Compared]], str]] = {
        "median |error|": lambda found: f"{median(abs(each.error) for each in found):.0%}",
        "median error": lambda found: f"{median(each.error for each in found):+.0%}",
        "rank correlation (Spearman)": lambda found: f"{correlation(found):.2f}",
    }
    for name, summary in summaries.items():
        yield f"{name:35}" + "".join(f"{summary(compared[kind]):>14}" for kind in kinds)
    if "fitted" in kinds:
        chosen = ", ".join(sorted({row.result["variant"] for row in rows}))
        yield f"{'fitted on the other plans':35}{chosen}"
    yield "median error, blocking, by trait:"
    for trait, members in groups(compared["blocking"]).items():
        parts = [f"{key}: {signed(found)} ({len(found)})" for key, found in members.items()]
        yield f"  {trait:24}{', '.join(parts)}"


def with_fitted(rows: list[Row]) -> None:
    """Add to each result what the variant predicts that fits the other plans best."""
    counted = [row.result for row in rows if not row.result["doubt"]]
    for row in rows:
        if row.result["variants"]:
            others = [each for each in counted if each is not row.result]
            best = best_variant(others)
            row.result.update(fitted=row.result["variants"][best], variant=best)


def best_variant(results: list[Values]) -> str:
    """Return the variant with the least median error, without sign."""

    def error(name: str) -> float:
        return median(abs(each["variants"][name] / each["measured"] - 1) for each in results)

    return min(results[0]["variants"], key=error)


def as_compared(result: Values, kind: str) -> Compared:
    return Compared(result[kind], result["measured"], result["traits"])


def line(row: Row, kinds: tuple[str, ...], wide: int) -> str:
    measured: Any = row.result["measured"]
    shown = "–" if measured is None else f"{measured:.3f} s"
    text = f"{row.run['plan']:{wide}}{shown:>11}"
    for kind in kinds:
        value = row.result[kind]
        error = "" if measured is None else f"{value / measured - 1:+.0%}"
        text += f"{value:>11.3f} s{error:>6}"
    return text + (f"  not counted: {row.result['doubt']}" if row.result["doubt"] else "")


if __name__ == "__main__":
    main()
