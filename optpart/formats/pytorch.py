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
                  "outputs": [{"as_tensor": {"name": "linear"}}]}, …],
       "tensor_values": {"x": {"dtype": 7, "sizes": [{"as_int": 8},
                                {"as_expr": {"expr_str": "2*s0"}}], …}, …}, …}}}

A vertex (:mod:`~optpart.formats.dataflow`) is a node that hands on tensors and depends on the
inputs of the model; parameters and buffers are constant. An operation in place computes a new
tensor, which later operations read. Sizes are in bytes;
:mod:`~optpart.formats.pytorch_operators` says what counts as work.

The tests build their files by hand after the schema; none of them was written by PyTorch.
"""

from __future__ import annotations

import ast
import io
import operator
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.formats.architectures import opened
from optpart.formats.dataflow import MOST, Vertex, check_sizes, check_symbols, workload
from optpart.formats.json import Entry, is_whole, parse_json, sequence
from optpart.formats.operator_cost import Operation, Tensor
from optpart.formats.parsing import listed
from optpart.formats.pytorch_operators import OPERATORS, in_place
from optpart.languages import to_shell
from optpart.limits import check_size
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

#: Parsed JSON takes up to twenty times its length. PyTorch does not compress the document.
_MOST_STORED = 2**28
_MOST_COMPRESSED = 2**25
#: The list of the archive's files; PyTorch's take about a hundred bytes for a file.
_MOST_LISTED = 2**23
_MOST_AXES = 64
_MOST_EXPRESSION = 1_000

_WHOLE = "give a file as torch.export.save writes it"


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as a zip archive does."""
    return content.startswith(b"PK\x03\x04")


def read(
    path: str | Path, *, shapes: Mapping[str, int] | None = None, model: str | None = None
) -> Workload:
    """Read a model.

    Parameters
    ----------
    shapes : mapping from str to int, optional
        Sizes for the symbols that the model uses in shapes, such as ``{"s0": 8}``.
    model : str, optional
        Which one, of an archive that holds several.

    Raises
    ------
    InputError
        If the file is no archive of PyTorch or a faulty one, its schema has another major version,
        a size stays open or does not fit, or the model contains a subgraph (``cond``,
        ``while_loop``).
    """
    with FaultsOf(path):
        name, content = _document(path, model)
        with FaultsOf(f"{path}, {name}"):
            try:
                return _Reader(parse_json(content), shapes or {}).workload(Path(path).stem)
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
    with opened(Path(path)):  # whatever keeps it from being read
        pass
    try:
        with _Bounded(path) as stream, zipfile.ZipFile(stream) as archive:
            found = _member(archive, model)
            limit = _MOST_STORED if found.compress_type == zipfile.ZIP_STORED else _MOST_COMPRESSED
            if found.flag_bits & 1:
                raise InputError(found.filename, "is encrypted", _WHOLE)
            if found.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(found.filename, "is compressed in an unknown way", _WHOLE)
            with archive.open(found) as document:
                # The archive may state any length, and be a small one of a huge document.
                content = document.read(limit + 1)
            if len(content) > limit:
                problem = f"is longer than {limit} bytes"
                raise InputError(found.filename, problem, "give a smaller model")
            return found.filename, content.decode()
    except UnicodeDecodeError:
        raise InputError("", "holds a document that is not UTF-8", _WHOLE) from None
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError,
        OverflowError, NotImplementedError, OSError,
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


