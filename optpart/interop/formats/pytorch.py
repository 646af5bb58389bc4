"""Models that ``torch.export.save`` wrote (``.pt2``), read without PyTorch.

The file is a zip archive. Since PyTorch 2.8 it has a folder with ``models/NAME.json`` and tensors
under ``data/``; before, ``serialized_exported_program.json`` and tensors beside it. Only the JSON
document is read. It is an ``ExportedProgram`` of PyTorch's schema
(``torch/_export/serde/schema.py``) of a major version from 5 to 8::

    {"schema_version": {"major": 8, "minor": 17},
     "range_constraints": {"s0": {"min_val": 2, "max_val": 64}},
     "graph_module": {
      "signature": {"input_specs": [{"parameter": {"arg": {"name": "p_w"}, …}}, …], …},
      "graph": {"inputs": …, "outputs": …,
       "nodes": [{"target": "torch.ops.aten.linear.default",
                  "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "x"}}}, …],
                  "outputs": [{"as_tensor": {"name": "linear"}}],
                  "metadata": {"nn_module_stack": "L__self__,,Net;L__self__fc,fc,Linear"}}, …],
       "tensor_values": {"x": {"dtype": 7, "sizes": [{"as_int": 8},
            {"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s0', integer=True))"}}], …}, …}, …}}}

A vertex is a node that hands on tensors and depends on the inputs of the model. Everything else
is constant: parameters, buffers and what is computed of them alone are resident memory of the
operations that read them, each of which holds a copy. The inputs lie ready on every device, and
the outputs stay where they are computed. A vertex has an output for its first one and for every
further one that something reads. An operation in place computes a new tensor, which later
operations read. Sizes are in bytes; :mod:`~optpart.interop.formats.pytorch_operators` says what
counts as work.

Expressions are SymPy's, as ``srepr`` writes them; older releases wrote ``2*s0``. A file does not
keep what its dimensions were called when it was exported, only PyTorch's symbols.
"""

from __future__ import annotations

import ast
import io
import itertools
import math
import operator
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, FaultsOf, InputError
from optpart.base.languages import to_shell
from optpart.base.limits import check_size
from optpart.interop.formats.json import parse_json, sequence, text
from optpart.interop.formats.model_graph import ModelGraph, checked_cost
from optpart.interop.formats.operator_cost import Tensor
from optpart.interop.formats.parsing import is_whole, listed, member
from optpart.interop.formats.pytorch_operators import Operation, cost, in_place, known
from optpart.problem.graph import GraphBuilder
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

_MAJORS = range(5, 9)
#: ``ScalarType`` of the schema.
_TYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16",
    28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
}  # fmt: skip
_MODEL = re.compile(r"(?:[^/]+/)?models/([^/]+)\.json")
_OLD_MODEL = re.compile(r"(?:[^/]+/)?serialized_exported_program\.json")
_ARGUMENTS = (
    "as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string", "as_strings",
)  # fmt: skip

#: What PyTorch calls sizes, and what may be one in an expression.
_SYMBOL = re.compile(r"z?[su]f?\d+")
_NAMES = re.compile(rf"\b{_SYMBOL.pattern}\b")

#: Parsed JSON takes up to twenty times its length. PyTorch does not compress the document.
_MOST_STORED = 2**28
_MOST_COMPRESSED = 2**25
#: The list of the archive's files; PyTorch's take about a hundred bytes for a file.
_MOST_LISTED = 2**23
_MOST_AXES = 64
_MOST_EXPRESSION = 1_000
_MOST_SIZE = 2**63

#: What is placed.
GRANULARITIES = ("operation", "module")

_Taken = TypeVar("_Taken")

