"""Run times estimated from datasheet figures (the roofline model).

An operation takes the time of its launch, and then as long as the slower of two: computing at the
attained part of the device's peak rate in the operation's data type, and moving what it reads and
writes at the attained part of the memory bandwidth (S. Williams, A. Waterman, D. Patterson:
Roofline, Communications of the ACM 52(4), 2009). Calibrated devices use their fitted coefficients
instead. Everything is in whole nanoseconds, rounded up, so that optima are exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from optpart.base.errors import InputError
from optpart.base.rounding import number
from optpart.interop.costs.costed import (
    Costed,
    costed,
    counted,
    whole_delays,
    whole_latencies,
)
from optpart.interop.costs.efficiency import FREE, OTHER, Efficiencies, defaults
from optpart.interop.costs.offload import shared, with_copies, with_specs
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import DeviceSpec, FittedSpec, Spec
from optpart.interop.formats.parsing import named
from optpart.problem.model import Memory
from optpart.problem.units import written
from optpart.problem.workload import Work, Workload

#: Other names of data types.
_SAME = {
    "double": "float64", "fp64": "float64", "f64": "float64",
    "float": "float32", "fp32": "float32", "f32": "float32",
    "half": "float16", "fp16": "float16", "f16": "float16",
    "bf16": "bfloat16", "fp8": "float8", "i8": "int8",
}  # fmt: skip

#: What counts where a device has no peak for a data type, in this order; float32 for all others.
#: Compilers for TPUs run float32 products in bfloat16. Nothing stands in for float64.
_INSTEAD = {
    "float64": (),
    "float32": ("bfloat16",),
    "float16": ("float32", "bfloat16"),
    "bfloat16": ("float32",),
    "float8": ("bfloat16", "float16", "float32"),
}
_OTHERS = ("float32", "bfloat16")


def roofline(
    workload: Workload,
    named_cluster: NamedCluster,
    *,
    efficiencies: Efficiencies | None = None,
    memory: Memory | None = None,
) -> Costed:
    """Estimate the run time of every operation on every device, in whole nanoseconds.

    Parameters
    ----------
    workload : Workload
        With the work of every operation; tensor sizes and resident memory in bytes.
    named_cluster : NamedCluster
        Something must be known of every device.
    efficiencies : Efficiencies, optional
        Attained parts of peaks by class of operation.
    memory : {"none", "estimate", "edges", "refcount"}, optional
        Without it, limits of memory count if there are any.

    Raises
    ------
    InputError
        If the workload does not tell its work, nothing is known of a device, or a device has no
        peak for a data type and none that may stand in for it.
    """
    if workload.work is None:
        raise InputError(
            workload.name,
            "says neither operations nor bytes of its vertices",
            "use other costs, or a file that has shapes",
        )
    computing = replace(named_cluster, specs=with_specs(named_cluster))
    remedy = "name one of the library with of = \"NAME\"; 'optpart devices' lists them"
    specs = [known_spec(computing, d, remedy) for d in range(len(computing.cluster))]
    exact, assumed = estimates(workload.work, named_cluster.cluster.names, specs, efficiencies)
    exact = with_copies(workload, named_cluster, exact)
    in_order, named_cluster, shared_by = shared(workload, named_cluster)
    durations = [[math.ceil(column[v]) for column in exact] for v in range(len(workload.graph))]
    cluster, of_latencies = whole_latencies(named_cluster.cluster)
    graph, of_delays = whole_delays(in_order, cluster)
    return costed(
        workload,
        graph,
        cluster,
        f"roofline, in nanoseconds, on {', '.join(dict.fromkeys(spec.name for spec in specs))}",
        (
            *assumed,
            *shared_by,
            *_rounding(exact),
            *of_latencies,
            *of_delays,
            *_unlimited(named_cluster),
        ),
        durations=durations,
        memory=memory,
        time_unit="ns",
    )


def estimates(
    work: Work, names: Sequence[str], specs: Sequence[Spec], efficiencies: Efficiencies | None
) -> tuple[list[list[Fraction]], tuple[str, ...]]:
    """Return exact run times on some devices, a column of nanoseconds each, and what was assumed.

    Parameters
    ----------
    names, specs
        Of the devices.
    """
    estimate = _Estimate(work, efficiencies or defaults())
    return estimate.columns(names, specs), estimate.remarks()


def known_spec(named_cluster: NamedCluster, device: int, remedy: str) -> Spec:
    """Return what is known of a device; if nothing is, nothing can be estimated."""
    spec = named_cluster.specs[device]
    if spec is None:
        place = f"device {named_cluster.cluster.names[device]!r}"
        raise InputError(place, "has no figures to estimate run times from", remedy)
    return spec


def _unlimited(named_cluster: NamedCluster) -> tuple[str, ...]:
    cluster = named_cluster.cluster
    names = [
        name for name, limit in zip(cluster.names, cluster.memory, strict=True) if limit is None
    ]
    if not names:
        return ()
    return (f"Memory: {named(names)}: none given, so it counts as unlimited.",)


def _rounding(columns: Sequence[Sequence[Fraction]]) -> tuple[str, ...]:
    """Say how much rounding up adds to the run times of a device, at most."""
    most = Fraction(0)
    for column in columns:
        total = sum(column, Fraction(0))
        if total:
            most = max(most, (sum(map(math.ceil, column)) - total) / total)
    if not most:
        return ()
    return (
        "Run times were rounded up to whole nanoseconds, which adds at most "
        f"{number(100 * most, up=True, digits=2)}% of the sum of a device's run times.",
    )


class _Estimate:
    """Run times of one workload on device after device, and what was assumed on the way."""

    def __init__(self, work: Work, efficiencies: Efficiencies) -> None:
        self.work = work
        self.efficiencies = efficiencies
        of_kind = {kind: efficiencies.class_of(kind) for kind in set(work.kinds)}
        self.classes = [of_kind[kind] for kind in work.kinds]
        self.precisions = [_SAME.get(name.lower(), name) for name in work.precisions]
        self.moved = [
            read + written
            for read, written in zip(work.read.tolist(), work.written.tolist(), strict=True)
        ]
        self.flops: list[int] = work.flops.tolist()
        #: Launch times by device, of those that are not calibrated.
        self.launches: dict[str, Fraction] = {}
        self.stated = False  # whether any figures are those of a datasheet
        #: Operations by device, data type, and the data type that counts instead.
        self.instead: Counter[tuple[str, str, str]] = Counter()
        #: Operations by calibrated device and their data type, where another was measured.
        self.foreign: Counter[tuple[str, str, str]] = Counter()
        #: Operations by calibrated device and class that only its overall fit covers.
        self.overall: Counter[tuple[str, str]] = Counter()

    def columns(self, names: Sequence[str], specs: Sequence[Spec]) -> list[list[Fraction]]:
        """Return the exact run times on each device, k columns of n, in nanoseconds."""
        distinct: list[tuple[Spec, list[str]]] = []
        place = []
        for name, spec in zip(names, specs, strict=True):
            at = next((i for i, (known, _) in enumerate(distinct) if known == spec), None)
            if at is None:
                at = len(distinct)
                distinct.append((spec, []))
            distinct[at][1].append(name)
            place.append(at)
        found = []
        for spec, alike in distinct:
            label = named(alike, 3)
            if isinstance(spec, FittedSpec):
                found.append(self._fitted(spec, label))
            else:
                self.launches[label] = spec.overhead
                self.stated |= bool(spec.source)
                found.append(self._roof(spec, label))
        return [found[at] for at in place]

    def _roof(self, spec: DeviceSpec, label: str) -> list[Fraction]:
        known: dict[tuple[str, str, int, int], Fraction] = {}
        column = []
        for v, class_ in enumerate(self.classes):
            if class_ == FREE:
                column.append(Fraction(0))
                continue
            precision = self._precision(spec, label, v)
            key = (class_, precision, self.flops[v], self.moved[v])
            if key not in known:
                part = self.efficiencies.classes[class_]
                known[key] = spec.overhead + max(
                    self.flops[v] / (spec.peak[precision] * part.compute) if self.flops[v] else 0,
                    self.moved[v] / (spec.bandwidth * part.bandwidth),
                )
            column.append(known[key])
        return column

    def _precision(self, spec: DeviceSpec, label: str, v: int) -> str:
        """Return the data type whose peak counts for a vertex."""
        asked = self.precisions[v]
        if asked in spec.peak:
            return asked
        if not self.flops[v]:  # nothing is computed: no rate counts
            return next(iter(spec.peak))
        for name in _INSTEAD.get(asked, _OTHERS):
            if name in spec.peak:
                self.instead[label, asked, name] += 1
                return name
        raise InputError(
            f"device {label}",
            f"has no peak for {asked}, in which {self.work.kinds[v]} computes",
            f'give peak = {{{asked} = "... TFLOP/s"}} in the cluster file',
        )

    def _fitted(self, spec: FittedSpec, label: str) -> list[Fraction]:
        column = []
        for v, (kind, class_) in enumerate(zip(self.work.kinds, self.classes, strict=True)):
            fit, level = spec.coefficients(kind, class_)
            if class_ == FREE and level == "all":
                column.append(Fraction(0))
                continue
            if level == "all":
                self.overall[label, class_] += 1
            if self.flops[v] and self.precisions[v] != _SAME.get(spec.precision, spec.precision):
                self.foreign[label, self.precisions[v], spec.precision] += 1
            column.append(fit.time(self.flops[v], self.moved[v]))
        return column

    def remarks(self) -> tuple[str, ...]:
        """Say what was assumed, one sentence each."""
        return (
            *self._of_datasheets(),
            *(
                f"{device}: no peak for {asked}; {counted(count, 'operation')} at that of {used}."
                for (device, asked, used), count in self.instead.items()
            ),
            *(
                f"{device}: calibrated in {measured}; {counted(count, 'operation')} in {asked} "
                "counted as if in it."
                for (device, asked, measured), count in self.foreign.items()
            ),
            *(
                f"{device}: class {class_} was not measured; its overall fit counts for "
                f"{counted(count, 'operation')}."
                for (device, class_), count in self.overall.items()
            ),
            *self._of_kinds(),
        )

    def _of_datasheets(self) -> list[str]:
        if not self.launches:
            return []
        count = Counter(self.classes)
        parts = [
            f"{class_} {_percent(part.compute)}/{_percent(part.bandwidth)} ({count[class_]:,})"
            for class_, part in self.efficiencies.classes.items()
            if count[class_]
        ]
        launches = [f"{name} {written(time, 'time')}" for name, time in self.launches.items()]
        return [
            f"Run times are estimates from {'datasheets' if self.stated else 'the rates given'}; "
            "attained parts of peak rate and of memory bandwidth are assumed: "
            f"{', '.join(parts) or 'none'}.",
            f"Launching an operation is assumed to take: {', '.join(launches)}.",
        ]

    def _of_kinds(self) -> list[str]:
        found = []
        for class_, meaning in (
            (FREE, "Taken to cost nothing"),
            (OTHER, "Of no known class"),
        ):
            kinds = [k for k, c in zip(self.work.kinds, self.classes, strict=True) if c == class_]
            if kinds:
                found.append(
                    f"{meaning}: {counted(len(kinds), 'operation')} ({named(sorted(set(kinds)))})."
                )
        return found


def _percent(part: Fraction) -> str:
    return f"{number(100 * part, up=True)}%"
