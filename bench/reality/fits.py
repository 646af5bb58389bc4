"""Run times of a model predicted from the operations of other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from optpart.interop.costs.calibration import Measurement, calibrate
from optpart.interop.costs.efficiency import defaults
from optpart.interop.costs.roofline import roofline
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import FittedSpec
from optpart.problem.cluster import Cluster
from optpart.problem.workload import Workload

#: How finely the other models are fitted: three coefficients for all operations, for each class of
#: operations, or for each type of operator.
LEVELS = ("all", "class", "type")
#: ONNX Runtime's profile counts whole microseconds; a shorter operation takes half of one.
SHORTEST = 0.5e-6

_NANOSECONDS = 10**9


@dataclass(frozen=True)
class Prediction:
    """Seconds of a held-back model, and the median error of its operations.

    Attributes
    ----------
    total : float
        Of all operations in sequence.
    error : float
        Relative, without sign; operations that the profile shows as 0 are left out.
    """

    total: float
    error: float


def measurements(workload: Workload, seconds: Mapping[str, float]) -> list[Measurement]:
    """Return the rows of one model's operations."""
    work = workload.work
    assert work is not None
    table = defaults()
    return [
        Measurement(
            kind=kind,
            class_=table.class_of(kind),
            flops=int(work.flops[v]),
            moved=int(work.read[v] + work.written[v]),
            seconds=max(seconds[workload.graph.names[v]], SHORTEST),
        )
        for v, kind in enumerate(work.kinds)
    ]


def fitted(rows: Sequence[Measurement], level: str) -> FittedSpec:
    """Fit a device as finely as asked."""
    spec = calibrate(rows, name="processor", precision="float32", by_kind=level == "type").spec
    return replace(spec, classes={}) if level == "all" else spec


def predicted(workload: Workload, seconds: Mapping[str, float], spec: FittedSpec) -> Prediction:
    """Predict a model on a device, and compare it with its own times."""
    named = NamedCluster(Cluster.uniform(1), (spec,), fixed_units=True)
    instance = roofline(workload, named).instance
    times = [float(instance.duration(v, 0)) / _NANOSECONDS for v in range(instance.vertices)]
    errors = [
        abs(time / seconds[name] - 1)
        for name, time in zip(workload.graph.names, times, strict=True)
        if seconds[name] > 0
    ]
    return Prediction(sum(times), median(errors))
