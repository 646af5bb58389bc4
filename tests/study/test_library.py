"""The instance library: its index is correct and agrees with the literature."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from commandline import Run

from optpart import InputError, Instance, compare
from optpart.interop.formats import cluster_toml, native, wfformat
from optpart.interop.formats import result as result_format
from optpart.interop.formats.result import read_document
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.load import load_bound
from optpart.methods import registry
from optpart.problem.rational import RationalArray
from optpart.solution.result import Budget, Result, conclude, with_bound
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify
from optpart.study import library

BENCH = Path(__file__).parents[2] / "bench"

ROWS = list(library.index().values())
NAMES = [row.name for row in ROWS]
SMALL = [row.name for row in ROWS if row.small]
WITH_FILE = [row.name for row in ROWS if row.group != "thesis"]
# Two of the six are enough to check that seed and generator still give the indexed instances.
LOADED = [*WITH_FILE, "thesis-3", "thesis-4"]

OPTIMA = {
    "graham-1969-3": 12,
    "graham-1969-4": 12,
    "graham-1969-relaxed": 12,
    "graham-1969-shorter": 10,
    "heft-10": 73,
    "kwok-ahmad-9-2": 17,
    "kwok-ahmad-9-3": 16,
    "laich-2.5": 14,
    "lpt-2": 6,
    "lpt-3": 9,
    "lpt-4": 12,
}

# Vertices, distinct pairs (source, target), colocation groups, size of the largest group.
NETWORKS = {
    "convolutional_network": (367, 550, 30, 24),
    "recurrent_network": (2927, 5139, 456, 28),
    "dynamic_rnn": (5341, 9211, 666, 160),
}


@cache
def load(name: str) -> Instance:
    return library.load(name)


def sizes(instance: Instance) -> tuple[int, int, int]:
    return instance.vertices, len(instance.graph.edge_source), instance.devices


def table() -> dict[str, dict[str, str]]:
    with open(library.folder() / "index.csv", newline="", encoding="utf-8") as stream:
        return {row["name"]: row for row in csv.DictReader(stream)}


# --- the index and its files --------------------------------------------------------------------


def test_every_file_has_its_row_and_every_row_its_files() -> None:
    def stems(group: str) -> set[str]:
        return {path.stem for path in (library.folder() / group).glob("*.json")}

    for group in ("classic", "random", "tensorflow", "models", "workflows", "worst"):
        assert stems(group) == {row.name for row in ROWS if row.group == group}
    assert stems("best") == set(WITH_FILE)
    assert set(NAMES) - set(WITH_FILE) == {f"thesis-{number}" for number in range(1, 7)}


@pytest.mark.parametrize("name", LOADED)
def test_the_index_describes_the_instance(name: str) -> None:
    instance, row = load(name), library.index()[name]
    assert instance.name == name
    assert instance.source
    assert (row.vertices, row.edges, row.devices) == sizes(instance)
    assert row.sha256 == instance.sha256
    assert library.known(instance) is row
    written = table()[name]
    assert written["communication"] == instance.model.communication
    assert written["memory"] == instance.model.memory


@pytest.mark.parametrize("name", WITH_FILE)
def test_the_best_schedule_is_valid_and_as_long_as_the_index_says(name: str) -> None:
    instance, row = load(name), library.index()[name]
    schedule = library.best_schedule(instance)
    assert schedule is not None
    assert not verify(instance, schedule, most=1)
    assert schedule.makespan(instance) == row.makespan


@pytest.mark.parametrize("name", WITH_FILE)
def test_the_best_result_says_what_the_index_says(name: str) -> None:
    row = library.index()[name]
    document = read_document(library.folder() / "best" / f"{name}.json")
    assert document["instance"] == name
    assert document["instance_sha256"] == row.sha256
    assert document["makespan"] == str(row.makespan)
    assert document["lower_bound"] == str(row.bound)
    assert document["status"] == row.status


@pytest.mark.parametrize("name", NAMES)
def test_a_status_is_optimal_only_if_bound_and_makespan_are_equal(name: str) -> None:
    row = library.index()[name]
    assert row.makespan is not None
    assert row.bound is not None
    assert 0 < row.bound <= row.makespan
    assert row.status == ("OPTIMAL" if row.bound == row.makespan else "FEASIBLE")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_names_the_instance(name: str) -> None:
    for command in library.index()[name].command.split("; "):
        assert command.startswith(
            (f"optpart solve {name} --method ", f"optpart bound {name} --time-limit ")
        ) or command == (f"python bench/library.py index {name}")


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.vertices <= 100])
def test_no_bound_of_the_package_is_above_the_best_schedule(name: str) -> None:
    makespan = library.index()[name].makespan
    assert makespan is not None
    for bound in (critical_path_bound(load(name)), load_bound(load(name))):
        assert bound is not None
        assert bound <= makespan


def test_small_instances_are_small_and_solved() -> None:
    chosen = [row for row in ROWS if row.small]
    assert len(chosen) >= 20
    assert all(row.vertices <= 30 and row.status == "OPTIMAL" for row in chosen)
    assert {row.group for row in chosen} == {"classic", "random"}


# --- what the instances are ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "optimum"), OPTIMA.items())
def test_classic_optima(name: str, optimum: int) -> None:
    row = library.index()[name]
    assert row.makespan == row.bound == optimum


def test_all_classic_instances_have_a_golden_value() -> None:
    assert set(OPTIMA) == {row.name for row in ROWS if row.group == "classic"}


def test_random_instances_cover_the_grid_and_every_property() -> None:
    rows = [row for row in ROWS if row.group == "random"]
    grid = {(row.vertices, row.devices) for row in rows}
    assert grid == {(v, d) for v in (10, 20, 30, 40, 60) for d in (2, 4, 8)}
    instances = [load(row.name) for row in rows]
    assert any(i.graph.colocation for i in instances)
    assert any(any(i.graph.device_types) for i in instances)
    assert {i.model.memory for i in instances} == {"none", "estimate"}
    assert len({tuple(i.graph.ops.fractions()) for i in instances}) == len(instances)


@pytest.mark.parametrize("devices", [7, 50])
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_have_the_structure_of_their_graphs(network: str, devices: int) -> None:
    instance = load(f"{network}-{devices}")
    graph = instance.graph
    pairs = set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    groups = [len(unit) for unit in instance.units if len(unit) > 1]
    assert (len(graph), len(pairs), len(groups), max(groups)) == NETWORKS[network]
    assert instance.devices == devices


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_have_the_costs_and_clusters_of_the_literature(network: str) -> None:
    few, many = (load(f"{network}-{devices}") for devices in (7, 50))
    for values, low, high in (
        (few.graph.ops.fractions(), 1, 100),
        ([size for size in few.graph.tensor_size.fractions() if size], 1, 100),
        (many.cluster.speed.fractions(), 10, 100),
        (many.cluster.bandwidth.numerators[~np.eye(50, dtype=np.bool_)].tolist(), 10, 60),
    ):
        assert low <= min(values) <= max(values) <= high
    assert few.graph.ops.fractions() == many.graph.ops.fractions()
    assert few.allowed.all()
    assert many.allowed.all()
    assert set(few.cluster.memory) | set(many.cluster.memory) == {None}


MODELS = [row.name for row in ROWS if row.group == "models"]


def test_models_of_every_kind_are_on_every_cluster_that_holds_them() -> None:
    found: dict[str, set[str]] = {}
    for name in MODELS:
        model, cluster, memory = name.rsplit("-", 2)
        found.setdefault(model, set()).add(f"{cluster} {memory}")
    assert len(found) == 13
    both = {"free", "tight"}
    everything = {f"{c} {m}" for c in ("workstation", "edge", "server") for m in both}
    lacking = {model: everything - places for model, places in found.items()}
    assert {model: places for model, places in lacking.items() if places} == {
        # One layer needs more than any device has.
        "alexnet": {"edge tight", "server tight"},
        "vgg-19": {"server tight"},
        "zfnet-512": {"edge tight", "server tight"},
        # The devices together have too little memory.
        "llama-3-70b-decode": everything - {"server free", "server tight"},
    }


@pytest.mark.parametrize("name", MODELS)
def test_models_have_whole_times(name: str) -> None:
    instance = load(name)
    assert instance.given_durations is not None
    assert instance.given_durations.times.denominator == 1
    assert instance.cluster.latency.denominator == 1
    for tensor in np.unique(instance.graph.edge_tensor).tolist():
        for d, e in permutations(range(instance.devices), 2):
            delay = instance.delay(tensor, d, e)
            assert delay is not None
            assert delay.denominator == 1


@pytest.mark.parametrize("name", [name for name in MODELS if name.endswith("-tight")])
def test_tight_memory_is_a_third_more_than_the_model_needs(name: str) -> None:
    tight, free = load(name), load(f"{name.removesuffix('tight')}free")
    assert replace(tight, cluster=free.cluster, model=free.model).sha256 == free.sha256
    assert set(free.cluster.memory) == {None}
    needed = tight.static_memory.sum()
    limits = [limit for limit in tight.cluster.memory if limit is not None]
    clusters = library.folder() / "clusters"
    real = cluster_toml.read(clusters / f"{name.rsplit('-', 2)[1]}.toml").memory
    total = sum(limit for limit in real if limit is not None)
    for limit, has in zip(limits, real, strict=True):
        assert has is not None
        assert 0 <= needed * Fraction(4, 3) * has / total - limit < 1


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.group == "workflows"])
def test_workflows_are_what_their_files_describe(name: str) -> None:
    path = library.folder() / "workflows" / "wfformat" / f"{name}.json"
    instance, read = load(name), wfformat.read_workflow(path)
    assert read.instance(Fraction(1, 8), 50_000).sha256 == instance.sha256
    assert 20 <= instance.vertices <= 100
    assert len(set(instance.cluster.speed.fractions())) > 1


@pytest.mark.parametrize("row", [row for row in ROWS if row.group == "worst"], ids=lambda r: r.name)
def test_worst_instances_are_as_bad_as_they_say_and_certified(row: library.Known) -> None:
    instance = load(row.name)
    method = row.name.removeprefix("worst-").partition("-general-")[0]
    assert library.certificate(row.name)
    makespan = registry.get(method)(instance).makespan
    assert makespan is not None
    assert row.makespan is not None
    assert instance.source == (
        f"{method} takes {makespan}, the optimum is {row.makespan}: ratio {makespan / row.makespan}"
    )


# --- reading it ---------------------------------------------------------------------------------


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(InputError, match="neither a file nor a library instance: 'heft-11'"):
        library.load("heft-11")


def test_nothing_is_known_about_a_changed_instance() -> None:
    document = load("heft-10").to_dict()
    document["devices"][0]["memory"] = 5
    changed = native.from_dict(document)
    assert library.known(changed) is None
    assert library.best_schedule(changed) is None


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Return a function that copies ``heft-10`` and its neighbours, with one row changed."""
    names = ("heft-10", "graham-1969-3", "laich-2.5")

    def make(**changes: str) -> Path:
        rows = [table()[name] for name in names]
        for name in names:
            for part in (f"classic/{name}.json", f"best/{name}.json", f"certificates/{name}"):
                source, target = library.folder() / part, tmp_path / part
                target.parent.mkdir(exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target)
                elif source.is_file():
                    shutil.copy(source, target)
        with open(tmp_path / "index.csv", "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows([{**rows[0], **changes}, *rows[1:]])
        monkeypatch.setattr(library, "folder", lambda: tmp_path)
        library._index.cache_clear()
        return tmp_path

    yield make
    monkeypatch.undo()
    library._index.cache_clear()


@pytest.mark.parametrize("name", SMALL)
def test_every_row_of_the_library_is_consistent(name: str) -> None:
    row, found = library.index()[name], library.evidence(load(name))
    assert found.faults == ()
    assert (found.makespan, found.bound) == (row.makespan, row.bound)
    assert found.certified == (library.certificate(name) is not None)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"makespan": "70"}, "best known 70 is below its bound 73"),
        ({"makespan": "72", "bound": "72"}, "best known 72 is not that of its schedule, which is"),
        ({"bound": "70"}, "OPTIMAL does not follow from best known 73 and bound 70"),
        ({"bound": "99"}, "best known 73 is below its bound 99"),
        ({"sha256": "0" * 64}, "the sha256 in its row of the index is not that of the instance"),
        (
            {"bound": "seventy"},
            "of the index cannot be read (Invalid literal for Fraction: 'seventy'",
        ),
        ({"vertices": "ten"}, "its row of the index cannot be read (invalid literal"),
    ],
)
def test_a_wrong_row_is_named_and_not_used(
    copy: Callable[..., Path], changes: dict[str, str], problem: str
) -> None:
    instance = load("heft-10")
    copy(**changes)
    comparison = compare(instance, ["heft"], seconds=5, workers=1)
    assert (comparison.reference.makespan, comparison.reference.bound) == (73, 73)
    assert not comparison.reference.certified
    assert problem in str(comparison.findings[0])
    assert {finding.source for finding in comparison.findings} == {"library"}


