import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import native, sailor
from optpart.problem.cluster import Cluster, Device
from optpart.problem.instance import Instance
from optpart.testing.mutate import refusals

DATA = Path(__file__).resolve().parents[3] / "../shared/data/sailor"


def layer(memory: int, size: int) -> dict[str, int]:
    return {"params_bytes": memory, "act_output_bytes": size, "act_mem_bytes": 9}


INFO = {"tiny": {"2": {"0": layer(100, 80), "2": layer(50, 4), "1": layer(60, 80)}}}
FAST = {
    "1": {"2": {"0": [0.5, 0.000003, 7], "1": [0.25, 0.5, 7], "2": [1, 2.0000000001, 7]}},
    "4": {"2": {"0": [2, 3, 7], "1": [4, 5, 7], "2": [6, 7, 7]}},
}
SLOW = {"1": {"2": {"0": [5, 1, 0], "1": [2.5, 5, 0], "2": [10, 20, 0]}}}


def write(folder: Path, info: Any = INFO, **profiles: Any) -> Path:
    (folder / "llm_info.json").write_text(json.dumps(info))
    for gpu, profile in (profiles or {"Fast": FAST, "Slow": SLOW}).items():
        path = folder / "profiles" / "tiny" / gpu / "profile.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(profile))
    return folder


def test_layers_are_a_chain_with_weights_and_activations(tmp_path: Path) -> None:
    workload = sailor.read(write(tmp_path), "tiny", tensor_parallel=2)
    graph = workload.graph
    assert graph.names == ("layer 0", "layer 1", "layer 2")
    assert graph.memory.fractions() == [100, 60, 50]
    assert graph.tensor_size.fractions() == [80, 80, 4]
    assert graph.edge_source.tolist() == [0, 1]
    assert workload.name == "tiny-mb1-tp2"


@pytest.mark.parametrize(
    ("which", "times"),
    [
        ("forward", (500_000_000, 250_000_000, 1_000_000_000)),
        ("backward", (3000, 500_000_000, 2_000_000_000)),
        ("training", (500_003_000, 750_000_000, 3_000_000_000)),
    ],
)
def test_times_of_a_pass_are_nanoseconds_by_gpu(tmp_path: Path, which: Any, times: Any) -> None:
    workload = sailor.read(write(tmp_path), "tiny", tensor_parallel=2, measured_pass=which)
    assert list(workload.measured) == ["Fast", "Slow"]
    assert workload.measured["Fast"] == times


def test_what_was_rounded_or_left_out_is_said(tmp_path: Path) -> None:
    workload = sailor.read(write(tmp_path), "tiny", tensor_parallel=2, microbatch=4)
    assert list(workload.measured) == ["Fast"]
    assert workload.graph.tensor_size.fractions() == [320, 320, 16]
    assert workload.assumed == (
        "The update of the weights is no part of the times.",
        "Memory is that of the parameters: what is kept for the backward pass, gradients and "
        "optimizer states are not counted.",
        "Not measured so on Slow.",
        "Activations are 4 times those of a microbatch of 1.",
    )
    assert sailor.read(tmp_path, "tiny", tensor_parallel=2).assumed[0] == (
        "One time was rounded to whole nanoseconds."
    )


def test_an_instance_of_it_survives_native_json(tmp_path: Path) -> None:
    workload = sailor.read(write(tmp_path), "tiny", tensor_parallel=2)
    cluster = Cluster.of([Device(gpu, type=gpu) for gpu in workload.measured], bandwidth="5/2")
    rows = list(zip(*workload.measured.values(), strict=True))
    instance = Instance(workload.graph, cluster, durations=rows)
    assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256


def test_a_folder_of_sizes_and_profiles_is_recognised(tmp_path: Path) -> None:
    assert not sailor.sniff(tmp_path)
    assert sailor.sniff(write(tmp_path))


