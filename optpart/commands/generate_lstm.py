"""``optpart generate lstm``."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.commands.options import Needed, Seed
from optpart.limits import MOST_DEVICES


def generate_lstm(
    network: Annotated[str, typer.Argument(help="rnn, or nmt (an encoder and a decoder).")],
    output: Needed,
    devices: Annotated[int, typer.Option(min=1, max=MOST_DEVICES)] = 2,
    costs: Annotated[str, typer.Option(help="size, unit or drawn.")] = "size",
    cells: Annotated[bool, typer.Option(help="Colocate the operations of an LSTM cell.")] = True,
    training: Annotated[bool, typer.Option(help="Include gradients and updates.")] = True,
    seed: Seed = 0,
) -> None:
    """Build an unrolled LSTM network of [B] §5.1 on equal devices."""
    from typing import cast

    from optpart.commands.generated import write_generated
    from optpart.generate import lstm

    instance = lstm.instance(
        cast(lstm.Model, network),  # unknown names are rejected there
        devices,
        seed,
        costs=cast(lstm.Costs, costs),
        cells=cells,
        training=training,
    )
    write_generated(instance, output)