def test_a_wrong_optimum_of_the_index_gives_way_to_a_better_schedule(
    copy: Callable[..., Path],
) -> None:
    """Index and schedule agree, and the index claims that nothing is better."""
    instance = load("heft-10")
    wrong = late(instance, bound=1)
    folder = copy(makespan=str(wrong.makespan), bound=str(wrong.makespan))
    shutil.rmtree(folder / "certificates")
    result_format.write(wrong, folder / "best" / "heft-10.json")
    comparison = compare(instance, ["heft"], seconds=5, workers=1)
    assert comparison.reference.makespan == comparison.reference.bound == 73
    assert [str(finding) for finding in comparison.findings] == [
        f"heft-10: library: bound {wrong.makespan} contradicts a verified schedule of 73 by cpsat"
    ]


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("best/heft-10.json", "{", "its best schedule cannot be read"),
        ("best/heft-10.json", "{}", "its best schedule cannot be read (format: is missing"),
        ("certificates/heft-10/certificate.json", "{", "its certificate cannot be read"),
        ("certificates/heft-10/certificate.json", "[]", "its certificate cannot be read"),
        (
            "certificates/heft-10/certificate.json",
            '{"instance_sha256": "SHA", "makespan": "74"}',
            "its certificate is of 74, the index says 73",
        ),
        (
            "certificates/heft-10/certificate.json",
            '{"instance_sha256": "00", "makespan": "73"}',
            "its certificate belongs to another instance",
        ),
    ],
)
def test_a_damaged_file_of_the_library_is_named_and_its_row_not_used(
    copy: Callable[..., Path], file: str, content: str, problem: str
) -> None:
    instance = load("heft-10")
    folder = copy()
    own = (folder / "classic" / "heft-10.json").read_bytes()
    content = content.replace("SHA", hashlib.sha256(own).hexdigest())
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(content, encoding="utf-8")
    found = library.evidence(instance)
    assert problem in found.faults[0]
    assert (found.bound, found.certified) == (None, False)


