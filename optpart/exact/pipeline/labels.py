"""Stages of any graph whose transfers count: labels over downsets.

What a transfer costs depends on the device that sends it, possibly many stages earlier. So a label
of a downset also holds the device of every tensor that is still awaited outside the downset, and
what these devices have to do so far. Of two labels that differ only in loads, one that is nowhere
larger replaces the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from optpart.exact.pipeline.clock import NEVER, check
from optpart.exact.pipeline.downsets import Items, bits, downsets_of
from optpart.exact.pipeline.problem import classes_of, limits, vertex_memory
from optpart.exact.pipeline.splits import Split, Stage
from optpart.problem.instance import Instance

#: Most labels to keep, and to try: some seconds of work.
MOST_LABELS = 100_000
MOST_TRIES = 10**6
#: Most tensors times pairs of devices.
MOST_DELAYS = 10**6
#: Most pairs of downsets to combine.
MOST_BLOCKS = 200_000


class TooManyLabelsError(Exception):
    """The search has been given up."""


@dataclass(eq=False)
class _Label:
    """Stages up to a downset.

    Attributes
    ----------
    value : int
        The largest load so far.
    sender : tuple of (int, int)
        The awaited tensors, each with its device.
    partial : tuple of (int, int)
        The devices of awaited tensors, each with its load so far.
    """

    value: int
    used: tuple[int, ...]
    sender: tuple[tuple[int, int], ...]
    partial: tuple[tuple[int, int], ...]
    before: _Label | None
    block: int = 0
    device: int = -1


@dataclass(frozen=True)
class _Tensor:
    number: int
    producer: int
    consumers: int  # a set of items, without that of the producer


def best_labelled(
    instance: Instance,
    items: Items,
    order: Sequence[int] = (),
    below: Fraction | None = None,
    deadline: float = NEVER,
) -> Split | None:
    """Return the stages of least bottleneck, or ``None`` if none is below a limit.

    Parameters
    ----------
    order : sequence of int
        The only devices to use, in the order of their stages. By default, all in any order.
    below : Fraction, optional
        Only splits with a smaller bottleneck are looked for.

    Raises
    ------
    UnsupportedError
        If there are too many downsets.
    TooManyLabelsError
        If the search is given up; nothing is known then.
    TimeUpError
        After the deadline.
    """
    return _Search(instance, items, tuple(order), below, deadline).run()


class _Search:
    def __init__(
        self,
        instance: Instance,
        items: Items,
        order: tuple[int, ...],
        below: Fraction | None,
        deadline: float,
    ) -> None:
        self.deadline = deadline
        self.instance, self.items, self.order = instance, items, order
        self.classes = classes_of(instance)
        graph, item = instance.graph, items.item
        consumers: dict[int, int] = {}
        for tensor, target in zip(
            graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True
        ):
            consumers[tensor] = consumers.get(tensor, 0) | 1 << int(item[target])
        self.tensors = []
        for tensor, users in sorted(consumers.items()):
            producer = int(item[graph.tensor_vertex[tensor]])
            if users & ~(1 << producer):
                self.tensors.append(_Tensor(tensor, producer, users & ~(1 << producer)))
        if len(self.tensors) * instance.devices**2 > MOST_DELAYS:
            raise TooManyLabelsError
        self._numbers()
        # Python's integers are exact at any size.
        self.limit = math.inf if below is None else math.ceil(below * self.scale)

    def _numbers(self) -> None:
        instance, k = self.instance, self.instance.devices
        model = instance.model
        channels = model.parallel
        self.counts = model.queues
        sends = [instance.send_duration(d) for d in range(k)]
        time = [
            [
                sum((instance.duration(v, d) for v in item), Fraction(0))
                if all(instance.vertex_allowed[v, d] for v in item)
                else None
                for d in range(k)
            ]
            for item in self.items.members
        ]
        delay: dict[tuple[int, int, int], Fraction | None] = {}
        for tensor in self.tensors:
            check(self.deadline)
            for d in range(k):
                for e in range(k):
                    if d != e:
                        found = instance.delay(tensor.number, d, e)
                        delay[tensor.number, d, e] = None if found is None else found / channels
        numbers = [f for row in time for f in row if f is not None]
        numbers += [f for f in delay.values() if f is not None] + sends
        self.scale = math.lcm(1, *{f.denominator for f in numbers})
        whole = self._whole
        self.time = [[None if f is None else whole(f) for f in row] for row in time]
        self.delay = {key: None if f is None else whole(f) for key, f in delay.items()}
        self.send = [whole(f) for f in sends]
        need = vertex_memory(instance)
        self.need = [sum((need[v] for v in item), Fraction(0)) for item in self.items.members]
        self.capacity = limits(instance)
        self.apart = [
            (1 << int(self.items.item[u])) | (1 << int(self.items.item[v]))
            for u, v in instance.graph.separation
        ]

    def _whole(self, value: Fraction) -> int:
        return value.numerator * (self.scale // value.denominator)

    def run(self) -> Split | None:
        downsets = downsets_of(self.items, most=5000, deadline=self.deadline)
        awaited = [self._awaited(downset) for downset in downsets]
        used = (0,) if self.order else (0,) * len(self.classes)
        fronts: list[dict[object, list[_Label]]] = [{} for _ in downsets]
        fronts[0][used, ()] = [_Label(0, used, (), (), None)]
        labels = blocks = tries = 0
        for at, downset in enumerate(downsets):
            if at == len(downsets) - 1:
                break
            live = [label for front in fronts[at].values() for label in front]
            fronts[at].clear()
            if not live:
                continue
            for larger in range(at + 1, len(downsets)):
                if downset & ~downsets[larger]:
                    continue
                blocks += 1
                if blocks > MOST_BLOCKS:
                    raise TooManyLabelsError
                block = downsets[larger] & ~downset
                loads = self._loads(block)
                for label in live:
                    check(self.deadline)
                    for device, taken in self._devices(label.used):
                        if (load := loads.get(device)) is None:
                            continue
                        tries += 1
                        if tries > MOST_TRIES:
                            raise TooManyLabelsError
                        new = self._extended(label, block, device, taken, load, awaited[larger])
                        if new is not None and _kept(fronts[larger], new):
                            labels += 1
                            if labels > MOST_LABELS:
                                raise TooManyLabelsError
        final = [label for front in fronts[-1].values() for label in front]
        if not final:
            return None
        best = min(final, key=lambda label: label.value)
        value = Fraction(best.value, self.scale)
        return Split(self._stages(best), value, value)

    def _awaited(self, downset: int) -> list[_Tensor]:
        return [
            tensor
            for tensor in self.tensors
            if downset >> tensor.producer & 1 and tensor.consumers & ~downset
        ]

    def _loads(self, block: int) -> dict[int, int]:
        """Return the run time of a block on each device that can run it."""
        if any(pair & ~block == 0 for pair in self.apart):
            return {}
        held, found = bits(block), {}
        need = sum((self.need[i] for i in held), Fraction(0))
        for d, capacity in enumerate(self.capacity):
            if capacity is not None and need > capacity:
                continue
            load = 0
            for i in held:
                time = self.time[i][d]
                if time is None:
                    break
                load += time
            else:
                if load < self.limit:
                    found[d] = load
        return found

    def _devices(self, used: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the devices that a next stage may take, and what is used then."""
        if self.order:
            for place in range(used[0], len(self.order)):
                yield self.order[place], (place + 1,)
            return
        for kind, count in enumerate(used):
            if count < len(self.classes[kind]):
                yield self.classes[kind][count], (*used[:kind], count + 1, *used[kind + 1 :])

    def _extended(
        self,
        label: _Label,
        block: int,
        device: int,
        used: tuple[int, ...],
        load: int,
        awaited: list[_Tensor],
    ) -> _Label | None:
        """Return the label with one more stage; ``None`` if it is not below the limit."""
        sender, partial = dict(label.sender), dict(label.partial)
        communication = self.instance.model.communication
        partial[device] = load if communication == "sendrecv" else 0
        links: dict[int, int] = {}
        received = 0
        for tensor in self.tensors:
            source = sender.get(tensor.number)
            if source is None or not tensor.consumers & block:
                continue
            delay = self.delay[tensor.number, source, device]
            if delay is None:
                return None
            match communication:
                case "sendrecv":
                    partial[source] += self.send[source]
                case "link":
                    links[source] = links.get(source, 0) + delay
                case "port":
                    partial[source] += delay
                    received += delay
                case "delay":
                    pass
        value = max(label.value, load, received, *links.values(), *partial.values())
        if value >= self.limit:
            return None
        after = tuple((t.number, sender.get(t.number, device)) for t in awaited)
        awaiting = sorted({d for _, d in after})
        kept = tuple((d, partial[d]) for d in awaiting) if self.counts else ()
        return _Label(value, used, after, kept, label, block, device)

    def _stages(self, label: _Label) -> tuple[Stage, ...]:
        stages = []
        while label.before is not None:
            vertices = sorted(v for i in bits(label.block) for v in self.items.members[i])
            stages.append(Stage(tuple(vertices), (label.device,)))
            label = label.before
        return tuple(reversed(stages))


def _kept(fronts: dict[object, list[_Label]], new: _Label) -> bool:
    """Add a label to its front unless another is as good; drop those that it replaces."""
    front = fronts.setdefault((new.used, new.sender), [])
    for label in front:
        if label.value <= new.value and _nowhere_larger(label, new):
            return False
    front[:] = [
        label for label in front if not (new.value <= label.value and _nowhere_larger(new, label))
    ]
    front.append(new)
    return True


def _nowhere_larger(one: _Label, other: _Label) -> bool:
    return all(a <= b for (_, a), (_, b) in zip(one.partial, other.partial, strict=True))
