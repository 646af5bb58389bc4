"""Lets every test import the shared modules of this folder, whatever pytest's import mode."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("optpart", derandomize=True, deadline=None)
settings.load_profile("optpart")
