"""Parts: what precedes a cut vertex has ended when it starts, and what follows starts after it."""

import numpy as np
import pytest

from optpart.exact.series.parts import is_cut, parts
from optpart.testing.modules import draw_modules


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_every_vertex_once_and_end_in_cut_vertices(seed):
    graph = draw_modules(seed, vertices=12).graph
    found = parts(graph)

    assert sorted(v for part in found for v in part.vertices) == list(range(len(graph)))
    assert sorted(part.vertices[-1] for part in found if part.closed) == sorted(
        np.flatnonzero(is_cut(graph))
    )
    assert all(part.closed for part in found[:-1])
