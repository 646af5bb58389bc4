"""``optpart warm-up``."""

from __future__ import annotations


def warm_up() -> None:
    """Compile all inner loops now, which the first run would otherwise wait for.

    Wheels of optpart bring the machine code along; then there is nothing to do.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from optpart.base.limits import available_processors
    from optpart.base.terminal import say
    from optpart.kernels import all as kernels
    from optpart.study.report.console import plain_console

    if kernels.is_ready():
        say("all inner loops are compiled")
        return
    columns = (TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=plain_console(), transient=True) as bar:
        task = bar.add_task("", total=kernels.count())
        kernels.make(available_processors(), lambda: bar.advance(task))
    say("all inner loops are compiled")