_WHOLE = "give a file as torch.export.save writes it"


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as a zip archive does."""
    return content.startswith(b"PK\x03\x04")


def read(
    path: str | Path,
    *,
    shapes: Mapping[str, int] | None = None,
    model: str | None = None,
    granularity: str = "operation",
) -> Workload:
    """Read a model.

    Parameters
    ----------
    shapes : mapping from str to int, optional
        Sizes that the model leaves open: by PyTorch's symbol, such as ``{"s0": 8}``; by input and
        axis, ``{"x.0": 8}``; and of a model with a single one, by any other name.
    model : str, optional
        Which one, of an archive that holds several.
    granularity : {"operation", "module"}
        What is placed: single operations, or modules, with what follows them until the next one.
        A pipeline of PyTorch can be split before every module that is called once, so that
        operations between two such points are colocated; and it runs operations in the order of
        the program, which becomes that of the graph.

    Raises
    ------
    InputError
        If the granularity is unknown, the file is no archive of PyTorch or a faulty one, its schema
        has another major version, a size stays open or does not fit, or the model contains a
        subgraph (``cond``, ``while_loop``).
    """
    if granularity not in GRANULARITIES:
        raise ArgumentError(
            "granularity", f"unknown {granularity!r}", choice(granularity, GRANULARITIES)
        )
    return _read(path, shapes, model, lambda reader: reader.workload(Path(path).stem, granularity))


def beginnings(
    path: str | Path, *, shapes: Mapping[str, int] | None = None, model: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the modules that begin at each vertex, in the order of the program.

    A module that is called more than once begins nowhere; outer modules come before inner ones.
    The parameters are those of :func:`read`.
    """
    return _read(path, shapes, model, lambda reader: reader.beginnings())


def _read(
    path: str | Path,
    shapes: Mapping[str, int] | None,
    model: str | None,
    take: Callable[[_Reader], _Taken],
) -> _Taken:
    with FaultsOf(path):
        name, content = _document(path, model)
        with FaultsOf(f"{path}, {name}"):
            try:
                return take(_Reader(parse_json(content), shapes or {}))
            except RecursionError:
                raise InputError("", "is nested too deeply", _WHOLE) from None


class _Bounded(io.FileIO):
    """A file of which nobody reads much at once, as zipfile reads the list of an archive."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = max(0, os.fstat(self.fileno()).st_size - self.tell())
        if size > _MOST_LISTED:
            raise InputError("", "holds too many files", _WHOLE)
        return super().read(size) or b""


def _document(path: str | Path, model: str | None) -> tuple[str, str]:
    """Return the name and the content of the document in an archive."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError("", "is no file", "name a file")
        with _Bounded(path) as stream, zipfile.ZipFile(stream) as archive:
            found = _member(archive, model)
            limit = _MOST_STORED if found.compress_type == zipfile.ZIP_STORED else _MOST_COMPRESSED
            if found.flag_bits & 1:
                raise InputError(found.filename, "is encrypted", _WHOLE)
            if found.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(found.filename, "is compressed in an unknown way", _WHOLE)
            with archive.open(found) as document:
                parts, length = [], 0
                # The archive may state any length, and be a small one of a huge document.
                while part := document.read(2**20):
                    length += len(part)
                    if length > limit:
                        problem = f"is longer than {limit} bytes"
                        raise InputError(found.filename, problem, "give a smaller model")
                    parts.append(part)
            return found.filename, b"".join(parts).decode()
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise InputError("", problem, "name a readable file") from None
    except UnicodeDecodeError:
        raise InputError("", "holds a document that is not UTF-8", _WHOLE) from None
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError,
        OverflowError, NotImplementedError,
    ) as error:  # fmt: skip
        raise InputError("", f"is no zip archive, or damaged ({error})", _WHOLE) from None


def _member(archive: zipfile.ZipFile, model: str | None) -> zipfile.ZipInfo:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if named := _MODEL.fullmatch(info.filename):
            found[named[1]] = info
        elif _OLD_MODEL.fullmatch(info.filename):
            found["model"] = info
    if not found:
        raise InputError("", "holds no exported model (models/NAME.json)", _WHOLE)
    if model is None and len(found) > 1:
        problem = f"holds several models ({listed(found)})"
        raise InputError("", problem, "say which one with --model")
    if model is not None and model not in found:
        raise InputError("", f"holds no model {shown(model)}", f"choose one of {listed(found)}")
    return found[model] if model is not None else next(iter(found.values()))


