"""``optpart place``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from optpart.base.terminal import note, put
from optpart.commands.options import LanguageModel, ResultFile, pairs, sizes, spread
from optpart.commands.options import time_limit as seconds
from optpart.commands.results import leave, say_result


@spread
def place(
    model: Annotated[
        str,
        typer.Argument(help="The file or folder of a model, or the name of a language model."),
    ],
    cluster: Annotated[
        Path | None,
        typer.Option(help="Devices, .toml; by default those of this machine, which are measured."),
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="llama.cpp, transformers, onnxruntime, tensorflow, vllm or megatron; by default "
            "what runs the model's format.",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        seconds("Seconds to search for the plan, after devices are measured and files read."),
    ] = 30.0,
    language: LanguageModel = LanguageModel(),  # noqa: B008
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="SYMBOL=SIZE", help="An open size of a model; repeatable."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="DEVICE=NAME", help="What the runtime calls a device; repeatable."),
    ] = None,
    output: ResultFile = None,
) -> None:
    """Place a model on devices, and print the command that runs it so.

    Of a language model, it also says how fast the plan is, and how fast the runtime's own. What the
    command reads is written into the current folder, called after the model.
    """
    from optpart.base.files import written_first
    from optpart.interop.formats import result as result_format
    from optpart.placing.runtimes import place_model
    from optpart.study.report.console import plain_console
    from optpart.study.report.simulation import print_devices

    reading = {**vars(language), "shapes": sizes(shape)}
    found = place_model(
        model,
        cluster,
        runtime,
        names=pairs(name, "--name"),
        seconds=time_limit,
        say=note,
        **{option: given for option, given in reading.items() if given or option == "images"},
    )
    result = found.result
    assert result.schedule is not None
    with written_first(partial(result_format.write, result), output):
        say_result(result)
        print_devices(plain_console(), result.instance, result.schedule)
        put("".join(f"\n{text}\n" for text in (found.speed, found.command) if text))
    leave(result)
