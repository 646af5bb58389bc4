"""Arguments of the Python interface, checked by the signatures of its functions.

:func:`checked` turns what Python reports as ``TypeError``, or what would end in an
``AttributeError`` far from the call, into one line: misspelt keywords with the nearest name,
missing arguments, and arguments of another type than the annotation says, such as a builder in
place of its graph. Annotations are compared by the names of types, so nothing has to be imported
for it; those that the tables below do not know are not checked. What values mean is left to the
functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature, isclass, signature
from typing import Any, TypeVar, cast

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError

_Public = TypeVar("_Public", bound=Callable[..., Any])

_NUMBERS = ("int", "integer", "float", "floating", "str", "Decimal", "Fraction")

#: What serves, by the name in an annotation: names of types, which count with all that derive from
#: them, or methods that a type must have; and what to call it.
_TYPES: dict[str, tuple[tuple[str, ...], str]] = {
    "None": (("NoneType",), ""),
    "str": (("str",), "a text"),
    "bool": (("bool", "bool_"), "True or False"),
    "int": (("int", "integer"), "a whole number"),
    "float": (("float", "floating", "int", "integer", "Fraction"), "a number"),
    "Fraction": (("float", "floating", "int", "integer", "Fraction"), "a number"),
    "Number": (_NUMBERS, "a number"),
    "Path": (("PurePath",), "a path"),
    "Objective": (("str",), "a name"),
    "Fix": (("str",), "a name"),
    "Start": (("str", "PurePath", "Schedule", "Result"), "a Schedule, a Result or a name"),
}
_METHODS: dict[str, tuple[tuple[str, ...], str]] = {
    "Sequence": (("__iter__",), "a list"),
    "Iterable": (("__iter__",), "a list"),
    "NDArray": (("__iter__",), "an array"),
    "Mapping": (("keys", "__getitem__"), "a dict"),
    "NamedPlacement": (("keys", "__getitem__"), "a dict of names"),
    "NamedOrder": (("__iter__",), "a list of names"),
    "Callable": (("__call__",), "a function"),
    "Watch": (("__call__",), "a function"),
}
#: Classes of the package, and how one comes by their objects.
_CLASSES = {
    "Cluster": "a Cluster such as Cluster.of([Device('gpu', 10)])",
    "Comparison": "a Comparison of compare or sweep",
    "Durations": "Durations",
    "Goal": "a Goal",
    "Graph": "a Graph",
    "Instance": "an Instance",
    "Model": "a Model such as Model('link')",
    "NamedCluster": "a NamedCluster",
    "Options": "Options",
    "Pipeline": "a problem of pipeline_problem",
    "Question": "a question of strategy_question",
    "RationalArray": "a RationalArray",
    "Result": "a Result",
    "Schedule": "a Schedule",
    "Solved": "what solve_strategy returns",
    "StateFile": "a StateFile",
    "Strategy": "a Strategy",
    "TrainingCluster": "a TrainingCluster",
    "TrainingGraph": "a TrainingGraph",
    "Transfers": "Transfers",
    "Work": "a Work",
    "Workload": "a Workload",
}
#: What to do with something that is a step away from what is wanted.
_STEPS = {
    ("GraphBuilder", "Graph"): "give the Graph that its build() returns",
    ("GraphBuilder", "Instance"): "give Instance(builder.build(), cluster)",
    ("Graph", "Instance"): "give Instance(graph, cluster)",
    ("Workload", "Instance"): "give the instance that costed() makes of it and a cluster",
    ("Costed", "Instance"): "give its instance",
}
_INSIDE = re.compile(r"\[[^\[\]]*\]")


def checked(public: _Public) -> _Public:
    """Return a function that refuses arguments which cannot be right, by an ``ArgumentError``.

    Of a class, the constructor and the class methods are replaced, and the class is returned.
    """
    return cast("_Public", _replaced(public, types=True))


def checked_names(public: _Public) -> _Public:
    """Do the same as :func:`checked`, but for the types: these are checked at their place.

    That is for what readers of files call too, whose errors name a place in the file.
    """
    return cast("_Public", _replaced(public, types=False))


def _replaced(public: Any, *, types: bool) -> Any:
    if not isclass(public):
        return _checking(public, public.__name__, types)
    for name, member in list(vars(public).items()):
        if name == "__init__":
            setattr(public, name, _checking(member, public.__name__, types))
        elif isinstance(member, classmethod) and not name.startswith("_"):
            full = f"{public.__name__}.{name}"
            setattr(public, name, classmethod(_checking(member.__func__, full, types)))
    return public


@cache
def _checking(function: Any, name: str, types: bool) -> Any:
    expected = signature(function)
    #: Types of arguments that have passed: hardly any time is lost where calls are alike.
    passed: set[object] = set()

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        key = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if key not in passed:
            given = _bound(expected, name, args, kwargs)
            if types:
                _check_types(expected, given)
            passed.add(key)
        return function(*args, **kwargs)

    return checking


def _bound(
    expected: Signature, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments by name."""
    known = expected.parameters
    named = [each for each in known if each not in ("self", "cls")]
    open_ended = any(each.kind is Parameter.VAR_KEYWORD for each in known.values())
    for keyword in () if open_ended else kwargs:
        if keyword not in known:
            raise ArgumentError(keyword, f"is no parameter of {name}", choice(keyword, named))
    try:
        return expected.bind(*args, **kwargs).arguments
    except TypeError as error:  # says which is missing, or that there are too many
        missing = next((each for each in named if repr(each) in str(error)), "")
        if "missing" not in str(error):
            free = [each for each in named if known[each].kind is Parameter.POSITIONAL_OR_KEYWORD]
            remedy = f"it takes {', '.join(free) or 'none'} by position; name all others"
            raise ArgumentError("", f"too many arguments for {name}", remedy) from None
        wanted = _wanted(_accepted(known[missing]))
        remedy = f"give {wanted}" if wanted else f"it takes {', '.join(named)}"
        raise ArgumentError(missing, f"is missing in the call of {name}", remedy) from None


