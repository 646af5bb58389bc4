from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from optpart.applications.training.graph import Line
from optpart.applications.training.readers.sailor import read
from optpart.base.errors import InputError

DATA = Path(__file__).resolve().parents[4] / "../shared/data/sailor"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sizes = {
        "0": {"params_bytes": 100, "act_output_bytes": 80, "act_mem_bytes": 80},
        "1": {"params_bytes": 60, "act_output_bytes": 40, "act_mem_bytes": 90},
    }
    (tmp_path / "llm_info.json").write_text(json.dumps({"M": {"1": sizes}}))
    times = {
        "1": {"1": {"0": [3e-9, 7e-9, 5e-9], "1": [2e-9, 4e-9, 5e-9]}},
        "2": {"1": {"0": [5e-9, 14e-9, 7e-9], "1": [4e-9, 8e-9, 7e-9]}, "2": {}},
    }
    path = tmp_path / "profiles" / "M" / "GPU" / "profile.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(times))
    return tmp_path


def test_lines_are_fitted_to_all_microbatches(folder: Path) -> None:
    graph = read(folder, "M", ["GPU"])
    time = {operation.name: operation.times[0] for operation in graph.operations}
    assert time == {
        "layer 0": Line(Fraction(1), Fraction(2)),
        "layer 1": Line(Fraction(0), Fraction(2)),
        "layer 1/backward": Line(Fraction(0), Fraction(4)),
        "layer 0/backward": Line(Fraction(0), Fraction(7)),
        "layer 0/apply": Line(Fraction(6)),
        "layer 1/apply": Line(Fraction(6)),
    }


def test_what_is_kept_for_the_backward_pass_is_a_tensor(folder: Path) -> None:
    graph = read(folder, "M", ["GPU"])
    assert [[o.size.beta for o in op.outputs] for op in graph.operations[:2]] == [[80], [40, 50]]
    assert graph.resident == (0, 0, 0, 0, 100, 60)


def test_what_was_assumed_is_said(folder: Path) -> None:
    said = " ".join(read(folder, "M", ["GPU"]).assumed)
    assert "microbatches of GPU 1, 2; the largest relative error is 0." in said


def test_faults(folder: Path) -> None:
    with pytest.raises(InputError, match="no model 'X'"):
        read(folder, "X", ["GPU"])
    with pytest.raises(InputError, match="gpus: no profile of 'TPU'; choose one of GPU"):
        read(folder, "M", ["TPU"])
    with pytest.raises(InputError, match="no degree '2'"):
        read(folder, "M", ["GPU"], tensor_parallel=2)
    info = folder / "llm_info.json"
    info.write_text(info.read_text().replace('"1": {"params', '"2": {"params'))
    with pytest.raises(InputError, match="no layer 1"):
        read(folder, "M", ["GPU"])


def test_another_number_of_layers_is_refused(folder: Path) -> None:
    info = json.loads((folder / "llm_info.json").read_text())
    del info["M"]["1"]["1"]
    (folder / "llm_info.json").write_text(json.dumps(info))
    with pytest.raises(
        InputError, match=r"GPU: M has other layers than llm_info.json, which has 1"
    ):
        read(folder, "M", ["GPU"])


@pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/sailor")
def test_lines_meet_the_measured_times() -> None:
    graph = read(DATA, "OPT-350", ["A100-40", "V100-16"])
    assert len([o for o in graph.operations if o.role == "forward"]) == 26
    profile = json.loads((DATA / "profiles/OPT-350/A100-40/profile.json").read_text())
    for microbatch in ("1", "2", "4", "8"):
        measured = 1e9 * sum(sum(row[:2]) for row in profile[microbatch]["1"].values())
        lines = [o.times[0].at(int(microbatch)) for o in graph.operations if o.role != "apply"]
        assert float(sum(lines)) == pytest.approx(measured, rel=0.03)
