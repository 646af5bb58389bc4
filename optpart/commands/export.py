"""``optpart export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.base.terminal import note, put, say
from optpart.commands.options import file_to_write, pairs, sizes


def export(
    result: Annotated[str, typer.Argument(help="A result file; for lp and mps, an instance.")],
    to: Annotated[
        str,
        typer.Option(
            help="onnx, onnx-layers, tensorflow, device-map, llama.cpp, llama.cpp-ot, vllm, "
            "megatron, torch, torch-schedule, trace, lp or mps."
        ),
    ],
    output: Annotated[
        Path | None,
        file_to_write(
            "-o", "--output", help="Where to write, for onnx a folder; texts may also be printed."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="What the instance was made of: for onnx, tensorflow and torch the file, for "
            "device-map the folder of the model."
        ),
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="The instance of the result, to verify it first.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="DEVICE=NAME", help="What the target calls a device; repeatable."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="SYMBOL=SIZE", help="For onnx and torch: sizes given at the import."),
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            help="For device-map without --model, and torch: how modules are called: llama, gpt2, "
            "gpt-neox, bloom, falcon, opt or phi."
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="For trace: the unit of the instance's times, ns, us, ms or s; by default, the "
            "one that it states, else ns."
        ),
    ] = None,
) -> None:
    """Hand a plan to a runtime or a viewer, or the linear program of an instance to a solver."""
    from optpart.api import export as hand_out

    found = hand_out(
        result,
        to=to,
        output=output,
        model=model,
        instance=instance,
        names=pairs(name, "--name"),
        shapes=sizes(shape),
        architecture=architecture,
        unit=unit,
    )
    # What a text does not say must not get into it where it is printed.
    tell = note if output is None else say
    if output is None:
        put(found.text)
    for remark in found.remarks:
        tell(remark)
    if output is not None:
        say(f"→ {output}")