def test_an_invalid_schedule_of_the_library_is_named(copy: Callable[..., Path]) -> None:
    instance = load("heft-10")
    path = copy() / "best" / "heft-10.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["schedule"]["start"] = dict.fromkeys(document["schedule"]["start"], "0")
    path.write_text(json.dumps(document), encoding="utf-8")
    found = library.evidence(instance)
    assert "its best schedule is refused: its schedule is not valid" in found.faults[0]
    assert found.best is None


def test_an_unreadable_row_is_left_out_of_the_small_library(
    copy: Callable[..., Path], run: Run
) -> None:
    copy(bound="seventy")
    outcome = run("gap", "-m", "heft", "--time-limit", "5")
    assert outcome.code == 1
    assert "2 instances" in outcome.out
    (line,) = outcome.err.splitlines()
    assert line.startswith("optpart: heft-10: library: its row of the index cannot be read (")
    assert run("gap", "--list").code == 1
    asked = run("gap", "heft-10")
    assert asked.code == 2
    assert "index.csv: heft-10: its row of the index cannot be read" in asked.err


# --- writing it ---------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that writes the library, in an empty folder."""
    spec = importlib.util.spec_from_file_location("bench_library", BENCH / "library.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_library", script)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "folder", lambda: tmp_path)
    return script


