"""The storage of measurements: their dependencies, and how to repeat them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path

from bench.depends import LIBRARY, REGISTRY, Needs
from bench.reproduce import bounding, strategy
from bench.reproduce.cases import CASES, NETWORKS, Case
from bench.reproduce.records import Bound, Record, Run
from bench.store import Bench, Store, Values
from optpart.methods import registry
from optpart.study import library

_CASES = {case.key: case for case in CASES}
#: Graph on which every pair is verified.
_VERIFIED = NETWORKS[0]
#: What is looked up there counts by itself.
_LOOKED_UP = (REGISTRY, LIBRARY)
_PARAMETERS = ("case", "run", "partitioner")
#: What differs from one time to the next.
_TIMES = ("seconds", "cost")
#: A row that took longer is not made again, in seconds.
_CHEAP = 4.0


def records(store: Store) -> Iterable[Record]:
    """Yield the measurements that count."""
    for row in store.rows():
        values = {name: value for name, value in row.flat.items() if name != "kind"}
        yield Run(**values) if row.run["kind"] == "run" else Bound(**values)


def keep(store: Store, record: Record) -> None:
    """Add a measurement."""
    run, result = _parts(record)
    store.append(run, result)


def _parts(record: Record) -> tuple[Values, Values]:
    values = asdict(record)
    run: Values = {"kind": "run" if isinstance(record, Run) else "bound"}
    run |= {name: values.pop(name) for name in _PARAMETERS if name in values}
    return run, values


def needs(run: Values) -> Needs:
    """Return the dependencies of a measurement."""
    return _needs(run["case"], run.get("partitioner", ""))


@cache
def _needs(key: str, partitioner: str) -> Needs:
    graph = key.partition("@")[0]
    files = [library.folder() / "tensorflow" / f"{graph}-50.json"] if graph in NETWORKS else []
    roots = ["bench.reproduce.cases:Case", "optpart.formats.native"]
    packages, options = ["numpy", "numba"], ""
    if partitioner:
        chosen = registry.PARTITIONERS[partitioner]
        paths = [chosen.path, *(rule.path for rule in registry.SCHEDULERS.values())]
        roots += ["bench.reproduce.strategy:measured", *(path.partition(":")[0] for path in paths)]
        packages += [chosen.needs] if chosen.needs else []
        options = f"{dict(chosen.options)}"
    else:
        roots.append("bench.reproduce.bounding:bound")
        known = library.index().get(key.replace("@", "-")) or library.index().get(graph)
        options = "" if known is None else f"{known.bound} {known.makespan} {known.sha256}"
    return Needs(
        tuple(roots), without=_LOOKED_UP, packages=tuple(packages), files=tuple(files),
        options=options,
    )  # fmt: skip


def to_verify(case: Case, run: int, partitioner: str) -> tuple[str, ...]:
    """Return the scheduling strategies whose schedules are verified.

    Only in the first run: all on the smallest TensorFlow graph; elsewhere, where it takes seconds,
    a strategy has a schedule verified on every second case, the scheduling strategies in turn.
    Orders of a strategy's own are always verified.
    """
    if run > 1:
        return ()
    every = tuple(registry.SCHEDULERS)
    if case.graph == _VERIFIED and not case.variant:
        return (*every, strategy.OWN)
    number = [other for other in CASES if other.setting == case.setting].index(case)
    turn, rest = divmod(number + list(registry.PARTITIONERS).index(partitioner), 2)
    return (strategy.OWN,) if rest else (every[turn % len(every)], strategy.OWN)


def measured(case: Case, run: int, partitioner: str) -> Run:
    """Run a strategy on a case."""
    checked = to_verify(case, run, partitioner)
    return strategy.measured(case.instance(run), case.key, run, partitioner, checked)


def again(run: Values, _: Path) -> Values:
    """Measure once more."""
    case = _CASES[run["case"]]
    if run["kind"] == "run":
        record: Record = measured(case, run["run"], run["partitioner"])
    else:
        record = bounding.bound(case.instance(run["run"]), case.key, run["run"])
    return _parts(record)[1]


def differs(old: Values, new: Values) -> str:
    """Return the differences except times; strategies and bounds are deterministic."""
    names = [name for name in old if name not in _TIMES and old[name] != new.get(name)]
    return "; ".join(f"{name}: {old[name]}, now {new.get(name)}" for name in names)


BENCH = Bench(
    name="reproduce",
    command="python bench/reproduce",
    needs=needs,
    again=again,
    differs=differs,
    stratum=lambda row: row.run.get("partitioner") or f"bound by {row.result['method']}",
    cheap=lambda row: bool(row.result["seconds"] + row.result.get("cost", 0.0) < _CHEAP),
)
