"""The compiler; importing this module loads it, which takes half a second.

Four things differ from plain numba: structs are pointers; every function is optimised only within
the functions that Python calls, not by itself as well, which takes half of the time; machine code
is found by content (:mod:`optpart.kernels.store`); and comparing compiler options, which numba does
some hundred thousand times, is made cheap.
"""

# mypy: ignore-errors
# numba's internals have no types.

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import codegen, event, types
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.datamodel import models
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.core.typing.templates import AttributeTemplate, infer_global
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np import numpy_support
from numba.np.arrayobj import make_array, populate_array

from optpart.kernels import store
from optpart.kernels.struct import Struct, array_of, hints

_LOG = logging.getLogger(__name__)

_WORD = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}

#: Functions for compiled code only; numba refers to them weakly.
_inside: dict[Callable[..., Any], Any] = {}


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function as machine code for arguments of the annotated types, and for no others.

    It is loaded from disk, or compiled and kept there. numba would find out the types of all
    arguments at every call, in Python for structs, which takes longer than some kernels, and loses
    an interrupt that comes meanwhile. Here they are compared with what they must be.

    Raises
    ------
    TypeError
        By the function, if an array or a struct is none of the annotated kind.
    """
    dispatcher = numba.njit(**store.OPTIONS, no_cfunc_wrapper=True)(function)
    if not hasattr(dispatcher, "py_func"):  # numba's compilation is disabled
        return dispatcher
    dispatcher._cache = _Kept(function)
    with _optimised_once():
        entry = dispatcher.compile(_arguments(function))
    annotated = list(enumerate(hints(function).values()))
    structs = [(at, hint) for at, hint in annotated if isinstance(kind(hint), StructType)]
    arrays = [(at, *array_of(hint)) for at, hint in annotated if array_of(hint)]

    def call(*arguments: Any) -> Any:
        for at, cls in structs:
            if type(arguments[at]) is not cls:
                raise TypeError(f"{function.__name__}: argument {at} is no {cls.__name__}")
            arguments[at]._address  # noqa: B018, which raises what is wrong
        for at, dtype, dimensions in arrays:
            given = arguments[at]
            # Such arrays are contiguous, aligned and writable.
            if given.dtype != dtype or given.ndim != dimensions or not given.flags.carray:
                wanted = f"writable {dtype} array of {dimensions} dimensions in C order"
                raise TypeError(f"{function.__name__}: argument {at} is no {wanted}")
        return entry(*arguments)

    return call


def _arguments(function: Callable[..., Any]) -> tuple[Any, ...]:
    return tuple(map(kind, hints(function).values()))


def kept_as(function: Callable[..., Any]) -> str | None:
    """Return the name of the file with the machine code of a function, if there is one."""
    return next(filter(store.find, _names(function)), None)


@cache
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the files for any processor and, last, for this one.

    While another process compiles, every call of a kernel looks for them.
    """
    here = cpu_target.target_context.codegen().magic_tuple()
    both = dict.fromkeys(((here[0], "generic", ""), here))
    return tuple(store.name(function, each, *_arguments(function)) for each in both)


def teach(kernel: type[Any], functions: Iterable[Callable[..., Any]]) -> None:
    """Let compiled code call objects of a class by their ``py_func``, and functions directly."""
    if kernel not in _known:
        _known.add(kernel)
        typeof_impl.register(kernel)(lambda value, context: _dispatched(value.py_func))
    for function in functions:
        infer_global(function, _dispatched(function))


_known: set[type[Any]] = set()


def _dispatched(function: Callable[..., Any]) -> Any:
    """Return the type of a function that compiled code calls, which needs no wrapper for Python."""
    if function not in _inside:
        _inside[function] = numba.njit(
            **store.OPTIONS,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
            forceinline="inlined" in vars(function),
        )(function)
    return _Inner(_inside[function])


class _Inner(types.Dispatcher):
    """The type of a function that compiled code calls; its whole numbers have 64 bits.

    It would otherwise be compiled anew for each combination of constants and entries of arrays.
    """

    def get_call_type(self, context, args, kws):
        plain = map(types.unliteral, args)
        wide = [types.int64 if each == types.int32 else each for each in plain]
        return super().get_call_type(context, wide, kws)


# --- structs -------------------------------------------------------------------------------------


class StructType(types.Type):
    """A struct, as the compiler knows it.

    Attributes
    ----------
    fields : dict
        By name: the type, and the position of its first word.
    """

    def __init__(self, cls: type[Struct]) -> None:
        super().__init__(name=f"{cls.__module__}.{cls.__qualname__}")
        self.fields: dict[str, tuple[Any, int]] = {}
        word = 0
        for name, hint in hints(cls).items():
            self.fields[name] = kind(hint), word
            word += 1 + getattr(self.fields[name][0], "ndim", 0)


@cache
def kind(hint: Any) -> Any:
    """Return the compiler's type of an annotation.

    Raises
    ------
    TypeError
        If it has none.
    """
    array = array_of(hint)
    if array is not None:
        return types.Array(numpy_support.from_dtype(array[0]), array[1], "C")
    if isinstance(hint, type) and issubclass(hint, Struct):
        return StructType(hint)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return types.NamedTuple([kind(part) for part in hints(hint).values()], hint)
    if hint not in _NUMBERS:
        raise TypeError(f"{hint} is no type that compiled code takes from Python")
    return _NUMBERS[hint]


register_model(StructType)(models.OpaqueModel)
register_model(_Inner)(models.OpaqueModel)


