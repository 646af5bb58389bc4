"""The table of generators, in the order of ``optpart generate --help``.

A new generator is a function in a module of this folder and a row here. Its parameters annotated
with an :class:`~optpart.interop.generate.option.Option`, and ``seed``, become the arguments and
options of its command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from optpart.base.registry import Registry, load
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance


@dataclass(frozen=True)
class Generator:
    """A row of the table.

    Attributes
    ----------
    function : str
        ``module:function``.
    summary : str
        One line of help.
    """

    function: str
    summary: str

    def load(self) -> Callable[..., Instance | Cluster]:
        """Return the function, which may have more parameters than its command."""
        found: Callable[..., Instance | Cluster] = load(self.function)
        return found


#: All generators by name.
GENERATORS = Registry(
    "NAME",
    {
        "thesis": Generator(
            "optpart.interop.generate.thesis:instance",
            "Draw one of the six graphs of [L] table 7.1, with a cluster.",
        ),
        "small": Generator(
            "optpart.interop.generate.small:small", "Draw a small instance with whole-number times."
        ),
        "lstm": Generator(
            "optpart.interop.generate.lstm:instance",
            "Build an unrolled LSTM network of [B] §5.1 on equal devices.",
        ),
        "layered": Generator(
            "optpart.interop.generate.layered:instance",
            "Draw a layered graph and a cluster, as in [L] §6.2.",
        ),
        "workflow": Generator(
            "optpart.interop.generate.workflow:instance",
            "Draw a scientific workflow of one of five shapes, with its machines.",
        ),
        "fork-join": Generator(
            "optpart.interop.generate.fork_join:fork_join", "Draw a chain of fork–join stages."
        ),
        "tree": Generator(
            "optpart.interop.generate.tree:tree", "Draw a complete in-tree or out-tree."
        ),
        "fft": Generator("optpart.interop.generate.fft:fft", "Draw a fast Fourier transform."),
        "gauss": Generator(
            "optpart.interop.generate.gauss:gauss", "Draw a Gaussian elimination by columns."
        ),
        "cholesky": Generator(
            "optpart.interop.generate.cholesky:cholesky", "Draw a tiled Cholesky factorisation."
        ),
        "stencil": Generator(
            "optpart.interop.generate.stencil:stencil",
            "Draw a stencil of three points, step by step.",
        ),
        "gnp": Generator(
            "optpart.interop.generate.gnp:gnp", "Draw a random graph G(n, p) without cycles."
        ),
        "stg-layers": Generator(
            "optpart.interop.generate.stg_layers:stg_layers",
            "Draw a layered graph like those of the Standard Task Graph Set.",
        ),
        "cluster": Generator(
            "optpart.interop.generate.cluster:drawn_cluster",
            "Draw a cluster, as in [L] §6.2, into a TOML file.",
        ),
        "heterog-worst": Generator(
            "optpart.interop.generate.heterog_worst:heterog_worst",
            "Build an instance on which HeteroG's order takes M² times the best (loops: M + M²).",
        ),
    },
    Generator,
    group="optpart.generators",
)
