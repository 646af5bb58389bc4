"""Write the instance library: its instances, and the best known values of each.

``python bench/library.py build [--networks FOLDER]`` writes the instance files, but for those of
``classic``, which are written by hand: ``random`` and ``workflows`` from seeds, ``worst`` from
``bench/results/worst``, ``models`` from the networks that come with the library onnx, language
models of published sizes and ``instances/clusters``, and, if FOLDER holds the graphs that
``bench/extract_tensorflow.py`` writes, ``tensorflow``.

``python bench/library.py index [--time-limit 60] [--workers 2] [--method auto] [NAME...]`` solves
instances (all, or those of the named groups and names), and enters improvements into ``index.csv``
and ``best/``. Rows of other instances remain unchanged.

``python bench/library.py refresh [--time-limit 3600] [--workers 2] [NAME...]`` solves every
instance without a certificate again, from its best schedule, certifies what is proven, and enters
in ``refreshed.csv`` when which version found what. Bounds that were proven before do not count: the
code that proved them may have been wrong. When it is run again, it goes on where it was stopped:
instances in that file are left out if this version had at least that time for them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count, product
from pathlib import Path
from typing import TypeAlias

from bench.output import read_csv, write_csv
from optpart.base.errors import InputError, OptpartError
from optpart.certificates.certify import certify as write_certificate
from optpart.interop.costs.drawn import drawn
from optpart.interop.costs.roofline import roofline
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats import cluster_toml, llm_names, native, tensorflow, wfformat
from optpart.interop.formats import onnx as onnx_format
from optpart.interop.formats import result as result_format
from optpart.interop.formats.llm import Step
from optpart.interop.generate import thesis
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.sets import (
    WORKFLOW_LINK,
    WORKFLOW_MACHINES,
    WORKFLOWS,
    random_set,
)
from optpart.interop.generate.workflow import workflow
from optpart.lower_bounds.best import best_bound
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.problem.rational import rational
from optpart.problem.workload import Workload
from optpart.solution.result import Budget, Result, Status, conclude, with_bound
from optpart.solution.schedule import Schedule
from optpart.study import library
from optpart.study.library import folder
from optpart.version import __version__

# --- tensorflow: numbers from seeds ----------------------------------------------------------

NETWORKS = ("convolutional_network", "recurrent_network", "dynamic_rnn")
NETWORK_DEVICES = (7, 50)
COSTS_SEED = 1
CLUSTER_SEED = 2

THESIS_SEED = 1


def networks(files: Path) -> Iterator[Instance]:
    """Yield the neural networks, with costs and clusters as in [M] §5.1."""
    for network, devices in product(NETWORKS, NETWORK_DEVICES):
        graph, _ = tensorflow.read_graph(files / f"{network}.pb")
        yield Instance(
            drawn(graph, COSTS_SEED),
            drawn_cluster(CLUSTER_SEED, devices),
            name=f"{network}-{devices}",
            source=f"{network} as TensorFlow 2.21 builds it in graph mode; costs (seed "
            f"{COSTS_SEED}) and cluster (seed {CLUSTER_SEED}) drawn as in Mayer, Mayer and Laich: "
            "The TensorFlow partitioning and scheduling problem: it's the critical path!, 2017, "
            "section 5.1",
        )


# --- models: networks and language models with estimated run times -------------------------------

#: Names of the library's instances, by file name in the onnx wheel.
ONNX = {
    "bvlc_alexnet": "alexnet", "densenet121": "densenet-121", "inception_v1": "inception-v1",
    "inception_v2": "inception-v2", "resnet50": "resnet-50", "shufflenet": "shufflenet",
    "squeezenet": "squeezenet", "vgg19": "vgg-19", "zfnet512": "zfnet-512",
}  # fmt: skip

#: Language models, each with one step.
STEPS = (
    ("gpt2-xl", Step("decode", tied="copy")),
    ("llama-3-8b", Step("decode")),
    ("llama-3-8b", Step("prefill")),
    ("llama-3-70b", Step("decode", granularity="attention+mlp")),
)

CLUSTERS = ("workstation", "edge", "server")
#: Written by hand.
CLUSTER_FILES = folder() / "clusters"

#: Memory of all devices together, by what the whole model needs.
TIGHT = Fraction(4, 3)


def models() -> Iterator[Instance]:
    """Yield the models on each cluster that holds them, with free memory and with tight memory."""
    clusters = {name: cluster_toml.read_named(CLUSTER_FILES / f"{name}.toml") for name in CLUSTERS}
    for workload in workloads():
        for name, cluster in clusters.items():
            yield from placed(workload, name, cluster)


def workloads() -> Iterator[Workload]:
    """Yield the networks of the onnx wheel, then the language models."""
    import onnx

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for file, name in ONNX.items():
        source = f"light_{file}.onnx of the library onnx, one image, float32"
        yield replace(onnx_format.read(light / f"light_{file}.onnx"), name=name, source=source)
    for name, step in STEPS:
        workload = llm_names.read(name, step)
        yield replace(
            workload,
            name=f"{name}-{step.mode}",
            source=f"{name} of published sizes ({workload.source}), {step.mode}: "
            f"{' '.join(workload.assumed)}",
        )


def placed(workload: Workload, place: str, named: NamedCluster) -> Iterator[Instance]:
    """Yield a model on a cluster with free memory and, if every vertex has a device, with tight.

    Nothing is yielded if the devices together cannot hold the model.
    """
    real = [limit for limit in named.cluster.memory if limit is not None]
    assert len(real) == len(named.cluster)
    unlimited = replace(named, cluster=replace(named.cluster, memory=(None,) * len(named.cluster)))
    free = roofline(workload, unlimited, memory="none").instance
    whole = replace(free, model=replace(free.model, memory="estimate")).static_memory
    needed = Fraction(whole.sum())
    if needed > sum(real):
        return
    about = f"{workload.source}; on instances/clusters/{place}.toml, run times by roofline"
    yield replace(
        free, name=f"{workload.name}-{place}-free", source=f"{about}; memory does not count"
    )
    limits = tuple(Fraction(int(TIGHT * needed * limit / sum(real))) for limit in real)
    if max(whole.fractions()) > max(limits):
        return
    yield Instance(
        free.graph,
        replace(free.cluster, memory=limits),
        replace(free.model, memory="estimate"),
        durations=free.durations,
        name=f"{workload.name}-{place}-tight",
        source=f"{about}; memory by estimate, which holds all tensors for the whole run; the "
        "devices' memory in the proportions of that file, together 4/3 of what the whole model "
        "needs",
    )


# --- workflows: drawn in WfFormat ----------------------------------------------------------------

WORKFLOW_SEED = 3


def workflows() -> Iterator[Instance]:
    """Yield the workflows, of which the files in WfFormat are written as well."""
    place = folder() / "workflows" / "wfformat"
    place.mkdir(parents=True, exist_ok=True)
    for shape, width in WORKFLOWS:
        drawn_workflow = workflow(shape, width, WORKFLOW_MACHINES, WORKFLOW_SEED)
        path = place / f"{shape}-{width}.json"
        wfformat.write(path, drawn_workflow)
        yield replace(
            wfformat.read_workflow(path).instance(*WORKFLOW_LINK),
            source=f"{drawn_workflow.workload.source}, as in instances/workflows/wfformat/"
            f"{path.name}; machines linked by Gigabit Ethernet with 50 us of latency; a machine "
            "runs one task at a time; nanoseconds and bytes",
        )


# --- worst: found by bench/worst.py ---------------------------------------------------------------


def worst() -> Iterator[Instance]:
    """Yield the worst instance of each strategy that orders its tasks itself."""
    found: dict[str, dict[str, str]] = {}
    runs = Path(__file__).parent / "results" / "worst" / "runs.jsonl"
    for line in runs.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        method, result = row["run"]["method"], row["result"]
        most = Fraction(found[method]["ratio"]) if method in found else 1
        if "+" not in method and Fraction(result["ratio"]) > most:
            found[method] = result
    for result in found.values():
        yield native.from_dict(result["instance"])


def build(files: Path | None) -> None:
    """Write the instance files."""
    groups = {
        "random": random_set(count(1)),
        "models": models(),
        "workflows": workflows(),
        "worst": worst(),
    }
    if files is not None:
        groups["tensorflow"] = networks(files)
    for group, instances in groups.items():
        place = folder() / group
        place.mkdir(parents=True, exist_ok=True)
        for instance in instances:
            # Certificates are of the files byte by byte, and these stated no unit.
            native.write(replace(instance, time_unit=""), place / f"{instance.name}.json")
        sizes = [path.stat().st_size for path in place.glob("*.json")]
        print(f"{group}: {len(sizes)} files, {sum(sizes) / 1e6:.2f} MB", file=sys.stderr)


# --- index: what is known -----------------------------------------------------------------------

COLUMNS = (
    "name", "group", "small", "vertices", "edges", "devices", "communication", "memory",
    "makespan", "bound", "status", "sha256", "command",
)  # fmt: skip

GROUPS = ("classic", "random", "tensorflow", "models", "workflows", "thesis", "worst")

#: Methods that solve instances, the default first.
METHODS = ("auto", "series", "cpsat", "search")

#: What a small instance has, and takes, at most, and its groups.
SMALL_GROUPS = ("classic", "random")
SMALL_VERTICES = 30
SMALL_SECONDS = 3.0

#: Each row: the last run of ``refresh`` on an instance.
REFRESHED = "refreshed.csv"

#: Between the command that found the makespan and the one that proved the bound.
THEN = "; "

Row: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Best:
    """The best of all runs: makespan and bound, each with the command that gives it."""

    makespan: Fraction | None = None
    bound: Fraction | None = None
    found_by: str = ""
    proven_by: str = ""

    @classmethod
    def of(cls, row: Row) -> Best:
        """Read a row of the index."""
        found_by, _, proven_by = row["command"].partition(THEN)
        return cls(
            rational(row["makespan"]) if row["makespan"] else None,
            rational(row["bound"]) if row["bound"] else None,
            found_by,
            proven_by or found_by,
        )

    @property
    def status(self) -> Status:
        """What both together prove."""
        if self.makespan is None:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.bound == self.makespan else Status.FEASIBLE

    @property
    def command(self) -> str:
        """The command of both, or both commands."""
        return THEN.join(dict.fromkeys(filter(None, (self.found_by, self.proven_by))))

    def with_makespan(self, makespan: Fraction | None, command: str) -> Best:
        """Return the best values, given a further verified schedule."""
        if makespan is None or (self.makespan is not None and self.makespan <= makespan):
            return self
        return replace(self, makespan=makespan, found_by=command)

    def with_bound(self, bound: Fraction | None, command: str) -> Best:
        """Return the best values, given a further proven bound."""
        if bound is None or (self.bound is not None and self.bound >= bound):
            return self
        return replace(self, bound=bound, proven_by=command)


def index(
    chosen: Sequence[str],
    budget: Budget,
    method: str = METHODS[0],
    anew: bool = False,
) -> None:
    """Solve the chosen instances; enter what is new after each."""
    rows = read_rows()
    places = chosen_places(())
    todo = [*chosen_places(chosen)]
    for number, name in enumerate(todo, 1):
        begin = time.perf_counter()
        instance, group = load(name, places[name]), places[name]
        rows[name] = row = solved(instance, group, rows.get(name), budget, method, anew)
        write_rows([rows[name] for name in places if name in rows])
        print(
            f"[{number}/{len(todo)}] {name}: {row['makespan'] or '?'}, bound "
            f"{row['bound'] or '?'}, {row['status']}, {time.perf_counter() - begin:.1f} s",
            file=sys.stderr,
        )


def chosen_places(chosen: Sequence[str]) -> dict[str, str]:
    """Return the groups of instances by name: of those named, or whose group is, or of all."""
    places = {name: group for group in GROUPS for name in names(group)}
    if unknown := [name for name in chosen if name not in places and name not in GROUPS]:
        raise InputError("", f"no instance or group {unknown[0]!r}", "name one of the library")
    return {
        name: group
        for name, group in places.items()
        if not chosen or name in chosen or group in chosen
    }


def certified(name: str, group: str, command: str, seconds: float) -> str:
    """Write the certificate of an optimum; return its tier, or why there is none."""
    (folder() / library.CERTIFICATES).mkdir(exist_ok=True)
    path = folder() / group / f"{name}.json"
    instance = load(name, group)
    schedule = library.best_schedule(instance)
    if schedule is None:
        schedule = registry.get(METHODS[0])(instance, budget=Budget(seconds)).schedule
    try:
        assert schedule is not None
        found = write_certificate(
            instance,
            schedule,
            folder() / library.CERTIFICATES / name,
            source=path.read_bytes() if path.exists() else None,
            method=command,
            seconds=seconds,
        )
    except OptpartError as error:
        return f"not certified: {error}"
    return f"tier {found.tier}"


def refresh(chosen: Sequence[str], budget: Budget) -> None:
    """Solve anew what has no certificate and was not yet given that time by this version."""
    places = chosen_places(chosen)
    done = {
        row["name"]
        for row in read_rows(REFRESHED).values()
        if row["version"] == __version__ and float(row["seconds"]) >= budget.seconds
    }
    todo = [name for name in places if name not in done and library.certificate(name) is None]
    if not todo:
        text = f"all {len(places)} are certified, or had {budget.seconds:g} s of this version"
        print(text, file=sys.stderr)
    for number, name in enumerate(todo, 1):
        before = read_rows().get(name, {})
        index([name], budget, anew=True)
        row = read_rows()[name]
        said = ""
        if row["status"] == "OPTIMAL":
            said = certified(name, places[name], row["command"], budget.seconds)
            print(f"  {said}", file=sys.stderr)
        record = {
            "name": name,
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "version": __version__,
            "seconds": f"{budget.seconds:g}",
            "workers": f"{budget.workers}",
            "makespan_before": before.get("makespan", ""),
            "bound_before": before.get("bound", ""),
            "makespan": row["makespan"],
            "bound": row["bound"],
            "status": row["status"],
            "certificate": said,
        }
        kept = [each for each in read_rows(REFRESHED).values() if each["name"] != name]
        write_rows([*kept, record], REFRESHED, tuple(record))
        print(f"[{number}/{len(todo)}]", file=sys.stderr)


def names(group: str) -> list[str]:
    """List a group's instances; numbers within names count as numbers."""
    if group == "thesis":
        return [f"thesis-{number}" for number in thesis.TABLE]
    return sorted((path.stem for path in (folder() / group).glob("*.json")), key=by_number)


