"""Run the commands of the gallery, and show what they draw."""

from __future__ import annotations

import html
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from IPython.display import HTML, display
from IPython.utils.capture import capture_output
from matplotlib_inline.backend_inline import set_matplotlib_formats

from optpart.cli import app

DOCS = Path(__file__).parent
#: Where the site takes pictures and pages from that belong to no page of its own.
MADE = DOCS / "_build" / "extra" / "gallery"

MADE.mkdir(parents=True, exist_ok=True)
set_matplotlib_formats("svg")
_training = (DOCS / "use" / "training.md").read_text(encoding="utf-8")
os.chdir(tempfile.mkdtemp(prefix="gallery-"))
Path("lab.toml").write_text(re.findall(r"^```toml\n(.*?)^```", _training, re.M | re.S)[0])


def drawn(
    *commands: str, pictures: Mapping[str, str], quiet: bool = False, codes: tuple[int, ...] = (0,)
) -> None:
    """Run commands of optpart, and show them with their output and their pictures.

    Parameters
    ----------
    pictures : dict of str to str
        What each picture shows, for those who cannot see it, by the name of its file.
    quiet : bool
        Whether to leave out what the commands print.
    codes : tuple of int
        Exit codes that are expected.
    """
    said = []
    for command in commands:
        with capture_output() as captured:
            code = app(shlex.split(command)[1:], prog_name="optpart", standalone_mode=False) or 0
        if code not in codes:
            raise RuntimeError(f"{command}: exit code {code}: {captured.stdout}")
        said.append(f"$ {command}\n{'' if quiet else captured.stdout}")
    display(HTML(f'<pre class="commands">{html.escape("".join(said))}</pre>'))
    for name, alt in pictures.items():
        shutil.copyfile(name, MADE / Path(name).name)
        target = f"gallery/{Path(name).name}"
        if name.endswith(".html"):
            frame = f'<iframe src="{target}" title="{html.escape(alt)}"></iframe>'
            display(HTML(f'{frame}<p><a href="{target}">Open the page by itself</a></p>'))
        else:
            image = f'<img src="{target}" alt="{html.escape(alt)}">'
            display(HTML(f'<a class="wide" href="{target}">{image}</a>'))
