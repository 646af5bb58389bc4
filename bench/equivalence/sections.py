"""The recorded sections; each yields pairs of a key and a JSON value.

pairs         makespan, placement, starts and traffic of every pair of strategies
search        search and hybrid with one worker and a limit of moves
bounds        every lower bound
fingerprints  of the instances of the library, and of generated and imported ones; bytes of files
commands      exit code and first line on standard error of good and bad command lines
documents     what commands print: JSON, CSV and tables
certificates  the verdict on every certificate of the library
samples       files that were written when behaviour was recorded are still read, and mean the same
"""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.equivalence import inputs
from bench.equivalence.names import find
from bench.equivalence.workspace import (
    ROOT,
    digest,
    masked,
    masked_document,
    masked_table,
    prepare,
    run,
    samples,
    workspace,
)

Records = dict[str, object]
Rows = Iterator[tuple[str, object]]

#: Instances of the library up to this size are small.
SMALL = 100


def run_section(name: str, folder: Path) -> tuple[str, Records, float]:
    """Run one section in its own process."""
    prepare()
    begin = time.perf_counter()
    with workspace(folder):
        records = dict(SECTIONS[name]())
    return name, records, time.perf_counter() - begin


def _library() -> dict[str, int]:
    """Return the names of the library's instances, and how many vertices they have."""
    rows = [line.split() for line in run("gap", "--list").out.splitlines()[1:]]
    return {row[0]: int(row[1]) for row in rows if len(row) > 2}


def _small(most: int = SMALL) -> list[str]:
    return [name for name, vertices in _library().items() if vertices <= most]


def _methods() -> dict[str, list[str]]:
    """Return the names of all methods, by kind."""
    found: dict[str, list[str]] = {}
    for line in run("methods").out.splitlines():
        name, kind = line.split()[:2]
        name = name.removesuffix("+SCHEDULER").removeprefix("PARTITIONING+")
        found.setdefault(kind, []).append(name)
    return found


def _generated(vertices: int = 16) -> dict[str, Path]:
    """Write an instance of every pair of models; return the files."""
    files = {}
    for i, communication in enumerate(inputs.COMMUNICATION):
        for j, memory in enumerate(inputs.MEMORY):
            name = f"{communication}-{memory}"
            path, seed = Path(f"generated-{name}.json"), 10 * i + j
            options = f"--vertices {vertices} --devices 4 --types --groups --seed {seed}"
            if memory != "none":
                options += " --memory loose"
            run("generate", "small", *options.split(), "-o", path)
            document = json.loads(path.read_text())
            document["name"] = name
            document["model"] = {"communication": communication, "memory": memory}
            if communication == "sendrecv":
                document["model"]["send_ops"] = 3
            if (communication, memory) == ("port", "edges"):
                document["model"]["channels"] = 2
            if (communication, memory) == ("link", "refcount"):
                document["model"]["release"] = "start"
            path.write_text(json.dumps(document))
            files[name] = path
    return files


def _schedule(instance: Any, schedule: Any) -> str:
    """Return a hash of when everything starts."""
    moves = schedule.transfers
    transfers = sorted(
        [int(tensor), int(target), str(start), str(end)]
        for tensor, target, start, end in zip(
            moves.tensor, moves.target, moves.start.fractions(), moves.end.fractions(), strict=True
        )
    )
    starts = [str(time) for time in schedule.start.fractions()]
    return digest([schedule.placement.tolist(), starts, transfers])


# --- strategies, search, bounds ----------------------------------------------------------------


def pairs() -> Rows:
    """Every pair; the schedulers for special models only where there are such models."""
    import optpart

    listed = _methods()
    special = {"heterog", "tao", "tao-printed", "tio", "random-order", "as-received"}
    common = [name for name in listed["scheduling"] if name not in special]
    chosen = [(name, optpart.load(name), common) for name in _small()]
    chosen += [
        (name, optpart.read_instance(path), listed["scheduling"])
        for name, path in _generated().items()
    ]
    chosen.append(("convolutional_network-7", optpart.load("convolutional_network-7"), ["pct"]))
    for name, instance, schedulers in chosen:
        for strategy in listed["heuristic"]:
            yield f"{name} {strategy}", _outcome(instance, strategy)
        for partitioner in listed["partitioning"]:
            found = {s: _outcome(instance, f"{partitioner}+{s}") for s in schedulers}
            yield f"{name} {partitioner}+", found