@dataclass
class _Vertex:
    """A node that is a vertex.

    Attributes
    ----------
    operation : Operation
    place : str
        As errors name it.
    reads, outputs : list of str
        Tensors that it reads and that it hands on.
    calls : list of (str, str)
        The calls of modules that it is in, outer ones first: the module, and which call.
    """

    operation: Operation
    place: str
    reads: list[str]
    outputs: list[str]
    calls: list[tuple[str, str]]


class _Reader:
    """Reads one model; see :func:`read`."""

    def __init__(self, document: Any, shapes: Mapping[str, int]) -> None:
        _check_version(document)
        module = member(document, "graph_module")
        self._graph = graph = member(module, "graph", "graph_module")
        self._nodes = sequence(member(graph, "nodes", "graph"), "graph.nodes")
        check_size(len(self._nodes), place="graph.nodes")
        self._metas = member(graph, "tensor_values", "graph")
        if not isinstance(self._metas, dict):
            raise InputError("graph.tensor_values", "not an object", "give tensors by name")
        self._constants: dict[str, None] = {}
        self._inputs: dict[str, None] = {}
        self._sort_inputs(member(module, "signature", "graph_module"))
        self._tensors: dict[str, Tensor] = {}
        self._symbols = _Symbols(document, self._input_sizes(), shapes)
        self._assumed = [*self._symbols.assumed]

    def _sort_inputs(self, signature: Any) -> None:
        specs = sequence(member(signature, "input_specs", "signature"), "signature.input_specs")
        for number, spec in enumerate(specs):
            place = f"signature.input_specs[{number}]"
            kind, content = _union(spec, place)
            argument = member(content, "arg", place) if kind != "constant_input" else None
            if kind == "user_input":
                self._inputs |= dict.fromkeys(_tensor_names(argument, place))
            elif kind in ("parameter", "buffer", "tensor_constant"):
                name = text(member(argument, "name", place), f"{place}.arg.name")
                self._constants[name] = None
            elif kind not in ("custom_obj", "token", "constant_input"):
                raise InputError(place, f"unknown kind {shown(kind)}", _WHOLE)

    def _input_sizes(self) -> dict[str, Any]:
        """Return the sizes of the inputs, which are not checked, by input and axis."""
        sizes = {}
        for name in self._inputs:
            meta = self._metas.get(name)
            axes = meta.get("sizes") if isinstance(meta, dict) else None
            for axis, size in enumerate(axes if isinstance(axes, list) else ()):
                sizes[f"{name}.{axis}"] = size
        return sizes

    def beginnings(self) -> dict[str, tuple[str, ...]]:
        """Return the modules that begin at each vertex; see :func:`beginnings`."""
        vertices = list(self._vertices())
        found = _beginnings(vertices)
        return {v.outputs[0]: at for v, at in zip(vertices, found, strict=True)}

    def workload(self, name: str, granularity: str) -> Workload:
        """Read it."""
        vertices = list(self._vertices())
        if not vertices:
            raise InputError("graph", "no operation depends on an input", "give a model with some")
        used = {each for vertex in vertices for each in vertex.reads}
        used |= set(_tensor_names(self._graph.get("outputs", []), "graph.outputs"))
        graph = ModelGraph()
        readers: dict[str, int] = {}
        for vertex in vertices:
            writes = {
                each: self._tensor(each, vertex.place)
                for i, each in enumerate(vertex.outputs)
                if i == 0 or each in used
            }
            operation = replace(vertex.operation, outputs=tuple(writes.values()))
            found = checked_cost(partial(cost, operation), vertex.place, "arguments", _WHOLE)
            memory = 0
            for each in dict.fromkeys(vertex.reads):
                if each in self._constants:
                    memory += self._tensor(each, vertex.place).bytes
                    readers[each] = readers.get(each, 0) + 1
            first = vertex.outputs[0]
            graph.add(first, operation.kind, operation, found, memory, vertex.reads, writes)
        if granularity == "module":
            _group(vertices, graph.builder)
        self._assume(vertices, readers)
        return graph.workload(name, f"PyTorch model {name}", self._assumed)

    def _vertices(self) -> Iterator[_Vertex]:
        """Yield the nodes that are vertices; outputs are not costed yet."""
        # What is now called by an old name, since an operation in place.
        now: dict[str, str] = {}
        there = {*self._inputs, *self._constants}
        for number, node in enumerate(self._nodes):
            place = f"graph.nodes[{number}]"
            target = text(member(node, "target", place), f"{place}.target")
            place = f"{place} ({target})"
            kind = _kind(target)
            tensors: dict[str, tuple[Tensor, ...]] = {}
            values: dict[str, Any] = {}
            reads: list[str] = []
            first = None
            for i, given in enumerate(sequence(member(node, "inputs", place), place)):
                name = text(member(given, "name", f"{place}.inputs[{i}]"), place)
                argument = member(given, "arg", f"{place}.inputs[{i}]")
                names = [now.get(each, each) for each in _tensor_names(argument, place)]
                for each in names:
                    if each not in there:
                        problem = f"reads {shown(each)}, which is computed by no node before it"
                        raise InputError(place, problem, _WHOLE)
                if names:
                    tensors[name] = tuple(self._tensor(each, place) for each in names)
                    first = first or (_tensor_names(argument, place)[0], names[0])
                elif isinstance(argument, dict):
                    given_as = next((key for key in _ARGUMENTS if key in argument), None)
                    if given_as is not None:
                        values[name] = argument[given_as]
                reads += names
            outputs = _tensor_names(sequence(member(node, "outputs", place), place), place)
            for each in outputs:
                if each in there:
                    raise InputError(place, f"computes {shown(each)}, which is there", _WHOLE)
                there.add(each)
            if all(each in self._constants for each in reads):
                self._constants |= dict.fromkeys(outputs)
            elif outputs:
                operation = Operation(kind, tensors, values, ())
                yield _Vertex(operation, place, reads, outputs, _calls(node))
            elif not node["outputs"]:  # one that hands on sizes only is no work
                self._assumed.append(f"An operation that hands on no tensor is left out: {kind}.")
            if in_place(kind) and first is not None and outputs:
                now |= {old: outputs[0] for old, new in now.items() if new == first[1]}
                now |= dict.fromkeys(first, outputs[0])
        self._assumed = list(dict.fromkeys(self._assumed))

    def _tensor(self, name: str, place: str) -> Tensor:
        """Return the type and shape of a tensor."""
        if name not in self._tensors:
            if name not in self._metas:
                raise InputError(place, f"{shown(name)} has no entry in tensor_values", _WHOLE)
            where = f"tensor_values.{shown(name)}"
            meta = self._metas[name]
            code = member(meta, "dtype", where)
            type_ = _TYPES.get(code) if isinstance(code, int) else None
            if type_ is None:
                raise InputError(where, f"unknown type {shown(code)}", "give a ScalarType")
            sizes = sequence(member(meta, "sizes", where), f"{where}.sizes")
            if len(sizes) > _MOST_AXES:
                raise InputError(where, f"{len(sizes)} axes", f"give at most {_MOST_AXES}")
            shape = tuple(self._symbols.size(each, where) for each in sizes)
            self._tensors[name] = Tensor(type_, shape)
        return self._tensors[name]

    def _assume(self, vertices: list[_Vertex], readers: Mapping[str, int]) -> None:
        if self._inputs:
            self._assumed.append(f"The inputs lie ready on every device: {listed(self._inputs)}.")
        several = [name for name, count in readers.items() if count > 1]
        if several:
            excess = sum((readers[name] - 1) * self._tensor(name, "").bytes for name in several)
            self._assumed.append(
                f"Constants that several operations read are counted at each, {excess} bytes in "
                f"excess: {listed(several)}."
            )
        kinds = dict.fromkeys(vertex.operation.kind for vertex in vertices)
        guessed = [kind for kind in kinds if not known(kind)]
        if guessed:
            self._assumed.append(
                "Operators whose work is unknown count one operation per output element: "
                f"{listed(guessed)}."
            )
        changing = [kind for kind in kinds if in_place(kind)]
        if changing:
            self._assumed.append(
                "Operations in place count as computing a new tensor, which views of the old one "
                f"do not show: {listed(changing)}."
            )


