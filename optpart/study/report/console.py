"""Tables for a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from optpart.base.escaping import shortened, visible

#: Spaces between the columns of a table that is short of room.
_GAP = 2

#: Wider than any table.
_UNLIMITED = 10**6

#: A remark with less room than this is left for the lines below.
_REMARK = 12

#: A sentence with less room than this beside the words before it goes below them.
_SENTENCE = 24


class PlainConsole(Console):
    """A console that shows strings literally: no markup or emoji, control characters escaped.

    Attributes
    ----------
    breaks : bool
        Whether sentences are broken between words; those for files and pipes stay whole.
    """

    breaks = True

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the literal text of a string, also in tables."""
        return super().render_str(visible(text), **options)

    def show(self, table: Table) -> None:
        """Print a table; where it is too wide, rearranged such that every figure stays whole.

        The heads of columns break between words. If that is not enough, letters stand for the names
        in the first column, and a legend below explains them; if that is not enough, every row
        becomes lines of heads and figures.
        """
        width = self.width
        unlimited = self.options.update(max_width=_UNLIMITED)
        if Measurement.get(self, unlimited, table).maximum <= width:
            self.print(table)
        else:
            self._rearrange(_Cells.of(table))

    def show_rows(
        self, heads: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str]
    ) -> None:
        """Print a table as :meth:`show` does, but without rich, which is slow for many rows.

        Parameters
        ----------
        left : sequence of str
            Heads of the columns of words; the others are of figures, aligned on the right.
        """
        right = [head not in left for head in heads]
        texts = [[visible(cell) for cell in row] for row in rows]
        cells = _Cells([*heads], right, texts, [""] * len(texts))
        whole = cells.lines(self.width, broken=False)
        if whole is None:
            self._rearrange(cells)
            return
        self.print(Text(whole[0], style="dim"))
        if texts:
            self.print(Text("\n".join(whole[1:])))

    def _rearrange(self, cells: _Cells) -> None:
        """Print a table that is too wide."""
        width = self.width
        narrow = cells.lines(width)
        legend: list[str] = []
        names = [*dict.fromkeys(_marked(row[0])[1] for row in cells.rows)]
        if narrow is None and len(names) <= len(ascii_lowercase):
            letter = dict(zip(names, ascii_lowercase, strict=False))
            narrow = cells.renamed(letter.__getitem__).lines(width)
            for name in names:
                line = f"  {letter[name]} = {name}"
                legend += textwrap.wrap(line, max(width, 20), subsequent_indent="      ")
        if narrow is None:
            for line in cells.stacked(width):
                self.print(line)
            return
        for i, line in enumerate(narrow):
            self.print(Text(line, style="dim") if i < cells.head_lines else line)
        for line in legend:
            self.print(line)

    def tell(self, line: str) -> None:
        """Print a line of text, broken between words."""
        for part in _wrapped(visible(line), self.width if self.breaks else _UNLIMITED, "    "):
            self.print(part)

    def tell_rows(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print rows of words, the last of which is a sentence.

        The words are aligned, and the sentence is broken beside them; where there is little room,
        it goes below them.
        """
        rows = [tuple(visible(cell) for cell in row) for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)][:-1]
        lead = sum(widths) + _GAP * len(widths)
        width = self.width if self.breaks else _UNLIMITED
        for *words, sentence in rows:
            if width - lead < _SENTENCE:
                for line in (*_wrapped((" " * _GAP).join(words).rstrip(), width, "    "),
                             *_wrapped(f"    {sentence}", width, "    ")):  # fmt: skip
                    self.print(line)
                continue
            before = "".join(
                word + " " * (room - cell_len(word) + _GAP)
                for word, room in zip(words, widths, strict=True)
            )
            for i, line in enumerate(_wrapped(sentence, width - lead, "")):
                self.print(f"{before if i == 0 else ' ' * lead}{line}")


@dataclass(frozen=True)
class _Cells:
    """The texts of a table; remarks are apart, since they may be cut and figures may not."""

    heads: list[str]
    right: list[bool]
    rows: list[list[str]]
    remarks: list[str]

    @classmethod
    def of(cls, table: Table) -> _Cells:
        columns = [[_plain(cell) for cell in column.cells] for column in table.columns]
        heads = [_plain(column.header) for column in table.columns]
        remarks = [""] * table.row_count
        if heads[-1] == "":
            heads.pop()
            remarks = columns.pop()
        right = [column.justify == "right" for column in table.columns[: len(heads)]]
        return cls(heads, right, [list(row) for row in zip(*columns, strict=True)], remarks)

    def renamed(self, short: Callable[[str], str]) -> _Cells:
        """Return the table with other names, marks before them kept."""
        rows = []
        for name, *figures in self.rows:
            mark, bare = _marked(name)
            rows.append([mark + short(bare), *figures])
        return _Cells(self.heads, self.right, rows, self.remarks)

    @property
    def head_lines(self) -> int:
        """Number of lines of the heads once they are broken."""
        return max(len(lines) for lines in self._heads(self._widths()))

    def _widths(self, *, broken: bool = True) -> list[int]:
        widths = []
        for i, head in enumerate(self.heads):
            words = [cell_len(word) for word in (head.split() if broken else [head])] or [0]
            words[0] += len(head) - len(head.lstrip())
            widths.append(max([*words, *(cell_len(row[i]) for row in self.rows)]))
        return widths

    def _heads(self, widths: list[int]) -> list[list[str]]:
        found = []
        for head, width in zip(self.heads, widths, strict=True):
            lead = head[: len(head) - len(head.lstrip())]
            found.append(textwrap.wrap(head, max(width, 1), initial_indent=lead,
                                       subsequent_indent=lead) or [""])  # fmt: skip
        return found

    def lines(self, width: int, *, broken: bool = True) -> list[str] | None:
        """Return the lines of the table, with heads broken or whole; ``None`` if it is too wide."""
        widths = self._widths(broken=broken)
        heads = self._heads(widths)
        used = sum(widths) + _GAP * (len(widths) - 1)
        if used > width:
            return None
        deepest = max(map(len, heads))
        padded = [[""] * (deepest - len(lines)) + lines for lines in heads]
        found = [self._line(list(cells), widths) for cells in zip(*padded, strict=True)]
        room = width - used - _GAP
        for row, remark in zip(self.rows, self.remarks, strict=True):
            line = self._line(row, widths)
            if remark and (len(remark) <= room or room >= _REMARK):
                found.append(f"{line.ljust(used)}{' ' * _GAP}{shortened(remark, room)}")
            elif remark:
                found += [line, f"    {shortened(remark, max(1, width - 4))}"]
            else:
                found.append(line)
        return found

    def _line(self, cells: list[str], widths: list[int]) -> str:
        parts = []
        for cell, width, right in zip(cells, widths, self.right, strict=True):
            space = " " * (width - cell_len(cell))
            parts.append(space + cell if right else cell + space)
        return (" " * _GAP).join(parts).rstrip()

    def stacked(self, width: int) -> Iterable[str]:
        """Yield every row as its name and lines of heads and figures."""
        for (name, *figures), remark in zip(self.rows, self.remarks, strict=True):
            yield shortened(name, width)
            line = ""
            pairs = [" ".join(pair) for pair in zip(self.heads[1:], figures, strict=True)]
            for pair in [*pairs, *([remark] if remark else [])]:
                longer = f"{line}, {pair}" if line else f"    {pair}"
                if line and cell_len(longer) + 1 > width:
                    yield from _wrapped(f"{line},", width, "    ")
                    longer = f"    {pair}"
                line = longer
            yield from [_cut(line, remark, width)] if remark else _wrapped(line, width, "    ")


def _marked(name: str) -> tuple[str, str]:
    """Split a name into the mark before it, such as ``! ``, and the name itself."""
    return (name[:2], name[2:]) if name[:2] in ("! ", "  ") else ("", name)


def _cut(line: str, remark: str, width: int) -> str:
    """Shorten the remark at the end of a line, and nothing else."""
    before = line[: len(line) - len(remark)]
    return before + shortened(remark, max(1, width - cell_len(before)))


def _plain(cell: Any) -> str:
    return visible(cell.plain if isinstance(cell, Text) else str(cell))


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    """Break a line between words, never within one."""
    if cell_len(line) <= width:
        return [line]
    return textwrap.wrap(line, max(width, 20), subsequent_indent=indent, break_on_hyphens=False,
                         break_long_words=False)  # fmt: skip


def plain_console() -> PlainConsole:
    """Return a console as wide as the terminal; for files and pipes, wide enough for any table.

    With ``NO_COLOR``, rich would still print bold and dim; here, nothing but text.
    """
    breaks = sys.stdout.isatty()
    console = PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True,
                           width=None if breaks else 200,
                           color_system=None if os.environ.get("NO_COLOR") else "auto")  # fmt: skip
    console.breaks = breaks
    return console


def plain_table(*heads: str, words: int = 1, **look: Any) -> Table:
    """Return an empty table: ``words`` columns of words on the left, then figures.

    A last column without a head takes remarks, which may be cut.
    """
    table = Table(box=None, pad_edge=False, **look)
    for i, head in enumerate(heads):
        left = i < words or not head
        table.add_column(head, justify="left" if left else "right", no_wrap=True)
    return table
