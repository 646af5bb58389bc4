"""The test utilities are the top layer, and nothing else depends on them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import optpart

PACKAGE = Path(optpart.__file__).parent


def test_nothing_else_in_the_package_imports_it() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "testing" not in path.parts:
            assert "optpart.testing" not in path.read_text(), path


def test_only_the_strategies_need_hypothesis() -> None:
    names = [p.stem for p in (PACKAGE / "testing").glob("*.py") if p.stem != "strategies"]
    imports = "".join(f"import optpart.testing.{name}; " for name in names if name != "__init__")
    code = f"{imports}import sys; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