def _outcome(instance: Any, method: str) -> str:
    """Return makespan, traffic and a hash of the schedule, or why there is none."""
    import optpart
    from optpart.methods import registry

    try:
        result = registry.get(method)(instance, seed=0)
    except optpart.OptpartError as error:
        return f"refused: {error}"
    if result.schedule is None:
        return f"{result.status}: {result.reason}"
    return f"{result.makespan} {result.traffic} {_schedule(instance, result.schedule)}"


def search() -> Rows:
    """Search with one worker and a limit of moves, which gives the same in every run."""
    import optpart

    names = ["heft-10", "laich-2.5", "small-20-8-ccr1-g-loose-s17", "small-40-8-ccr10-s36"]
    instances = {name: optpart.load(name) for name in names}
    wanted = ("delay-edges", "sendrecv-none", "link-refcount", "port-none", "port-refcount")
    instances |= {
        name: optpart.read_instance(path) for name, path in _generated().items() if name in wanted
    }
    for method, thousands, seeds in (("search", 5, (0, 1)), ("hybrid", 30, (0,))):
        for name, instance in instances.items():
            for seed in seeds:
                budget = optpart.Budget(600.0, 1, thousands)
                found = find("method")(method)(instance, budget=budget, seed=seed)
                yield f"{method} {name} {seed}", _found(found)


def _found(result: Any) -> object:
    if result.schedule is None:
        return f"{result.status}: {result.reason}"
    return f"{result.makespan} {result.traffic} {_schedule(result.instance, result.schedule)}"


def bounds() -> Rows:
    """All bounds, where all of them end in a small part of the limit."""
    run("bound", "heft-10")  # compiles, which may take up the limit
    files: dict[str, object] = {name: name for name in _small(10)}
    files |= _generated(8)
    for name, file in files.items():
        shown = run("bound", file, "--time-limit", 120, "--json")
        document = json.loads(shown.out) if shown.out else {"bounds": []}
        values = {row["bound"]: row["value"] for row in document["bounds"]}
        yield name, {"code": shown.code, "bounds": values, "err": shown.complaint}


# --- files -------------------------------------------------------------------------------------

GENERATE = """
small --vertices 12 --devices 3 --seed 1
small --vertices 30 --devices 8 --ccr 10 --types --groups --memory tight --seed 2
small --vertices 25 --devices 4 --ccr 0.1 --memory loose --seed 3
layered --levels 6 --devices 4 --seed 4
layered --levels 8 --min-width 2 --max-width 6 --level-limit 3 --decay 0.5 --random-edges 5 --seed 5
layered --levels 5 --cpu-probability 0.2 --gpu-probability 0.2 --colocated 8 --devices 6 --seed 6
lstm rnn --costs unit --no-training
lstm rnn --costs drawn --seed 7
lstm nmt --devices 3 --no-cells
heterog-worst
heterog-worst --devices 4 --length 50
replica --model alexnet
replica --model seq-32 --workers 2 --servers 2 --channels 2 --training
replica --model resnet-50 --only-worker
thesis 3 --devices 20 --seed 8
"""

IMPORT = """
graph.stg --devices 3
shop.jsp
shop.fjs
birgin.fjs
santiago.txt
moirai.json --format moirai
dnn.json --format dnn-partitioning
moirai.json
dnn.json
exact.json --name renamed
graph.gxl
thesis.csv --cluster devices.csv
graph.pbtxt --cluster cluster.toml --costs unit
graph.pbtxt --cluster cluster.toml --costs costs.csv
graph.pbtxt --devices 3 --costs drawn --seed 4 --colocate cell/
"""

