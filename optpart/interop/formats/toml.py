"""TOML as all formats read it: exact decimals, and one line for a fault."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from typing import Any

from optpart.base.errors import InputError
from optpart.base.languages import to_toml
from optpart.problem.document import number
from optpart.problem.rational import decimal, rational


def parse_toml(text: str) -> Any:
    """Parse TOML with exact decimals.

    Raises
    ------
    InputError
        If it is not TOML, or a number has too many digits.
    """
    try:
        return tomllib.loads(text, parse_float=decimal)
    except tomllib.TOMLDecodeError as error:
        raise InputError("", f"is not TOML ({error})", "give a TOML document") from None
    except RecursionError:
        raise InputError("", "is nested too deeply", "give a TOML document") from None
    except ValueError as error:  # a number of too many digits
        raise InputError("", f"cannot be read ({error})", "give shorter numbers") from None


def exact(value: Fraction) -> str:
    """Write a number: an integer, or a string such as ``"1/3"``."""
    written = number(value)
    return to_toml(written) if isinstance(written, str) else str(written)


def exact_decimal(value: Fraction) -> str:
    """Write a number as a decimal if one is exact, else as a string such as ``"1/3"``."""
    try:
        text = repr(float(value))
    except OverflowError:
        return exact(value)
    return text if rational(text) == value else exact(value)
