"""The committed results, one line each."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module

from bench.depends import ROOT, Code, Needs, at_commit
from bench.store import RESULTS, Bench, Row, git

#: Benches that keep rows, by the folder of their results, and the module whose ``BENCH`` says how.
KEPT = {
    name: f"bench.{name}.__main__"
    for name in (
        "certify",
        "exact",
        "hardness",
        "real",
        "reality",
        "reproduce",
        "search",
        "strategy",
    )
}
#: What renews a result without rows, by its name less the ending, and the module that makes it.
WHOLE = {
    "agreement": ("bench.agreement", "python bench/agreement.py"),
    "equivalence": ("bench.equivalence.__main__", "python bench/equivalence record"),
    "bounds": ("bench.bounds", "python bench/bounds.py"),
    "heterog": ("bench.heterog", "python bench/heterog.py"),
    "judge": ("bench.limits.judge", "python bench/limits/judge.py"),
    "limits": ("bench.limits.__main__", "python bench/limits (by parts, see CONTRIBUTING)"),
    "ordering": ("bench.ordering.__main__", "python bench/ordering"),
    "pipeline": ("bench.pipeline.__main__", "python -m bench.pipeline"),
    "scale": ("bench.scale", "python bench/scale.py"),
    "soak": ("bench.soak.__main__", "python bench/soak"),
    "speed": ("bench.speed", "python bench/speed.py --peer"),
    "start": ("bench.start.__main__", "python bench/start"),
    "training": ("bench.training.agreement", "python bench/training/agreement.py, bounds.py"),
}


def lines() -> Iterator[str]:
    """Yield a line for every result: what counts, its code, and the command that renews it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in sorted(RESULTS.iterdir()):
        name = path.relative_to(ROOT).as_posix()
        quoted = "; README quotes it" if name in readme else ""
        if path.name in KEPT:
            text, command = _of_rows(import_module(KEPT[path.name]).BENCH)
        elif path.stem in WHOLE:
            module, command = WHOLE[path.stem]
            text = _of_file(name, module)
        else:
            text, command = "unknown", "nothing is known to"
        stale = "" if text.startswith("counts") else quoted
        yield f"{name}: {text}{stale}; renew: {command}"


def _of_rows(bench: Bench) -> tuple[str, str]:
    store = bench.store
    every, latest, counting = store.all(), store.latest(), store.rows()
    mark = store.mark.read_text().strip() if store.mark.exists() else ""
    text = "counts" if len(counting) == len(latest) else "earlier code"
    if mark != store.content(latest):
        text = f"tables of other rows, {text}"
    text += f", {len(counting)} of {len(latest)} runs"
    if len(every) > len(latest):
        text += f" ({len(every) - len(latest)} older rows of the same runs beside them)"
    return f"{text}; measured on {stamps(latest)}", bench.command


def stamps(rows: Iterable[Row]) -> str:
    """Describe the code on which rows were measured, and what was replayed since."""
    count = Counter(f"{r.measured.get('commit', '?')} {r.measured.get('date', '?')}" for r in rows)
    text = ", ".join(f"{stamp} ({number})" for stamp, number in count.most_common())
    replays = [row.measured["replayed"] for row in rows if "replayed" in row.measured]
    if replays:
        last = max(replays, key=lambda one: str(one["date"]))
        text += f", {last['sample']} replayed on {last.get('commit', '?')} {last['date']}"
    return text


def _of_file(name: str, module: str) -> str:
    """Compare the code of the commit that a file is from with today's."""
    try:
        commit, date = git("log", "-1", "--format=%h %cs", "--", name).split()
        then = Code(at_commit(commit)).digest(Needs((module,)))
    except (OSError, ValueError, subprocess.CalledProcessError):
        return "unknown, no history here"
    except ModuleNotFoundError:
        then = ""
    word = "counts" if then == Code().digest(Needs((module,))) else "earlier code"
    return f"{word}; measured on {commit} {date} or before"
