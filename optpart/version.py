"""The version of optpart."""

__version__ = "0.2.0"
