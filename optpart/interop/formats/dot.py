"""Graphs in DOT, the language of Graphviz, with the attributes of :mod:`.attributes`.

::

    digraph two {
      colocation = "a;b"
      a [ops=30, outputs="50;20"]
      b [ops="1/3", device_type=GPU]
      a -> b [output=1]
      a -> c [size=10]
    }

A vertex that only edges name, such as ``c``, costs nothing. The file has no units of its own, and
no devices. Refused are unknown attributes, those of drawing (``label``, ``shape``) too, undirected
graphs, subgraphs, ports, HTML and defaults (``node [ops=1]``).

The parser is our own: those that are around keep the last of several values and read ``--`` as an
arrow, without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats import attributes
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

_TOKEN = re.compile(
    r"""
      (?P<blank>\s+ | //[^\n]* | ^\#[^\n]* | /\*.*?\*/)
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<bare>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?![A-Za-z_0-9\x80-\U0010ffff])
        | [A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*)
    | (?P<sign>->|--|[{}\[\]=;,+:<])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_REFUSED = {
    ":": ("a port", "leave out ports, or quote the name"),
    "<": ("HTML", "give plain text"),
    "--": ("an edge without direction", "write ->"),
    "{": ("a subgraph", "give one flat graph"),
}


def sniff(text: str) -> bool:
    """Return whether a text begins as a graph in DOT does."""
    return re.match(r"\s*(strict\s+)?(di)?graph\b[^\n]*\{", text, re.IGNORECASE) is not None


def read(path: str | Path) -> Workload:
    """Read a graph, without work; every fault names file and line."""
    with FaultsOf(path):
        return _Parser(read_text(path)).workload(Path(path).stem)


class _Token(NamedTuple):
    """A name (``sign`` is empty) or a sign; ``keyword`` is a bare name in lower case."""

    line: int
    sign: str
    name: str
    keyword: str

    @property
    def place(self) -> str:
        return f"line {self.line}"


def _tokens(text: str) -> Iterator[_Token]:
    line, at = 1, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InputError(f"line {line}", f"{shown(text[at])} is not DOT", "give a digraph")
        if found["quoted"] is not None:
            name = found["quoted"].replace("\\\n", "").replace('\\"', '"')
            yield _Token(line, "", name, "")
        elif found["bare"] is not None:
            yield _Token(line, "", found["bare"], found["bare"].lower())
        elif found["sign"] is not None:
            yield _Token(line, found["sign"], "", "")
        line += text.count("\n", at, found.end())
        at = found.end()
    yield _Token(line, "the end", "", "")


class _Parser:
    """One pass over the tokens of a flat graph."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)
        self._nodes: dict[str, tuple[dict[str, str], str]] = {}
        self._edges: list[tuple[str, str, dict[str, str], str]] = []
        self._graph: dict[str, str] = {}

    def workload(self, name: str) -> Workload:
        """Parse everything."""
        strict = self._take_keyword("strict")
        if not self._take_keyword("digraph"):
            kind = "an undirected graph" if self._next.keyword == "graph" else "not DOT"
            raise InputError(self._next.place, kind, "give a digraph { … }")
        title = name if self._next.sign else self._name()[0]
        self._sign("{")
        while self._next.sign != "}":
            self._statement()
            if self._next.sign == ";":
                self._advance()
        self._advance()
        if self._next.sign != "the end":
            raise InputError(self._next.place, "more after the graph", "give exactly one graph")
        pairs = [edge[:2] for edge in self._edges]
        if strict and len(set(pairs)) < len(pairs):
            raise InputError("", "is strict, but has an edge twice", "give every edge once")
        nodes = [(node, given, place) for node, (given, place) in self._nodes.items()]
        return attributes.build(nodes, self._edges, self._graph, title or name, "DOT")

    def _statement(self) -> None:
        token = self._next
        if token.keyword in ("node", "edge", "graph"):
            self._advance()
            given = self._attributes()
            if token.keyword == "graph":
                self._merge(self._graph, given, token.place)
            elif given:
                raise InputError(
                    token.place, "sets defaults", f"write attributes at every {token.keyword}"
                )
            return
        if token.keyword == "subgraph":
            raise InputError(token.place, "a subgraph", "give one flat graph")
        name, place = self._name()
        if self._next.sign == "=":
            self._advance()
            self._merge(self._graph, {name: self._name()[0]}, place)
            return
        chain = [name]
        while self._next.sign == "->":
            self._advance()
            chain.append(self._name()[0])
        given = self._attributes()
        for each in chain:
            self._nodes.setdefault(each, ({}, f"{place}, node {shown(each)}"))
        if len(chain) == 1:  # DOT adds to a vertex that is named again
            self._merge(self._nodes[name][0], given, place)
        for source, target in pairwise(chain):
            edge = f"{place}, edge {shown(source)} to {shown(target)}"
            self._edges.append((source, target, given, edge))

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self._next.sign == "[":
            self._advance()
            while self._next.sign != "]":
                key, place = self._name()
                self._sign("=")
                self._merge(found, {key: self._name()[0]}, place)
                if self._next.sign in (",", ";"):
                    self._advance()
            self._advance()
        return found

    def _merge(self, known: dict[str, str], given: dict[str, str], place: str) -> None:
        for key, value in given.items():
            if known.setdefault(key, value) != value:
                raise InputError(place, f"another value of {shown(key)}", "give it once")

    def _name(self) -> tuple[str, str]:
        """Take a name, quoted pieces joined by ``+`` included."""
        token = self._next
        if token.sign:
            self._unexpected("a name")
        self._advance()
        pieces = [token.name]
        while self._next.sign == "+":
            self._advance()
            if self._next.sign:
                self._unexpected("a quoted text")
            pieces.append(self._next.name)
            self._advance()
        return "".join(pieces), token.place

    def _take_keyword(self, keyword: str) -> bool:
        found = self._next.keyword == keyword
        if found:
            self._advance()
        return found

    def _sign(self, sign: str) -> None:
        if self._next.sign != sign:
            self._unexpected(sign)
        self._advance()

    def _unexpected(self, wanted: str) -> None:
        token = self._next
        if token.sign in _REFUSED:
            raise InputError(token.place, *_REFUSED[token.sign])
        raise InputError(
            token.place, f"{token.sign or shown(token.name)} is unexpected", f"give {wanted}"
        )

    def _advance(self) -> None:
        self._next = next(self._tokens, self._next)
