"""The program of every child process in Python: ``main`` of a module of the package beside it.

It is run as a file and with ``-P``, so that neither the current folder nor any other comes before
what is installed. This package itself comes from where its parent process has it: a name on the
path might stand for another version, or for nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def main() -> None:
    """Run the module that the first argument names, which finds the others as its own."""
    folder = Path(__file__).resolve().parents[2]
    spec = PathFinder.find_spec(folder.name, [str(folder.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(package)
    import_module(f"{spec.name}.base.surroundings").ignore_settings_here()
    import_module(sys.argv.pop(1)).main()


if __name__ == "__main__":
    main()
