"""The dependencies of a measurement: the code that it runs, determined without running it.

Modules count by their syntax trees, so comments, docstrings and formatting do not matter, and under
logical names, so moving a module does not matter either.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Modules that have moved, by the path that they had, without ``optpart.``. The logical name of a
#: module is its path after the first move, so that a module not listed is called by its path. One
#: that moves again gets another row, with the same name on the right.
MOVED = {
    "audit": "study.audit",
    "axis": "study.attribution",
    "bounds.search": "bounds.bisection",
    "bounds.solver": "methods.solver_bound",
    "check": "report.verification",
    "cluster": "problem.cluster",
    "compiled": "kernels.compiled",
    "exact.given": "exact.given_order",
    "exact.memory_model": "exact.memory",
    "exact.timing": "exact.retiming",
    "explicit": "ordering.explicit",
    "feasibility": "problem.feasibility",
    "gap": "study.gap",
    "goal": "solution.goal",
    "graph": "problem.graph",
    "heap": "kernels.heap",
    "instance": "problem.instance",
    "kernel_cache": "kernels.cache",
    "library": "study.library",
    "methods": "methods.registry",
    "metrics": "solution.metrics",
    "partition.base": "strategies.base",
    "rational": "problem.rational",
    "result": "solution.result",
    "schedule": "solution.schedule",
    "scratch": "children.scratch",
    "solution.audit": "study.audit",
    "search.anneal": "search.annealer",
    "search.change": "search.incremental",
    "search.draw": "kernels.rng",
    "search.freed": "search.destroy",
    "search.reinsert": "search.repair",
    "simulate": "strategies.simulator",
    "start": "methods.starts",
    "tasks": "kernels.tasks",
    "ticks": "kernels.ticks",
    "verify": "solution.verifier",
}
#: Packages that have moved with all that is in them and is not in :data:`MOVED`.
MOVED_PACKAGES = {
    "partition": "strategies.partition",
    "scheduling": "strategies.scheduling",
    "sweep": "study",
}
#: Where methods are looked up by name; see :class:`Needs`.
REGISTRY = f"optpart.{MOVED['methods']}"
#: Where instances are looked up by name.
LIBRARY = f"optpart.{MOVED['library']}"

#: Where code of this repository lies.
_PACKAGES = ("optpart", "bench")
_NAMED = re.compile(r"(optpart(?:\.\w+)+)(:\w+)?")

_NAMING = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
)  # fmt: skip

#: Source by path from the root of the repository; ``None`` where there is no such file.
Reader = Callable[[str], str | None]


def logical(module: str) -> str:
    """Return the logical name of a module, which does not change when the module moves."""
    package, _, path = module.partition(".")
    if package != "optpart":
        return module
    if path in MOVED:
        return f"{package}.{MOVED[path]}"
    first, dot, rest = path.partition(".")
    return f"{package}.{MOVED_PACKAGES.get(first, first)}{dot}{rest}" if first else module


@cache
def checkout(path: str) -> str | None:
    """Read a file of this checkout."""
    place = ROOT / path
    return place.read_text(encoding="utf-8") if place.is_file() else None


def at_commit(commit: str) -> Reader:
    """Return a reader of the files of a commit.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If there is no git, or no such commit.
    """
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit, *_PACKAGES],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.name.endswith(".py") and (stream := tar.extractfile(member)) is not None:
                files[member.name] = stream.read().decode()
    return files.get


@dataclass(frozen=True)
class Needs:
    """The dependencies of a result besides the parameters of the run.

    Attributes
    ----------
    roots : tuple of str
        Modules that the run starts from; what they import counts as well. ``module:name`` is one
        definition at the top of a module, with what it uses of the others there.
    methods : tuple of str, optional
        Names under which the run reaches methods through the registry: of its tables only these
        entries count and are followed. ``None`` for all.
    without : tuple of str
        Logical names of modules that the run only looks something up in.
    packages : tuple of str
        Installed packages whose version matters.
    files : tuple of Path
        Data that is part of the repository.
    options : str
        Anything else.
    """

    roots: tuple[str, ...]
    methods: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    options: str = ""


@dataclass
class Code:
    """The code of the repository, as seen by a reader."""

    read: Reader = checkout
    _digests: dict[Needs, str] = field(default_factory=dict)
    _trees: dict[tuple[str, tuple[str, ...] | None], tuple[str, frozenset[str]]] = field(
        default_factory=dict
    )

    def digest(self, needs: Needs) -> str:
        """Return a digest of all code that is run from the roots, and of the data files."""
        if needs not in self._digests:
            whole = hashlib.sha256()
            for name, tree in sorted(self._trees_of(needs)):
                whole.update(f"{name}\n{hashlib.sha256(tree.encode()).hexdigest()}\n".encode())
            whole.update(needs.options.encode())
            for path in needs.files:
                whole.update(hashlib.sha256(path.read_bytes()).digest())
            self._digests[needs] = whole.hexdigest()
        return self._digests[needs]

    def modules(self, needs: Needs) -> list[str]:
        """Return the logical names of all modules that count."""
        return sorted(name for name, _ in self._trees_of(needs))

    def _trees_of(self, needs: Needs) -> Iterator[tuple[str, str]]:
        seen: set[str] = set()
        left = list(needs.roots)
        for root in left:
            if self._file(root.partition(":")[0]) is None:
                raise ModuleNotFoundError(f"no module {root}")
        while left:
            root = left.pop()
            module, colon, name = root.partition(":")
            if root in seen or module in seen or logical(module) in needs.without:
                continue
            seen.add(root)
            tree, imported = self._module(root, needs.methods)
            left += imported
            if tree:
                yield logical(module) + colon + name, tree

    def _module(self, root: str, methods: tuple[str, ...] | None) -> tuple[str, frozenset[str]]:
        """Return the normal form of a module, and which modules it imports or names."""
        module, _, name = root.partition(":")
        only = methods if logical(module) == REGISTRY else None
        if (root, only) not in self._trees:
            path = self._file(module)
            tree = ast.parse(self.read(path) or "") if path else ast.Module([], [])
            _WithoutDocstrings().visit(tree)
            if only is not None:
                _Entries(only).visit(tree)
            if name:
                tree = _slice(tree, name)
            package = module if path and path.endswith("__init__.py") else module.rpartition(".")[0]
            normal = _Normal(self, package, _aliases(self, tree, package))
            normal.visit(tree)
            shown = _shown(tree) if tree.body else ""
            self._trees[root, only] = shown, frozenset(normal.imported)
        return self._trees[root, only]

    def _file(self, module: str) -> str | None:
        """Return the file of a module of this repository."""
        stem = module.replace(".", "/")
        names = (f"{stem}.py", f"{stem}/__init__.py")
        return next((name for name in names if self.read(name) is not None), None)

    def is_module(self, name: str) -> bool:
        """Whether a dotted name is a module of this repository with code in it."""
        return name.partition(".")[0] in _PACKAGES and self._file(name) is not None

    @cached_property
    def exported(self) -> dict[str, str]:
        """Modules by the name under which ``optpart`` itself offers something of theirs."""
        tree = ast.parse(self.read("optpart/__init__.py") or "")
        return {
            str(key.value): "optpart." + str(value.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Dict)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
        }


class _WithoutDocstrings(ast.NodeTransformer):
    """Removes docstrings and the strings that document attributes."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [one for one in body if not _is_string(one)]
            empty = [] if isinstance(node, ast.Module) else [ast.Pass()]
            node.body = kept or empty  # type: ignore[attr-defined]
        return node