class _Symbols:
    """The sizes that a model leaves open, and those that are given.

    Parameters
    ----------
    inputs : mapping from str to value
        The sizes of the inputs by input and axis, as the document has them.
    sizes : mapping from str to int
        By symbol, by input and axis or, if just one is open, by another name.

    Attributes
    ----------
    assumed : list of str
        What a name that the file does not hold was taken for.
    """

    def __init__(self, document: Any, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        self._ranges = document.get("range_constraints") or {}
        if not isinstance(self._ranges, dict):
            raise InputError("range_constraints", "not an object", _WHOLE)
        self._inputs = {
            name: size["as_expr"] for name, size in inputs.items()
            if isinstance(size, dict) and isinstance(size.get("as_expr"), dict)
        }  # fmt: skip
        # Sizes that others determine have ranges, too: ``2*s0``.
        self._open = [name for name in self._ranges if name.isidentifier()]
        self.assumed: list[str] = []
        self._sizes: dict[str, int] = {}
        self._known: dict[str, int] = {}
        for name, size in sizes.items():
            place = f"shape {name!r}"
            if not is_whole(size, 0, _MOST_SIZE - 1):
                raise InputError(place, f"size {shown(size)}", "give a whole number ≥ 0")
            symbol, value = self._meant(name, size, place)
            self._check(symbol, value, place)
            if self._sizes.setdefault(symbol, value) != value:
                problem = f"{value}, but {self._sizes[symbol]} by another name"
                raise InputError(place, problem, f"give {symbol!r} once")

    def _meant(self, name: str, size: int, place: str) -> tuple[str, int]:
        """Return the symbol that a name stands for, and its size."""
        if name in self._open:
            return name, size
        if name in self._inputs:
            return self._solved(name, size, place)
        if len(self._open) == 1 and not _SYMBOL.fullmatch(name) and name.isidentifier():
            symbol = self._open[0]
            self.assumed.append(
                f"The file does not keep the names of sizes: {name!r} was taken for "
                f"{symbol!r}, the only open one."
            )
            return symbol, size
        known = f"choose one of {self._choices()}" if self._open else "leave it out"
        raise InputError(place, "the model has no such size", known)

    def _choices(self) -> str:
        where: dict[str, str] = {}
        for name, size in self._inputs.items():
            for symbol in _NAMES.findall(str(size.get("expr_str"))):
                where.setdefault(symbol, name)
        return ", ".join(
            f"{symbol!r}" + (f" ({where[symbol]})" if symbol in where else "")
            for symbol in self._open
        )

    def _solved(self, name: str, size: int, place: str) -> tuple[str, int]:
        """Return the symbol that determines a size of an input, and its value."""
        expression = self._inputs[name].get("expr_str")
        symbols = {each for each in _NAMES.findall(str(expression)) if each in self._open}
        if isinstance(expression, str) and len(symbols) == 1:
            symbol = symbols.pop()
            at = [self._evaluate(expression, place, {symbol: value}) for value in (1, 2)]
            value = Fraction(size - at[0], at[1] - at[0] or 1) + 1
            if value.denominator == 1 and value >= 0:
                found = int(value)
                if self._evaluate(expression, place, {symbol: found}) == size:
                    return symbol, found
        problem = f"{size} is not what was exported"
        raise InputError(place, problem, f"give one of {self._choices()}")

    def _check(self, symbol: str, size: int, place: str) -> None:
        allowed = self._ranges[symbol]
        if not isinstance(allowed, dict):
            raise InputError(f"range_constraints.{symbol}", "not an object", _WHOLE)
        least, most = allowed.get("min_val"), allowed.get("max_val")
        if (isinstance(least, int) and size < least) or (isinstance(most, int) and size > most):
            raise InputError(place, f"{size} is not what was exported", f"give {least} to {most}")

    def size(self, entry: Any, place: str) -> int:
        """Return a size, a whole number or an expression of symbols."""
        kind, content = _union(entry, place)
        if kind == "as_int":
            value = content
        elif kind == "as_expr":
            expression = text(member(content, "expr_str", place), f"{place}.expr_str")
            if expression not in self._known:
                self._known[expression] = self._evaluate(expression, place, self._sizes, content)
            value = self._known[expression]
        else:
            raise InputError(place, f"a size of unknown kind {shown(kind)}", _WHOLE)
        if not is_whole(value, 0, _MOST_SIZE - 1):
            raise InputError(place, f"a size of {shown(value)}", "give whole numbers ≥ 0")
        return value

    def _evaluate(
        self, expression: str, place: str, sizes: Mapping[str, int], content: Any = None
    ) -> int:
        try:
            if len(expression) > _MOST_EXPRESSION:
                raise ValueError("too long")
            tree = ast.parse(expression, mode="eval").body
            value = self._value(tree, _Given(sizes, place, content))
            if value.denominator != 1:
                raise ValueError("not whole")
        except (ArithmeticError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problem = f"the size {shown(expression)} is not understood ({shown(error)})"
            raise InputError(place, problem, _WHOLE) from None
        return int(value)

    def _value(self, node: ast.expr, given: _Given) -> Fraction:
        """Evaluate an expression as PyTorch writes those of SymPy."""
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return self._limited(Fraction(value))
            case ast.Name(id=symbol):
                return Fraction(given.size(symbol))
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(symbol))]):
                return Fraction(given.size(symbol))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, given)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign).__name__ in _SIGNS:
                first, second = self._value(left, given), self._value(right, given)
                return self._limited(Fraction(_SIGNS[type(sign).__name__](first, second)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                values = [self._value(each, given) for each in arguments]
                return self._limited(_called(name, values))
            case _:
                raise ValueError(f"{type(node).__name__} is not known")

    def _limited(self, value: Fraction) -> Fraction:
        if max(abs(value.numerator), value.denominator) >= _MOST_SIZE:
            raise ValueError("beyond 2^63")
        return value


@dataclass(frozen=True)
class _Given:
    """The sizes in reach of an expression.

    Attributes
    ----------
    sizes : mapping from str to int
    place : str
    content : value
        What the document says of the expression, such as its value of the export.
    """

    sizes: Mapping[str, int]
    place: str
    content: Any

    def size(self, symbol: str) -> int:
        """Return the size of a symbol."""
        if symbol in self.sizes:
            return self.sizes[symbol]
        hint = self.content.get("hint") if isinstance(self.content, dict) else None
        value = hint.get("as_int") if isinstance(hint, dict) else None
        alone = self.content is not None and _NAMES.findall(str(self.content.get("expr_str")))
        example = value if isinstance(value, int) and alone == [symbol] else 8
        remedy = f"give it as in {to_shell(['--shape', f'{symbol}={example}'])}"
        raise InputError(self.place, f"its shape depends on the open {symbol!r}", remedy)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or not 0 <= exponent <= 64:
        raise ValueError(f"a power of {exponent} is not known")
    return base ** int(exponent)


def _ceiling_of(first: Fraction, second: Fraction) -> int:
    return -(-first // second)


#: Operators of expressions, by their names in Python's syntax tree.
_SIGNS: Mapping[str, Callable[[Fraction, Fraction], Fraction | int]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": _power,
}  # fmt: skip
#: Functions of SymPy and PyTorch, of one value, of two, and of any number of values.
_OF_ONE: Mapping[str, Callable[[Fraction], Fraction | int]] = {
    "Integer": operator.pos, "floor": math.floor, "FloorToInt": math.floor,
    "TruncToInt": math.floor, "ceiling": math.ceil, "CeilToInt": math.ceil,
}  # fmt: skip
_OF_TWO: Mapping[str, Callable[[Fraction, Fraction], Fraction | int]] = {
    "Rational": operator.truediv, "Pow": _power, "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv, "CeilDiv": _ceiling_of, "Mod": operator.mod,
    "PythonMod": operator.mod,
}  # fmt: skip
_OF_ANY: Mapping[str, Callable[[list[Fraction]], Fraction | int]] = {
    "Add": sum, "Mul": math.prod, "Max": max, "Min": min
}  # fmt: skip


def _called(name: str, values: list[Fraction]) -> Fraction:
    if len(values) == 1 and name in _OF_ONE:
        return Fraction(_OF_ONE[name](*values))
    if len(values) == 2 and name in _OF_TWO:
        return Fraction(_OF_TWO[name](*values))
    if values and name in _OF_ANY:
        return Fraction(_OF_ANY[name](values))
    raise ValueError(f"{name} is not known")


def _check_version(document: Any) -> None:
    version = member(document, "schema_version")
    major = version.get("major") if isinstance(version, dict) else version
    if not is_whole(major, _MAJORS[0], _MAJORS[-1]):
        known = f"this program reads {_MAJORS[0]} to {_MAJORS[-1]}"
        raise InputError("schema_version", f"major version {shown(major)}", known)


def _union(value: Any, place: str) -> tuple[str, Any]:
    """Return the one kind and the content of what may be of several."""
    if not isinstance(value, dict):
        raise InputError(place, "not an object", _WHOLE)
    # Some writers name all kinds, and leave all but one empty.
    given = {key: content for key, content in value.items() if content is not None}
    if len(given) != 1:
        raise InputError(place, f"{len(given)} kinds at once", _WHOLE)
    return next(iter(given.items()))


def _tensor_names(value: Any, place: str) -> list[str]:
    """Return the tensors of an argument, or of a list of arguments."""
    if isinstance(value, list):
        return [name for each in value for name in _tensor_names(each, place)]
    if not isinstance(value, dict):
        return []
    if "as_graph" in value:
        problem = "contains a subgraph, whose work depends on the data"
        raise InputError(place, problem, "export a model without control flow")
    names = []
    for key, content in value.items():
        if key == "as_tensor":
            names.append(text(member(content, "name", place), place))
        elif key in ("as_tensors", "as_nested_tensors"):
            flat = itertools.chain.from_iterable(
                each if isinstance(each, list) else [each] for each in sequence(content, place)
            )
            names += [text(member(each, "name", place), place) for each in flat]
        elif key in ("as_optional_tensor", "as_optional_tensors"):
            names += _tensor_names(content, place)
        elif key == "as_string_to_argument" and isinstance(content, dict):
            names += _tensor_names(list(content.values()), place)
    return names


def _calls(node: Any) -> list[tuple[str, str]]:
    """Return the calls of modules that a node is in, outer ones first."""
    metadata = node.get("metadata")
    stack = metadata.get("nn_module_stack") if isinstance(metadata, dict) else None
    entries = [each.split(",") for each in (stack if isinstance(stack, str) else "").split(";")]
    # The key tells the calls of a module apart; the module itself has no name.
    return [(each[1], each[0]) for each in entries if len(each) > 1 and each[1]]


def _beginnings(vertices: Sequence[_Vertex]) -> list[tuple[str, ...]]:
    """Return the modules, called once, that begin at each vertex."""
    calls: dict[str, set[str]] = {}
    for vertex in vertices:
        for module, call in vertex.calls:
            calls.setdefault(module, set()).add(call)
    found = []
    before: set[tuple[str, str]] = set()
    for vertex in vertices:
        found.append(
            tuple(
                module
                for module, call in vertex.calls
                if (module, call) not in before and len(calls[module]) == 1
            )
        )
        before = set(vertex.calls)
    return found


def _group(vertices: Sequence[_Vertex], builder: GraphBuilder) -> None:
    """Colocate what no module separates, and keep the order of the program."""
    names = [vertex.outputs[0] for vertex in vertices]
    groups: list[list[str]] = [[]]
    for name, begins in zip(names, _beginnings(vertices), strict=True):
        if begins and groups[-1]:
            groups.append([])
        groups[-1].append(name)
    for group in groups:
        if len(group) > 1:
            builder.colocate(*group)
    for before, after in itertools.pairwise(vertices):
        if not set(before.outputs) & set(after.reads):
            builder.edge(before.outputs[0], after.outputs[0], None)


def _kind(target: str) -> str:
    """Return an operator without its overload: ``aten.linear``."""
    name = target.removeprefix("torch.ops.")
    return name.rpartition(".")[0] if name.count(".") > 1 else name
