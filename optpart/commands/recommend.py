"""``optpart recommend``."""

from __future__ import annotations

from optpart.base.terminal import put, say
from optpart.commands.instances import open_instance
from optpart.commands.options import File, Json


def recommend(file: File, json: Json = False) -> None:
    """Recommend a heuristic, by a decision tree grown on small instances with proven optima."""
    from dataclasses import asdict

    from optpart.base.rounding import fixed
    from optpart.interop.formats.json import pretty
    from optpart.study.recommend import recommend as study
    from optpart.study.report.console import plain_console, plain_table

    instance = open_instance(file)
    found = study(instance)
    if json:
        put(pretty({"instance": instance.name, **asdict(found)}))
        return
    say(f"{instance.name}: {found.strategy} ({', '.join(found.because)})")
    if found.beyond:
        say(f"outside of what the tree has seen: {', '.join(found.beyond)}")
    say(f"expected makespan / optimum, of {found.instances} instances alike:")
    table = plain_table("strategy", "ratio")
    for name, ratio in found.expected.items():
        table.add_row(name, fixed(ratio, 3, up=True))
    plain_console().show(table)
    say("geometric means on instances that were held out of the training:")
    for what, means in found.held_out.items():
        tree, single, oracle = (fixed(means[x], 3, up=True) for x in ("tree", "single", "oracle"))
        say(f"  by {what}: {tree} as recommended, {single} always {means['best']}, "
            f"{oracle} with the best for each")  # fmt: skip