def late(instance: Instance, bound: int) -> Result:
    """A valid schedule whose last vertices wait for 1000 time units."""
    graph = instance.graph
    placement = instance.vertex_allowed.argmax(axis=1).astype(np.int32)
    schedule = retime(instance, placement, graph.topological_order.tolist())
    start = schedule.start.fractions()
    for v in set(range(len(graph))) - set(graph.edge_source.tolist()):
        start[v] += 1000
    waiting = replace(schedule, start=RationalArray.from_fractions(start))
    return conclude(instance, "late", waiting, bound=Fraction(bound))


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def entry(script: ModuleType, name: str) -> tuple[str, str, str, str]:
    row = script.read_rows()[name]
    return row["makespan"], row["bound"], row["status"], row["command"]


def test_build_writes_the_files_of_the_library(bench: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs optpart[onnx]")
    bench.build(None)
    for group in ("random", "models", "workflows"):
        assert contents(tmp_path / group) == contents(library.folder() / group)


def test_only_improvements_are_entered(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = load("laich-2.5")
    result_file = tmp_path / "best" / "laich-2.5.json"
    (tmp_path / "classic").mkdir()
    native.write(instance, tmp_path / "classic" / "laich-2.5.json")

    def run_again(name: str, result: Result) -> tuple[str, str, str, str]:
        monkeypatch.setattr(bench, "run", lambda *_: (result, name, name))
        bench.index(["classic"], Budget(1, 1))
        return entry(bench, "laich-2.5")

    assert run_again("first", late(instance, bound=3)) == ("1014", "3", "FEASIBLE", "first")
    before = contents(tmp_path)

    assert run_again("worse", late(instance, bound=1)) == ("1014", "3", "FEASIBLE", "first")
    assert contents(tmp_path) == before

    proven = run_again("proof", late(instance, bound=14))
    assert proven == ("1014", "14", "FEASIBLE", "first; proof")
    assert read_document(result_file)["lower_bound"] == "14"

    found = run_again("heft", registry.get("heft")(instance))
    assert found == ("14", "14", "OPTIMAL", "heft; proof")
    assert read_document(result_file)["status"] == "OPTIMAL"


def test_knowledge_about_a_changed_instance_is_discarded(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "classic" / "laich-2.5.json"
    path.parent.mkdir()
    native.write(load("laich-2.5"), path)
    bench.index(["laich-2.5"], Budget(1, 1))
    path.write_text(path.read_text().replace('"send_ops": 10', '"send_ops": 20'))
    bench.index(["laich-2.5"], Budget(1, 1))
    assert entry(bench, "laich-2.5")[0] == "16"


def test_a_bound_above_a_schedule_stops_everything(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "classic").mkdir()
    native.write(load("laich-2.5"), tmp_path / "classic" / "laich-2.5.json")
    wrong = with_bound(registry.get("heft")(load("laich-2.5")), Fraction(29, 2))
    monkeypatch.setattr(bench, "run", lambda *_: (wrong, "heft", "wrong"))
    with pytest.raises(AssertionError, match=r"bound 29/2 \(wrong\) above .* schedule of 14"):
        bench.index(["laich-2.5"], Budget(1, 1))
    assert not (tmp_path / "best").exists()


def test_a_refresh_says_what_it_found_and_goes_on_where_it_was_stopped(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "classic").mkdir()
    native.write(load("laich-2.5"), tmp_path / "classic" / "laich-2.5.json")
    monkeypatch.setattr(library, "certificate", lambda _: None)
    bench.refresh(["classic"], Budget(20, 1))
    row = bench.read_rows(bench.REFRESHED)["laich-2.5"]
    assert (row["makespan_before"], row["makespan"], row["status"]) == ("", "14", "OPTIMAL")
    assert row["certificate"].startswith("tier ")
    assert (tmp_path / "certificates" / "laich-2.5" / "certificate.json").exists()
    before = contents(tmp_path)
    monkeypatch.setattr(bench, "index", None)  # nothing is left to do in no more time
    bench.refresh(["classic"], Budget(20, 1))
    assert contents(tmp_path) == before


def test_an_unknown_name_is_an_error_of_the_script(bench: ModuleType) -> None:
    with pytest.raises(InputError, match="no instance or group 'nothing'"):
        bench.index(["nothing"], Budget(1, 1))
