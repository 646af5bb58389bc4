"""Memory of the linear program of some strategies, estimated before it is built.

Peaks of resident memory (``VmHWM``) of ``optpart strategy bound``, with Python 3.11 and OR-Tools
9.15 on Linux; the process takes 200 MiB before the program is built:

=========  ==========  ======  =======  ====  =======
model      cluster     groups  columns  time  more
=========  ==========  ======  =======  ====  =======
VGG-19     heterog-8   20      2,134    8 s   29 MiB
ResNet200  heterog-8   20      2,140    15 s  60 MiB
ResNet200  heterog-8   100     13,900   15 s  262 MiB
ResNet200  heterog-8   100     13,900   55 s  347 MiB
ResNet200  heterog-8   400     65,028   20 s  222 MiB
ResNet200  heterog-12  20      4,044    20 s  161 MiB
=========  ==========  ======  =======  ====  =======

More devices mean more rows: these are up to 3.7 KiB per column and device; it was less where the
time ended the rounds early. Clusters of more than twelve devices were not measured.
"""

from __future__ import annotations

from optpart.problem import footprint
from optpart.training.bounds.choices import Choices

#: Bytes of this process, and of the program per column and device.
_PROCESS, _CELL = 340 * 2**20, 6 * 1024


def columns_of(choices: Choices) -> int:
    """Count actions and pairs of layouts: ``Rows(Costs(choices)).columns``."""
    home = choices.group_of
    layouts = [len({action.shares for action in row}) for row in choices.actions]
    ends = ((home[edge.producer], home[edge.consumer]) for edge in choices.graph.edges)
    pairs = {(min(g, h), max(g, h)) for g, h in ends if g != h}
    return sum(map(len, choices.actions)) + sum(layouts[g] * layouts[h] for g, h in pairs)


def program_excess(choices: Choices, allowed: int | None) -> str:
    """Return in words that the program would take more memory than allowed; empty if it fits.

    Parameters
    ----------
    allowed : int or None
        Bytes; ``None`` stands for what is available.
    """
    return footprint.excess(_PROCESS + _CELL * columns_of(choices) * len(choices.cluster), allowed)
