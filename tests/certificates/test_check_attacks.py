"""The checker under attack: for any files, it gives one verdict, quickly, and never a false one."""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Schedule
from optpart.certificates import check
from optpart.certificates.certify import certify
from optpart.certificates.check import Formula, RejectedError, check_proof
from optpart.interop.formats import native
from optpart.interop.formats.result import schedule_to_dict
from optpart.solution.schedule import retime
from optpart.testing import brute_force

FILES = ("certificate.json", "instance.json", "schedule.json", "proof.lrat.xz")


def by_proof(size: int = 3) -> Instance:
    """An instance that needs a formula, which alone knows of separated vertices."""
    return by_probing(size, separated="ce")


def by_probing(size: int = 3, separated: str = "") -> Instance:
    """An instance on which paths and loads prove too little."""
    builder = GraphBuilder()
    for name, ops in {"a": 4, "b": 6, "c": 7, "d": 8, "e": 3, "f": 9}.items():
        builder.vertex(name, ops, outputs=[size])
    for source, target in ("ac", "ad", "bd", "be", "cf", "ef"):
        builder.edge(source, target)
    if separated:
        builder.separate(*separated)
    devices = [Device("x", 1), Device("y", 2)]
    return Instance(builder.build(), Cluster.of(devices, 1), name="attacked")


def by_path() -> Instance:
    chain = GraphBuilder().vertex("a", 2, outputs=[1]).vertex("b", 3).edge("a", "b")
    return Instance(chain.build(), Cluster.uniform(2, bandwidth=1), name="chain")


def by_load() -> Instance:
    jobs = GraphBuilder().vertex("a", 2).vertex("b", 2).vertex("c", 2).vertex("d", 2)
    return Instance(jobs.build(), Cluster.uniform(2), name="jobs")


def by_one_machine() -> Instance:
    jobs = GraphBuilder().vertex("a", 2, devices=["d0"]).vertex("b", 2, devices=["d0"])
    return Instance(jobs.build(), Cluster.uniform(2), name="together")


BY_TIER = {
    "lrat": by_proof,
    "probing": by_probing,
    "path": by_path,
    "load": by_load,
    "one-machine": by_one_machine,
}


def optimal(instance: Instance) -> Schedule:
    best = brute_force.optimum(instance)
    assert best is not None
    return retime(instance, best.placement, best.order)


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One certificate of each tier."""
    folder = tmp_path_factory.mktemp("certificates")
    for tier, make in BY_TIER.items():
        instance = make()
        assert certify(instance, optimal(instance), folder / tier).tier == tier
        check.check(str(folder / tier))
    return {tier: folder / tier for tier in BY_TIER}


@pytest.fixture
def attacked(valid: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the certificate by proof."""
    return Path(shutil.copytree(valid["lrat"], tmp_path / "attacked"))


def reason(directory: Path) -> str:
    """Return why a certificate is rejected; fail if it is not."""
    with pytest.raises(RejectedError) as error:
        check.check(str(directory))
    assert "\n" not in str(error.value)
    return str(error.value)