CONVERT = ("mine", "exact", "line", "single", "empty")


def fingerprints() -> Rows:
    """Fingerprints of instances, and hashes of the bytes of written files."""
    import optpart

    for name in _library():
        yield f"library {name}", optpart.load(name).sha256
    for name, path in _generated().items():
        yield f"models {name}", optpart.read_instance(path).sha256
    for command, lines in (("generate", GENERATE), ("import", IMPORT)):
        for line in lines.strip().splitlines():
            yield f"{command} {line}", _written(Path("made.json"), command, *line.split())
    for devices in (3, 10):
        options = ("cluster", "--devices", devices, "--seed", devices)
        yield f"generate cluster {devices}", _written(Path("made.toml"), "generate", *options)
    for name in CONVERT:
        yield f"convert {name} json", _written(Path("made.json"), "convert", f"{name}.json")
        options = ("convert", f"{name}.json", "--devices", "made-devices.csv")
        yield f"convert {name} csv", _written(Path("made.csv"), *options)
    yield "convert devices", digest(Path("made-devices.csv").read_bytes())


def _written(path: Path, *command: object) -> object:
    """Return what a command writes and says."""
    import optpart

    path.unlink(missing_ok=True)
    shown = run(*command, "-o", path)
    if not path.exists():
        return {"code": shown.code, "err": shown.complaint}
    record: dict[str, object] = {"bytes": digest(path.read_bytes()), "out": masked(shown.out)}
    if path.suffix == ".json":
        record["sha256"] = optpart.read_instance(path).sha256
    return record


# --- command lines -----------------------------------------------------------------------------

