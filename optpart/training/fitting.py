"""The check that the parameters of a training graph fit on a cluster at all."""

from __future__ import annotations

from fractions import Fraction

from optpart.errors import InputError
from optpart.problem.rational import rounded
from optpart.training.cluster import TrainingCluster
from optpart.training.graph import Role, TrainingGraph


def check_parameters_fit(graph: TrainingGraph, cluster: TrainingCluster, slots: int) -> None:
    """Check that the parameters may fit on the devices under some strategy.

    Raises
    ------
    InputError
        If operations that must stay together need more than the largest memory, or all parameters
        need more than all memories. Names a least set of parameters.
    """
    limits = [m for m in cluster.cluster.memory if m is not None]
    if len(limits) < len(cluster):
        return
    need: list[tuple[Fraction, str]] = []
    together: dict[int, list[tuple[Fraction, str]]] = {}
    home = {o: i for i, group in enumerate(graph.tied) for o in group}
    for parameter in graph.parameters:
        applied = any(graph.operations[u].role is Role.APPLY for u in parameter.users)
        size = parameter.size * (1 + slots if applied else 1)
        need.append((size, parameter.name))
        together.setdefault(home[parameter.users[0]], []).append((size, parameter.name))
    for rows, room, where in (
        *((rows, max(limits), "the largest device has") for rows in together.values()),
        (need, sum(limits), "all devices have"),
    ):
        total, named = Fraction(0), []
        for size, name in sorted(rows, reverse=True):
            total += size
            named.append(name)
            if total > room:
                listed = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if named[4:] else "")
                raise InputError(
                    f"parameters {listed}",
                    f"need {rounded(total, up=True)} bytes with the optimiser's, "
                    f"but {where} {rounded(Fraction(room), up=False)}",
                    "add memory, or choose an optimiser that keeps less",
                )