@typeof_impl.register(Struct)
def _type_of(value: Struct, context: Any) -> StructType:
    value._address  # noqa: B018, which raises what is wrong
    return kind(type(value))


@infer_getattr
class _Fields(AttributeTemplate):
    key = StructType

    def generic_resolve(self, typ: StructType, name: str) -> Any:
        return typ.fields[name][0] if name in typ.fields else None


@lower_getattr_generic(StructType)
def _read(context: Any, builder: Any, typ: StructType, pointer: Any, name: str) -> Any:
    """Read a field; fields never change, so that the optimiser may read them once for a loop."""
    kind, first = typ.fields[name]

    def word(at: int, as_type: Any = _WORD) -> Any:
        words = builder.bitcast(pointer, as_type.as_pointer())
        loaded = builder.load(builder.gep(words, [ir.Constant(_WORD, first + at)]))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(kind, types.Array):
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        shape = [word(1 + axis) for axis in range(kind.ndim)]
        strides = [context.get_constant(types.intp, size)]
        for length in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        array = make_array(kind)(context, builder)
        data = builder.bitcast(word(0, _BYTES), array.data.type)
        populate_array(array, data, shape, strides, strides[-1], meminfo=ir.Constant(_BYTES, None))
        return array._getvalue()
    if isinstance(kind, StructType):
        return word(0, _BYTES)
    if kind == types.boolean:
        return builder.icmp_signed("!=", word(0), ir.Constant(_WORD, 0))
    return word(0, context.get_value_type(kind))


@unbox(StructType)
def _pointer(typ: StructType, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "_address")
    pointer = c.builder.inttoptr(c.pyapi.long_as_longlong(address), _BYTES)
    c.pyapi.decref(address)
    return NativeValue(pointer, is_error=c.pyapi.c_api_error())


# --- each function is optimised once -------------------------------------------------------------


class _Library(codegen.JITCodeLibrary):
    """The code of a function, which becomes machine code only if Python calls it.

    The code of functions that it calls is linked when it does, theirs included.
    """

    def add_llvm_module(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def add_linking_library(self, library):
        self._linking_libraries.append(library)

    def get_pointer_to_function(self, name):
        if not self._finalized and all(name != each.name for each in self._final_module.functions):
            return 0  # there is no wrapper for Python
        return super().get_pointer_to_function(name)

    def finalize(self):
        found, left = dict.fromkeys(self._linking_libraries), list(self._linking_libraries)
        while left:
            for library in getattr(left.pop(), "_linking_libraries", ()):
                if library not in found:
                    found[library] = None
                    left.append(library)
        self._linking_libraries = list(found)
        super().finalize()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)

    def _get_module_for_linking(self):
        if self._finalized:
            return super()._get_module_for_linking()
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for function in self._shared_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
        return self._shared_module


class _Codegen(codegen.JITCPUCodegen):
    """The code generator of the process, with these libraries."""

    _library_class = _Library

    def set_env(self, env_name, env):
        if self._engine.get_global_value_address(env_name):
            super().set_env(env_name, env)


@contextmanager
def _optimised_once() -> Iterator[None]:
    """Compile with these libraries; numba functions of others in the process never meet them."""
    generator = cpu_target.target_context.codegen()
    with global_compiler_lock:
        before = generator.__class__
        generator.__class__ = _Codegen
        try:
            yield
        finally:
            generator.__class__ = before


@cache
def _defaults(cls: type) -> dict[str, Any]:
    return {name: option.default for name, option in cls.options.items()}


TargetConfig.values = lambda self: _defaults(type(self)) | self._values


# --- what is kept --------------------------------------------------------------------------------


class _Kept:
    """The store behind numba's cache of a function."""

    cache_path = None

    def __init__(self, function: Any) -> None:
        self._function = function

    def load_overload(self, signature: Any, target: Any) -> Any:
        for name in _names(self._function):
            kept = store.load(name)
            if kept is not None:
                return self._loaded(kept, target)
        return None

    def _loaded(self, kept: Any, target: Any) -> Any:
        name, machine_code, symbols, *rest = kept
        target.refresh()
        library = target.codegen().create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        target.codegen()._engine._defined_symbols.update(symbols)
        library._finalize_final_module()
        descriptor, environment, signature, environments = rest
        entry = target.get_executable(library, descriptor, environment)
        for each in environments:
            target.codegen().set_env(each.env_name, each)
        return CompileResult(
            typing_context=target.typing_context,
            target_context=target,
            entry_point=entry,
            typing_error=None,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            fndesc=descriptor,
            library=library,
            call_helper=None,
            environment=environment,
            metadata=None,
            reload_init=(),
            referenced_envs=environments,
        )

    def save_overload(self, signature: Any, made: Any) -> None:
        library, descriptor = made.library, made.fndesc
        descriptor.typemap = descriptor.calltypes = None  # large, and not needed again
        symbols = [descriptor.llvm_cpython_wrapper_name]
        variables = (each.name for each in library._final_module.global_variables)
        symbols += [each for each in variables if lookup_environment(each) is not None]
        store.save(
            _names(self._function)[-1],
            (
                library.name, library._get_compiled_object(), symbols, descriptor,
                made.environment, made.signature, tuple(made._find_referenced_environments()),
            ),
        )  # fmt: skip


class _Announcer(event.Listener):
    said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            _LOG.warning(
                "compiling inner loops that were not used before (a minute or two, only once) …"
            )
        self.said = True

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())
