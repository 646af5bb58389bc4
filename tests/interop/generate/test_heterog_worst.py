"""The family of instances on which HeteroG's order reaches its bound ([G] theorem 2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commandline import Run
from numpy.typing import NDArray

from optpart import Budget, InputError, Instance, Status
from optpart.applications.ordering.explicit import explicit
from optpart.interop.formats import native
from optpart.interop.generate.heterog_worst import heterog_makespan, heterog_worst
from optpart.methods.cpsat import cpsat
from optpart.methods.starts import only_placement
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate


def placement(instance: Instance) -> NDArray[np.int32]:
    where = only_placement(instance)
    assert where is not None
    return np.array([where[v] for v in range(instance.vertices)], dtype=np.int32)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_the_ratio_to_the_proven_optimum_approaches_the_bound(devices: int, loops: bool) -> None:
    links = devices**2 if loops else devices**2 - devices
    resources, last_step = devices + links, max(0, 2 * links - 1)
    ratios = []
    for length in (10, 100, 10_000):
        instance = heterog_worst(devices, length, loops=loops)
        schedule = simulate(instance, Partition(placement(instance)), heterog)
        assert not verify(instance, schedule)
        made = schedule.makespan(instance)
        assert made == heterog_makespan(devices, length, loops=loops)
        best = cpsat(instance, budget=Budget(20, 1))
        assert best.status is Status.OPTIMAL
        assert best.makespan is not None
        assert best.makespan <= length + 3 * last_step
        ratios.append(float(made / best.makespan))
    assert ratios == sorted(ratios)
    assert 0.98 * resources < ratios[-1] <= resources


@pytest.mark.parametrize("devices", [2, 5])
def test_every_device_and_every_link_has_a_long_task(devices: int) -> None:
    instance = heterog_worst(devices, 1000)
    made = explicit(instance, placement(instance))
    assert len(made.cluster) == devices**2
    load = np.zeros(len(made.cluster))
    for v, d in enumerate(placement(made).tolist()):
        load[d] += float(made.duration(v, d))
    assert load.min() >= 1000
    loops = heterog_worst(devices, 1000, loops=True)
    assert len(loops.cluster) == devices + devices**2


def test_one_device_has_only_a_link_to_itself() -> None:
    assert heterog_worst(1).vertices == 1
    assert heterog_worst(1, loops=True).cluster.names == ("d0", "d0 to d0")


@pytest.mark.parametrize(("devices", "length"), [(0, 10), (2, 0)])
def test_sizes_below_one_are_refused(devices: int, length: int) -> None:
    with pytest.raises(InputError, match="give a whole number ≥ 1"):
        heterog_worst(devices, length)


def test_the_command_writes_an_instance(run: Run, tmp_path: Path) -> None:
    path, options = tmp_path / "worst.json", ("--devices", 3, "--length", 50)
    shown = run("generate", "heterog-worst", *options, "-o", path)
    assert native.read(path).sha256 == heterog_worst(3, 50).sha256
    assert shown.out.startswith("heterog-worst-3: 15 vertices, 13 edges, 3 devices")
    run("generate", "heterog-worst", *options, "--loops", "-o", path)
    assert native.read(path).sha256 == heterog_worst(3, 50, loops=True).sha256
