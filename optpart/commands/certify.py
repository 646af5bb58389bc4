"""``optpart certify``: an optimal schedule, or a bound, with a proof that anyone can check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.base.clock import remaining
from optpart.commands.options import File, Json, MemoryLimit, Seed, Workers, time_limit

if TYPE_CHECKING:
    from optpart.certificates.certify import Refutation
    from optpart.problem.instance import Instance


def certify(
    file: File,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The folder to write: a new one, or an old certificate."
        ),
    ],
    result: Annotated[
        Path | None,
        typer.Option(help="A result file with an optimal schedule; by default, cpsat finds one."),
    ] = None,
    time_limit: Annotated[
        float, time_limit("Seconds for the schedule or the bounds, and as many for the proof.")
    ] = 60.0,
    memory_limit: MemoryLimit = None,
    workers: Workers = 2,
    seed: Seed = 0,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound",
            help="Certify the greatest lower bound for which a proof is found; with --result, also "
            "the gap.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Write a schedule and a proof that none is shorter, for 'optpart check' to verify.

    Exits with 3 if there is no schedule at all and with 4 if no proof was found; in both cases it
    writes nothing.
    """
    import time

    from optpart.api import load_with_source
    from optpart.base.errors import InputError
    from optpart.base.folders import check_folder
    from optpart.base.terminal import note, put, say
    from optpart.certificates.certify import HOLDS, UncertifiedError, problem_of
    from optpart.certificates.certify import certify as write
    from optpart.interop.formats.json import pretty
    from optpart.interop.formats.result import read_found
    from optpart.kernels.all import expect
    from optpart.methods.cpsat import cpsat
    from optpart.methods.fitting import require_memory
    from optpart.solution.goal import Goal
    from optpart.solution.result import Budget, Status
    from optpart.study.report.text import infeasible

    check_folder(output, HOLDS)
    instance, source = load_with_source(file)
    problem_of(instance, source)  # refuses what certificates do not cover before any work
    if bound:
        _certify_bound(
            instance, source, output, result, time_limit, memory_limit, workers, seed, json
        )
        return
    if result is not None:
        schedule, method = read_found(result, instance)
        took = 0.0
    else:
        expect()
        budget = Budget(remaining(time_limit), workers, memory=memory_limit)
        require_memory(instance, "cpsat", Goal(), budget)
        begin = time.perf_counter()
        solved = cpsat(instance, budget=budget, seed=seed)
        if solved.status is Status.INFEASIBLE:
            note(f"{instance.name}: {infeasible(solved.reason)}")
            raise typer.Exit(3)
        if solved.schedule is None:
            note(f"{instance.name}: no schedule found: {solved.reason}")
            raise typer.Exit(4)
        schedule, method = solved.schedule, solved.method
        took = time.perf_counter() - begin
    makespan = schedule.makespan(instance)
    limits = time_limit if result is not None else 2 * time_limit
    seconds = min(time_limit, remaining(limits))
    try:
        found = write(instance, schedule, output, source=source, method=method, seconds=seconds)
    except UncertifiedError as error:
        note(f"{instance.name}: not certified: {error}")
        raise typer.Exit(4) from None
    except InputError:
        if result is None:
            note(
                f"{instance.name}: makespan {makespan} by {method}, but no certificate was written"
            )
        raise
    if json:
        document: dict[str, Any] = {
            "instance": instance.name,
            "makespan": str(makespan),
            **_proof(found, output),
            "seconds": {"solve": took, **found.seconds},
        }
        put(pretty(document))
    else:
        say(f"{instance.name}: makespan {makespan} is optimal; {_how(found)}, in {output}")
    raise typer.Exit  # the certificate is complete, whatever failed on the way


def _proof(found: Refutation, output: Path) -> dict[str, Any]:
    """Return the figures of a proof for JSON."""
    return {
        "tier": found.tier,
        "ticks_per_unit": str(found.ticks_per_unit),
        "variables": found.variables,
        "clauses": found.clauses,
        "lemmas": found.steps,
        "bytes": sum(path.stat().st_size for path in output.iterdir()),
    }


def _how(found: Refutation) -> str:
    if found.tier != "lrat":
        return f"proven by tier {found.tier}"
    return f"proven by {found.steps} lemmas on {found.clauses} clauses"


def _certify_bound(
    instance: Instance,
    source: bytes | None,
    output: Path,
    result: Path | None,
    seconds: float,
    memory: int | None,
    workers: int,
    seed: int,
    json: bool,
) -> None:
    """Certify the greatest lower bound for which a proof is found."""
    from optpart.api import bounds
    from optpart.base.rounding import number, percent
    from optpart.base.terminal import note, put, say
    from optpart.certificates.certify import UncertifiedError, certify_bound
    from optpart.interop.formats.json import pretty
    from optpart.interop.formats.result import read_found
    from optpart.lower_bounds.best import largest
    from optpart.problem.feasibility import contradiction, excluded
    from optpart.solution.gap import gap
    from optpart.study.report.text import infeasible

    schedule, method = None, "given"
    if result is not None:
        schedule, method = read_found(result, instance)
    shown = bounds(instance, seconds=remaining(seconds), workers=workers, seed=seed, memory=memory)
    best = largest(shown)
    if best.value is None:
        why = contradiction(instance) or excluded(instance, "bounds")
        note(f"{instance.name}: {infeasible(why)}")
        raise typer.Exit(3)
    try:
        found = certify_bound(
            instance,
            [bound.value for bound in shown if bound.value is not None],
            output,
            schedule=schedule,
            source=source,
            method=method,
            seconds=min(seconds, remaining(2 * seconds)),
        )
    except UncertifiedError as error:
        note(f"{instance.name}: not certified: {error}")
        raise typer.Exit(4) from None
    proof = found.refutation
    makespan = None if schedule is None else schedule.makespan(instance)
    proven = gap(makespan, found.bound)
    if json:
        document: dict[str, Any] = {
            "instance": instance.name,
            "bound": str(found.bound),
            "makespan": None if makespan is None else str(makespan),
            "gap": proven,
            "best": {"bound": best.name, "value": str(best.value)},
            "not_certified": {str(value): why for value, why in found.missed.items()},
            **_proof(proof, output),
            "seconds": proof.seconds,
        }
        put(pretty(document))
    else:
        least = number(found.bound, up=False)
        say(f"{instance.name}: no schedule takes less than {least}; {_how(proof)}, in {output}")
        if makespan is not None:
            upper = number(makespan, up=True)
            say(f"{instance.name}: a schedule takes {upper}, a gap of {percent(proven)}")
    if found.missed:
        note(
            f"{instance.name}: {best.name} proves {number(best.value, up=False)}, for which no "
            "certificate was found"
        )
    else:
        raise typer.Exit  # nothing is missing, whatever failed on the way
