"""Every place that may change files is known, with the reason why no file of a user is lost."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import optpart

ROOT = Path(optpart.__file__).parent

#: Functions of any module or object that change files, or let others do so.
_CHANGING = {
    "NamedTemporaryFile", "Popen", "Scratch", "TemporaryDirectory", "TemporaryFile",
    "_open_for_write", "check_call", "check_output", "chmod", "chown", "copy2", "copyfile",
    "copytree", "extract", "extractall", "fchmod", "fchown", "fdopen", "ftruncate", "hardlink_to",
    "lchmod", "lchown", "makedirs", "mkdir", "mkdtemp", "mkfifo", "mknod", "mkstemp",
    "new_folder", "removedirs", "renameat2", "renames", "rmdir", "rmtree", "save_model", "savefig",
    "savetxt", "savez", "savez_compressed", "symlink", "symlink_to", "system", "tofile", "touch",
    "truncate", "unlink", "utime", "writeLP", "writeMPS", "write_bytes", "write_text",
}  # fmt: skip
#: The same, of these modules only.
_OF_MODULES = {
    "mmap": {"mmap"},
    "np": {"memmap", "save"},
    "onnx": {"save", "save_tensor"},
    "os": {"link", "open", "remove", "rename", "replace"},
    "shutil": {"copy", "move"},
    "sqlite3": {"connect"},
    "subprocess": {"call", "run"},
}
#: What opens files, with the position of the mode; that of methods is the first.
_OPENING = {"open": 1, "io.open": 1, "gzip.open": 1, "bz2.open": 1, "lzma.open": 1,
            "tarfile.open": 1, "zipfile.ZipFile": 1}  # fmt: skip

_NEW = "a new file in a folder that is being built, or in a temporary one"
_KIND = "writes only what states its kind: another kind is refused"
_MEMORY = "no file, but a buffer or a descriptor"
_CHILD = "starts optpart's own programs, which are in this list, too"

#: All places by reason, as ``file function change``.
HELD = {
    _KIND: """
        study/archive.py Archive.add write_bytes ×2
        commands/devices.py _detect write_text
        commands/gap.py _gap_by_axis write_text
        commands/gap.py gap.write write_text
        commands/reduce.py _write write_text
        exporters/linear_program.py write write_text
        exporters/onnx_layers.py write write_bytes
        exporters/registry.py export write_text
        exporters/tensorflow.py write write_bytes
        base/files.py write_text write_bytes
        interop/formats/calibration_toml.py write write_text
        interop/formats/cluster_toml.py write write_text
        interop/formats/native.py write write_text
        interop/formats/result.py write write_text
        interop/formats/saga.py write write_text
        interop/formats/thesis_csv.py write write_text ×2
        interop/formats/wfformat.py write write_text
        methods/bounds_in_rounds.py BoundsFile._write write_text
        exact/pipeline/plan_file.py write_plan write_text
        applications/recompute/recompute.py write write_text
        applications/serving/apart/apart.py write write_text
        applications/serving/serve.py write write_text
        applications/reductions/picture.py draw write_bytes
        study/report/html/page.py write_report write_text
        study/report/html/leaderboard.py write_leaderboard write_text
        study/report/html/lesson.py write_lesson write_text
        study/report/picture.py write_picture write_bytes
        search/checkpoint.py write write_text
        applications/training/graph_file.py write write_text
        applications/training/profile.py write write_text
        applications/training/strategy_file.py write write_text
        training_api.py export_strategy write_text
    """,
    "replaces only a folder that its manifest lists": """
        certificates/certify.py _write new_folder
        certificates/proof_files.py write new_folder
        exporters/onnx_parts.py write new_folder
        study/dataset.py write_drawn new_folder
        study/report/paper/folder.py write_folder new_folder
        applications/training/bounds/certificate.py write_certificate new_folder
        base/folders.py _exchange renameat2
        base/folders.py _put chmod
        base/folders.py _put os.rename ×4
        base/folders.py _put shutil.rmtree
    """,
    _NEW: """
        study/archive.py unpack write_bytes ANY
        certificates/certify.py _write write_bytes ANY
        certificates/proof_files.py write write_bytes ANY
        certificates/sat.py main open w+b
        certificates/sat.py main write_bytes
        certificates/sat.py refute write_bytes
        base/children/watchdog.py _watch write_text
        base/children/watchdog.py main open wb
        exact/milp_worker.py _cbc writeMPS
        exact/minizinc.py _answers write_text
        exporters/linear_program_writer.py _text writeLP
        exporters/linear_program_writer.py _text writeMPS
        exporters/onnx_parts.py _save save_model
        exporters/onnx_parts.py _save write_bytes ANY
        exporters/onnx_parts.py write shutil.copyfile
        exporters/onnx_parts.py write write_text ANY
        base/folders.py new_folder mkdir
        base/folders.py new_folder write_text ANY
        study/dataset.py write_drawn write_text ANY
        study/report/paper/folder.py write_folder write_bytes ANY
        placing/torch_modules.py place_module tempfile.TemporaryDirectory
        applications/training/bounds/certificate.py write_certificate write_text ANY
    """,
    "a temporary folder with a random name, which is made new and removed with all in it": """
        study/archive.py _certified Scratch
        study/archive.py judged Scratch
        study/archive.py unpack unlink
        certificates/sat.py refute Scratch
        base/children/watchdog.py main shutil.rmtree
        base/children/scratch.py Scratch.__enter__ mkdir
        base/children/scratch.py Scratch.__exit__ shutil.rmtree
        exact/milp_worker.py _cbc Scratch
        exact/minizinc.py _answers Scratch
        exporters/linear_program_writer.py _text Scratch
        methods/program.py _method.run Scratch
        base/folders.py new_folder Scratch
    """,
    "a new file without a name, or with a random one that must not exist": """
        base/files.py _fill os.fchmod
        base/files.py _fill os.fchown
        base/files.py _write_unnamed os.fdopen
        base/files.py _write_unnamed os.link
        base/files.py _write_unnamed os.open
        base/files.py try_beside tempfile.TemporaryFile
        base/files.py write_bytes open xb
        base/files.py write_bytes unlink
    """,
    "the file to write, after it was found to be absent or of the same kind": """
        base/files.py write_bytes os.replace
    """,
    "a lock, which is removed only if it has the content of locks": """
        base/files.py _locked os.open ×2
        base/files.py held unlink
    """,
    "a store, which is known by its header before SQLite opens it; rows are added": """
        study/store.py Store.__init__ sqlite3.connect
    """,
    "opened for reading only": """
        methods/bounds_in_rounds.py opened open w
        exporters/onnx_layers.py _is_annotated mmap
        interop/formats/nsys.py read sqlite3.connect
        interop/formats/pytorch.py _document open w
        study/store.py _opened sqlite3.connect
    """,
    _MEMORY: """
        study/archive.py pack open w
        base/children/caller.py Caller.__init__ os.fdopen ×2
        applications/reductions/picture.py draw savefig
        study/report/picture.py render savefig
        base/terminal.py _occupy_standard_descriptors os.open
        base/terminal.py abandon os.open
        base/terminal.py prepare open w
    """,
    _CHILD: """
        base/children/watchdog.py main subprocess.Popen
        base/children/scratch.py Scratch.__enter__ spawn
        base/children/worker.py spawn subprocess.Popen
        base/children/worker.py Worker.__init__ spawn
        kernels/all.py _made subprocess.Popen
        kernels/all.py expect subprocess.Popen
    """,
    "a folder that may be there already, and stays as it is": """
        study/archive.py Archive.held mkdir
    """,
    "programs that only measure or list devices, and write nothing": """
        interop/costs/detection.py _listed subprocess.run
        interop/costs/detection.py _measured subprocess.run
    """,
    "machine code, in folders of its own, under names that end with a digest": """
        kernels/store.py _opened mkdir
        kernels/store.py _opened os.open
        kernels/store.py prune unlink
        kernels/store.py save mkdir
        kernels/store.py save replace
        kernels/store.py save unlink
        kernels/store.py save write_bytes
    """,
    "not optpart: the script beside exported parts, which writes the file that its user names": """
        exporters/onnx_runner.py savez
    """,
}


def changes(call: ast.Call) -> str | None:
    """Return how a call may change files, or ``None``."""
    name = ast.unparse(call.func)
    owner, _, last = name.rpartition(".")
    if last in _CHANGING or last in _OF_MODULES.get(owner, ()) or name in ("mmap", "spawn"):
        said = name if owner in ("os", "shutil", "subprocess", "tempfile", "sqlite3") else last
        return f"{said} ANY" if any(ast.unparse(each) == "ANY" for each in call.args) else said
    if last in ("rename", "replace") and owner and len(call.args) == 1 and not call.keywords:
        return last  # of a path; a text takes two arguments
    if last == "open" or name in _OPENING:
        at = _OPENING.get(name, 0)
        mode = [each.value for each in call.keywords if each.arg == "mode"] + call.args[at : at + 1]
        if mode and not isinstance(mode[0], ast.Constant):
            return "open w"  # for all we know
        if mode and set(str(ast.literal_eval(mode[0]))) & set("wax+"):
            return f"open {ast.literal_eval(mode[0])}"
    return None


def places(tree: ast.AST, function: str = "") -> Iterator[str]:
    """Yield function and change of every call that may change files."""
    for node in ast.iter_child_nodes(tree):
        inner = function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call) and (how := changes(node)) is not None:
            yield f"{function} {how}".lstrip()
        yield from places(node, inner)


def test_every_place_that_may_change_files_is_known() -> None:
    """Add a new one to ``HELD``, once you know why no file of a user can be lost there."""
    found = {
        f"{path.relative_to(ROOT).as_posix()} {place}" + (f" ×{count}" if count > 1 else "")
        for path in ROOT.rglob("*.py")
        for place, count in Counter(places(ast.parse(path.read_text(encoding="utf-8")))).items()
    }
    known = [line.strip() for lines in HELD.values() for line in lines.strip().splitlines()]
    assert found - {*known} == set()
    assert {*known} - found == set()
    assert len({*known}) == len(known)


@pytest.mark.parametrize(
    "line",
    [
        "open(p, 'w')", "open(p, mode='ab')", "open(p, mode)", "p.open('r+')", "p.write_text(t)",
        "write_text(p, t, KIND)", "p.unlink()", "os.remove(p)", "shutil.rmtree(p)", "p.rename(q)",
        "p.replace(q)", "os.replace(p, q)", "p.mkdir()", "sqlite3.connect(p)", "os.open(p, f)",
        "subprocess.run(c)", "shutil.move(p, q)", "os.truncate(p, 0)", "p.symlink_to(q)",
    ],
)  # fmt: skip
def test_such_a_place_is_found(line: str) -> None:
    assert [*places(ast.parse(f"def f():\n    {line}"))]


@pytest.mark.parametrize(
    "line",
    [
        "open(p)",
        "open(p, 'rb')",
        "p.open()",
        "t.replace('a', 'b')",
        "replace(x, y=1)",
        "l.remove(x)",
    ],
)
def test_what_changes_no_file_is_not(line: str) -> None:
    assert not [*places(ast.parse(line))]
