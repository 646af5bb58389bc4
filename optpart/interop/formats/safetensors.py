"""Transformers as safetensors files; :mod:`~optpart.interop.formats.hugging_face` reads them."""

from __future__ import annotations

from optpart.interop.formats.hugging_face import read

__all__ = ["read", "sniff"]

SUMMARY = "transformers of Hugging Face as safetensors, with config.json"
SUFFIXES = (".safetensors", ".safetensors.index.json")


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as a safetensors file does, with a length and a JSON object."""
    return len(content) > 9 and content[8:9] == b"{" and content[4:8] == bytes(4)
