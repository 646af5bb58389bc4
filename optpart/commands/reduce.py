"""``optpart reduce``: NP-hardness, demonstrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.base.clock import remaining
from optpart.commands.options import (
    Json,
    MemoryLimit,
    Seed,
    TimeLimit,
    Workers,
    file_to_write,
)

if TYPE_CHECKING:
    from optpart.applications.reductions.base import Reduction
    from optpart.applications.reductions.decide import Answer

_SUFFIXES = (".json", ".source.json", ".png")


def reduce(
    name: Annotated[
        str | None, typer.Argument(help="The source problem; without it, list all.")
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(help="A source instance; by default, a random one.")
    ] = None,
    random: Annotated[
        int | None, typer.Option("--random", help="Draw a source of this size.", min=1, max=200)
    ] = None,
    seed: Seed = 0,
    method: Annotated[
        str, typer.Option("--method", "-m", help="cpsat, milp, minizinc or enumerate.")
    ] = "cpsat",
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = None,
    workers: Workers = 2,
    output: Annotated[
        Path | None,
        file_to_write(
            "-o",
            "--output",
            help="Where to write: STEM.json (the TF instance), STEM.source.json and STEM.png; "
            "STEM defaults to NAME.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Decide an instance of an NP-complete problem through TF, and check both directions.

    Exits with 0 if the answer is yes, 3 if it is no, and 4 if it is unknown.
    """
    import numpy as np

    from optpart.applications.reductions.base import read_source
    from optpart.applications.reductions.catalogue import REDUCTIONS
    from optpart.applications.reductions.decide import SHORTEST, decide, document
    from optpart.base.errors import InputError
    from optpart.base.files import written_first
    from optpart.base.terminal import put, say
    from optpart.interop.formats.json import pretty
    from optpart.solution.result import Budget

    if name is None:
        if random is not None or output is not None:
            option = "--output" if random is None else "--random"
            raise InputError(
                option, "used without a problem", "name one of those listed without it"
            )
        if json:
            rows = [
                {"name": known.name, "title": known.title, "reference": known.reference}
                for known in REDUCTIONS.values()
            ]
            put(pretty({"reductions": rows}))
            return
        for known in REDUCTIONS.values():
            say(f"{known.name:18}{known.title} ({known.reference})")
        return
    chosen = REDUCTIONS.find(name)
    if file is not None and random is not None:
        raise InputError("--random", "used together with a file", "choose one of them")
    paths = _targets(output or Path(name), chosen)
    if file is not None:
        source = read_source(chosen, file)
    else:
        source = chosen.random(random or chosen.size, np.random.default_rng(seed))
    budget = Budget(remaining(time_limit), workers, memory=memory_limit)
    answer = decide(chosen, source, method, budget=budget, seed=seed)
    written: list[str] = []
    left = max(0.0, min(SHORTEST, remaining(time_limit)))
    with written_first(lambda _: written.extend(_write(answer, paths, left)), paths[0]):
        if json:
            put(pretty({**document(answer), "written": written}))
        else:
            for label, text in _lines(answer):
                say(f"{label:10}{text}")
            if written:
                say(f"{'written':10}{' '.join(written)}")
    _leave(answer)


def _targets(stem: Path, chosen: Reduction[Any, Any]) -> list[Path]:
    """Return the files to write, once it is certain that they can be written."""
    from optpart.base.files import PICTURES, check_target
    from optpart.interop.formats import native

    paths = [stem.parent / (stem.name + suffix) for suffix in _SUFFIXES]
    for path, kind in zip(paths, (native.KIND, chosen.kind, PICTURES[".png"]), strict=True):
        check_target(path, kind)
    return paths


def _write(answer: Answer[Any, Any], paths: list[Path], seconds: float) -> list[str]:
    from optpart.applications.reductions import picture
    from optpart.base.files import write_text
    from optpart.interop.formats import native
    from optpart.interop.formats.json import pretty

    native.write(answer.question.instance, paths[0])
    reduction = answer.reduction
    write_text(paths[1], pretty(reduction.document(answer.source)), reduction.kind)
    picture.draw(answer, paths[2], seconds)
    return [str(path) for path in paths]


def _lines(answer: Answer[Any, Any]) -> list[tuple[str, str]]:
    from optpart.applications.reductions.decide import WORDS

    reduction, question, result = answer.reduction, answer.question, answer.result
    instance = question.instance
    model = "" if instance.model.memory == "none" else f", memory {instance.model.memory}"
    rows = [
        ("reduction", f"{reduction.title} → TF ({reduction.reference})"),
        ("reading", reduction.reading),
        ("source", reduction.describe(answer.source)),
        (
            "TF",
            f"{instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
            f"{instance.devices} devices{model}; makespan at most {question.deadline}?"
            + (f" {added}" if (added := reduction.added(answer.source)) else ""),
        ),
    ]
    why = f"makespan {result.makespan}" if answer.verdict else result.reason
    rows.append(
        ("answer", f"{WORDS[answer.verdict]}: {why} ({result.method}, {result.seconds:.2f} s)")
    )
    if answer.solution is None:
        return rows
    solution_fault = answer.solution_fault
    return [
        *rows,
        ("solution", reduction.describe_solution(answer.source, answer.solution)),
        ("checked", _checked("schedule, by TF's verifier", answer.schedule_fault)),
        ("checked", _checked("solution, by the rules of the source", solution_fault)),
        ("checked", _checked("solution turned into a schedule again", answer.forth_fault)),
    ]


def _checked(what: str, fault: str) -> str:
    return f"{what}: {fault or 'valid'}"


def _leave(answer: Answer[Any, Any]) -> None:
    if answer.solution_fault or answer.forth_fault:
        raise typer.Exit(1)
    if answer.verdict is None:
        raise typer.Exit(4)
    raise typer.Exit(0 if answer.verdict else 3)
