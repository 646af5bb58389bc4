"""What makes hidden states of images: the vision tower of a language model, with its projector.

A tower cuts an image into patches, whose blocks of attention and feed-forward attend to each other;
a projector makes a token of every square of ``merge`` by ``merge`` patches. Every patch is
multiplied with the filters and with the matrices of the blocks, every token with the matrices of
the projector; positions and classes are looked up. Where windows stand side by side, patches of all
but some blocks attend to those of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from optpart.base.errors import InputError
from optpart.base.limits import MOST_TOKENS
from optpart.interop.formats.operator_cost import attention, contraction
from optpart.interop.formats.parsing import is_whole
from optpart.problem.rational import shown

#: What weights are for: nothing is multiplied with the first.
TABLE, PATCH, TOKEN = "table", "patch", "token"


class Held(Protocol):
    """A tensor of weights."""

    @property
    def type(self) -> str:
        """Its type."""

    @property
    def elements(self) -> int:
        """Number of elements."""

    @property
    def bytes(self) -> int:
        """Size in bytes."""

    @property
    def is_matrix(self) -> bool:
        """Whether something is multiplied with it."""


class Eye(NamedTuple):
    """How a tower sees, as far as its weights do not tell.

    Attributes
    ----------
    width, blocks, heads : int
    patch : int
        Pixels of a side.
    merge : int
        Patches of a side of the square that becomes a token.
    image : int or None
        Pixels of a side; ``None`` if images may have any size.
    classes : int
        Positions that are of no patch.
    window : int
        Patches of a side of a window; 0 without.
    whole : int
        Blocks without windows, if there are any.
    """

    width: int
    blocks: int
    heads: int
    patch: int
    merge: int
    image: int | None
    classes: int = 0
    window: int = 0
    whole: int = 0


class Tower(NamedTuple):
    """A vision tower and its projector.

    Attributes
    ----------
    parameters, bytes : int
    type : str
        Of most elements of the matrices.
    of_patch, of_token : int
        Elements that every patch, or every token, is multiplied with.
    eye : callable
        Returns the :class:`Eye`, or raises :class:`InputError` if not all is known of it: weights
        are held whether or not anything sees.
    """

    parameters: int
    bytes: int
    type: str
    of_patch: int
    of_token: int
    eye: Callable[[], Eye]


class Sight(NamedTuple):
    """What seeing one image takes.

    Attributes
    ----------
    side : int
        Pixels of a side, of three colours each.
    patches, tokens : int
    flops : int
    states : int
        Numbers of the hidden states that blocks read, and as many that they write.
    live : int
        Numbers that are there at a time: eight hidden states and all products of a block.
    """

    side: int
    patches: int
    tokens: int
    flops: int
    states: int
    live: int


def tower(weights: Iterable[tuple[str, Held]], eye: Callable[[], Eye]) -> Tower:
    """Return a tower of weights and what each is for."""
    held, types = list(weights), Counter[str]()
    of = {TABLE: 0, PATCH: 0, TOKEN: 0}
    for place, weight in held:
        if weight.is_matrix:
            of[place] += weight.elements
            types[weight.type] += weight.elements
    parameters = sum(weight.elements for _, weight in held)
    stored = sum(weight.bytes for _, weight in held)
    return Tower(parameters, stored, types.most_common(1)[0][0], of[PATCH], of[TOKEN], eye)


def sight(seeing: Tower, image: int | None) -> Sight:
    """Return what seeing an image takes.

    Parameters
    ----------
    image : int or None
        Pixels of a side; by default as the tower says.

    Raises
    ------
    InputError
        If the tower does not tell how it sees, or cannot see images of this size.
    """
    eye = seeing.eye()
    for what, value in eye._asdict().items():
        least = 0 if what in ("classes", "window", "whole") else 1
        if not (value is None and what == "image") and not is_whole(value, least, 10**6):
            problem = "not known" if value is None else shown(value)
            remedy = "give the whole model, or leave --images out"
            raise InputError(f"vision tower, {what}", problem, remedy)
    pixels = image or eye.image
    if pixels is None:
        problem, remedy = "is missing; the model sees images of any size", "give pixels of a side"
        raise InputError("image_size", problem, remedy)
    side = pixels // eye.patch
    if not side or side % eye.merge:
        problem = f"{pixels} pixels are {side} patches of {eye.patch}"
        raise InputError("image_size", problem, f"give a multiple of {eye.patch * eye.merge}")
    positions = side**2 + eye.classes
    pairs = eye.blocks * positions**2
    if eye.window and eye.window < side:
        full, rest = divmod(side, eye.window)
        inside = full * eye.window**2 + rest**2  # of one axis
        whole = min(eye.whole, eye.blocks)
        pairs = whole * positions**2 + (eye.blocks - whole) * inside**2
    tokens = (side // eye.merge) ** 2
    flops = contraction(positions, seeing.of_patch) + contraction(tokens, seeing.of_token)
    flops += attention(2 * eye.width * pairs, eye.heads * pairs, masked=False)
    if flops >= 2**63:
        raise InputError("image_size", f"{pixels} pixels", f"give 1 to {MOST_TOKENS} pixels")
    live = positions * (8 * eye.width + seeing.of_patch // (eye.blocks * eye.width))
    return Sight(pixels, side**2, tokens, flops, eye.blocks * positions * eye.width, live)
