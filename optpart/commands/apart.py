"""``optpart apart``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.limits import MOST_TOKENS
from optpart.base.terminal import note, put, say
from optpart.commands.options import Json, TimeLimit, output, positions

if TYPE_CHECKING:
    from optpart.applications.serving.apart.apart import Answer, Apart


def apart(
    model: Annotated[str, typer.Argument(help="A language model: file, folder or name.")],
    cluster: Annotated[Path, typer.Option(help="Devices, .toml.")],
    prompt: Annotated[int, positions("Positions to read first, such as 8k.", "--prompt")],
    context: Annotated[int, positions("Positions with the new token.", "--context")],
    first: Annotated[str, typer.Option(help="Most time to first token, such as 400ms.")],
    batch: Annotated[int | None, typer.Option(help="Sequences.", min=1, max=MOST_TOKENS)] = None,
    weights: Annotated[str | None, typer.Option(help="Of a model by name: their type.")] = None,
    kv_dtype: Annotated[str | None, typer.Option(help="Type of keys and values.")] = None,
    reserve: Annotated[str | None, typer.Option(help="Memory of each device to keep free.")] = None,
    time_limit: TimeLimit = 60.0,
    check: Annotated[Path | None, typer.Option(help="Check these plans, make none.")] = None,
    output: Annotated[Path | None, output("optpart.applications.serving.apart.apart:KIND")] = None,
    json: Json = False,
) -> None:
    """Place a language model for prefilling and again for decoding, with least time per token.

    Keys and values that move count in the time to first token. The best plan with one placement
    stands beside. Exits with 3 if there is no plan, and with 4 if none was found.
    """
    from optpart.applications.serving.apart.apart import document, faults, find, write
    from optpart.applications.serving.apart.request import read
    from optpart.base.files import written_first
    from optpart.interop.formats.json import pretty
    from optpart.solution.result import Status

    options = {"batch": batch, "weights": weights, "kv_dtype": kv_dtype, "reserve": reserve}
    request = read(model, cluster, prompt=prompt, context=context, first=first, **options)
    if check is not None:
        wrong, claimed = faults(request, check)
        for fault in wrong:
            say(fault)
        if wrong:
            raise typer.Exit(1)
        claims = f"; CP-SAT alone claims the bounds of: {', '.join(claimed)}" if claimed else ""
        say(f"{check}: the plans keep every rule, and take the times that it says{claims}")
        return
    for remark in request.remarks:
        note(remark)
    found = find(request, remaining(time_limit))
    with written_first(partial(write, found), output):
        if json:
            put(pretty(document(found)))
        else:
            _print(found)
    if found.apart.plan is None:
        raise typer.Exit(3 if found.apart.status is Status.INFEASIBLE else 4)


def _print(found: Apart) -> None:
    """Print what is proven of both plans, and a row per device."""
    from optpart.applications.serving.apart.plan import held
    from optpart.base.rounding import fixed, percent
    from optpart.study.report.console import plain_console, plain_table
    from optpart.study.report.text import seconds

    console, request, plan = plain_console(), found.request, found.apart.plan
    console.tell(f"two placements: {_said(found.apart)}, {seconds(found.seconds)}")
    one, two = found.same.times.token, found.apart.times.token
    saved = f"; two save {percent(1 - two / one, up=False)}" if one and two else ""
    console.tell(f"one placement: {_said(found.same)}{saved}")
    if plan is None:
        return
    table = plain_table("device", "prefill", "decode", "GiB held")
    for d, name in enumerate(request.moves.cluster.names):
        runs = [_runs(request.phases[1].graph.names, placement, d) for placement in plan]
        size = Fraction(held(request, plan, d), 2**30)
        table.add_row(name, *runs, fixed(size, 2, up=True))
    console.show(table)


def _said(answer: Answer) -> str:
    """Say what is known of one question."""
    from optpart.base.rounding import between, number, percent

    if answer.bound is None:
        return f"{answer.status} (by {answer.proof}: {answer.reason})"
    token, bound = between(answer.times.token, answer.bound)
    return (
        f"{answer.status}, {token} ns per token, at least {bound} (by {answer.proof}), gap "
        f"{percent(answer.gap)}, first token after {number(answer.times.first, up=True)} ns"
    )


def _runs(names: Sequence[str], placement: Sequence[int], device: int) -> str:
    """Name the vertices on a device, those that follow each other by the first and the last."""
    where = dict(zip(names, placement, strict=True))
    runs = [[*run] for d, run in groupby(names, where.get) if d == device]
    return ", ".join("–".join(dict.fromkeys((run[0], run[-1]))) for run in runs) or "–"