def test_link_rates_are_bytes_per_nanosecond(tmp_path: Path) -> None:
    path = tmp_path / "network_coeffs.json"
    path.write_text('{"inter": {"A": {"2": [[0.1, 2, 3], 2.5e9]}}, "intra": {"A": {"4": [[], 7]}}}')
    assert sailor.bandwidths(path) == {
        "inter": {("A", 2): Fraction(5, 2)},
        "intra": {("A", 4): Fraction(7, 10**9)},
    }
    path.write_text('{"inter": {"A": {"x": [[], 1]}}, "intra": {}}')
    with pytest.raises(InputError, match=r"inter.A.x: 'x' is not a number"):
        sailor.bandwidths(path)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"model": "big"}, "llm_info.json: no model 'big'; choose one of tiny"),
        ({"tensor_parallel": 1}, "llm_info.json: tiny: no degree '1'; choose one of 2"),
        ({"microbatch": 9}, "tiny was not measured with microbatch 9, tensor-parallel degree 2"),
        ({"microbatch": 4, "gpus": ["Slow"]}, "was not measured with microbatch 4"),
        ({"gpus": ["H100"]}, "no profile of 'H100'; choose one of Fast, Slow"),
        (
            {"measured_pass": "update"},
            "no pass 'update'; choose one of forward, back",
        ),
    ],
)
def test_a_choice_that_is_not_there_is_refused(tmp_path: Path, given: Any, part: str) -> None:
    with pytest.raises(InputError) as error:
        sailor.read(write(tmp_path), **({"model": "tiny", "tensor_parallel": 2} | given))
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("info", "profile", "part"),
    [
        ([], FAST, "llm_info.json: [] is not an object"),
        ({"tiny": {"2": {"1": layer(1, 1)}}}, FAST, "tiny.2: no layer 0"),
        ({"tiny": {"2": {}}}, FAST, "tiny.2: no layers"),
        ({"tiny": {"2": {"0": {"params_bytes": 1}}}}, FAST, "tiny.2.0: no 'act_output_bytes'"),
        ({"tiny": {"2": {"0": layer(-1, 1)}}}, FAST, "tiny.2.0.params_bytes: -1 is negative"),
        ({"tiny": {"2": {"0": layer(1, 1)}}}, FAST, "1.2: 3 layers, but llm_info.json has 1"),
        (INFO, {"1": 3}, "profile.json: 1: 3 is not an object"),
        (INFO, {"1": {"2": {"0": [1, 2], "1": [], "2": []}}}, "1.2.0: 2 times; give those of"),
        (INFO, {"1": {"2": {"0": [1, -2, 0], "1": [], "2": []}}}, "1.2.0[1]: -2 is negative"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(
    tmp_path: Path, info: Any, profile: Any, part: str
) -> None:
    with pytest.raises(InputError) as error:
        sailor.read(write(tmp_path, info, Fast=profile), "tiny", tensor_parallel=2)
    message = str(error.value)
    assert message.startswith(str(tmp_path))
    assert part in message
    assert "\n" not in message


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    (tmp_path / "llm_info.json").write_text(json.dumps(INFO))
    with pytest.raises(InputError, match=r"holds no GPU/profile.json"):
        sailor.read(tmp_path, "tiny", tensor_parallel=2)


def test_damaged_files_are_read_or_refused_on_one_line(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for name in ("llm_info.json", "profiles/tiny/Fast/profile.json"):
        path = folder / name
        whole = path.read_bytes()

        def damaged(content: bytes, _: int, path: Path = path) -> None:
            path.write_bytes(content)
            sailor.read(folder, "tiny", tensor_parallel=2)

        faults = refusals(whole, range(150), damaged)
        path.write_bytes(whole)
        assert len(faults) > 75
        assert not any("\n" in fault for fault in faults)


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
def test_published_models_are_read() -> None:
    opt = sailor.read(DATA, "OPT-350", measured_pass="forward")
    assert (len(opt.graph), len(opt.measured)) == (26, 7)
    assert opt.measured["A100-40"][0] == 400_000
    llama = sailor.read(DATA, "LLAMA-3-8", microbatch=4, tensor_parallel=4)
    assert (len(llama.graph), list(llama.measured)) == (35, ["GH-96"])
    rates = sailor.bandwidths(DATA / "network_coeffs_all_homo.json")
    assert round(float(rates["intra"]["A100-80", 4]), 1) == 243.2


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
def test_a_published_profile_of_another_model_is_refused() -> None:
    # GPT-Neo-2.7/GH-96 holds the 26 layers of OPT-350, figure by figure.
    with pytest.raises(InputError, match=r"GH-96/profile.json: 1.1: 26 layers, but .* has 34"):
        sailor.read(DATA, "GPT-Neo-2.7")
    assert len(sailor.read(DATA, "GPT-Neo-2.7", gpus=["A100-40", "V100-16"]).graph) == 34