def by_number(name: str) -> list[tuple[bool, float, str]]:
    return [
        (False, float(part), "") if part.isdecimal() else (True, 0.0, part)
        for part in name.split("-")
    ]


def load(name: str, group: str) -> Instance:
    if group == "thesis":
        return thesis.instance(int(name.removeprefix("thesis-")), seed=THESIS_SEED)
    return native.read(folder() / group / f"{name}.json")


def read_rows(file: str = "index.csv") -> dict[str, Row]:
    return {row["name"]: row for row in read_csv(folder() / file)}


def write_rows(rows: list[Row], file: str = "index.csv", columns: Sequence[str] = COLUMNS) -> None:
    write_csv(folder() / file, rows, columns)


def solved(
    instance: Instance,
    group: str,
    row: Row | None,
    budget: Budget,
    method: str,
    anew: bool = False,
) -> Row:
    """Return the row of an instance after a further run; its schedule goes to ``best/``.

    If ``anew``, the run starts from the best schedule, and the bound so far does not count.
    """
    path = None if group == "thesis" else folder() / "best" / f"{instance.name}.json"
    lost = path is not None and not path.is_file()
    known = Best() if row is None or row["sha256"] != instance.sha256 or lost else Best.of(row)
    if anew:
        known = replace(known, bound=None, proven_by="")
    kept = None if path is None or known.makespan is None else stored(instance, path, known)
    begin = time.perf_counter()
    start = None if not anew or kept is None else kept.schedule
    result, found_by, proven_by = run(instance, budget, method, start)
    seconds = time.perf_counter() - begin
    best = known.with_makespan(result.makespan, found_by).with_bound(result.lower_bound, proven_by)
    if best.makespan is not None and best.bound is not None and best.bound > best.makespan:
        raise AssertionError(
            f"{instance.name}: bound {best.bound} ({best.proven_by}) above a verified schedule of "
            f"{best.makespan} ({best.found_by})"
        )
    if best.makespan == known.makespan and kept is not None:
        result = kept
    if path is not None and best != known:
        path.parent.mkdir(parents=True, exist_ok=True)
        result_format.write(result if best.bound is None else with_bound(result, best.bound), path)
    quick = (
        group in SMALL_GROUPS
        and instance.vertices <= SMALL_VERTICES
        and best.status is Status.OPTIMAL
        and seconds <= SMALL_SECONDS
    )
    return {
        "name": instance.name,
        "group": group,
        "small": "yes" if quick else "no",
        "vertices": f"{instance.vertices}",
        "edges": f"{len(instance.graph.edge_source)}",
        "devices": f"{instance.devices}",
        "communication": instance.model.communication,
        "memory": instance.model.memory,
        "makespan": "" if best.makespan is None else str(best.makespan),
        "bound": "" if best.bound is None else str(best.bound),
        "status": str(best.status),
        "sha256": instance.sha256,
        "command": best.command,
    }


