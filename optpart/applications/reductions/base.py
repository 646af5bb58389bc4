"""The base class of all reductions to TF, and readers for their source instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_document, read_text
from optpart.interop.formats.json import keys, parse_json, sequence
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, shown
from optpart.solution.goal import Goal
from optpart.solution.schedule import Schedule, Transfers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Source = TypeVar("Source")
Solution = TypeVar("Solution")

#: The largest number of a source: with larger ones, solvers could overflow 64 bits.
_LARGEST = 2**40


@dataclass(frozen=True)
class Question:
    """A decision question of TF: is there a schedule of makespan at most ``deadline``?

    Attributes
    ----------
    instance : Instance
    deadline : Fraction
    """

    instance: Instance
    deadline: Fraction

    @property
    def goal(self) -> Goal:
        """Return the question as a goal for exact methods."""
        return Goal(makespan=self.deadline)


class Reduction(ABC, Generic[Source, Solution]):
    """A map from the instances of one NP-complete problem to TF, and from schedules back.

    The proof that it is a reduction has two directions, and both are code: :meth:`forth` turns a
    solution of the source into a schedule within the deadline, :meth:`back` turns any schedule
    within the deadline into a solution. Neither is trusted: the verifier checks the schedule, and
    :meth:`check`, which knows only the source problem, checks the solution.

    Attributes
    ----------
    name : str
        The name on the command line.
    title : str
        The source problem.
    reference : str
        The source of its hardness proof.
    reading : str
        The interpretation of the source text, or what the reduction says about TF.
    size : int
        Default size of a random source.
    keys : frozenset of str
        Keys of a source file, besides ``problem``.
    colours : {"never", "solution", "always"}
        When the colours of a picture of the source are those of devices: if there is a solution,
        always, or never. Otherwise devices have no colours either.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    reading: ClassVar[str]
    size: ClassVar[int]
    keys: ClassVar[frozenset[str]]
    colours: ClassVar[Literal["never", "solution", "always"]] = "solution"

    @property
    def kind(self) -> Kind:
        """The kind of a source file."""
        return Kind(
            f"a source of {self.name}", of_document(lambda d: d.get("problem") == self.name)
        )

    @abstractmethod
    def read(self, document: Mapping[str, Any]) -> Source:
        """Build a source from the parsed file; raise :class:`InputError` if it is not valid."""

    @abstractmethod
    def document(self, source: Source) -> dict[str, Any]:
        """Return the document that :meth:`read` reads."""

    @abstractmethod
    def random(self, size: int, rng: np.random.Generator) -> Source:
        """Draw a source of about ``size`` parts whose answer is not obvious."""

    @abstractmethod
    def to_tf(self, source: Source) -> Question:
        """Return the TF question with the same answer."""

    @abstractmethod
    def forth(self, source: Source, solution: Solution) -> Schedule:
        """Turn a solution of the source into a schedule within the deadline."""

    @abstractmethod
    def back(self, source: Source, schedule: Schedule) -> Solution:
        """Turn a schedule within the deadline into a solution of the source."""

    @abstractmethod
    def check(self, source: Source, solution: Solution) -> str:
        """Return the first rule of the source that a solution breaks; empty if it is valid."""

    @abstractmethod
    def describe(self, source: Source) -> str:
        """Return the source instance and its question in a few words."""

    def added(self, source: Source) -> str:
        """Return what TF has that the source does not show, in a few words; empty if nothing."""
        return ""

    @abstractmethod
    def describe_solution(self, source: Source, solution: Solution) -> str:
        """Return a solution on one line."""

    @abstractmethod
    def draw(self, axes: Axes, source: Source, solution: Solution | None) -> None:
        """Draw the source, with its solution if there is one."""


def read_source(reduction: Reduction[Source, Any], path: str | Path) -> Source:
    """Read a source file; raise :class:`InputError` with file and place if it is not valid."""
    with FaultsOf(path):
        document = keys(parse_json(read_text(path)), {"problem", *reduction.keys}, "")
        if document.get("problem") != reduction.name:
            found = shown(document["problem"]) if "problem" in document else "missing"
            raise InputError("problem", found, f'this reduction reads "{reduction.name}"')
        for key in sorted(reduction.keys - document.keys()):
            raise InputError(key, "missing", f"give {', '.join(sorted(reduction.keys))}")
        return reduction.read(document)


def whole(value: object, place: str, least: int = 1) -> int:
    """Read a whole number from ``least`` to 2^40."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
        raise InputError(place, shown(value), f"give a whole number from {least} to 2^40")
    return value


def wholes(value: object, place: str) -> tuple[int, ...]:
    """Read a list of whole numbers ≥ 1."""
    listed = sequence(value, place)
    if not listed:
        raise InputError(place, "empty", "give at least one number")
    return tuple(whole(entry, f"{place}[{i}]") for i, entry in enumerate(listed))


def names(value: object, place: str) -> tuple[str, ...]:
    """Read a list of distinct names."""
    listed = sequence(value, place)
    for i, name in enumerate(listed):
        if not isinstance(name, str) or not name:
            raise InputError(f"{place}[{i}]", shown(name), "give a name")
        if name in listed[:i]:
            raise InputError(f"{place}[{i}]", f"duplicate name {name!r}", "use each name once")
    if not listed:
        raise InputError(place, "empty", "give at least one name")
    return tuple(listed)


def arcs(value: object, place: str, known: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Read a list of pairs of known names as pairs of their numbers."""
    number = {name: i for i, name in enumerate(known)}
    found = []
    for e, pair in enumerate(sequence(value, place)):
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"{place}[{e}]", "not a pair", "give [earlier, later]")
        for name in pair:
            if not isinstance(name, str) or name not in number:
                raise InputError(
                    f"{place}[{e}]", f"unknown name {shown(name)}", "use a name of the list"
                )
        found.append((number[pair[0]], number[pair[1]]))
    return tuple(found)


def parallel(question: Question, placement: Sequence[int], start: Sequence[Fraction]) -> Schedule:
    """Build a schedule in which every tensor leaves for other devices as soon as it exists."""
    from optpart.solution.schedule import crossings

    instance = question.instance
    device = np.array(placement, dtype=np.int32)
    begin = RationalArray.from_fractions(start)
    moves = []
    for tensor, target in crossings(instance, device):
        producer = int(instance.graph.tensor_vertex[tensor])
        sender = int(device[producer])
        made = begin[producer] + instance.duration(producer, sender)
        delay = instance.delay(tensor, sender, target)
        assert delay is not None  # all devices of these instances are linked
        moves.append((tensor, target, made, made + delay))
    return Schedule(device, begin, Transfers.of(moves))


def one_after_the_other(question: Question, placement: Sequence[int]) -> Schedule:
    """Build the schedule in which every device runs its vertices without a pause."""
    free = [Fraction(0)] * question.instance.devices
    start = []
    for v, d in enumerate(placement):
        start.append(free[d])
        free[d] += question.instance.duration(v, d)
    return parallel(question, placement, start)
