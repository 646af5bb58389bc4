"""Instances of identical devices, in which the choice of device does not matter."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.solution.goal import Goal


def identical(instance: Instance, goal: Goal) -> bool:
    """Return whether the problem is P|prec|Cmax: identical devices, and crossing takes no time.

    Then only the number of vertices running at a time matters. Without precedences not even times
    matter, but only the assignment, for which the general model is better.
    """
    return (
        len(instance.graph.edge_source) > 0
        and instance.model.memory == "none"
        and not (goal.placement or goal.order or goal.blocks or goal.objective != "makespan")
        and goal.traffic is None
        and len(instance.units) == instance.vertices
        and not instance.graph.separation
        and bool(instance.allowed.all())
        and _equally_fast(instance)
        and _crossing_is_free(instance)
    )


def _equally_fast(instance: Instance) -> bool:
    if instance.given_durations is not None:
        times = instance.given_durations.times.numerators
        return bool((times == times[:, :1]).all())
    return bool((instance.cluster.speed.numerators == instance.cluster.speed.numerators[0]).all())


def _crossing_is_free(instance: Instance) -> bool:
    cluster, graph = instance.cluster, instance.graph
    if instance.model.sends and instance.model.send_ops:
        return False
    if graph.tensor_delay or not cluster.linked.all() or cluster.latency.numerators.any():
        return False
    apart = ~np.eye(len(cluster), dtype=np.bool_)
    return bool(
        cluster.infinite[apart].all() or not graph.tensor_size.numerators[graph.edge_tensor].any()
    )
