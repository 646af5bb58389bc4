"""``optpart generate``: every generator of the table, with the parameters of its signature."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from commandline import Run

from optpart import Cluster, GraphBuilder, Instance
from optpart.interop.formats import cluster_toml, native
from optpart.interop.generate import registry
from optpart.interop.generate.option import Option
from optpart.interop.generate.registry import GENERATORS

#: Small ones, by the words of the command line and the arguments in Python.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "heterog-worst": ("--devices 2 --loops", {"devices": 2, "loops": True}),
    "thesis": ("3 --devices 5 --seed 4", {"number": 3, "devices": 5, "seed": 4}),
    "small": (
        "--vertices 6 --memory tight --types --ccr 0.5",
        {"vertices": 6, "memory": "tight", "types": True, "ccr": 0.5},
    ),
    "lstm": (
        "nmt --costs drawn --no-training --seed 2",
        {"network": "nmt", "costs": "drawn", "training": False, "seed": 2},
    ),
    "layered": ("--levels 3 --decay 0.5 --seed 1", {"levels": 3, "decay": 0.5, "seed": 1}),
    "workflow": (
        "montage --width 3 --devices 2 --seed 5",
        {"shape": "montage", "width": 3, "devices": 2, "seed": 5},
    ),
    "fork-join": (
        "--width 3 --stages 2 --ccr 0.5 --seed 2",
        {"width": 3, "stages": 2, "ccr": 0.5, "seed": 2},
    ),
    "tree": (
        "--direction out --levels 3 --branching 3",
        {"direction": "out", "levels": 3, "branching": 3},
    ),
    "fft": ("--points 4 --devices 2", {"points": 4, "devices": 2}),
    "gauss": ("--size 4 --seed 1", {"size": 4, "seed": 1}),
    "cholesky": ("--tiles 3 --ccr 2", {"tiles": 3, "ccr": 2}),
    "stencil": ("--width 3 --steps 2", {"width": 3, "steps": 2}),
    "gnp": ("--tasks 9 --probability 0.5", {"tasks": 9, "probability": 0.5}),
    "stg-layers": (
        "--layers 2 --width 3 --predecessors 3",
        {"layers": 2, "width": 3, "predecessors": 3},
    ),
    "training-pipeline": (
        "--devices 2 --microbatches 3 --chunks 2 --shape v --forward 9 13 --memory 4 --seed 1",
        {
            "devices": 2,
            "microbatches": 3,
            "chunks": 2,
            "shape": "v",
            "forward": (9, 13),
            "memory": 4,
            "seed": 1,
        },
    ),
    "cluster": ("--devices 4 --seed 3", {"devices": 4, "seed": 3}),
}


def test_every_generator_has_a_case() -> None:
    assert {*CASES} == {*GENERATORS}


@pytest.mark.parametrize("name", CASES)
def test_the_command_writes_what_the_function_returns(run: Run, tmp_path: Path, name: str) -> None:
    words, given = CASES[name]
    path, copy = tmp_path / "layered.json", tmp_path / "copy.json"
    assert run("generate", name, *words.split(), "-o", path).code == 0
    made = GENERATORS[name].load()(**given)
    (cluster_toml if isinstance(made, Cluster) else native).write(made, copy)  # type: ignore[arg-type]
    assert path.read_bytes() == copy.read_bytes()


@pytest.mark.parametrize(
    "name", [name for name in GENERATORS if name not in ("thesis", "lstm", "workflow")]
)
def test_all_that_is_not_an_argument_has_the_same_default_in_python(
    run: Run, tmp_path: Path, name: str
) -> None:
    path, copy = tmp_path / "layered.json", tmp_path / "copy.json"
    assert run("generate", name, "-o", path).code == 0
    made = GENERATORS[name].load()()
    (cluster_toml if isinstance(made, Cluster) else native).write(made, copy)  # type: ignore[arg-type]
    assert path.read_bytes() == copy.read_bytes()


def test_a_wrong_word_is_refused_with_those_that_are_right(run: Run, tmp_path: Path) -> None:
    shown = run("generate", "small", "--memory", "much", "-o", tmp_path / "x.json")
    assert shown.code == 2
    assert "memory: unknown 'much'; choose one of none, loose, tight" in shown.err
    assert not [*tmp_path.iterdir()]


def test_the_group_lists_every_generator_and_the_other_commands(run: Run) -> None:
    shown = run("generate", "--help").out
    assert all(name in shown for name in (*GENERATORS, "replica"))


class TestAGeneratorAddedToTheTable:
    """One row is enough: its signature is its command."""

    @pytest.fixture(autouse=True)
    def chain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def chain(
            kind: Annotated[Literal["long", "short"], Option(help="Which.")],
            length: Annotated[int, Option(1, 9, "Of the chain.")] = 2,
            internal: int = 7,
            *,
            name: str = "chain",
        ) -> Instance:
            builder = GraphBuilder()
            for v in range(length if kind == "short" else 9 * length):
                builder.vertex(f"v{v}", 1)
            return Instance(builder.build(), Cluster.uniform(1), name=name)

        monkeypatch.setattr(registry, "chain", chain, raising=False)
        row = registry.Generator("optpart.interop.generate.registry:chain", "Draw a chain.")
        monkeypatch.setitem(GENERATORS.rows, "chain", row)

    def test_it_is_a_command(self, run: Run, tmp_path: Path) -> None:
        shown = run("generate", "chain", "short", "--length", 3, "-o", tmp_path / "mine.json")
        assert (shown.code, native.read(tmp_path / "mine.json").vertices) == (0, 3)
        assert shown.out.startswith("mine: 3 vertices, 0 edges, 1 devices → ")

    def test_its_help_is_that_of_its_row_and_its_options(self, run: Run) -> None:
        shown = run("generate", "chain", "--help").out
        assert all(x in shown for x in ("Draw a chain.", "Which.", "Of the chain.", "1<=x<=9"))
        assert "internal" not in shown

    def test_its_ranges_are_kept(self, run: Run, tmp_path: Path) -> None:
        shown = run("generate", "chain", "long", "--length", 10, "-o", tmp_path / "mine.json")
        assert (shown.code, shown.err.count("\n")) == (2, 1)
        assert "'--length'" in shown.err
