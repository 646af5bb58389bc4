"""The process that writes linear programs: PuLP cannot share one with OR-Tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from optpart.base.children.caller import Caller
from optpart.base.children.scratch import Scratch
from optpart.base.languages import to_comment, to_label
from optpart.exact.milp_model import MilpModel
from optpart.exact.milp_task import MilpTask
from optpart.problem.instance import Instance

#: Names of variables have at most 255 characters in the LP format, and are made of two labels.
_LONGEST = 100


def main() -> None:
    """Receive one job, and send the text of its program."""
    caller = Caller()
    caller.send(_text(*caller.receive()))


def _text(job: MilpTask, form: str, remarks: Sequence[str]) -> str:
    model = _Named(job)
    model.rename()
    with Scratch() as scratch:
        path = scratch.folder / f"program.{form}"
        if form == "lp":
            model.problem.writeLP(str(path))
        else:
            model.problem.writeMPS(str(path))
        text = Path(path).read_text(encoding="utf-8")
    mark = "\\" if form == "lp" else "*"
    head = [f"Schedules of {_name(job.instance)} under the model delay.", *remarks]
    return "".join(f"{to_comment(mark, line)}\n" for line in head) + text


def _within(group: str) -> Callable[[MilpModel], None]:
    """Return a method that adds a group of constraints under its name."""

    def add(self: Any) -> None:
        self.group = group
        getattr(MilpModel, f"_{group}")(self)

    return add


class _Named(MilpModel):
    """The program with names for people."""

    group = ""

    _placement = _within("placement")
    _starts = _within("starts")
    _arrivals = _within("arrivals")
    _one_at_a_time = _within("one_at_a_time")
    _separation = _within("separation")
    _memory = _within("memory")
    _load_cuts = _within("load_cuts")
    _order_of_alike_devices = _within("order_of_alike_devices")

    def _add(self, constraint: Any) -> None:
        self.rows += 1
        self.problem += constraint, f"{self.group}_{self.rows}"

    def rename(self) -> None:
        """Call variables after vertices and devices."""
        instance = self.instance
        vertex = _labels(instance.graph.names, "v")
        device = _labels(instance.cluster.names, "d")
        self.problem.name = _name(instance) or "delay"
        self.makespan.name = "makespan"
        for (u, d), variable in self.on.items():
            variable.name = f"on_{vertex[int(instance.units[u][0])]}_{device[d]}"
        for v, variable in enumerate(self.start):
            variable.name = f"start_{vertex[v]}"
        for (i, j), variable in self.before.items():
            variable.name = f"before_{vertex[i]}_{vertex[j]}"
        names = [variable.name for variable in self.problem.variables()]
        if len(set(names)) < len(names):  # two labels that read like others put together
            for number, variable in enumerate(self.problem.variables()):
                variable.name = f"{variable.name}_{number}"


def _labels(names: Sequence[str], letter: str) -> list[str]:
    """Return the names if they are fit for programs, and otherwise numbers."""
    labels = [to_label(name) for name in names]
    fit = all(0 < len(label) <= _LONGEST for label in labels) and len(set(labels)) == len(labels)
    return labels if fit else [f"{letter}{i}" for i in range(len(names))]


def _name(instance: Instance) -> str:
    return to_label(instance.name)[:_LONGEST]
