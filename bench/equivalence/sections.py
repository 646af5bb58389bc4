"""The recorded sections: each yields pairs of a key and a JSON value."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench" / "results" / "equivalence"
HERE = ROOT / "bench" / "equivalence"

Rows = Iterator[tuple[str, object]]

#: Models of communication and memory: every pair gets an instance of its own.
COMMUNICATION = ("delay", "sendrecv", "link", "port")
MEMORY = ("none", "estimate", "edges", "refcount")


def section(name: str) -> tuple[list[str], float]:
    """Run a section in this process, with the optpart of this checkout, in a folder of inputs."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    os.environ.update(PYTHONPATH=path, NO_COLOR="1", TERM="dumb", COLUMNS="200")
    os.environ.update(LC_ALL="C.UTF-8", MPLBACKEND="Agg")
    sys.path.insert(0, str(ROOT))
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        shutil.copytree(HERE / "inputs", place, dirs_exist_ok=True)
        with contextlib.chdir(place):
            rows = [{"key": key, "value": value} for key, value in sorted(SECTIONS[name]())]
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows]
    return lines, time.perf_counter() - begin


# --- masks -------------------------------------------------------------------------------------

#: Fields that are times or versions.
_VARYING = {"seconds", "seconds_mean", "versions", "trace"}

_TIME = re.compile(r"(?<![\w.])[<≈~]?\d[\d.,]*(e-?\d+)? ?(ns|µs|us|ms|s|min|h)(?![\w])")


def masked(text: str) -> str:
    """Return text without paths, times and the width of columns."""
    text = text.replace(str(Path.cwd()), "<here>").replace(str(ROOT), "<root>")
    lines = _TIME.sub("<time>", text).splitlines()
    return "\n".join(re.sub(r"[ ─━│╭╮╰╯]+", " ", line).strip() for line in lines)


def masked_value(value: Any) -> Any:
    """Return a JSON document without times and versions."""
    if isinstance(value, dict):
        return {k: "*" if k in _VARYING else masked_value(v) for k, v in value.items()}
    if isinstance(value, list):
        return [masked_value(item) for item in value]
    return masked(value) if isinstance(value, str) else value


def masked_table(text: str) -> list[list[str]]:
    """Return the rows of a CSV without times and versions."""
    head, *rows = csv.reader(io.StringIO(text))
    pairs = [list(zip(head, row, strict=True)) for row in rows]
    return [head, *([masked("*" if n in _VARYING else c) for n, c in row] for row in pairs)]


def digest(value: object) -> str:
    """Return a short hash of bytes or a JSON document."""
    if not isinstance(value, bytes):
        value = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(value).hexdigest()[:12]


def run(*arguments: object) -> tuple[object, str, str]:
    """Run a command; return code, output, and the first line of errors, or all on wrong usage."""
    from bench import commandline

    code, out, err = commandline.run(*arguments)
    # The first is said once where machine code is not cached yet.
    lines = [line for line in err.splitlines() if not line.startswith("compiling the inner loops")]
    usage = bool(lines) and lines[0].lstrip().startswith("Usage")
    return code, out, " ".join(masked("\n".join(lines if usage else lines[:1])).split())


def said(*command: object) -> dict[str, object]:
    """Return how a command ends, and what files it leaves."""
    before = set(Path().rglob("*"))
    code, _, err = run(*command)
    new = sorted(str(path) for path in set(Path().rglob("*")) - before)
    return {"code": code, "err": err} | ({"new": new} if new else {})


def written(path: Path, *command: object) -> dict[str, object]:
    """Return what a command writes and says."""
    import optpart

    path.unlink(missing_ok=True)
    code, out, err = run(*command, "-o", path)
    if not path.exists():
        return {"code": code, "err": err}
    record: dict[str, object] = {"bytes": digest(path.read_bytes()), "out": masked(out)}
    if path.suffix == ".json":
        record["sha256"] = optpart.read_instance(path).sha256
    return record


# --- strategies, search, bounds ----------------------------------------------------------------


def library(most: int | None = None) -> list[str]:
    """Return the library's instances, or those of up to so many vertices."""
    rows = [line.split() for line in run("gap", "--list")[1].splitlines()[1:]]
    return [row[0] for row in rows if len(row) > 2 and (most is None or int(row[1]) <= most)]


def generated(vertices: int = 16) -> dict[str, Path]:
    """Write an instance of every pair of models; return the files."""
    files = {}
    for seed, (communication, memory) in enumerate(product(COMMUNICATION, MEMORY)):
        name = f"{communication}-{memory}"
        path = Path(f"generated-{name}.json")
        options = f"--vertices {vertices} --devices 4 --types --groups"
        options += f" --seed {10 * (seed // 4) + seed % 4}"
        if memory != "none":
            options += " --memory loose"
        run("generate", "small", *options.split(), "-o", path)
        model: dict[str, object] = {"communication": communication, "memory": memory}
        if communication == "sendrecv":
            model["send_ops"] = 3
        if name == "port-edges":
            model["channels"] = 2
        if name == "link-refcount":
            model["release"] = "start"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"name": name, "model": model}))
        files[name] = path
    return files


