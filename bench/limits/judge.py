"""How much time and memory the worst files cost the checker of certificates.

    python bench/limits/judge.py [--bytes 1048576] [--only series]

Every kind of file is built to cost as much as its size permits, in one part of the checker. Each is
judged in a process of its own that may take 60 s of processor time and 1 GiB of address space; the
program fails if one needs more, or does not get its verdict on one line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKER = Path(__file__).parents[2] / "optpart" / "certificates" / "check_strategies.py"

#: Seconds of processor time, and bytes of address space.
SECONDS, BYTES = 60, 2**30

Build = Callable[[Path, int], None]


def written(place: Path, instance: dict[str, Any], proof: bytes = b"", **claim: Any) -> None:
    """Write a certificate of a bound, which needs no schedule."""
    known = {"format": "optpart-instance/1", "name": "heavy"}
    text = json.dumps(known | instance, separators=(",", ":")).encode()
    certificate = {
        "format": "optpart-bound/1",
        "instance": "heavy",
        "instance_sha256": hashlib.sha256(text).hexdigest(),
        "bound": 1000,
        "ticks_per_unit": 1,
        "tier": "path",
        "record": {},
        **claim,
    }
    (place / "instance.json").write_bytes(text)
    content = json.dumps(certificate, separators=(",", ":"))
    (place / "certificate.json").write_text(content)
    if proof:
        (place / "proof.lrat.xz").write_bytes(proof)


def names(count: int) -> list[str]:
    return [f"v{i}" for i in range(count)]


def plain(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, "ops": 1, **more} for name in names(count)]


def devices(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"d{d}", **more} for d in range(count)]


def longest(size: int, item: Any, reserve: int = 2**12) -> list[Any]:
    """Return a list of one item as long as it fits."""
    return [item] * ((size - reserve) // (len(json.dumps(item, separators=(",", ":"))) + 1))


# --- reading, the instance, the schedule ----------------------------------------------------------


def numbers(place: Path, size: int) -> None:
    """Short texts of long numbers."""
    (place / "certificate.json").write_text("[" + "1e300," * (size // 6 - 2) + "0]")


def run_times(place: Path, size: int) -> None:
    """Long fractions for every pair of a vertex and a device."""
    n, k = 600, min(500, size // 1200)
    vertices = [{"name": f"v{i}", "ops": f"0.{'7' * 380}{i:04}e-299"} for i in range(n)]
    fast = [{"name": f"d{d}", "speed": f"{'3' * 380}{d:04}e299"} for d in range(k)]
    written(place, {"vertices": vertices, "devices": fast})


def delays(place: Path, size: int) -> None:
    """Many kinds of tensors between many devices, with long fractions."""
    k, count = 500, min(2000, size // 300)
    sizes = [f"0.{i:05}{'7' * 100}e-99" for i in range(count)]
    vertices = [{"name": "a", "ops": 1, "outputs": sizes}, {"name": "b", "ops": 1}]
    edges = [["a", "b", i] for i in range(count)]
    link = {"bandwidth": "7e99", "latency": f"1/{'3' * 90}"}
    written(place, {"vertices": vertices, "devices": devices(k), "edges": edges, **link})


def windows(place: Path, size: int) -> None:
    """Heads and tails along very many edges, on numbers of a thousand digits."""
    n, k = 600, 500
    count = (size - 60_000) // 16
    edges = [[f"v{i}", f"v{j}", 0] for i in range(n) for j in range(i + 1, n)][:count]
    instance = {"vertices": plain(n, outputs=[1]), "devices": devices(k), "edges": edges}
    written(place, instance, ticks_per_unit="9" * 390 + "e299")


def schedule(place: Path, size: int) -> None:
    """Starts and run times with long denominators of their own."""
    n = size // 900
    times = [f"{i * 10**190 + 1}/{10**190 + 2 * i + 1}" for i in range(n)]
    vertices = [{"name": f"v{i}", "ops": f"1/{10**390 + 2 * i + 1}"} for i in range(n)]
    instance = {"vertices": vertices, "devices": devices(2)}
    written(place, instance, bound=0, makespan=1)
    plan = {
        "placement": dict.fromkeys(names(n), "d0"),
        "start": dict(zip(names(n), times, strict=True)),
    }
    result = {"format": "optpart-result/1", "schedule": plan}
    (place / "schedule.json").write_text(json.dumps(result))


# --- tiers by arithmetic --------------------------------------------------------------------------


def load(place: Path, size: int) -> None:
    """Multipliers with long denominators for 300,000 pairs."""
    n, k = min(20_000, size // 40), 15
    y = [f"{d + 1}/{10**390 + 1}" for d in range(k)]
    record = {"vertices": list(range(n)), "load": y, "memory": [0] * k}
    written(place, {"vertices": plain(n), "devices": devices(k)}, tier="load", record=record)


# --- series ---------------------------------------------------------------------------------------


def in_parts(count: int, chains: int, n: int) -> dict[str, Any]:
    """Parts of chains beside each other; all vertices are alike."""
    edges, vertices, last = [], ["s"], "s"
    for part in range(count):
        end = f"t{part}"
        for c in range(chains):
            before = last
            for i in range(n):
                here = f"v{part}.{c}.{i}"
                vertices.append(here)
                edges.append([before, here, 0])
                before = here
            edges.append([before, end, 0])
        vertices.append(end)
        last = end
    return {
        "vertices": [{"name": name, "ops": 1, "outputs": [1]} for name in vertices],
        "edges": edges,
        "bandwidth": 1,
    }


def in_series(place: Path, instance: dict[str, Any], k: int, cuts: int, bound: int) -> None:
    """Claim nothing of what follows each cut, which leaves everything to the search forwards."""
    sets = [{"prices": [0] * k, "start": 0, "potentials": [[0] * k] * cuts}]
    record = {"sets": sets}
    written(place, {**instance, "devices": devices(k)}, tier="series", record=record, bound=bound)


def states(place: Path, size: int) -> None:
    """Two long chains: few labels, but as many sets of placed vertices as pairs of places."""
    n = min(4000, size // 200)
    in_series(place, in_parts(1, 2, n), 1, 2, bound=3 * n)


def labels(place: Path, size: int) -> None:
    """Wide parts on unlike devices: labels without end, of which few dominate another."""
    n = min(300, size // 300)
    instance = in_parts(1, n, 1)
    for i, vertex in enumerate(instance["vertices"]):
        vertex["ops"] = 100 + i * i % 37
    in_series(place, instance, 5, 2, bound=50_000)


def known_forwards(place: Path, size: int) -> None:
    """A first vertex that says something about every later one, through all parts."""
    n = min(8000, size // 110)
    vertices = [{"name": name, "ops": 1, "outputs": [1]} for name in names(n)]
    edges = [[f"v{i}", f"v{i + 1}", 0] for i in range(n - 1)]
    edges += [["v0", f"v{i}", 0] for i in range(2, n)]
    instance = {"vertices": vertices, "edges": edges, "bandwidth": 1}
    in_series(place, instance, 2, n, bound=3 * n)


# --- probing -------------------------------------------------------------------------------------


def probing(place: Path, size: int, claim: Any, n: int, k: int, **more: Any) -> None:
    """Repeat a claim about ``n`` vertices that can be on all devices but the first."""
    slow = [{"name": "d0", "speed": "1/10000"}, *devices(k)[1:]]
    instance = {"vertices": plain(n, outputs=[1]), "devices": slow, "bandwidth": 1, **more}
    reserve = len(json.dumps(instance)) + 2**12
    record = {"claims": longest(size, claim, reserve)}
    written(place, instance, tier="probing", record=record)


def assumptions(place: Path, size: int) -> None:
    """Each claim assumes that a group of 100 vertices is on one of 300 devices."""
    probing(place, size, ["not", 0, 0, []], 100, 300, colocation=[names(100)])


def ancestors(place: Path, size: int) -> None:
    """Heads of the last vertex of a dense graph."""
    n = 150
    edges = [[f"v{i}", f"v{j}", 0] for i in range(n) for j in range(i + 1, n)]
    probing(place, size, ["head", n - 1, 1, 1], n, 60, edges=edges)


def no_times(place: Path, size: int) -> None:
    """Claims of nothing, before each of which every unit is asked for its devices."""
    probing(place, size, ["head"], size // 80, 3)


def work(place: Path, size: int) -> None:
    """Claims that sum up nothing, over all vertices and devices, under assumptions."""
    n, k = min(3000, size // 80), 90
    claim = ["not", 0, 1, [["work", [[1, 0, 999, 1]], []]]]
    pinned = [{"name": f"p{i}", "ops": 400, "devices": ["d1"]} for i in range(3)]
    probing(place, size, claim, n, k, vertices=plain(n) + pinned)


# --- proofs ---------------------------------------------------------------------------------------


def by_proof(place: Path, instance: dict[str, Any], proof: bytes, **more: Any) -> None:
    bound = more.pop("bound", 1000)
    record = {"encoding": "order/1", "loads": [], "multipliers": [], "memory_scale": 1, **more}
    proof = proof or lzma.compress(b"0\n")
    written(place, instance, proof, tier="lrat", record=record, bound=bound)


def formula(place: Path, size: int) -> None:
    """A formula of a hundred vertices with a thousand starts each."""
    by_proof(place, {"vertices": plain(min(1500, size // 40)), "devices": devices(4)}, b"")


def pairs(place: Path, size: int) -> None:
    """Very many pairs of vertices that share no device."""
    half = [[f"d{d}" for d in range(i, i + 8)] for i in (0, 8)]
    n = min(6000, size // 90)
    vertices = [{"name": f"v{i}", "ops": 1, "devices": half[i % 2]} for i in range(n)]
    by_proof(place, {"vertices": vertices, "devices": devices(16)}, b"")


def diagrams(place: Path, size: int) -> None:
    """Loads with as many different sums as the limit permits."""
    n = min(2000, size // 50)
    vertices = [{"name": f"v{i}", "ops": 2 ** (i % 17) + i} for i in range(n)]
    instance = {"vertices": vertices, "devices": devices(2)}
    by_proof(place, instance, b"", loads=[[0, 0, 0]] * 1000, bound=130_000)


def small_formula(place: Path, proof: bytes) -> None:
    """Three vertices on two devices: clause 1 says that the first is on one of them."""
    by_proof(place, {"vertices": plain(3), "devices": devices(2)}, proof)


def deletions(place: Path, size: int) -> None:
    """Lines that delete nothing: a quarter of a gigabyte of them, packed."""
    packer = lzma.LZMACompressor(preset=1)
    parts = [packer.compress(b"5 d 0\n" * 2**17) for _ in range(300)] + [packer.flush()]
    small_formula(place, b"".join(parts)[:size])


def lemmas(place: Path, size: int) -> None:
    """Lemmas that follow from one clause, none of which is ever deleted."""
    first = 10**6
    lines = b"".join(b"%d 2 3 0 1 0\n" % (first + i) for i in range(size * 2))
    small_formula(place, lzma.compress(lines, preset=1)[:size])


def hints(place: Path, size: int) -> None:
    """Lines as long as permitted, of as many numbers as possible."""
    line = b"1000000 " + b"10 " * (2**22 // 3 - 10) + b"0 1 0\n"
    small_formula(place, lzma.compress(line * 50, preset=1)[:size])


# --- strategies -----------------------------------------------------------------------------------


def strategies(place: Path, size: int, *, edges: int, rows: bool, messages: bool, k: int) -> None:
    """Two groups with as many layouts as fit a share of the file."""
    share = size // (3 if rows or messages else 2)
    count = max(2, share // (20 + 8 * k))
    decisions = [
        {"replicas": [i + 1, *[count] * (k - 1)], "sync": "allreduce"} for i in range(count)
    ]
    operation = {
        "name": "o",
        "role": "forward",
        "times": [["1", "1/3"]],
        "outputs": [["batched", "0", "1"]],
        "splittable": True,
    }
    row = {"kind": "path", "start": 0, "edges": [0]}
    if not edges:
        row = {"kind": "load", "resource": ["device", 0, 0], "consumer": 0}
    everything = list(range(count))
    document: dict[str, Any] = {
        "format": "optpart-strategy-bound/1",
        "name": "heavy",
        "bound": 10**9,
        "batch": 2**40,
        "options": {"tick": None, "auxiliary": "memory", "memory": "none", "slots": 0},
        "cluster": {
            "kinds": [0] * k,
            "servers": list(range(k)),
            "memory": [None] * k,
            "copying": ["1/7"] * k,
            "latency": [[1] * k] * k,
            "rate": [["3/7"] * k] * k,
        },
        "operations": [operation, operation],
        "edges": [[0, 0, 1]] * edges,
        "parameters": [],
        "groups": [[0], [1]],
        "decisions": decisions,
        "actions": [everything, everything],
        "rows": longest(share, [1, row], 0) if rows else [[1, row]],
        "messages": longest(share, [0, 1, [0] * count, [0] * count]) if messages else [],
    }
    (place / "certificate.json").write_text(json.dumps(document, separators=(",", ":")))


def layouts(place: Path, size: int) -> None:
    """Millions of pairs of layouts of one edge between two devices."""
    strategies(place, size, edges=1, rows=False, messages=False, k=2)


def few_layouts(place: Path, size: int) -> None:
    """Hundreds of layouts, gone through by hundreds of rows: not much in a file."""
    strategies(place, min(size, 30_000), edges=1, rows=True, messages=False, k=2)


def rows(place: Path, size: int) -> None:
    """Layouts and rows in thirds of the file."""
    strategies(place, size, edges=1, rows=True, messages=False, k=8)


def messages(place: Path, size: int) -> None:
    """Messages between groups that no edge connects."""
    strategies(place, size, edges=0, rows=False, messages=True, k=2)


def waiting(place: Path, size: int) -> None:
    """One decision listed very often, gone through by very many rows."""
    count, k = size // 6, 2
    strategies(place, 4000, edges=1, rows=False, messages=False, k=k)
    path = place / "certificate.json"
    document = json.loads(path.read_text())
    row = {"kind": "load", "resource": ["device", 0, 0], "consumer": 0}
    document["actions"] = [[0] * count, [0]]
    document["rows"] = longest(size // 2, [1, row])
    path.write_text(json.dumps(document, separators=(",", ":")))


def parameters(place: Path, size: int) -> None:
    """Sizes of parameters whose denominators have nothing in common."""
    strategies(place, 2000, edges=1, rows=False, messages=False, k=2)
    path = place / "certificate.json"
    document = json.loads(path.read_text())
    document["parameters"] = [
        {"size": f"1/{10**390 + 2 * i + 1}", "users": [0]} for i in range(size // 450)
    ]
    path.write_text(json.dumps(document))


KINDS: tuple[Build, ...] = (
    numbers, run_times, delays, windows, schedule, load, states, labels, known_forwards,
    assumptions, ancestors, no_times, work, formula, pairs, diagrams, deletions, lemmas,
    hints, layouts, few_layouts, rows, messages, waiting, parameters,
)  # fmt: skip


def judged(place: Path) -> tuple[str, float, int, bool]:
    """Return the verdict, processor seconds, peak bytes, and whether all limits were kept."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(CHECKER), str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=limit,
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    kept = process.returncode in (0, 1) and printed.count("\n") == 1 and "Memory" not in printed
    seconds = usage.ru_utime + usage.ru_stime
    return printed.strip(), seconds, usage.ru_maxrss * 1024, kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=2**20)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{'file':15}{'bytes':>9}{'seconds':>9}{'MB':>6}  verdict")
    failed = 0
    for build in KINDS:
        if options.only and build.__name__ not in options.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            build(place, options.bytes)
            size = sum(path.stat().st_size for path in place.iterdir())
            verdict, seconds, peak, kept = judged(place)
        failed += not kept
        mark = "" if kept else "FAILED: "
        line = f"{build.__name__:15}{size:9}{seconds:9.1f}{peak / 2**20:6.0f}  {mark}{verdict[:90]}"
        print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