def edit(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def replace(path: Path, **values: Any) -> None:
    edit(path, lambda document: document.update(values))


def proof_lines(directory: Path) -> list[bytes]:
    return lzma.decompress((directory / "proof.lrat.xz").read_bytes()).splitlines(keepends=True)


def write_proof(directory: Path, lines: list[bytes]) -> None:
    (directory / "proof.lrat.xz").write_bytes(lzma.compress(b"".join(lines)))


# --- any bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", BY_TIER)
def test_flipped_bits_change_no_claim(tier: str, valid: dict[str, Path], tmp_path: Path) -> None:
    """A flip is rejected, or affects nothing in the claim, such as a solver's seconds."""
    rng = np.random.default_rng(21)
    claim = check.check(str(valid[tier]))
    directory = Path(shutil.copytree(valid[tier], tmp_path / "flipped"))
    rejected = 0
    for path in sorted(directory.iterdir()):
        content = path.read_bytes()
        for _ in range(30):
            flipped = bytearray(content)
            flipped[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
            path.write_bytes(flipped)
            try:
                assert check.check(str(directory)).split(" (")[0] == claim.split(" (")[0]
                assert path.name not in ("instance.json", "proof.lrat.xz")
            except RejectedError:
                rejected += 1
        path.write_bytes(content)
    assert rejected > 60


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_rejected(name: str, attacked: Path) -> None:
    content = (attacked / name).read_bytes()
    for size in (0, 1, len(content) // 3, len(content) // 2, len(content) - 2):
        (attacked / name).write_bytes(content[:size])
        reason(attacked)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_rejected(name: str, attacked: Path) -> None:
    (attacked / name).unlink()
    assert reason(attacked).startswith(f"{name} cannot be read")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_anything_but_a_regular_file_is_rejected(name: str, kind: str, attacked: Path) -> None:
    path = attacked / name
    path.rename(attacked / "moved")
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(attacked / "moved")
    else:
        os.mkfifo(path)
    assert reason(attacked) == f"{name} is not a regular file"


RANDOM_JSON = [
    "", "{", "[]", "null", "7", '"x"', "NaN", "[" * 100_000, '{"a":' * 50_000, "\ufeff{}",
    '{"format": "optpart-certificate/1", "format": "optpart-certificate/1"}',
    '{"makespan": ' + "9" * 5000 + "}", '{"makespan": 1e99999999999}', '{"\\ud800": 1}',
]  # fmt: skip


@pytest.mark.parametrize("text", RANDOM_JSON, ids=lambda text: str(text[:20]))
@pytest.mark.parametrize("name", FILES[:3])
def test_other_json_is_rejected(name: str, text: str, attacked: Path) -> None:
    (attacked / name).write_text(text, encoding="utf-8")
    if name == "instance.json":
        digest = hashlib.sha256((attacked / name).read_bytes()).hexdigest()
        replace(attacked / "certificate.json", instance_sha256=digest)
    reason(attacked)


@pytest.mark.parametrize("name", FILES[:3])
def test_a_key_that_occurs_twice_is_rejected(name: str, attacked: Path) -> None:
    (key, value), *_ = json.loads((attacked / name).read_text()).items()
    text = (
        f"{{{json.dumps(key)}: {json.dumps(value)}, " + (attacked / name).read_text().lstrip()[1:]
    )
    (attacked / name).write_text(text)
    if name == "instance.json":
        digest = hashlib.sha256((attacked / name).read_bytes()).hexdigest()
        replace(attacked / "certificate.json", instance_sha256=digest)
    assert reason(attacked) == f"{name}: a key occurs twice"


def test_each_value_replaced_by_something_else_is_rejected_or_harmless(attacked: Path) -> None:
    """Each value of certificate and schedule in turn is replaced by one of another type."""
    claim = check.check(str(attacked)).split(" (")[0]
    others: list[Any] = [None, True, -1, 10**400, "1/0", [], {}, "x" * 2000]
    for name in ("certificate.json", "schedule.json"):
        document = json.loads((attacked / name).read_text())
        for place in places(document):
            for other in others:
                changed = json.loads(json.dumps(document))
                holder = changed
                for key in place[:-1]:
                    holder = holder[key]
                holder[place[-1]] = other
                (attacked / name).write_text(json.dumps(changed))
                try:
                    assert check.check(str(attacked)).split(" (")[0] == claim
                    assert name == "schedule.json" or place[0] == "record"
                except RejectedError:
                    pass
        (attacked / name).write_text(json.dumps(document))


def places(document: Any) -> list[list[Any]]:
    """List the paths to all values that the checker reads, inner ones included."""
    found = []
    keys = range(len(document)) if isinstance(document, list) else list(document)
    for key in keys:
        if key in ("trace", "versions"):
            continue
        found.append([key])
        if isinstance(document[key], (list, dict)):
            found += [[key, *rest] for rest in places(document[key])]
    return found


# --- lies that fit together ---------------------------------------------------------------------


def test_a_makespan_one_less_is_rejected(attacked: Path) -> None:
    def lower(certificate: dict[str, Any]) -> None:
        certificate["makespan"] = str(Fraction(certificate["makespan"]) - 1)

    edit(attacked / "certificate.json", lower)
    assert "the schedule takes" in reason(attacked)


def test_a_longer_schedule_is_not_proven_by_a_proof_for_the_shorter(attacked: Path) -> None:
    """The formula for the longer makespan is different and satisfiable."""
    instance = by_proof()
    best = optimal(instance)
    late = [str(t + 1) for t in best.start.fractions()]

    def later(result: dict[str, Any]) -> None:
        schedule = result["schedule"]
        schedule["start"] = dict(zip(instance.graph.names, late, strict=True))
        for transfer in schedule["transfers"]:
            for key in ("start", "end"):
                transfer[key] = str(Fraction(transfer[key]) + 1)

    edit(attacked / "schedule.json", later)
    makespan = best.makespan(instance) + 1
    assert "the schedule takes" in reason(attacked)
    replace(attacked / "certificate.json", makespan=str(makespan))
    assert reason(attacked).startswith("proof")


@pytest.mark.parametrize("tier", ["path", "load", "one-machine"])
def test_the_record_of_another_tier_is_rejected(tier: str, valid: dict[str, Path]) -> None:
    for other in ("path", "load", "one-machine"):
        record = json.loads((valid[other] / "certificate.json").read_text())["record"]
        document = json.loads((valid[tier] / "certificate.json").read_text())
        if other != tier:
            problem = check.Problem(json.loads((valid["lrat"] / "instance.json").read_text()))
            windows = check.Windows(problem, Fraction(1), Fraction(18))
            with pytest.raises(RejectedError):
                check.TIERS[tier](windows, record)
        assert document["tier"] == tier


def test_another_instance_s_proof_is_rejected(attacked: Path, tmp_path: Path) -> None:
    other = by_proof(size=4)
    assert certify(other, optimal(other), tmp_path / "other").tier == "lrat"
    shutil.copy(tmp_path / "other" / "proof.lrat.xz", attacked)
    assert reason(attacked).startswith("proof")


def test_another_instance_is_rejected_by_its_hash(attacked: Path, valid: dict[str, Path]) -> None:
    shutil.copy(valid["load"] / "instance.json", attacked)
    assert reason(attacked) == "certificate: of another instance"


def test_the_instance_must_be_the_given_one(valid: dict[str, Path], tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    shutil.copy(valid["lrat"] / "instance.json", given)
    check.check(str(valid["lrat"]), str(given))
    given.write_text(given.read_text() + " ")
    with pytest.raises(RejectedError, match="another instance"):
        check.check(str(valid["lrat"]), str(given))


def test_changed_instances_are_accepted_only_if_the_claim_remains_true(
    valid: dict[str, Path], tmp_path: Path
) -> None:
    """Change a number of the instance, and with it the hash; retime the schedule."""
    rng = np.random.default_rng(22)
    verdicts = {True: 0, False: 0}
    for tier, folder in valid.items():
        original = BY_TIER[tier]()
        order = optimal(original)
        for trial in range(25):
            directory = Path(shutil.copytree(folder, tmp_path / f"{tier}-{trial}"))
            document = json.loads((folder / "instance.json").read_text())
            vertex = document["vertices"][int(rng.integers(len(document["vertices"])))]
            vertex["ops"] = int(rng.integers(1, 10))
            instance = native.from_dict(document)
            schedule = retime(instance, order.placement, order.sequence)
            text = native.dumps(instance).encode()
            (directory / "instance.json").write_bytes(text)
            makespan = schedule.makespan(instance)
            digest = hashlib.sha256(text).hexdigest()
            replace(directory / "schedule.json", schedule=schedule_to_dict(instance, schedule))
            replace(directory / "certificate.json", makespan=str(makespan), instance_sha256=digest)
            try:
                check.check(str(directory))
                best = brute_force.optimum(instance)
                assert best is not None
                assert best.makespan == makespan
                verdicts[True] += 1
            except RejectedError:
                verdicts[False] += 1
    assert min(verdicts.values()) > 5


# --- proofs --------------------------------------------------------------------------------------


def small_formula() -> Formula:
    """All four clauses of two variables: 1 ∨ 2, 1 ∨ ¬2, ¬1 ∨ 2, ¬1 ∨ ¬2."""
    return Formula([[2, 3], [2, -3], [-2, 3], [-2, -3]])


def judge(*lines: str) -> int:
    return check_proof(small_formula(), 3, [line.encode() for line in lines])


GOOD = ("5 2 0 1 2 0", "6 0 5 3 4 0")


def test_a_proof_is_accepted() -> None:
    assert judge(*GOOD) == 2
    assert judge("5 2 0 1 2 0", "5 d 1 2 0", "6 0 5 3 4 0", "6 d 5 0") == 2


BAD_PROOFS: dict[str, tuple[str, ...]] = {
    "the empty clause is missing": ("5 2 0 1 2 0",),
    "a line is cut short": ("5 2 0 1 2", "6 0 5 3 4 0"),
    "a lemma without hints": ("5 0",),
    "cut short": ("",),
    "reach no conflict": ("5 2 0 1 0", "6 0 5 3 4 0"),
    "leaves more than one literal": ("5 0 1 2 3 4 0",),
    "says nothing new": ("5 2 0 1 1 2 0", "6 0 5 3 4 0"),
    "hints after the conflict": ("5 2 0 1 2 3 0", "6 0 5 3 4 0"),
    "hint 4 leaves more": ("5 2 0 1 2 0", "6 0 4 3 5 0"),
    "clause 1 was deleted": ("5 d 1 0", *GOOD),
    "there is no clause 5": ("5 2 0 1 2 0", "5 d 5 0", "6 0 5 3 4 0"),
    "there is no clause 99": ("5 2 0 99 2 0", "6 0 5 3 4 0"),
    "there is no clause -1": ("5 2 0 -1 2 0", "6 0 5 3 4 0"),
    "there is no clause 7": ("5 d 7 0", *GOOD),
    "was deleted": ("5 d 1 1 0", *GOOD),
    "not larger": ("4 2 0 1 2 0", "6 0 5 3 4 0"),
    "no variable": ("5 9 0 1 2 0", "6 0 5 3 4 0"),
    "goes on after": (*GOOD, "7 2 0 1 2 0"),
    "number 5 is not larger": ("5 2 0 1 2 0", "5 0 5 3 4 0"),
}


@pytest.mark.parametrize(("why", "lines"), BAD_PROOFS.items(), ids=list(BAD_PROOFS))
def test_a_bad_proof_is_rejected_with_the_reason(why: str, lines: tuple[str, ...]) -> None:
    with pytest.raises(RejectedError, match=why):
        judge(*lines)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x 2 0 1 2 0", "malformed"),
        ("5 2 0 1.5 2 0", "malformed"),
        ("5 " + "9" * 5000 + " 0 1 0", "proof: a number is too long"),
    ],
)
def test_anything_but_numbers_in_a_proof_is_rejected(line: str, why: str, attacked: Path) -> None:
    write_proof(attacked, [line.encode() + b"\n"])
    assert reason(attacked).startswith(why)


def test_every_lemma_of_a_proof_is_necessary(attacked: Path) -> None:
    """The proof is trimmed: without any one lemma, it proves nothing."""
    lines = proof_lines(attacked)
    lemmas = [i for i, line in enumerate(lines) if line.split()[1] != b"d"]
    assert len(lemmas) > 5
    for i in lemmas[:: max(1, len(lemmas) // 25)]:
        write_proof(attacked, [*lines[:i], *lines[i + 1 :]])
        assert reason(attacked).startswith("proof")


def test_randomly_changed_hints_and_literals_are_rejected_or_still_a_proof(attacked: Path) -> None:
    """The verdict is a rejection or the claim itself, since mutants may be proofs as well."""
    rng = np.random.default_rng(23)
    lines, claim = proof_lines(attacked), check.check(str(attacked)).split(" (")[0]
    rejected = 0
    for _ in range(150):
        i = int(rng.integers(len(lines)))
        fields = lines[i].split()
        j = int(rng.integers(len(fields)))
        fields[j] = str(int(rng.integers(-3, 60))).encode()
        write_proof(attacked, [*lines[:i], b" ".join(fields) + b"\n", *lines[i + 1 :]])
        try:
            assert check.check(str(attacked)).split(" (")[0] == claim
        except RejectedError:
            rejected += 1
    assert rejected > 100


def test_a_proof_of_a_satisfiable_formula_is_never_accepted() -> None:
    """Random lemmas and hints for a formula that has a model."""
    rng = np.random.default_rng(24)
    formula = [[2, 3], [2, -3], [-2, 3], [4, 5], [-4, 5, 2]]
    for _ in range(300):
        lines, number = [], len(formula)
        for _ in range(int(rng.integers(1, 8))):
            number += int(rng.integers(1, 3))
            size = int(rng.integers(0, 3))
            lemma = [int(x) for x in rng.integers(2, 6, size) * rng.choice([-1, 1], size)]
            hints = [int(x) for x in rng.integers(1, number, int(rng.integers(1, 5)))]
            lines.append(" ".join(map(str, (number, *lemma, 0, *hints, 0))).encode())
        lines.append(b"%d 0 %d 0" % (number + 1, number))
        with pytest.raises(RejectedError):
            check_proof(Formula(formula), 5, lines)


def test_every_hint_is_paid_for_by_its_literals() -> None:
    formula = small_formula()
    before = formula.allowance.steps
    check_proof(formula, 3, [line.encode() for line in GOOD])
    # Two lines, five hints, and the literals of their clauses.
    assert before - formula.allowance.steps == 2 * (30 + 2 * 11) + 5 * 10 + 9
    formula = small_formula()
    formula.allowance.steps = 100
    with pytest.raises(RejectedError, match="takes too long"):
        check_proof(formula, 3, [line.encode() for line in GOOD])


def test_lemmas_are_paid_for_until_they_are_deleted() -> None:
    formula = small_formula()
    formula.allowance.bytes = 20 * check.LEMMA
    lines = [b"%d 2 0 1 2 0" % number for number in range(5, 50)]
    with pytest.raises(RejectedError, match="too much memory"):
        check_proof(formula, 3, lines)
    formula = small_formula()
    formula.allowance.bytes = 20 * check.LEMMA
    deleting = [b"%d d %d 0" % (number, number) for number in range(5, 50)]
    with pytest.raises(RejectedError, match="the empty clause is missing"):
        check_proof(
            formula, 3, [line for pair in zip(lines, deleting, strict=True) for line in pair]
        )


# --- packed proofs -------------------------------------------------------------------------------


def test_of_a_proof_that_unpacks_to_one_endless_line_little_is_unpacked(
    attacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[int] = []

    class Counting:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.unpacker = unpack(*arguments, **options)

        def decompress(self, content: bytes, most: int) -> bytes:
            piece = self.unpacker.decompress(content, most)
            unpacked.append(len(piece))
            return piece

        def __getattr__(self, name: str) -> Any:
            return getattr(self.unpacker, name)

    unpack = lzma.LZMADecompressor
    monkeypatch.setattr(check.lzma, "LZMADecompressor", Counting)
    packer = lzma.LZMACompressor(preset=0)
    content = b"".join(packer.compress(b"1" * 2**20) for _ in range(40)) + packer.flush()
    (attacked / "proof.lrat.xz").write_bytes(content)
    assert reason(attacked) == "proof: a line is too long"
    assert check.MAX_LINE < sum(unpacked) <= check.MAX_LINE + 2**20


def test_a_proof_that_unpacks_to_too_much_is_rejected(
    attacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MAX_PROOF", 2**17)
    number = 10**6
    write_proof(attacked, [b"%d 5 -5 0 1 0\n" % (number + i) for i in range(20_000)])
    monkeypatch.setattr(check, "check_proof", lambda *arguments: len(list(arguments[2])))
    assert reason(attacked).startswith("proof is longer than")


def test_trailing_data_after_the_packed_proof_is_rejected(attacked: Path) -> None:
    path = attacked / "proof.lrat.xz"
    path.write_bytes(path.read_bytes() + b"more")
    assert reason(attacked) == "proof: something follows the packed file"


def test_a_packed_file_that_needs_much_memory_is_rejected(attacked: Path) -> None:
    small = {"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**16}
    text = b"".join(proof_lines(attacked))
    content = bytearray(lzma.compress(text, filters=[small]))
    # The header gives the size of the dictionary: claim half a gigabyte, with a valid checksum.
    header = 12
    size = (content[header] + 1) * 4
    at = content.index(b"\x21\x01", header) + 2
    content[at] = 34
    checksum = zlib.crc32(bytes(content[header : header + size - 4]))
    content[header + size - 4 : header + size] = checksum.to_bytes(4, "little")
    (attacked / "proof.lrat.xz").write_bytes(content)
    assert "cannot be unpacked" in reason(attacked)


@pytest.mark.parametrize("form", ["gzip", "lzma", "text"])
def test_other_packings_are_rejected(form: str, attacked: Path) -> None:
    text = b"".join(proof_lines(attacked))
    content = {
        "gzip": gzip.compress(text),
        "lzma": lzma.compress(text, format=lzma.FORMAT_ALONE),
        "text": text,
    }[form]
    (attacked / "proof.lrat.xz").write_bytes(content)
    assert "cannot be unpacked" in reason(attacked)


# --- the program ---------------------------------------------------------------------------------


def run(*arguments: str, limit: int = 700) -> subprocess.CompletedProcess[str]:
    """Run the file by itself, without site packages, and with this many megabytes of memory."""
    program = (
        "import resource, runpy, sys;"
        f"resource.setrlimit(resource.RLIMIT_AS, ({limit} << 20,) * 2);"
        "sys.argv = sys.argv[1:];"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(check.__file__), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_file_runs_by_itself(valid: dict[str, Path]) -> None:
    for directory in valid.values():
        ended = run(str(directory))
        assert ended.returncode == 0, ended
        assert ended.stdout.startswith("ACCEPTED: ")
        assert ended.stdout.count("\n") == 1


def test_it_says_why_it_rejects(attacked: Path) -> None:
    write_proof(attacked, proof_lines(attacked)[:-2])
    ended = run(str(attacked))
    assert ended.returncode == 1
    assert ended.stdout == "REJECTED: proof: the empty clause is missing\n"
    assert not ended.stderr


def test_one_rejection_among_several_exits_with_1(valid: dict[str, Path], attacked: Path) -> None:
    (attacked / "schedule.json").unlink()
    ended = run(str(valid["load"]), str(attacked), str(valid["path"]))
    assert ended.returncode == 1
    verdicts = [line.split(":")[0] for line in ended.stdout.splitlines()]
    assert verdicts == ["ACCEPTED", "REJECTED", "ACCEPTED"]


def test_wrong_usage_exits_with_2() -> None:
    assert run().returncode == 2


def test_it_imports_only_the_standard_library() -> None:
    tree = ast.parse(Path(check.__file__).read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(str(node.module).split(".")[0])
    assert names <= sys.stdlib_module_names


HUGE: dict[str, Callable[[], str]] = {
    "many keys": lambda: "{" + ",".join(f'"k{i}": 0' for i in range(600_000)) + "}",
    "deep": lambda: "[" * 8_000_000,
    "long number": lambda: '{"makespan": ' + "9" * 8_000_000 + "}",
    "wide list": lambda: "[" + "0," * 4_000_000 + "0]",
    "large": lambda: " " * 2**24,
}


@pytest.mark.parametrize("name", ["certificate.json", "schedule.json"])
@pytest.mark.parametrize("kind", HUGE)
def test_huge_files_are_rejected_in_little_memory(kind: str, name: str, attacked: Path) -> None:
    (attacked / name).write_text(HUGE[kind]())
    ended = run(str(attacked))
    assert ended.returncode == 1, ended
    assert ended.stdout.startswith("REJECTED: ")
    assert not ended.stderr


# --- bombs: small files that ask for much time or memory ------------------------------------------

#: Whole numbers and fractions whose numerators are multiples of this all have the hash 0.
PRIME = 2**61 - 1


def long_number(digits: int, seed: int = 0) -> str:
    return f"9{random.Random(seed).randrange(10 ** (digits - 1)):0{digits - 1}}"


def bomb(
    directory: Path,
    instance: dict[str, Any],
    start: list[int],
    device: str = "d0",
    *,
    claim: int = 1,
    tier: str = "lrat",
    transfers: list[dict[str, Any]] | None = None,
    placement: dict[str, str] | None = None,
    proof: bytes = b"",
) -> Path:
    """Write a certificate, by default with everything on one device."""
    names = [vertex["name"] for vertex in instance["vertices"]]
    schedule = {
        "placement": placement or dict.fromkeys(names, device),
        "start": dict(zip(names, start, strict=True)),
        "transfers": transfers or [],
    }
    text = json.dumps({"format": "optpart-instance/1", "name": "bomb", **instance}).encode()
    certificate = {
        "format": check.FORMAT,
        "instance": "bomb",
        "instance_sha256": hashlib.sha256(text).hexdigest(),
        "makespan": claim,
        "tier": tier,
        "ticks_per_unit": 1,
        "record": {},
    }
    if tier == "lrat":
        certificate["record"] = {
            "encoding": "order/1", "loads": [], "multipliers": [], "memory_scale": 1
        }  # fmt: skip
    directory.mkdir()
    (directory / "instance.json").write_bytes(text)
    (directory / "certificate.json").write_text(json.dumps(certificate))
    result = {"format": "optpart-result/1", "schedule": schedule}
    (directory / "schedule.json").write_text(json.dumps(result, separators=(",", ":")))
    if proof:
        (directory / "proof.lrat.xz").write_bytes(proof)
    return directory


def devices(count: int) -> list[dict[str, Any]]:
    return [{"name": f"d{d}"} for d in range(count)]


def fan(count: int) -> list[list[Any]]:
    """Return edges from ``a`` to ``b``, one per output."""
    return [["a", "b", output] for output in range(count)]


def a_weight_far_above_its_limit(place: Path, weight: int = 120_000_000_000) -> Path:
    vertices = [{"name": "a", "ops": 1, "memory": weight}, {"name": "b", "ops": 1}]
    limited = [{"name": "d0"}, {"name": "d1", "memory": 1}]
    model = {"memory": "estimate"}
    instance = {"vertices": vertices, "devices": limited, "model": model}
    return bomb(place, instance, [0, 1], claim=2)


def a_long_name_for_every_transfer(place: Path) -> Path:
    count, name = 20_000, "x" * 3_000_000
    vertices = [{"name": "a", "outputs": [0] * count}, {"name": "b"}]
    named = [{"name": name}, {"name": "d"}]
    model = {"communication": "port"}
    instance = {"vertices": vertices, "devices": named, "edges": fan(count), "model": model}
    transfers = [
        {"tensor": ["a", output], "to": "d", "start": 0, "end": 0} for output in range(count)
    ]
    placement = {"a": name, "b": "d"}
    return bomb(place, instance, [0, 0], transfers=transfers, placement=placement)


def sizes_of_one_hash(place: Path) -> Path:
    count = 60_000
    sizes = [i * PRIME for i in range(count)]
    vertices = [{"name": "a", "outputs": sizes}, {"name": "b", "ops": 1}]
    instance = {"vertices": vertices, "devices": devices(1), "edges": fan(count)}
    return bomb(place, instance, [0, 0], tier="path")


def allowed_devices_of_one_hash(place: Path) -> Path:
    allowed = [i * PRIME for i in range(200_000)]
    return bomb(
        place, {"vertices": [{"name": "a", "devices": allowed}], "devices": devices(1)}, [0]
    )


def starts_of_one_hash(place: Path) -> Path:
    names = [f"v{i}" for i in range(50_000)]
    vertices = [{"name": "a", "outputs": [1]}, *({"name": name} for name in names)]
    edges = [["a", name, 0] for name in names]
    limited = [{"name": "d0", "memory": 1}]
    model = {"memory": "edges"}
    instance = {"vertices": vertices, "devices": limited, "edges": edges, "model": model}
    return bomb(place, instance, [i * PRIME for i in range(len(vertices))])


def lemmas_of_one_hash(place: Path) -> Path:
    vertices = [{"name": "a", "ops": 1}, {"name": "b", "ops": 1}]
    lines = b"".join(b"%d -3 2 0 1 0\n" % (i * PRIME) for i in range(1, 200_000))
    instance = {"vertices": vertices, "devices": devices(1)}
    return bomb(place, instance, [0, 9], claim=10, proof=lzma.compress(lines, preset=0))


def denominators_of_memory(place: Path) -> Path:
    vertices = [{"name": f"v{i}", "memory": f"1/{long_number(390, i)}"} for i in range(15_000)]
    model = {"memory": "estimate"}
    instance = {"vertices": vertices, "devices": [{"name": "d0", "memory": 1}], "model": model}
    return bomb(place, instance, [0] * len(vertices))


def denominators_of_sizes(place: Path) -> Path:
    count = 12_000
    sizes = [f"1/{long_number(390, i)}" for i in range(count)]
    vertices = [{"name": "a", "ops": 1, "outputs": sizes}, {"name": "b"}]
    instance = {"vertices": vertices, "devices": devices(1), "edges": fan(count)}
    return bomb(place, instance, [0, 5])


def millions_of_outputs(place: Path) -> Path:
    vertices = [{"name": "a", "outputs": [0] * 1_700_000}]
    return bomb(place, {"vertices": vertices, "devices": devices(1)}, [0])


def digits_of_run_times(place: Path) -> Path:
    vertices = [{"name": f"v{i}", "ops": f"0.{long_number(390, i)}e-299"} for i in range(300)]
    fast = [{"name": f"d{d}", "speed": f"{long_number(390, d)}e299"} for d in range(500)]
    return bomb(place, {"vertices": vertices, "devices": fast}, [0] * len(vertices))


def digits_of_delays(place: Path) -> Path:
    sizes = [f"0.{long_number(390, i)}e-299" for i in range(7)]
    vertices = [{"name": "a", "ops": 1, "outputs": sizes}, {"name": "b", "ops": 1}]
    instance = {
        "vertices": vertices,
        "devices": devices(500),
        "edges": fan(7),
        "bandwidth": f"{long_number(390)}e299",
        "latency": f"0.{long_number(390, 8)}e-299",
    }
    return bomb(place, instance, [0, 1], claim=2, tier="path")


def digits_of_ticks(place: Path) -> Path:
    vertices = [{"name": "a", "ops": 1, "outputs": list(range(312))}, {"name": "b", "ops": 1}]
    instance = {"vertices": vertices, "devices": devices(80), "edges": fan(312), "latency": 1}
    directory = bomb(place, instance, [0, 1], claim=2, tier="path")
    replace(directory / "certificate.json", ticks_per_unit="9" * 390 + "e299")
    return directory


def a_proof_of_one_long_line(place: Path) -> Path:
    vertices = [{"name": "a", "ops": 1}, {"name": "b", "ops": 1}]
    line = b"9 " + b"300 " * 2**22 + b"0 1 0\n"
    instance = {"vertices": vertices, "devices": devices(1)}
    return bomb(place, instance, [0, 9], claim=10, proof=lzma.compress(line, preset=0))


def a_proof_packed_badly(place: Path) -> Path:
    instance = {"vertices": [{"name": "a", "ops": 1}], "devices": devices(1)}
    directory = bomb(place, instance, [9], claim=10)
    (directory / "proof.lrat.xz").touch()
    os.truncate(directory / "proof.lrat.xz", check.MAX_PACKED + 1)
    return directory


BOMBS: dict[Callable[[Path], Path], str] = {
    a_weight_far_above_its_limit: "REJECTED: proof.lrat.xz cannot be read",
    a_long_name_for_every_transfer: "REJECTED: the schedule takes 0, not 1",
    sizes_of_one_hash: "ACCEPTED",
    allowed_devices_of_one_hash: "REJECTED: name of a device is not text",
    starts_of_one_hash: "REJECTED: schedule: a device exceeds its memory",
    lemmas_of_one_hash: "REJECTED: proof: number 2305843009213693951 is larger than",
    denominators_of_memory: "REJECTED: numbers have too many different denominators",
    denominators_of_sizes: "REJECTED: the schedule takes 5, not 1",
    millions_of_outputs: "REJECTED: takes too much memory to check",
    digits_of_run_times: "REJECTED: schedule: two things at a time",
    digits_of_delays: "REJECTED: takes too long to check",
    digits_of_ticks: "REJECTED: more than 2^2048 ticks",
    a_proof_of_one_long_line: "REJECTED: proof: a line is too long",
    a_proof_packed_badly: "REJECTED: proof.lrat.xz is longer than",
}


@pytest.mark.parametrize(("make", "verdict"), BOMBS.items(), ids=[make.__name__ for make in BOMBS])
def test_a_bomb_gets_its_verdict_in_little_time_and_memory(
    make: Callable[[Path], Path], verdict: str, tmp_path: Path
) -> None:
    ended = run(str(make(tmp_path / "bomb")))
    assert ended.stdout.startswith(verdict), ended


def test_the_bomb_by_weight_has_less_than_a_thousand_bytes(tmp_path: Path) -> None:
    place = a_weight_far_above_its_limit(tmp_path / "bomb")
    assert sum(path.stat().st_size for path in place.iterdir()) < 1000


def test_a_weight_above_its_limit_is_ruled_out_by_the_formula(tmp_path: Path) -> None:
    """It is not part of the count, but it is not ignored either."""
    place = a_weight_far_above_its_limit(tmp_path / "bomb", 10**6)
    problem = check.Problem(check.read_json((place / "instance.json").read_bytes(), "instance"))
    windows = check.Windows(problem, Fraction(1), Fraction(2))
    record = json.loads((place / "certificate.json").read_text())["record"]
    code = check.Encoding(windows, record)
    assert list(check.clauses(code, [check.memory])) == [[-code.place(0, 1)]]


def test_lemmas_are_kept_packed() -> None:
    """As a tuple of Python integers, the literals would take a megabyte."""
    formula = small_formula()
    tracemalloc.start()
    formula.add(5, list(range(1000, 31_000)))
    assert tracemalloc.get_traced_memory()[0] < 200_000
    tracemalloc.stop()
    assert list(formula.clause(5)) == list(range(1000, 31_000))