class _Reader:
    """Reads one model; see :func:`read`."""

    def __init__(self, document: Any, shapes: Mapping[str, int]) -> None:
        top = Entry(document)
        _check_version(top["schema_version"])
        module = top.entry("graph_module")
        self._graph = graph = module.entry("graph")
        self._nodes = graph.items("nodes")
        check_size(len(self._nodes), place="graph.nodes")
        self._metas = graph.entry("tensor_values")
        self._symbols = _Symbols(top, shapes)
        self.constant: dict[str, str] = {}
        self.inputs: dict[str, None] = {}
        for spec in module.entry("signature").entries("input_specs"):
            kind, content = _union(spec.content, spec.place)
            argument = Entry(content, spec.place)["arg"] if kind != "constant_input" else None
            if kind == "user_input":
                self.inputs |= dict.fromkeys(_tensor_names(argument, spec.place))
            elif kind in ("parameter", "buffer", "tensor_constant"):
                name = Entry(argument, f"{spec.place}.arg").text("name")
                self.constant[name] = name
            elif kind not in ("custom_obj", "token", "constant_input"):
                raise InputError(spec.place, f"unknown kind {shown(kind)}", _WHOLE)
        self._tensors: dict[str, Tensor] = {}
        self._assumed: dict[str, None] = {}

    def workload(self, name: str) -> Workload:
        """Read it."""
        vertices = self._vertices()
        used = {each for vertex in vertices for each in vertex.reads}
        used |= set(_tensor_names(self._graph.get("outputs"), "graph.outputs"))
        whole = []
        for vertex in vertices:
            kept = [each for i, each in enumerate(vertex.outputs) if i == 0 or each in used]
            tensors = tuple(self.tensor(each, vertex.place) for each in kept)
            operation = replace(vertex.operation, outputs=tensors)
            whole.append(replace(vertex, operation=operation, outputs=kept))
        kinds = dict.fromkeys(vertex.operation.kind for vertex in vertices)
        changing = [kind for kind in kinds if in_place(kind)]
        if changing:
            self._assumed[
                "Operations in place count as computing a new tensor, which views of the old one "
                f"do not show: {listed(changing)}."
            ] = None
        source = f"PyTorch model {name}"
        return workload(whole, self, OPERATORS, name, source, [*self._assumed], _WHOLE)

    def _vertices(self) -> list[Vertex]:
        """Return the nodes that are vertices; outputs have no tensors yet."""
        # What is now called by an old name, since an operation in place.
        now: dict[str, str] = {}
        there = {*self.inputs, *self.constant}
        found = []
        for number, content in enumerate(self._nodes):
            node = Entry(content, f"graph.nodes[{number}]")
            target = node.text("target")
            place = f"{node.place} ({target})"
            kind = _kind(target)
            named: dict[str, tuple[Tensor, ...]] = {}
            values: dict[str, Any] = {}
            reads: list[str] = []
            first = None
            for given in node.entries("inputs"):
                name, argument = given.text("name"), given["arg"]
                before = _tensor_names(argument, place)
                names = [now.get(each, each) for each in before]
                for each in names:
                    if each not in there:
                        problem = f"reads {shown(each)}, which is computed by no node before it"
                        raise InputError(place, problem, _WHOLE)
                if names:
                    named[name] = tuple(self.tensor(each, place) for each in names)
                    first = first or (before[0], names[0])
                elif isinstance(argument, dict):
                    given_as = next((key for key in _ARGUMENTS if key in argument), None)
                    if given_as is not None:
                        values[name] = argument[given_as]
                reads += names
            outputs = _tensor_names(node.items("outputs"), place)
            for each in outputs:
                if each in there:
                    raise InputError(place, f"computes {shown(each)}, which is there", _WHOLE)
                there.add(each)
            if all(each in self.constant for each in reads):
                self.constant |= {each: each for each in outputs}
            elif outputs:
                tensors = tuple(tensor for argument in named.values() for tensor in argument)
                operation = Operation(kind, tensors, (), values, named)
                found.append(Vertex(outputs[0], operation, place, reads, outputs))
            else:
                said = f"An operation that hands on no tensor is left out: {kind}."
                self._assumed[said] = None
            if in_place(kind) and first is not None and outputs:
                now |= {old: outputs[0] for old, new in now.items() if new == first[1]}
                now |= dict.fromkeys(first, outputs[0])
        return found

    def tensor(self, name: str, place: str) -> Tensor:
        """Return the type and shape of a tensor."""
        if name not in self._tensors:
            if name not in self._metas:
                raise InputError(place, f"{shown(name)} has no entry in tensor_values", _WHOLE)
            meta = Entry(self._metas[name], f"tensor_values.{shown(name)}")
            code = meta["dtype"]
            type_ = _TYPES.get(code) if isinstance(code, int) else None
            if type_ is None:
                raise InputError(meta.place, f"unknown type {shown(code)}", "give a ScalarType")
            sizes = meta.items("sizes")
            if len(sizes) > _MOST_AXES:
                raise InputError(meta.place, f"{len(sizes)} axes", f"give at most {_MOST_AXES}")
            shape = tuple(self._symbols.size(each, meta.place) for each in sizes)
            self._tensors[name] = Tensor(type_, shape)
        return self._tensors[name]


