"""The storage of measurements, and what is measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from bench.reproduce import strategy
from bench.reproduce.cases import CASES, NETWORKS, Case
from bench.reproduce.records import Bound, Record, Run
from bench.store import Store, Values
from optpart.methods import registry

#: Graph on which every pair is verified.
_VERIFIED = NETWORKS[0]
_PARAMETERS = ("case", "run", "partitioner")


def records(store: Store) -> Iterable[Record]:
    """Yield all measurements."""
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
