"""Every pair of strategies gives the schedules that it gave when its digest was taken.

Other tests compute single values by hand; this one notices any change, in every model of
communication and memory. After a change that is wanted, take the digests that it shows.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from itertools import product

import numpy as np
import pytest

import optpart as op
from optpart.methods import registry
from optpart.methods.parts import PARTITIONERS, SCHEDULERS
from optpart.problem.model import Communication, Memory
from optpart.testing.draw import random_instance

#: Of all schedulers on all instances.
DIGESTS = {
    "hash": "7450340d3289",
    "hash-random": "e27464089653",
    "fastest": "d9985fbc844b",
    "single": "14a3fe32f544",
    "batch-split": "dca73b0e5499",
    "batch-split-paper": "a00d134843cb",
    "critical-path": "70e107299f93",
    "critical-path-paper": "7d71b92a94d2",
    "iterated-critical-path": "a07cd7c5cb12",
    "mite": "f5d494cd8794",
    "mite-paper": "ff7a15830a64",
    "dfs": "950a242c502d",
    "dfs-paper": "6b564093e449",
    "heft": "6f1e3ba444ef",
    "heft-groups": "6f1e3ba444ef",
    "cpop": "e779fcb1cce8",
    "peft": "53d30e021430",
    "etf": "03050ba20772",
    "min-min": "6d32133425a6",
    "max-min": "c4fea74f9312",
    "sufferage": "024d836f3146",
    "dls": "c823a3b8d28f",
    "heft-lookahead": "acd90226f63d",
    "white-paper": "a1f1ad17949f",
    "up-rank": "7b944c72d883",
    "task-parallel": "2a6ef4bc7671",
    "scoring": "cd7df2cd7b42",
    "scoring-tuned": "7c36d02137b4",
    "cluster-load": "482c92c73f02",
    "cluster-comm": "fa4707763155",
    "cluster-cap": "c330bf4d52ea",
    "expert": "1cf605ab173b",
    "linear-greedy": "6b5e89d41181",
    "sequential-fill": "8fb399888809",
    "balanced-fill": "59e90cc00793",
    "contiguous-split": "dfa5767bde28",
    "pipedream": "4e42262ac17d",
    "exo-memory": "73b5cdb543ad",
    "exo-bandwidth": "98ca6a5ea867",
}

MODELS: list[tuple[Communication, Memory]] = [
    ("delay", "estimate"),
    ("sendrecv", "none"),
    ("link", "edges"),
    ("port", "refcount"),
]


@cache
def instances() -> list[op.Instance]:
    drawn = (
        random_instance(np.random.default_rng(seed), 12, 4, *model)
        for seed, model in enumerate(MODELS)
    )
    return [op.load("heft-10"), *drawn]


def outcome(instance: op.Instance, pair: str) -> list[object]:
    try:
        result = registry.get(pair)(instance, seed=0)
    except op.OptpartError as error:
        return [str(error)]
    if result.schedule is None:
        return [result.reason]
    starts = [str(start) for start in result.schedule.start.fractions()]
    return [str(result.makespan), result.schedule.placement.tolist(), starts]


def test_every_partitioner_that_places_an_instance_has_a_digest() -> None:
    """Rules of runtimes refuse all of these; min-cut depends on the version of METIS."""
    assert DIGESTS.keys() <= PARTITIONERS.keys()
    for name in PARTITIONERS.keys() - DIGESTS.keys() - {"min-cut"}:
        assert all(len(outcome(instance, f"{name}+fifo")) == 1 for instance in instances()), name


@pytest.mark.parametrize("partitioner", DIGESTS)
def test_the_schedules_of_a_partitioner_are_what_they_were(partitioner: str) -> None:
    every = product(instances(), SCHEDULERS)
    found = [outcome(instance, f"{partitioner}+{scheduler}") for instance, scheduler in every]
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]
    assert digest == DIGESTS[partitioner]