def _check_types(expected: Signature, given: Mapping[str, Any]) -> None:
    for each, value in given.items():
        names, kind = _accepted(expected.parameters[each]), type(value)
        if names and not any(_serves(kind, name) for name in names):
            step = (_STEPS.get((kind.__name__, name)) for name in names)
            remedy = next(filter(None, step), f"give {_wanted(names)}")
            raise ArgumentError(each, f"is of type {kind.__name__}", remedy)


def _accepted(parameter: Parameter) -> tuple[str, ...]:
    """Return the names in an annotation, without what they contain; none if any is unknown."""
    text = parameter.annotation
    variadic = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    if not isinstance(text, str) or parameter.kind in variadic:
        return ()
    while text != (text := _INSIDE.sub("", text)):
        pass
    names = tuple(part.strip() for part in text.split("|"))
    return names if all(n in _TYPES or n in _METHODS or n in _CLASSES for n in names) else ()


def _serves(kind: type, name: str) -> bool:
    bases = kind.__mro__
    if name in _METHODS:  # a text is a sequence, but never meant as one
        has = (any(method in vars(base) for base in bases) for method in _METHODS[name][0])
        return all(has) and not issubclass(kind, str | bytes)
    meant = (name,) if name in _CLASSES else _TYPES[name][0]
    number = "int" in meant and kind is bool
    return not number and any(base.__name__ in meant for base in bases)


def _wanted(names: Sequence[str]) -> str:
    """Return what to give, in words."""
    words = [
        _CLASSES.get(name) or (_TYPES.get(name) or _METHODS[name])[1]
        for name in names
        if not (name == "int" and {"float", "Fraction"}.intersection(names))
    ]
    if "a path" in words and "a text" in words:
        words.remove("a text")
    *most, last = dict.fromkeys(filter(None, words)) or [""]
    return f"{', '.join(most)} or {last}" if most else last
