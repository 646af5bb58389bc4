"""Forged certificates: does the judge ever accept what is not true, or break down?

What is true is known by brute force: of small instances that are drawn, and of strategies for
training that are enumerated. Certificates of the library, which use more kinds of proof, keep their
instance, so that only one makespan is true.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bench.soak.damage import other_value
from bench.soak.runs import FailedError
from optpart.applications.training.bounds.certificate import write_certificate
from optpart.applications.training.bounds.program import strategy_bound
from optpart.base.errors import InputError
from optpart.certificates import check
from optpart.certificates.certify import UncertifiedError, certify, certify_bound
from optpart.certificates.check import RejectedError
from optpart.certificates.check_strategies import check as judge
from optpart.interop.formats import native
from optpart.interop.formats.result import schedule_to_dict
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule, retime
from optpart.testing import brute_force
from optpart.testing.choices import best_strategy, tiny_choices
from optpart.testing.disguise import renamed
from optpart.testing.draw import draw_instance
from optpart.testing.mutate import mutated
from optpart.testing.pick import Draw, seeded
from optpart.testing.solutions import random_schedule

#: Forgeries of one certificate.
_EACH = 50

_LIBRARY = Path(__file__).parents[2] / "instances" / "certificates"

#: Certificates of the library, of every kind of proof.
_SHIPPED = ("heft-10", "chain-20", "alexnet-edge-free", "llama-3-8b-decode-edge-tight",
            "small-10-2-ccr0.1-g-s1", "laich-2.5", "kwok-ahmad-9-3", "lpt-3")  # fmt: skip

#: Files of a certificate.
Files = dict[str, bytes]

Found = TypeVar("Found")


def case(number: int, folder: Path) -> str:
    """Forge a certificate, and ask the judge."""
    base, draw = number // _EACH, random.Random(number)
    kind = base % 4
    if kind == 2:
        return _of_library(_SHIPPED[base // 4 % len(_SHIPPED)], number, draw, folder)
    if kind == 3 and base // 4 % 2:
        return _of_bound(base, number, draw, folder)
    if kind == 3:
        return _of_strategies(base, number, draw, folder)
    return _of_drawn(base, number, draw, folder)


def _verdict(files: Files, folder: Path) -> str | None:
    """Return what the judge says it has proven; none if it rejects."""
    place = folder / "forged"
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)
    try:
        return judge(str(place))
    except RejectedError as error:
        if "\n" in str(error) or len(str(error)) > 600:
            raise FailedError(f"a message of {len(str(error))} characters: {error}") from error
        return None


def _taken(place: Path) -> Files:
    """Return the files of a folder, and remove it."""
    files = {path.name: path.read_bytes() for path in sorted(place.iterdir())}
    shutil.rmtree(place)
    return files


def _next(found: Callable[[int], Found | None], base: int) -> Found:
    """Return what is found for a base or, if there is nothing, for one far from it."""
    while (result := found(base)) is None:
        base += 10_000
    return result


# --- drawn instances ------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _drawn(base: int) -> tuple[Instance, Schedule, Files] | None:
    """Return a small instance, an optimal schedule, and its certificate."""
    memory = ("none", "estimate")[base % 2]
    instance = draw_instance(base, "delay", memory, vertices=(2, 5), devices=(1, 3), far=False)
    if base % 3:
        instance = renamed(instance, base)
    best = brute_force.optimum(instance)
    if best is None:
        return None
    schedule = retime(instance, best.placement, best.order)
    place = Path(f"true-{base}").absolute()
    try:
        certify(instance, schedule, place, seconds=20)
    except (UncertifiedError, InputError):
        return None
    return instance, schedule, _taken(place)


def _of_drawn(base: int, number: int, draw: random.Random, folder: Path) -> str:
    instance, schedule, files = _next(_drawn, base)
    forge = draw.choice(
        (_bytes, _values, _proof, _later, _longer, _another_instance, _another_proof, _nothing)
    )
    forged = forge(dict(files), instance, schedule, number, draw)
    said = _verdict(forged, folder)
    if said is None:
        if forge is _nothing:
            raise FailedError("a true certificate is rejected")
        return "refused"
    if forge in (_later, _longer):
        raise FailedError(f"a schedule that is not optimal: {said}")
    best = brute_force.optimum(native.read(folder / "forged" / "instance.json"))
    if best is None or _makespan(said) != best.makespan:
        raise FailedError(f"{said}, but the optimum is {best and best.makespan}")
    return "accepted"


def _makespan(said: str) -> Fraction:
    found = re.search(r": optimal makespan (\S+) \(", said)
    if found is None:
        raise FailedError(f"no makespan in {said!r}")
    return Fraction(found[1])


def _bytes(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Damage the bytes of one file, a proof also before it is compressed."""
    name = draw.choice(sorted(files))
    files[name] = _packed(name, mutated(_plain(name, files[name]), number), draw)
    return files