def outcome(result: Any) -> str:
    """Return makespan, traffic and a hash of the schedule, or why there is none."""
    if result.schedule is None:
        return f"{result.status}: {result.reason}"
    schedule = result.schedule
    moves = schedule.transfers
    times = moves.start.fractions(), moves.end.fractions()
    transfers = sorted(
        [int(tensor), int(target), str(start), str(end)]
        for tensor, target, start, end in zip(moves.tensor, moves.target, *times, strict=True)
    )
    starts = [str(time) for time in schedule.start.fractions()]
    hashed = digest([schedule.placement.tolist(), starts, transfers])
    return f"{result.makespan} {result.traffic} {hashed}"


def solved(instance: Any, method: str, **given: object) -> str:
    import optpart
    from optpart.methods import registry

    try:
        return outcome(registry.get(method)(instance, **given))
    except optpart.OptpartError as error:
        return f"refused: {error}"


def pairs() -> Rows:
    """Every pair; the schedulers for special models only where there are such models."""
    import optpart

    listed: dict[str, list[str]] = {}
    for line in run("methods")[1].splitlines():
        name, kind = line.split()[:2]
        name = name.removesuffix("+SCHEDULER").removeprefix("PARTITIONING+")
        listed.setdefault(kind, []).append(name)
    special = {"heterog", "tao", "tao-printed", "tio", "random-order", "as-received"}
    common = [name for name in listed["scheduling"] if name not in special]
    chosen = [(name, optpart.load(name), common) for name in library(100)]
    chosen += [
        (name, optpart.read_instance(path), listed["scheduling"])
        for name, path in generated().items()
    ]
    chosen.append(("convolutional_network-7", optpart.load("convolutional_network-7"), ["pct"]))
    for name, instance, schedulers in chosen:
        for strategy in listed["heuristic"]:
            yield f"{name} {strategy}", solved(instance, strategy, seed=0)
        for partitioner in listed["partitioning"]:
            found = {s: solved(instance, f"{partitioner}+{s}", seed=0) for s in schedulers}
            yield f"{name} {partitioner}+", found


def search() -> Rows:
    """Search with one worker and a limit of moves, which gives the same in every run."""
    import optpart

    names = ("heft-10", "laich-2.5", "small-20-8-ccr1-g-loose-s17", "small-40-8-ccr10-s36")
    instances = {name: optpart.load(name) for name in names}
    wanted = ("delay-edges", "sendrecv-none", "link-refcount", "port-none", "port-refcount")
    files = {name: path for name, path in generated().items() if name in wanted}
    instances |= {name: optpart.read_instance(path) for name, path in files.items()}
    for method, thousands, seeds in (("search", 5, (0, 1)), ("hybrid", 30, (0,))):
        for (name, instance), seed in product(instances.items(), seeds):
            budget = optpart.Budget(600.0, 1, thousands)
            yield f"{method} {name} {seed}", solved(instance, method, budget=budget, seed=seed)


def bounds() -> Rows:
    run("bound", "heft-10")  # compiles, which may take up the limit
    files: dict[str, object] = {name: name for name in library(10)}
    for name, file in (files | generated(8)).items():
        code, out, err = run("bound", file, "--time-limit", 120, "--json")
        rows = json.loads(out)["bounds"] if out else []
        # Of a run that succeeds, the line of errors is that of its progress.
        values = {row["bound"]: row["value"] for row in rows if row["bound"] != "destructive"}
        yield name, {"code": code, "bounds": values, "err": err if code else ""}


# --- files and command lines ---------------------------------------------------------------------


