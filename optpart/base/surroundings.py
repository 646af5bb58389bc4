"""Protection from files in the current folder, which must not steer the program."""

from __future__ import annotations

import os
from contextlib import chdir
from importlib import import_module
from typing import Any

#: Files in which libraries look for settings in the current folder when they are imported.
_SETTINGS = {".numba_config.yaml": "numba", "matplotlibrc": "matplotlib"}


def ignore_settings_here() -> None:
    """Import the libraries that would read settings from the current folder from elsewhere.

    Such settings change what is compiled, and how pictures look; numba's can name a folder of
    compiled code to load. The user's own settings, in the home folder or the environment, count.
    """
    found = [library for file, library in _SETTINGS.items() if os.path.lexists(file)]
    if not found:
        return
    with chdir(os.sep):
        for library in found:
            import_module(library)
    if "numba" in found:
        # It reads the file again whenever it compiles.
        config: Any = import_module("numba.core.config")
        config._config_fname = os.devnull