def _is_string(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


class _Entries(ast.NodeTransformer):
    """Removes registry entries that a run does not use, and the descriptions of the others."""

    def __init__(self, methods: Iterable[str]) -> None:
        self.methods = set(methods)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        items = [
            (key, value if not _names_module(value) else _Undescribed().visit(value))
            for key, value in zip(node.keys, node.values, strict=True)
            if not (_names_module(value) and isinstance(key, ast.Constant))
            or key.value in self.methods
        ]
        node.keys, node.values = [key for key, _ in items], [value for _, value in items]
        return node


class _Undescribed(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        prose = isinstance(node.value, str) and " " in node.value
        return ast.Constant("") if prose else node


def _slice(tree: ast.Module, name: str) -> ast.Module:
    """Return the statements of a module that the definition of a name uses, itself included."""
    of: dict[str, list[int]] = {}
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                one = copy(statement)
                one.names = [alias]
                of.setdefault((alias.asname or alias.name).partition(".")[0], []).append(len(body))
                body.append(one)
            continue
        for bound in _bound(statement):
            of.setdefault(bound, []).append(len(body))
        body.append(statement)
    if name not in of:
        raise ModuleNotFoundError(f"nothing is called {name}")
    kept: set[int] = set()
    left, seen = [name], set[str]()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for number in of.get(name, ()):
            kept.add(number)
            left += [one.id for one in ast.walk(body[number]) if isinstance(one, ast.Name)]
    return ast.Module([body[number] for number in sorted(kept)], [])


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _names_module(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Constant)
        and isinstance(one.value, str)
        and _NAMED.fullmatch(one.value) is not None
        for one in ast.walk(node)
    )


def _aliases(code: Code, tree: ast.AST, package: str) -> dict[str, str]:
    """Return the names that refer to modules throughout a file, and to nothing else."""
    found: dict[str, str] = {}
    other: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            source = _source(node, package)
            for name in node.names:
                own, module = name.asname or name.name, f"{source}.{name.name}"
                if code.is_module(module) and found.get(own, module) == module:
                    found[own] = module
                else:
                    other.add(own)
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.asname and code.is_module(name.name):
                    found[name.asname] = name.name
                else:
                    other.add((name.asname or name.name).partition(".")[0])
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            other.add(node.id)
        elif isinstance(node, ast.arg):
            other.add(node.arg)
        elif isinstance(node, _NAMING) and node.name:
            other.add(node.name)
    return {own: logical(module) for own, module in found.items() if own not in other}


def _source(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name of the module that is imported from."""
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join((*above, *([node.module] if node.module else [])))


class _Normal(ast.NodeTransformer):
    """Replaces module names by logical names, and records the modules that are run."""

    def __init__(self, code: Code, package: str, aliases: dict[str, str]) -> None:
        self.code, self.package, self.aliases = code, package, aliases
        self.imported: set[str] = set()

    def generic_visit(self, node: ast.AST) -> ast.AST:
        known = set(self.imported)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, list(self._sorted(block)))
        super().generic_visit(node)
        if isinstance(node, ast.If) and _is_type_checking(node.test) and not node.orelse:
            self.imported = known  # never run: it counts as text only
        return node

    def _sorted(self, block: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Sort successive imports, since their order depends on the names of modules."""
        run: list[ast.stmt] = []
        for statement in block:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                run += self._single(statement)
                continue
            yield from sorted(run, key=_shown)
            run = []
            yield statement
        yield from sorted(run, key=_shown)

    def _single(self, node: ast.Import | ast.ImportFrom) -> Iterator[ast.stmt]:
        """Split an import into one for each name."""
        for name in node.names:
            if isinstance(node, ast.Import):
                module = self._named(name.name)
                asname = None if name.asname in self.aliases else name.asname
                yield ast.Import([ast.alias(module, asname)])
                continue
            source = _source(node, self.package)
            whole = f"{source}.{name.name}"
            if self.code.is_module(whole):
                own = name.asname or name.name
                yield ast.Import(
                    [ast.alias(self._named(whole), None if own in self.aliases else own)]
                )
                continue
            if source == "optpart" and name.name in self.code.exported:
                source = self.code.exported[name.name]
            if source.startswith("bench."):  # of a bench only what is used
                self.imported.add(f"{source}:{name.name}")
                yield ast.ImportFrom(source, [name], 0)
            else:
                yield ast.ImportFrom(self._named(source), [name], 0)

    def _named(self, module: str) -> str:
        if self.code.is_module(module):
            self._follow(module)
        return logical(module)

    def _follow(self, module: str) -> None:
        """Note a module and the packages that it is in; ``optpart`` itself only offers names."""
        while "." in module:
            if self.code.is_module(module):
                self.imported.add(module)
            module = module.rpartition(".")[0]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "optpart":
            self._follow(self.code.exported.get(node.attr, f"optpart.{node.attr}"))
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.aliases.get(node.id, node.id), node.ctx)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and (match := _NAMED.fullmatch(node.value)):
            return ast.Constant(self._named(match[1]) + (match[2] or ""))
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return node  # done with the block that it is in

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return node


def _shown(node: object) -> str:
    """Return a tree as text that, unlike :func:`ast.dump`, is the same in every Python version."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({', '.join(f'{n}={_shown(v)}' for n, v in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_shown, node))}]"
    return repr(node)


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
