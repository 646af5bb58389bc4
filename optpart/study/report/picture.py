"""Pictures as PNG or SVG: the same data give the same bytes, whatever the user's settings."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.base.errors import InputError
from optpart.base.files import PICTURES, Kind, write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150

# Without dates and versions, so that the same schedule gives the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "optpart"},
    "svg": {"Date": None, "Creator": "optpart"},
    "pdf": {"CreationDate": None, "Creator": "optpart", "Producer": "optpart"},
}
#: The formats of pictures for papers.
PAPER_FORMS = ("png", "svg", "pdf")

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",  # keep text as text: small, searchable, selectable
    "svg.hashsalt": "optpart",
    "pdf.fonttype": 42,  # whole fonts, which publishers ask for
    "text.parse_math": False,  # a "$" in a name is a dollar sign
}


def kind_of(path: str | Path) -> Kind:
    """Return the kind of a picture by the suffix of its file.

    Raises
    ------
    InputError
        If the suffix is not supported.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in PICTURES:
        raise InputError("", f"no picture format {suffix!r}", "use .png or .svg", str(path))
    return PICTURES[suffix]


def write_picture(path: str | Path, draw: Callable[[], Figure]) -> None:
    """Write the figure that a function draws, completely or not at all.

    Parameters
    ----------
    path : str or Path
        The suffix, ``.png`` or ``.svg``, determines the format.

    Raises
    ------
    InputError
        If the suffix is not supported, or the file cannot be written.
    """
    kind = kind_of(path)
    write_bytes(path, render(draw, Path(path).suffix.lower()[1:]), kind)


def render(draw: Callable[[], Figure], form: str, dpi: int = DPI) -> bytes:
    """Return the figure that a function draws, in one of :data:`PAPER_FORMS`."""
    import matplotlib as mpl

    target = io.BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()  # the user's settings must not change the picture
        mpl.rcParams.update(_STYLE)
        draw().savefig(target, format=form, dpi=dpi, metadata=_METADATA[form])
    return target.getvalue()