def _values(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Change values of the certificate or the schedule."""
    name = draw.choice(("certificate.json", "certificate.json", "schedule.json"))
    document = json.loads(files[name])
    if draw.random() < 0.6 and name == "certificate.json" and document.get("record"):
        document["record"] = _near(document["record"], draw)
    elif draw.random() < 0.5:
        document = _near(document, draw)
    else:
        document = other_value(document, draw)
    files[name] = json.dumps(document).encode("utf-8", "surrogatepass")
    return files


def _proof(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Remove, repeat, move or change lines of the proof, or claim a smaller makespan."""
    name = next((name for name in files if name.startswith("proof")), None)
    if name is None:
        return _values(files, instance, schedule, number, draw)
    lines = _plain(name, files[name]).splitlines(keepends=True)
    for _ in range(draw.randint(1, 3)):
        if not lines:
            break
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
        match draw.randrange(5):
            case 0:
                del lines[i]
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case _:
                words = lines[i].split()
                k = draw.randrange(len(words))
                other = [draw.choice(words), b""]
                if words[k] != b"d":
                    literal = int(words[k])
                    other += [b"%d" % -literal, b"%d" % (literal + draw.randint(-2, 2))]
                words[k] = draw.choice(other)
                lines[i] = b" ".join(words) + b"\n"
    files[name] = _packed(name, b"".join(lines), draw, sound=True)
    return files


def _later(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Let everything happen later, and claim that."""
    late = Fraction(draw.choice((1, 2, 5)), draw.choice((1, 2, 1000)))
    document = json.loads(files["schedule.json"])
    timed = document["schedule"]
    timed["start"] = {name: str(Fraction(t) + late) for name, t in timed["start"].items()}
    for move in timed.get("transfers", []):
        for key in ("start", "end"):
            move[key] = str(Fraction(move[key]) + late)
    makespan = schedule.makespan(instance) + late
    return _claiming(files, document, makespan)


def _longer(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Claim that another valid schedule is optimal, which is longer."""
    other = random_schedule(np.random.default_rng(number), instance, tries=20)
    if other is None or other.makespan(instance) == schedule.makespan(instance):
        return _later(files, instance, schedule, number, draw)
    document = json.loads(files["schedule.json"])
    document["schedule"] = schedule_to_dict(instance, other)
    return _claiming(files, document, other.makespan(instance))


def _another_instance(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Change a number of the instance, and all hashes and times with it."""
    document = json.loads(files["instance.json"])
    picked = Draw(seeded(number, "instance"))
    row = picked.one_of(document["vertices"])
    factor = Fraction(picked.between(0, 9), picked.between(1, 3))
    key = picked.one_of(("ops", "memory", "speed", "bandwidth"))
    if key == "speed":
        device = picked.one_of(document["devices"])
        device["speed"] = str(Fraction(device.get("speed", 1)) * (factor or 1))
    elif key == "bandwidth":
        document["bandwidth"] = None if not factor else str(factor)
    else:
        row[key] = str(factor)
    document.pop("durations" if picked.chance(2) else "", None)
    try:
        other = native.from_dict(document)
        retimed = retime(other, schedule.placement, schedule.sequence)
    except InputError:
        return _later(files, instance, schedule, number, draw)
    text = native.dumps(other).encode()
    files["instance.json"] = text
    certificate = json.loads(files["certificate.json"])
    certificate["instance_sha256"] = hashlib.sha256(text).hexdigest()
    files["certificate.json"] = json.dumps(certificate).encode()
    stored = json.loads(files["schedule.json"])
    stored["schedule"] = schedule_to_dict(other, retimed)
    return _claiming(files, stored, retimed.makespan(other))


def _another_proof(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    """Take tier, record or proof of another certificate."""
    found = _drawn(number // _EACH + 20_000 + draw.randrange(2))
    if found is None:
        return _values(files, instance, schedule, number, draw)
    other = found[2]
    certificate, strange = (
        json.loads(files["certificate.json"]),
        json.loads(other["certificate.json"]),
    )
    for key in draw.choice((("tier", "record"), ("record",), ("tier",), ("ticks_per_unit",))):
        certificate[key] = strange[key]
    files["certificate.json"] = json.dumps(certificate).encode()
    for name, content in other.items():
        if name.startswith("proof") and draw.random() < 0.7:
            files[name] = content
    return files


def _claims(
    files: Files, instance: Instance, schedule: object, number: int, draw: random.Random
) -> Files:
    """Claim that drawn heads, tails and exclusions prove the bound, or a greater one."""
    problem = check.Problem(check.read_json(files["instance.json"], "instance"))
    certificate = json.loads(files["certificate.json"])
    claim = Fraction(certificate["bound"]) * draw.choice((1, Fraction(1001, 1000), Fraction(4, 3)))
    n, k, units = len(problem.vertices), len(problem.devices), len(problem.members)
    horizon = int(claim * Fraction(certificate["ticks_per_unit"]))

    def drawn(depth: int) -> list[Any]:
        v, d, kind = draw.randrange(n), draw.randrange(k), draw.randrange(5 if depth else 4)
        if kind < 2:
            time = draw.choice((draw.randint(0, horizon), horizon // 2, 1 + horizon // 4))
            return [("head", "tail")[kind], v, d, min(time, max(0, horizon - 1))]
        if kind == 2:
            return ["full", d, draw.sample(range(n), draw.randint(1, n))]
        if kind == 3:
            rows = [[d, 0, draw.randint(0, max(0, horizon - 1)), draw.randint(1, 9)]]
            return ["work", rows, []]
        return ["not", draw.randrange(units), d, [drawn(depth - 1) for _ in range(3)]]

    claims = [drawn(2) for _ in range(draw.randint(1, 6))]
    if certificate["tier"] == "probing" and draw.random() < 0.5:
        claims += certificate["record"]["claims"]
    changed = {"bound": str(claim), "tier": "probing", "record": {"claims": claims}}
    files["certificate.json"] = json.dumps(certificate | changed).encode()
    return files


def _nothing(
    files: Files, instance: Instance, schedule: Schedule, number: int, draw: random.Random
) -> Files:
    return files


def _claiming(files: Files, stored: Any, makespan: Fraction) -> Files:
    if stored.get("makespan") is not None:
        stored["makespan"] = stored["lower_bound"] = str(makespan)
    files["schedule.json"] = json.dumps(stored).encode()
    certificate = json.loads(files["certificate.json"])
    certificate["makespan"] = str(makespan)
    files["certificate.json"] = json.dumps(certificate).encode()
    return files


def _near(document: Any, draw: random.Random) -> Any:
    """Change one number a little, or exchange two."""
    places: list[tuple[Any, Any]] = []
    stack = [document]
    while stack:
        value = stack.pop()
        for key in value if isinstance(value, dict) else range(len(value)):
            if isinstance(value[key], dict | list):
                stack.append(value[key])
            elif _is_number(value[key]):
                places.append((value, key))
    if not places:
        return other_value(document, draw)
    holder, key = draw.choice(places)
    if draw.random() < 0.3:
        other, at = draw.choice(places)
        holder[key], other[at] = other[at], holder[key]
        return document
    old = holder[key]
    new = Fraction(old) + draw.choice((1, -1, 2, -3, 10, Fraction(1, 2), -Fraction(old)))
    holder[key] = str(new) if isinstance(old, str) else int(new)
    return document


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"-?\d+(/[1-9]\d*)?", value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(name: str, content: bytes) -> bytes:
    return lzma.decompress(content) if name.endswith(".xz") else content


def _packed(name: str, content: bytes, draw: random.Random, *, sound: bool = False) -> bytes:
    if not name.endswith(".xz"):
        return content
    packed = lzma.compress(content, preset=0)
    return packed if sound or draw.random() < 0.7 else mutated(packed, draw.randrange(2**30))


# --- certificates of the library ----------------------------------------------------------------


@lru_cache(maxsize=2)
def _shipped(name: str) -> tuple[Instance, Files, Fraction]:
    place = _LIBRARY / name
    files = {path.name: path.read_bytes() for path in sorted(place.iterdir())}
    true = _makespan(judge(str(place)))
    return native.read(place / "instance.json"), files, true


def _of_library(name: str, number: int, draw: random.Random, folder: Path) -> str:
    instance, files, true = _shipped(name)
    forge: Callable[..., Files] = draw.choice((_bytes, _values, _values, _proof, _near_library))
    forged = forge(dict(files), instance, None, number, draw)
    said = _verdict(forged, folder)
    if said is None:
        return "refused"
    if _makespan(said) != true or forged["instance.json"] != files["instance.json"]:
        raise FailedError(f"{said}, but the optimum is {true}")
    return "accepted"


def _near_library(
    files: Files, instance: Instance, schedule: object, number: int, draw: random.Random
) -> Files:
    """Claim another makespan; the schedule may end then, as far as the certificate says."""
    certificate = json.loads(files["certificate.json"])
    makespan = Fraction(certificate["makespan"]) + draw.choice((-1, 1, Fraction(-1, 2)))
    return _claiming(files, json.loads(files["schedule.json"]), makespan)


# --- bounds -------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _bounded(base: int) -> tuple[Instance, Fraction, Files] | None:
    """Return a small instance, its optimum, and a certificate of a bound with a longer schedule."""
    found = _drawn(base)
    if found is None:
        return None
    instance, schedule, _ = found
    optimum = schedule.makespan(instance)
    longer = random_schedule(np.random.default_rng(base), instance, tries=20) or schedule
    proposed = [optimum * Fraction(3, 4), optimum / 2] if base % 3 else [optimum]
    place = Path(f"bounded-{base}").absolute()
    try:
        certify_bound(instance, proposed, place, schedule=longer, seconds=20)
    except UncertifiedError:
        return None
    return instance, optimum, _taken(place)


def _of_bound(base: int, number: int, draw: random.Random, folder: Path) -> str:
    instance, optimum, files = _next(_bounded, base)
    forged = dict(files)
    if draw.random() < 0.4:
        certificate = json.loads(files["certificate.json"])
        key = draw.choice(("bound", "bound", "makespan"))
        value = optimum + draw.choice((0, 1, -1, Fraction(1, 10**9), -optimum / 2))
        certificate[key] = str(value)
        if draw.random() < 0.3:
            certificate.pop("makespan", None)
        forged["certificate.json"] = json.dumps(certificate).encode()
    else:
        forge: Callable[..., Files] = draw.choice((_bytes, _values, _values, _proof, _claims))
        forged = forge(forged, instance, None, number, draw)
    said = _verdict(forged, folder)
    if said is None:
        return "refused"
    if forged["instance.json"] != files["instance.json"]:
        raise FailedError(f"{said}, of another instance")
    if Fraction(str(json.loads(forged["certificate.json"])["bound"])) > optimum:
        raise FailedError(f"{said}, but the optimum is {optimum}")
    return "accepted"


# --- bounds of strategies ------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _strategies(base: int) -> tuple[Files, Fraction] | None:
    """Return a certificate of a bound, and the time of the best strategy."""
    choices = tiny_choices(base)
    best = best_strategy(choices)
    if best is None:
        return None
    bound = strategy_bound(choices)
    if bound.value is None:
        return None
    path = write_certificate(choices, bound, Path(f"bound-{base}").absolute())
    return _taken(path.parent), best


#: What a certificate of a bound claims and argues; all else is the problem.
_ARGUED = ("bound", "rows", "messages", "name")


def _of_strategies(base: int, number: int, draw: random.Random, folder: Path) -> str:
    files, best = _next(_strategies, base)
    document = json.loads(files["certificate.json"])
    problem = {key: value for key, value in document.items() if key not in _ARGUED}
    text = json.dumps(problem)
    what = draw.randrange(6)
    if what == 0:
        content = mutated(files["certificate.json"], number)
    else:
        if what == 1:
            document["bound"] = str(best + draw.choice((1, Fraction(1, 10**9), 1000)))
        if what in (1, 2, 3):
            part = draw.choice([key for key in ("rows", "messages") if document[key]] or ["bound"])
            document[part] = (
                _near(document[part], draw) if isinstance(document[part], list) else str(best + 1)
            )
            if draw.random() < 0.5:
                document["bound"] = str(best + 1)
        elif what == 4:
            document = other_value(document, draw)
        elif what == 5:
            document = _near(document, draw)
        content = json.dumps(document).encode("utf-8", "surrogatepass")
    said = _verdict({"certificate.json": content}, folder)
    if said is None:
        return "refused"
    now = json.loads(content)
    same = {key: value for key, value in now.items() if key not in _ARGUED}
    if json.dumps(same) == text and Fraction(now["bound"]) > best:
        raise FailedError(f"{said}, but a strategy takes {best}")
    return "accepted"
