"""Linear programs that are written have the optimum of their instance."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, load
from optpart.base.errors import InputError
from optpart.exporters.linear_program import program, write
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

#: HiGHS cannot share a process with OR-Tools, which other tests load.
SOLVE = """
import highspy, json, sys
found = []
for path in sys.argv[1:]:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(path) == highspy.HighsStatus.kOk
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus())
    found.append([status, highs.getInfo().objective_function_value])
print(json.dumps(found))
"""


def solved(*paths: Path) -> list[tuple[str, float]]:
    command = [sys.executable, "-P", "-c", SOLVE, *map(str, paths)]
    said = subprocess.run(command, capture_output=True, check=True).stdout
    return json.loads(said.splitlines()[-1])  # from 1.16 on, HiGHS introduces itself before


def test_both_forms_have_the_known_optimum(tmp_path: Path) -> None:
    instance = load("heft-10")
    for form in ("lp", "mps"):
        write(instance, tmp_path / f"heft.{form}", form)
    found = solved(tmp_path / "heft.lp", tmp_path / "heft.mps")
    assert found == [["Optimal", pytest.approx(73)]] * 2


def test_programs_of_random_instances_have_their_optimum(tmp_path: Path) -> None:
    paths, expected = [], []
    for seed in range(8):
        memory = ("none", "estimate")[seed % 2]
        instance = random_instance(np.random.default_rng(seed), 5, 3, memory=memory)
        best = optimum(instance)
        if best is None:
            with pytest.raises(InputError, match="has no schedule"):
                program(instance, "mps")
            continue
        path = tmp_path / f"{seed}.mps"
        remarks = write(instance, path, "mps")
        unit = remarks[0].removeprefix("One unit of time of the program is ").split()[0]
        paths.append(path)
        expected.append(float(best.makespan / (1 if unit == "the" else Fraction(unit))))
    assert len(paths) >= 5
    found = solved(*paths)
    assert [status for status, _ in found] == ["Optimal"] * len(paths)
    assert [value for _, value in found] == pytest.approx(expected)


def pair(names=("left half", "right"), ops=("1/3", "1/2")) -> Instance:
    builder = GraphBuilder()
    for name, count in zip(names, ops, strict=True):
        builder.vertex(name, count, outputs=[1])
    builder.edge(names[0], names[1], 0)
    cluster = Cluster.of([Device("cpu"), Device("gpu:0")], bandwidth=1)
    return Instance(builder.build(), cluster, name="a pair")


def test_names_are_those_of_vertices_and_devices_and_times_are_whole(tmp_path: Path) -> None:
    text, remarks = program(pair(), "lp")
    assert remarks == [
        "One unit of time of the program is 1/6 time units; the objective is the makespan."
    ]
    assert text.startswith("\\ Schedules of a_pair under the model delay.\n\\ One unit of time")
    for line in (
        "placement_1: on_left_half_cpu + on_left_half_gpu_0 = 1",
        "starts_6: - makespan + 3 on_right_cpu + 3 on_right_gpu_0 + start_right <= 0",
    ):
        assert line in text, text


def test_names_that_are_alike_become_numbers() -> None:
    text, _ = program(pair(names=("a b", "a_b")), "mps")
    assert "on_v0_cpu" in text
    assert "on_v1_gpu_0" in text


def test_what_is_not_covered_is_refused(tmp_path: Path) -> None:
    queueing = replace(pair(), model=Model(communication="link"))
    with pytest.raises(InputError, match="milp does not support link"):
        program(queueing, "lp")
    builder = GraphBuilder()
    builder.vertex("big", 1, memory=2)
    full = Instance(
        builder.build(),
        Cluster.of([Device("cpu", memory=1)]),
        Model(memory="estimate"),
        name="full",
    )
    with pytest.raises(InputError, match="full: has no schedule"):
        write(full, tmp_path / "full.lp", "lp")
    assert not (tmp_path / "full.lp").exists()


def test_long_horizons_are_told() -> None:
    _, remarks = program(pair(ops=(10**7, 1)), "lp")
    assert "the tolerances of solvers are not small against 1" in remarks[1]