class _Symbols:
    """The sizes that a model leaves open, and those that are given."""

    def __init__(self, document: Entry, sizes: Mapping[str, int]) -> None:
        check_sizes(sizes)
        ranges = Entry(document.get("range_constraints") or {}, "range_constraints")
        check_symbols(sizes, ranges.content)
        for symbol, size in sizes.items():
            allowed = ranges.entry(symbol)
            least, most = allowed.get("min_val"), allowed.get("max_val")
            if (isinstance(least, int) and size < least) or (isinstance(most, int) and size > most):
                problem = f"{size} is not what was exported"
                raise InputError(f"shape {symbol!r}", problem, f"give {least} to {most}")
        self._sizes = sizes
        self._known: dict[str, int] = {}

    def size(self, entry: Any, place: str) -> int:
        """Return a size, a whole number or an expression of symbols."""
        kind, value = _union(entry, place)
        if kind == "as_expr":
            expression = Entry(value, place).text("expr_str")
            if expression not in self._known:
                self._known[expression] = self._evaluate(expression, place)
            value = self._known[expression]
        elif kind != "as_int":
            raise InputError(place, f"a size of unknown kind {shown(kind)}", _WHOLE)
        if not is_whole(value, 0, MOST - 1):
            raise InputError(place, f"a size of {shown(value)}", "give whole numbers ≥ 0")
        return int(value)

    def _evaluate(self, expression: str, place: str) -> int:
        try:
            if len(expression) > _MOST_EXPRESSION:
                raise ValueError("too long")
            value = self._value(ast.parse(expression, mode="eval").body, place)
            if value.denominator != 1:
                raise ValueError("not whole")
        except (
            ArithmeticError,
            SyntaxError,
            TypeError,
            ValueError,
            RecursionError,
            MemoryError,
        ) as error:
            problem = f"the size {shown(expression)} is not understood ({shown(error)})"
            raise InputError(place, problem, _WHOLE) from None
        return int(value)

    def _value(self, node: ast.expr, place: str) -> Fraction:
        """Evaluate an expression as PyTorch writes those of SymPy."""
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return self._limited(Fraction(value))
            case ast.Name(id=symbol):
                return Fraction(self._given(symbol, place))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, place)
            case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in _BINARY:
                compute = _BINARY[type(op).__name__]
                return self._limited(compute(self._value(left, place), self._value(right, place)))
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
                return self._limited(
                    _FUNCTIONS[name](*(self._value(each, place) for each in given))
                )
            case _:
                raise ValueError(f"{type(node).__name__} is not known")

    def _given(self, symbol: str, place: str) -> int:
        if symbol not in self._sizes:
            remedy = f"give it as in {to_shell(['--shape', f'{symbol}=8'])}"
            raise InputError(place, f"its shape depends on the open {symbol!r}", remedy)
        return self._sizes[symbol]

    def _limited(self, value: Fraction) -> Fraction:
        if max(abs(value.numerator), value.denominator) >= MOST:
            raise ValueError("beyond 2^63")
        return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or not 0 <= exponent <= 64:
        raise ValueError("Pow is not known")
    return base ** int(exponent)


def _floor_div(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(a // b)


#: What SymPy computes in expressions, by the names of Python's syntax and of PyTorch's functions.
_BINARY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": _floor_div, "Mod": operator.mod, "Pow": _power,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Fraction]] = {
    "Max": lambda first, *others: max((first, *others)),
    "Min": lambda first, *others: min((first, *others)),
    **dict.fromkeys(("FloorDiv", "CleanDiv"), _floor_div),
    "CeilDiv": lambda a, b: Fraction(-(-a // b)),
    **dict.fromkeys(("Mod", "PythonMod"), operator.mod),
    **dict.fromkeys(("floor", "FloorToInt", "TruncToInt"), lambda a: Fraction(a // 1)),
    **dict.fromkeys(("ceiling", "CeilToInt"), lambda a: Fraction(-(-a // 1))),
}


def _check_version(version: Any) -> None:
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
            names.append(Entry(content, place).text("name"))
        elif key in ("as_tensors", "as_nested_tensors"):
            for each in sequence(content, place):
                several = each if isinstance(each, list) else [each]
                names += [Entry(tensor, place).text("name") for tensor in several]
        elif key in ("as_optional_tensor", "as_optional_tensors"):
            names += _tensor_names(content, place)
        elif key == "as_string_to_argument" and isinstance(content, dict):
            names += _tensor_names(list(content.values()), place)
    return names


def _kind(target: str) -> str:
    """Return an operator without its overload: ``aten.linear``."""
    name = target.removeprefix("torch.ops.")
    return name.rpartition(".")[0] if name.count(".") > 1 else name
