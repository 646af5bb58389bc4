"""The versions of what optpart needs: the lowest that it allows, and those that are tested.

``lowest PYPROJECT`` prints constraints for pip, one per line. ``table PYPROJECT PYTHON`` prints a
table of the lowest versions, of those of the environment PYTHON and of those of this one; it exits
with 1 if one of them is not allowed, or if the lowest is not what PYTHON has.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

#: Extras of users. Those of contributors are tested with their newest versions only, and
#: ``extract``, which needs TensorFlow, is not tested here.
EXTRAS = ("certify", "dask", "metis", "onnx", "pandas")

VERSIONS = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
)


def requirements(pyproject: str) -> list[Requirement]:
    """Return what a project and its extras for users need."""
    project = tomllib.loads(Path(pyproject).read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name in EXTRAS for text in extras[name])]
    return [Requirement(text) for text in texts]


def bound(requirement: Requirement, operators: set[str]) -> str:
    """Return the version of a requirement's only bound with one of these operators, or nothing."""
    (version,) = [s.version for s in requirement.specifier if s.operator in operators] or [""]
    return version


def lowest(pyproject: str) -> int:
    """Print the lowest version of each requirement as a constraint."""
    for requirement in requirements(pyproject):
        version = bound(requirement, {">="})
        if not version:
            raise SystemExit(f"{pyproject}: {requirement}: no lowest version; add '>='")
        print(f"{requirement.name}=={version}")
    return 0


def table(pyproject: str, python: str) -> int:
    """Print the lowest, the tested and the highest versions; return whether any is wrong."""
    said = subprocess.run(
        [python, "-I", "-c", VERSIONS], check=True, capture_output=True, text=True
    )
    with_lowest = json.loads(said.stdout)
    row = "{:<14}{:<16}{:<16}{:<16}{}".format
    print(row("", "lowest", "tested", "tested", "highest"))
    wrong = []
    for requirement in requirements(pyproject):
        low, high = bound(requirement, {">="}), bound(requirement, {"<", "<="})
        name = requirement.name
        first, last = with_lowest[name.lower()], importlib.metadata.version(name)
        print(row(name, low, first, last, f"below {high}" if high else "any"))
        if first not in Requirement(f"{name}=={low}").specifier:
            wrong.append(f"{name}: lowest is {low}, but {first} was tested")
        if not requirement.specifier.contains(last, prereleases=True):
            wrong.append(f"{name}: {last} is installed, but {requirement} is required")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit({"lowest": lowest, "table": table}[sys.argv[1]](*sys.argv[2:]))
