"""The cases: the graphs and clusters of the evaluations in [L], [M] and [B]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, cast

from optpart.interop.costs.drawn import drawn
from optpart.interop.generate import lstm, thesis
from optpart.interop.generate.cluster import drawn_cluster
from optpart.methods import registry
from optpart.problem.cluster import Cluster
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.study import library

NETWORKS = ("convolutional_network", "recurrent_network", "dynamic_rnn")

#: Strategies of [L], and those that [M] defines otherwise.
LAICH = ("hash", "heft", "batch-split", "critical-path", "iterated-critical-path", "mite", "dfs")
MAYER = ("hash-random", "batch-split-paper", "critical-path-paper", "mite-paper", "dfs-paper")
#: Strategies of [B], and what they are compared with there.
BAHNMUELLER = (
    "single", "expert", "task-parallel", "scoring", "scoring-tuned", "cluster-load",
    "cluster-comm", "cluster-cap",
)  # fmt: skip

#: Settings that only ask whether another model would change a finding, by what they vary.
VARIANTS = {"memory": "tensorflow50", "sends": "tensorflow50", "link": "bahnmueller"}

#: Operations of a send vertex in setting ``sends``: as many as a vertex has on average.
SEND_OPS = Fraction(50)


@dataclass(frozen=True)
class Case:
    """A graph on a number of devices.

    Attributes
    ----------
    setting : str
        ``laich100``, ``tensorflow50``, ``seven`` or ``bahnmueller``; or one of :data:`VARIANTS`:
        ``memory`` limits as on the synthetic graphs, ``sends`` that occupy the sender ([L] §2.4),
        and ``link`` for links that carry one transfer at a time.
    graph : str
    devices : int
    """

    setting: str
    graph: str
    devices: int

    @property
    def variant(self) -> str:
        """The setting, where that is a variant of another one."""
        return self.setting if self.setting in VARIANTS else ""

    @property
    def key(self) -> str:
        """Its name in the store and in tables."""
        return f"{self.graph}@{self.devices}" + (f"-{self.variant}" if self.variant else "")

    @property
    def partitioners(self) -> tuple[str, ...]:
        """The strategies to be measured: all; in a variant those that its findings speak of."""
        wanted = {
            "memory": (*LAICH, *MAYER),
            "sends": (*LAICH, *MAYER),
            "link": (*BAHNMUELLER, "heft", "mite"),
        }.get(self.variant, registry.PARTITIONERS)
        rows = registry.PARTITIONERS.rows.items()
        return tuple(name for name, row in rows if name in wanted and not row.special)

    @property
    def fixed(self) -> bool:
        """Whether the instance is the same in every run."""
        return self.graph in ("rnn", "nmt")

    def has_bound(self, run: int) -> bool:
        """Whether a bound is computed for a run.

        On 100 devices one takes up to a minute, so that only the library's instance has one there.
        """
        return not self.variant and (run == 1 or self.setting in ("tensorflow50", "seven"))

    def instance(self, run: int) -> Instance:
        """Return the instance of a run, counted from 1.

        Graphs of [L] table 7.1, their clusters, and costs and clusters of the TensorFlow graphs are
        drawn anew for every run; in run 1 they are those of the library. The networks of [B] have
        their costs by size, and are the same in every run.
        """
        if self.fixed:
            model = cast(Literal["rnn", "nmt"], self.graph)
            return self._varied(lstm.instance(model, self.devices), run)
        if self.graph.startswith("thesis-"):
            return thesis.instance(
                int(self.graph.removeprefix("thesis-")), devices=self.devices, seed=run
            )
        known = library.load(f"{self.graph}-50")
        graph = drawn(known.graph, self._seeds(run)[0])
        cluster = drawn_cluster(self._seeds(run)[1], self.devices)
        name = f"{self.graph}-{self.devices}"
        return self._varied(Instance(graph, cluster, name=name, source=known.source), run)

    def _seeds(self, run: int) -> tuple[int, int]:
        """Seeds of costs and cluster; those of run 1 are the library's."""
        return 2 * run - 1, 2 * run

    def _varied(self, instance: Instance, run: int) -> Instance:
        """Return the instance as the variant has it."""
        graph, cluster, model = instance.graph, instance.cluster, Model()
        if self.variant == "sends":
            model = Model(communication="sendrecv", send_ops=SEND_OPS)
        elif self.variant == "link":
            model = Model(communication="link")
        elif self.variant == "memory":
            costs, seed = self._seeds(run)
            graph = drawn(graph, costs, memory=(1, 100))
            model = Model(memory="estimate")
            cluster = _with_capacities(graph, cluster, seed)
        return Instance(graph, cluster, model, name=instance.name, source=instance.source)


def _with_capacities(graph: Graph, cluster: Cluster, seed: int) -> Cluster:
    """Draw capacities from 2 to 4 even shares, as the thesis generator does."""
    need = Instance(graph, cluster, Model(memory="estimate")).static_memory
    share = math.ceil(need.sum() / len(cluster))
    low = 2 * max(share, math.ceil(max(need.fractions())))
    return drawn_cluster(seed, len(cluster), memory=(low, max(low, 4 * share)))


_UNROLLED = [(graph, devices) for graph in ("rnn", "nmt") for devices in range(1, 9)]

CASES = [
    *(Case("laich100", f"thesis-{number}", 100) for number in thesis.TABLE),
    *(Case("tensorflow50", network, 50) for network in NETWORKS),
    *(Case("seven", graph, 7) for graph in ("thesis-2", "thesis-3", *NETWORKS)),
    *(Case("bahnmueller", graph, devices) for graph, devices in _UNROLLED),
    *(Case(variant, network, 50) for variant in ("memory", "sends") for network in NETWORKS),
    *(Case("link", graph, devices) for graph, devices in _UNROLLED),
]


def chosen(setting: str | None) -> list[Case]:
    """Return the cases of a setting and its variants, or all."""
    return [c for c in CASES if setting in (None, VARIANTS.get(c.setting, c.setting))]