COMMANDS = """
solve mine.json -m heft
solve mine.json --workers 1
solve mine.json -m enumerate
solve mine.json -m milp --workers 1
solve mine.json -m magic
solve mine.json -m magic+pct
solve mine.json -m hash+magic
solve mine.json -m hash:rules.csv+pct
solve mine.json -m expert:rules.csv+pct
solve mine.json -m expert:nowhere.csv+pct
solve mine.json --time-limit -1
solve mine.json --time-limit soon
solve mine.json --workers 0
solve mine.json --seed -1
solve mine.json --colour
solve mine.json --within 3 --workers 1
solve mine.json --within 1/3 --workers 1
solve mine.json --within soon
solve mine.json --within 80 -m heft
solve mine.json --traffic-limit 0 --workers 1
solve mine.json --objective beauty
solve mine.json --objective traffic -m enumerate
solve mine.json --fix placement
solve line.json --fix placement --workers 1
solve mine.json --fix order --start heft --workers 1
solve mine.json --start nowhere.json
solve mine.json --start magic
solve mine.json --start mine.json
solve mine.json --pareto --workers 1
solve mine.json --pareto -m enumerate
solve mine.json --audit -m heft
solve mine.json --audit --workers 1
solve mine.json --checkpoint x.json -m cpsat
solve mine.json -m search --resume
solve mine.json -m search --resume --checkpoint nowhere-state.json
solve mine.json -m search --resume --checkpoint exact.json
solve mine.json -m search --within 80
solve mine.json -m heft -o nowhere/result.json
solve mine.json -m heft -o here.json
solve laich-2.5 -m milp
solve no-such-instance
solve
solve empty.json
solve single.json
solve too-large.json
solve too-much.json --workers 1
solve no-link.json -m heft
solve greedy.json -m hash+pct
solve greedy.json --workers 1
solve small-60-8-ccr1-tight-s44 -m cpsat --time-limit 0 --workers 1
solve small-60-8-ccr1-tight-s44 -m enumerate
gap mine.json -m heft -m hash+pct
gap mine.json -m magic
gap mine.json -o table.xml
gap mine.json --json --csv
gap mine.json --axis --csv
gap mine.json --engine cloud
gap mine.json --store mine.json -m heft
gap mine.json --seeds 0
gap too-large.json -m heft
gap --list
bound mine.json
bound too-large.json
bound no-link.json
bound nowhere.json
verify mine.json here.json
verify line.json here.json
verify mine.json mine.json
verify mine.json nowhere.json
verify mine.json broken.json
verify mine.json claimed.json
simulate mine.json
simulate mine.json -m hash+fifo --runs 3
simulate mine.json -m cpsat
simulate mine.json -m magic+pct
simulate mine.json --start nowhere.json
simulate mine.json --start here.json -m fifo
simulate mine.json --runs 0
simulate greedy.json -m hash+pct
methods
methods all
plot here.json --instance mine.json -o picture.png
plot here.json -o picture.png
plot here.json --instance line.json -o picture.png
plot here.json --instance mine.json -o picture.xyz
plot nowhere.json -o picture.png
import nowhere.pb --devices 3 -o made.json
import cut.pb --devices 2 --costs unit -o made.json
import graph.pbtxt --costs unit -o made.json
import graph.pbtxt --devices 2 --costs nowhere.csv -o made.json
import graph.pbtxt --cluster bad.toml -o made.json
import graph.xyz -o made.json
import graph.stg -o made.json
import shop.jsp --devices 3 -o made.json
import shop.jsp --cluster cluster.toml -o made.json
import shop.jsp --format magic -o made.json
import thesis.csv -o made.json
convert mine.json -o copy.xml
convert mine.json -o copy.csv
convert mine.json -o nowhere/copy.json
convert mine.json
generate
generate small --vertices 5 --ccr -1 -o made.json
generate small --vertices 0 -o made.json
generate small --memory huge -o made.json
generate lstm gru -o made.json
generate thesis 7 -o made.json
generate replica --model magic -o made.json
generate replica --model alexnet --speed 0 -o made.json
generate layered --edge-probability 2 -o made.json
generate cluster -o nowhere/made.toml
reduce
reduce magic
reduce partition --random 5 --workers 1
reduce partition mine.json
reduce partition --random 3 mine.json
ordering line.json --workers 1
ordering mine.json
ordering line.json --times times.csv --workers 1
ordering line.json --times rules.csv
certify nowhere.json -o proof
certify single.json -o proof --workers 1
certify too-large.json -o proof-of-none
check proof
check nowhere
check mine.json
unknown-command
--version
"""


def commands() -> Rows:
    """Exit code and first line on standard error, and what a failure leaves behind."""
    _results()
    for line in COMMANDS.strip().splitlines():
        yield line, _said(*shlex.split(line))
    for path in sorted(Path("bad").glob("*.json")):
        for command in ("solve", "gap", "convert"):
            yield f"{command} {path}", _said(command, path, "-o", "out.json")
    # The real command, started as a user starts it.
    call = [sys.executable, "-P", "-c", "from optpart.cli import main; main()"]
    for line in ("solve mine.json -m heft", "solve nowhere.json", "solve too-large.json"):
        done = subprocess.run([*call, *line.split()], capture_output=True, check=False)
        yield f"process: {line}", done.returncode


def _said(*command: object) -> dict[str, object]:
    before = set(Path().rglob("*"))
    shown = run(*command)
    record: dict[str, object] = {"code": shown.code, "err": shown.complaint}
    if new := sorted(set(Path().rglob("*")) - before):
        record["new"] = [str(path) for path in new]
    return record