def stored(instance: Instance, path: Path, known: Best) -> Result:
    """Return the best result so far, verified again."""
    document = result_format.read_document(path)
    result = conclude(
        instance,
        document["method"],
        result_format.read_schedule(path, instance),
        bound=known.bound,
        seconds=float(document["seconds"]),
        seed=document["seed"],
        workers=document["workers"],
    )
    if result.makespan != known.makespan:
        raise AssertionError(
            f"{path}: the index says {known.makespan}, the schedule {result.makespan}"
            f"{result.reason and f' ({result.reason})'}"
        )
    return result


def run(
    instance: Instance, budget: Budget, method: str, start: Schedule | None = None
) -> tuple[Result, str, str]:
    """Solve an instance; return the commands that find the schedule and prove the bound as well."""
    command = f"optpart solve {instance.name} --method {method} --time-limit {budget.seconds:g}"
    if budget.workers != Budget().workers:
        command += f" --workers {budget.workers}"
    if start is not None:
        command += f" --start instances/best/{instance.name}.json"
    result = registry.get(method)(instance, budget=budget, start=start)
    proven_by = command
    if method == "search":
        best = best_bound(instance, budget.seconds / 2, result.makespan)
        if best.value is not None and best.value > (result.lower_bound or 0):
            result = with_bound(result, best.value)
            proven_by = f"optpart bound {instance.name} --time-limit {budget.seconds / 2:g}"
    return result, command, proven_by


def main() -> int:
    """Exit with 0 when done, 2 on bad input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="write the instance files")
    builder.add_argument(
        "--networks",
        type=Path,
        metavar="FOLDER",
        help="folder of the .pb files that bench/extract_tensorflow.py wrote",
    )
    indexer = commands.add_parser("index", help="solve instances and enter what is better")
    indexer.add_argument("name", nargs="*", help="instance or group; all if none is named")
    indexer.add_argument("--time-limit", type=float, default=60.0, help="seconds an instance")
    indexer.add_argument("--workers", type=int, default=2)
    indexer.add_argument("--method", choices=METHODS, default=METHODS[0])
    refresher = commands.add_parser("refresh", help="solve anew what has no certificate")
    refresher.add_argument("name", nargs="*", help="instance or group; all if none is named")
    refresher.add_argument("--time-limit", type=float, default=3600.0, help="seconds an instance")
    refresher.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            build(arguments.networks)
        elif arguments.command == "refresh":
            refresh(arguments.name, Budget(arguments.time_limit, arguments.workers))
        else:
            budget = Budget(arguments.time_limit, arguments.workers)
            index(arguments.name, budget, arguments.method)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
