"""``optpart generate layered``."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.commands.options import Needed, Seed
from optpart.limits import MOST_DEVICES, MOST_EDGES, MOST_VERTICES


def generate_layered(
    output: Needed,
    levels: Annotated[int, typer.Option(min=1, max=MOST_VERTICES)] = 20,
    min_width: Annotated[
        int, typer.Option(help="Fewest vertices per level.", min=1, max=MOST_VERTICES)
    ] = 5,
    max_width: Annotated[
        int, typer.Option(help="Most vertices per level.", min=1, max=MOST_VERTICES)
    ] = 15,
    edge_probability: Annotated[
        float,
        typer.Option(
            help="Probability of an edge between vertices of different levels.", min=0, max=1
        ),
    ] = 0.05,
    level_limit: Annotated[
        int | None,
        typer.Option(help="Longest level-based edge, in levels.", min=1, max=MOST_VERTICES),
    ] = None,
    decay: Annotated[
        float | None,
        typer.Option(help="Factor on the probability for each further level.", min=0, max=1),
    ] = None,
    random_edges: Annotated[int, typer.Option(help="Long-range edges.", min=0, max=MOST_EDGES)] = 0,
    cpu_probability: Annotated[
        float, typer.Option(help="Probability that a vertex needs a CPU.", min=0, max=1)
    ] = 0.0,
    gpu_probability: Annotated[
        float, typer.Option(help="Probability that a vertex needs a GPU.", min=0, max=1)
    ] = 0.0,
    colocated: Annotated[
        int, typer.Option(help="Number of vertices in colocation groups.", min=0, max=MOST_VERTICES)
    ] = 0,
    devices: Annotated[int, typer.Option(min=1, max=MOST_DEVICES)] = 10,
    seed: Seed = 0,
) -> None:
    """Draw a layered graph and a cluster, as in [L] §6.2."""
    from optpart.commands.generated import write_generated
    from optpart.generate.cluster import drawn_cluster
    from optpart.generate.layered import layered
    from optpart.limits import check_size
    from optpart.problem.instance import Instance

    graph = layered(
        seed,
        levels=levels,
        width=(min_width, max_width),
        edge_probability=edge_probability,
        level_limit=level_limit,
        decay=decay,
        random_edges=random_edges,
        cpu_probability=cpu_probability,
        gpu_probability=gpu_probability,
        colocated=colocated,
    )
    check_size(len(graph), devices=devices, place="vertices and devices")
    cluster = drawn_cluster(seed, devices)
    source = f"layered graph and cluster drawn as in [L] §6.2, seed {seed}"
    write_generated(Instance(graph, cluster, name=output.stem, source=source), output)