def lines_of(name: str) -> list[str]:
    return (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def fingerprints() -> Rows:
    import optpart

    for name in library():
        yield f"library {name}", optpart.load(name).sha256
    for name, path in generated().items():
        yield f"models {name}", optpart.read_instance(path).sha256
    for command in ("generate", "import"):
        for line in lines_of(command):
            yield f"{command} {line}", written(Path("made.json"), command, *line.split())
    for devices in (3, 10):
        options = ("cluster", "--devices", devices, "--seed", devices)
        yield f"generate cluster {devices}", written(Path("made.toml"), "generate", *options)
    for name in ("mine", "exact", "line", "single", "empty"):
        yield f"convert {name} json", written(Path("made.json"), "convert", f"{name}.json")
        options = ("convert", f"{name}.json", "--devices", "made-devices.csv")
        yield f"convert {name} csv", written(Path("made.csv"), *options)
    yield "convert devices", digest(Path("made-devices.csv").read_bytes())


def results() -> None:
    """Write a result, one that claims too much, and one whose schedule is not valid."""
    run("solve", "mine.json", "-m", "heft", "-o", "here.json")
    result = json.loads(Path("here.json").read_text())
    Path("claimed.json").write_text(json.dumps({**result, "makespan": "1"}))
    start = dict.fromkeys(result["schedule"]["start"], "0")
    broken = {**result, "schedule": {**result["schedule"], "start": start}}
    Path("broken.json").write_text(json.dumps(broken))


def commands() -> Rows:
    results()
    for line in lines_of("commands"):
        yield line, said(*shlex.split(line))
    for path in sorted(Path("bad").glob("*.json")):
        for command in ("solve", "gap", "convert"):
            yield f"{command} {path}", said(command, path, "-o", "out.json")
    # The real command, started as a user starts it.
    call = [sys.executable, "-P", "-c", "from optpart.cli import main; main()"]
    for line in ("solve mine.json -m heft", "solve nowhere.json", "solve too-large.json"):
        done = subprocess.run([*call, *line.split()], capture_output=True, check=False)
        yield f"process: {line}", done.returncode


def documents() -> Rows:
    """Times and versions are masked; each line begins with the kind of what is printed."""
    for bound in ("heft-10", "mine.json"):
        run("bound", bound)  # compiles, which may take up the limit
    results()
    run("certify", "mine.json", "-o", "proof", "--workers", 1)
    kinds: dict[str, Callable[[str], object]] = {
        "json": lambda text: masked_value(json.loads(text)),
        "csv": masked_table,
        "text": lambda text: masked(text).splitlines(),
    }
    for line in lines_of("documents"):
        kind, _, command = line.partition(" ")
        code, out, err = run(*shlex.split(command))
        yield line, {"code": code, "out": kinds[kind](out) if out else f"nothing, and {err!r}"}


def certificates() -> Rows:
    places = ROOT / "instances" / "certificates"
    for folder in sorted(places.iterdir()):
        code, out, _ = run("check", folder)
        yield folder.name, {"code": code, "out": masked(out)}
    judge = [sys.executable, "-P", "-m", "optpart.certificates.check", places / "heft-10"]
    yield "alone", subprocess.run(judge, capture_output=True, check=False).returncode


def samples() -> Rows:
    import optpart

    shutil.copytree(FOLDER / "samples", ".", dirs_exist_ok=True)
    instance = optpart.read_instance("instance.json")
    yield "instance", {"sha256": instance.sha256, "name": instance.name}
    yield "converted", written(Path("again.json"), "convert", "instance.json")
    code, out, err = run("verify", "instance.json", "result.json")
    yield "result", {"code": code, "out": masked(out), "err": err}
    shown = run("simulate", "instance.json", "--start", "result.json", "-m", "pct", "--json")
    yield "result as start", masked_value(json.loads(shown[1]))
    shown = run("plot", "result.json", "--instance", "instance.json", "-o", "picture.png")
    yield "result as picture", shown[0]
    yield "store", _stored()
    strange = "gap mine.json -m heft --store result.json"
    yield "store of something else", said(*strange.split())
    budget = optpart.Budget(600.0, 1, 12)
    given = {"budget": budget, "checkpoint": "checkpoint.json", "resume": True}
    yield "checkpoint", solved(instance, "search", **given)
    command = "solve mine.json -m search --resume --workers 1 --checkpoint checkpoint.json"
    yield "checkpoint of another instance", said(*command.split())


def _stored() -> object:
    """Return what a sweep says whose runs are all in the store, marked so that it shows."""
    import optpart

    with contextlib.closing(sqlite3.connect("store.sqlite")) as database, database:
        # A run counts for its version only; the sample is to be read by every later one.
        database.execute("UPDATE run SET optpart = ?", (optpart.__version__,))
        for row, text in database.execute("SELECT rowid, document FROM run").fetchall():
            document = json.loads(text) | {"reason": "from the store", "seconds": 1234}
            marked = json.dumps(document), row
            database.execute("UPDATE run SET document = ? WHERE rowid = ?", marked)
    asked = "tiny.json -m heft -m hash+pct --workers 1 --time-limit 20 --store store.sqlite"
    code, out, _ = run("gap", *asked.split(), "--json")
    marks = [out.count("1234"), out.count("from the store")]
    return {"code": code, "out": masked_value(json.loads(out)), "marks": marks}


SECTIONS: dict[str, Callable[[], Rows]] = {
    "pairs": pairs,
    "search": search,
    "bounds": bounds,
    "certificates": certificates,
    "commands": commands,
    "documents": documents,
    "fingerprints": fingerprints,
    "samples": samples,
}