#: Each prints a document; a table or plain text has no suffix.
DOCUMENTS = """
json solve mine.json --workers 1 --json -m cpsat
json solve exact.json --workers 1 --json -m cpsat
json solve line.json --workers 1 --json -m cpsat
json solve heft-10 -m enumerate --json
json solve mine.json --pareto --workers 1 --json
json solve mine.json --objective lexicographic --workers 1 --json -m cpsat
json solve line.json --fix placement --workers 1 --json -m cpsat
json solve too-large.json --json -m cpsat
json solve greedy.json -m hash+pct --json
json gap mine.json heft-10 -m heft -m hash+pct --workers 1 --json
json gap mine.json -m hash-random+fifo --seeds 3 --workers 1 --json
json gap mine.json --axis -m heft -m hash+pct --workers 1 --json
json gap too-large.json -m heft --json
json simulate mine.json -m hash+fifo --json
json simulate heft-10 -m heft --json
json simulate laich-2.5 -m etf+msr --json
json bound mine.json --json
json bound exact.json --json
json verify mine.json here.json --json
json verify mine.json broken.json --json
json ordering line.json --workers 1 --json
json ordering ports.json --workers 1 --json
json reduce partition --random 5 --workers 1 --json
json reduce bin-packing --random 4 --seed 1 --workers 1 --json
json reduce scheduling --random 4 --workers 1 --json
json reduce clique --random 4 --workers 1 --json
json reduce three-partition --random 2 --workers 1 --json
json reduce job-shop --random 2 --workers 1 --json
json reduce communication --random 3 --workers 1 --json
json check proof --json
csv gap mine.json heft-10 -m heft -m hash+pct --workers 1 --csv
csv gap mine.json -m hash-random+fifo --seeds 3 --workers 1 --csv
text solve mine.json --workers 1 -m cpsat
text solve heft-10 -m heft
text solve mine.json --pareto --workers 1
text solve mine.json --objective lexicographic --workers 1 -m cpsat
text solve too-large.json -m cpsat
text solve too-much.json --workers 1 -m cpsat
text solve greedy.json -m hash+pct
text gap mine.json heft-10 -m heft -m hash+pct --workers 1
text gap mine.json heft-10 line.json exact.json -m heft -m hash+pct --workers 1
text gap mine.json heft-10 line.json exact.json -m heft -m hash+pct --workers 1 --details
text gap mine.json --axis -m heft -m hash+pct --workers 1
text gap --list
text simulate mine.json -m hash+fifo
text simulate heft-10 -m heft
text simulate laich-2.5 -m hash-random+msr --runs 4
text bound mine.json
text bound exact.json
text verify mine.json here.json
text verify mine.json broken.json
text methods
text ordering line.json --workers 1
text ordering ports.json --workers 1
text reduce
text reduce partition --random 5 --workers 1
text reduce clique --random 4 --workers 1
text check proof
text import graph.pbtxt --cluster cluster.toml --costs unit -o made.json
"""


def documents() -> Rows:
    """What commands print, times and versions masked."""
    for bound in ("heft-10", "mine.json"):
        run("bound", bound)  # compiles, which may take up the limit
    _results()
    run("certify", "mine.json", "-o", "proof", "--workers", 1)
    kinds: dict[str, Callable[[str], object]] = {
        "json": masked_document,
        "csv": masked_table,
        "text": lambda text: masked(text).splitlines(),
    }
    for line in DOCUMENTS.strip().splitlines():
        kind, _, command = line.partition(" ")
        shown = run(*shlex.split(command))
        said: object = f"nothing, and {shown.complaint!r}"
        if shown.out:
            said = kinds[kind](shown.out)
        yield line, {"code": shown.code, "out": said}


def _results() -> None:
    """Write a result, one that claims too much, and one whose schedule is not valid."""
    run("solve", "mine.json", "-m", "heft", "-o", "here.json")
    result = json.loads(Path("here.json").read_text())
    Path("claimed.json").write_text(json.dumps({**result, "makespan": "1"}))
    start = dict.fromkeys(result["schedule"]["start"], "0")
    broken = {**result, "schedule": {**result["schedule"], "start": start}}
    Path("broken.json").write_text(json.dumps(broken))


# --- certificates and samples --------------------------------------------------------------------


def certificates() -> Rows:
    """Every certificate of the library, by the judge."""
    for folder in sorted((ROOT / "instances" / "certificates").iterdir()):
        shown = run("check", folder)
        yield folder.name, {"code": shown.code, "out": masked(shown.out)}
    judge = [sys.executable, "-P", "-m", "optpart.certificates.check"]
    folder = ROOT / "instances" / "certificates" / "heft-10"
    yield "alone", subprocess.run([*judge, folder], capture_output=True, check=False).returncode


