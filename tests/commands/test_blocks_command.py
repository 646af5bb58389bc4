"""``solve`` and ``verify`` with contiguous blocks, an order of devices, and the bottleneck."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Run

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.interop.formats import native


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Four vertices of 4, 3, 2 and 1 operations in a row, on two devices."""
    graph = GraphBuilder()
    for name, ops in zip("abcd", (4, 3, 2, 1), strict=True):
        graph.vertex(name, ops, outputs=[1])
    for source, target in ("ab", "bc", "cd"):
        graph.edge(source, target)
    path = tmp_path / "chain.json"
    native.write(Instance(graph.build(), Cluster.uniform(2, bandwidth=2), name="chain"), path)
    return path


def test_the_least_bottleneck(run: Run, chain: Path, tmp_path: Path) -> None:
    found = run("solve", chain, "--objective", "bottleneck", "-o", tmp_path / "result.json")
    assert found.code == 0
    assert found.out.startswith("chain: OPTIMAL, bottleneck 5, lower bound 5, makespan ")
    document = json.loads((tmp_path / "result.json").read_text())
    assert (document["objective"], document["bottleneck"], document["bottleneck_bound"]) == (
        "bottleneck", "5", "5",
    )  # fmt: skip
    assert "contiguous" not in document
    checked = run("verify", chain, tmp_path / "result.json")
    assert (checked.code, checked.err) == (0, "")
    assert ", bottleneck 5, claimed bottleneck bound 5" in checked.out


@pytest.mark.parametrize("method", ["cpsat", "milp", "enumerate"])
def test_along_an_order_of_devices(run: Run, chain: Path, tmp_path: Path, method: str) -> None:
    """The blocks are a and the rest, so that b, c and d make 6."""
    result = tmp_path / "result.json"
    found = run(
        "solve", chain, "-m", method, "--objective", "bottleneck", "--device-order", "d1, d0",
        "-o", result,
    )  # fmt: skip
    assert found.code == 0
    assert found.out.startswith(
        "chain: OPTIMAL given blocks along an order of 2 devices, bottleneck 6, lower bound 6, "
    )
    document = json.loads(result.read_text())
    assert document["device_order"] == ["d1", "d0"]
    assert document["schedule"]["placement"] == {"a": "d1", "b": "d0", "c": "d0", "d": "d0"}
    assert run("verify", chain, result).code == 0
    wrong = run("verify", chain, result, "--device-order", "d0,d1")
    assert (wrong.code, wrong.out) == (
        1, "contiguity: the edge from a to b goes from d1 back to d0\n",
    )  # fmt: skip


def test_contiguous_blocks(run: Run, chain: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    found = run("solve", chain, "--contiguous", "--objective", "bottleneck", "-o", result)
    assert found.code == 0
    assert "OPTIMAL given contiguous blocks, bottleneck 6" in found.out
    assert json.loads(result.read_text())["contiguous"] is True
    free = tmp_path / "free.json"
    run("solve", chain, "--objective", "bottleneck", "-o", free)
    checked = run("verify", chain, free, "--contiguous")
    assert checked.code == 1
    assert checked.out.startswith("contiguity: the path ")


def test_a_device_that_is_not_in_the_order_stays_empty(run: Run, chain: Path) -> None:
    found = run("solve", chain, "--device-order", "d1")
    assert found.code == 0
    assert "d0" not in found.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device-order", "d0,d7"], "--device-order: no device 'd7'; did you mean d1 or d0?"),
        (["--device-order", "d0,d0"], "--device-order: names 'd0' twice; name every device once"),
        (
            ["--device-order", ","],
            "--device-order: names no device; name the devices that may be used, in order",
        ),
        (
            ["-m", "heft", "--contiguous"],
            "--method: heft does not support contiguous blocks; use auto, cpsat, milp, milp-cbc, "
            "enumerate or pipeline",
        ),
        (
            ["-m", "heft", "--objective", "bottleneck"],
            "--method: heft can only minimise the makespan; use auto, cpsat, milp, milp-cbc or "
            "enumerate",
        ),
        (
            ["-m", "search", "--contiguous"],
            "goal: search does not support contiguous blocks; leave it out, or use auto, cpsat, "
            "milp, milp-cbc, enumerate or pipeline",
        ),
        (
            ["-m", "hybrid", "--objective", "bottleneck"],
            "goal: search does not support the bottleneck; leave it out, or use auto, cpsat, milp, "
            "milp-cbc or enumerate",
        ),
        (
            ["--pareto", "--objective", "bottleneck"],
            "--pareto: finds the front of makespan and traffic only; leave --objective out",
        ),
        (
            ["--sensitivity", "10%", "--contiguous"],
            "--sensitivity: only for a least makespan; leave out what else is asked for",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Run, chain: Path, options: list[str], message: str
) -> None:
    found = run("solve", chain, *options)
    assert (found.code, found.out, found.err) == (2, "", f"optpart: {message}\n")


@pytest.mark.parametrize("memory", ["edges", "refcount"])
def test_the_bottleneck_is_not_defined_where_memory_depends_on_time(
    run: Run, chain: Path, memory: str, tmp_path: Path
) -> None:
    document = json.loads(chain.read_text())
    document["model"] = {"memory": memory}
    path = tmp_path / "timed.json"
    path.write_text(json.dumps(document))
    assert run("solve", path, "--objective", "bottleneck").code == 0  # no device has a limit
    document["devices"][0]["memory"] = 100
    path.write_text(json.dumps(document))
    found = run("solve", path, "--objective", "bottleneck")
    assert (found.code, found.err) == (
        2,
        f"optpart: --objective: the bottleneck is not defined where memory depends on time "
        f"({memory}); use memory none or estimate\n",
    )


def test_a_vertex_that_no_device_of_the_order_may_run(run: Run, tmp_path: Path) -> None:
    graph = GraphBuilder().vertex("a", 1).vertex("b", 1, devices=["d1"]).build()
    path = tmp_path / "pinned.json"
    native.write(Instance(graph, Cluster.uniform(2), Model(), name="pinned"), path)
    found = run("solve", path, "--device-order", "d0")
    assert (found.code, found.out) == (3, "pinned: INFEASIBLE: b may run on none of d0\n")
