"""The check that this machine may work for a client elsewhere; Dask workers run it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

from optpart.base.errors import InputError
from optpart.methods import registry
from optpart.methods.fingerprint import differing, fingerprint
from optpart.methods.parts import Kind

#: What was taken over from clients, by kind and name, and the bytes that it came in.
_taken: dict[tuple[Kind, str], bytes] = {}


def vet(codes: Mapping[str, str], registered: bytes = b"") -> str:
    """Return why methods must not run here; empty if they may.

    Parameters
    ----------
    codes : mapping of str to str
        The :func:`~optpart.methods.fingerprint.fingerprint` that each method has at the client.
    registered : bytes
        What is registered at the client, pickled; empty for nothing.
    """
    _take_over(registered)
    for method, code in codes.items():
        try:
            registry.check(method)
        except InputError as error:
            return f"lacks a method: {error.problem}"
        sent = any(part in _taken for part in registry.foreign(method))
        if not sent and (other := differing(code, fingerprint(method))):
            return f"has other code of {method} ({other})"
    return ""


def _take_over(packed: bytes) -> None:
    """Register what the client has registered, in place of what an earlier one had."""
    if set(_taken.values()) <= {packed} and (_taken or not packed):
        return
    for kind, name in _taken:
        registry.forget(name, kind)
    _taken.clear()
    if not packed:
        return
    here = {(kind, name) for kind, name, *_ in registry.registered()}
    for kind, name, function, summary in pickle.loads(packed):
        if (kind, name) not in here:  # a worker in the process of the client has it already
            registry.register(name, summary, kind=kind)(function)
            _taken[kind, name] = packed