def read_samples() -> Rows:
    """Files of the version that behaviour was recorded with."""
    import optpart

    folder = samples()
    if not folder.exists():
        _write_samples(folder)
    for path in folder.iterdir():
        shutil.copy(path, path.name)
    instance = optpart.read_instance("instance.json")
    yield "instance", {"sha256": instance.sha256, "name": instance.name}
    yield "converted", _written(Path("again.json"), "convert", "instance.json")
    shown = run("verify", "instance.json", "result.json")
    yield "result", {"code": shown.code, "out": masked(shown.out), "err": shown.complaint}
    shown = run("simulate", "instance.json", "--start", "result.json", "-m", "pct", "--json")
    yield "result as start", masked_document(shown.out)
    shown = run("plot", "result.json", "--instance", "instance.json", "-o", "picture.png")
    yield "result as picture", shown.code
    yield "store", _stored()
    yield (
        "store of something else",
        _said("gap", "mine.json", "-m", "heft", "--store", "result.json"),
    )
    search, budget = find("method")("search"), optpart.Budget(600.0, 1, 12)
    found = search(instance, budget=budget, checkpoint="checkpoint.json", resume=True)
    yield "checkpoint", _found(found)
    command = "solve mine.json -m search --resume --workers 1 --checkpoint checkpoint.json"
    yield "checkpoint of another instance", _said(*command.split())


#: How the runs of the stored sample were asked for.
STORED = "gap tiny.json -m heft -m hash+pct --workers 1 --time-limit 20 --store store.sqlite"


def _stored() -> object:
    """Return what a sweep says whose runs are all in the store, marked so that it shows."""
    import optpart

    database = sqlite3.connect("store.sqlite")
    with database:
        # A run counts for its version only; the sample is to be read by every later one.
        database.execute("UPDATE run SET optpart = ?", (optpart.__version__,))
        rows = database.execute("SELECT rowid, document FROM run").fetchall()
        for row, text in rows:
            document = {**json.loads(text), "reason": "from the store", "seconds": 1234}
            database.execute(
                "UPDATE run SET document = ? WHERE rowid = ?", (json.dumps(document), row)
            )
    database.close()
    shown = run(*STORED.split(), "--json")
    return {
        "code": shown.code,
        "out": masked_document(shown.out),
        "marks": [shown.out.count("1234"), shown.out.count("from the store")],
    }


def _write_samples(folder: Path) -> None:
    """Write the samples, with what the package is now."""
    options = "--vertices 30 --devices 4 --ccr 10 --types --groups --memory loose --seed 99"
    run("generate", "small", *options.split(), "-o", "instance.json")
    document = json.loads(Path("instance.json").read_text())
    document["model"] = {"communication": "link", "memory": "refcount"}
    Path("instance.json").write_text(json.dumps(document))
    run("convert", "instance.json", "-o", "converted.json")
    Path("converted.json").replace("instance.json")
    run("solve", "instance.json", "-m", "etf+msr", "-o", "result.json")
    shutil.copy("mine.json", "tiny.json")
    run(*STORED.split())
    # Everything into the one file.
    database = sqlite3.connect("store.sqlite")
    database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    import optpart

    instance = optpart.read_instance("instance.json")
    find("method")("search")(
        instance, budget=optpart.Budget(600.0, 1, 2), checkpoint="checkpoint.json"
    )
    folder.mkdir(parents=True)
    for name in ("instance.json", "result.json", "tiny.json", "store.sqlite", "checkpoint.json"):
        shutil.copy(name, folder / name)


SECTIONS: dict[str, Callable[[], Rows]] = {
    "pairs": pairs,
    "search": search,
    "bounds": bounds,
    "certificates": certificates,
    "commands": commands,
    "documents": documents,
    "fingerprints": fingerprints,
    "samples": read_samples,
}
