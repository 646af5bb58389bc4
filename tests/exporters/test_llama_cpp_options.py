"""Plans as options of llama.cpp: its loader, restated, has every part where the plan has it."""

import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_plans import by_hand, plan
from llama_cpp_loader import Loader

from optpart.base.errors import InputError
from optpart.exporters import llama_cpp
from optpart.interop.formats import llm_names
from optpart.interop.formats.graph_edits import colocate_cells
from optpart.interop.formats.llm import Step

GPUS = {"a": "CUDA0", "b": "CUDA1"}
ALL = {"c": "CPU", **GPUS, "r": "RPC0[10.0.0.2:50052]", "s": "RPC0[host-3:50052]"}

#: Tensors of a part, as llama.cpp names them.
PARTS = {
    "attention": ("attn_norm", "attn_q", "attn_output", "post_attention_norm"),
    "mlp": ("ffn_norm", "ffn_gate_inp", "ffn_up_shexp", "exp_probs_b", "post_ffw_norm"),
    "experts": ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps"),
}
ENDS = {"embedding": "token_embd", "norm": "output_norm", "head": "output"}


def tensors(vertex: str) -> list[str]:
    """Tensors of a vertex."""
    if vertex in ENDS:
        return [f"{ENDS[vertex]}.weight"]
    number, _, part = vertex.removeprefix("block.").partition(".")
    names = PARTS[part] if part else [name for names in PARTS.values() for name in names]
    return [f"blk.{number}.{name}.weight" for name in names]


def check(placed, text: str, *, but=()) -> Loader:
    """Compare the place of every tensor with the plan."""
    loader = Loader(text, llama_cpp.chain_of(placed).blocks)
    parts = {vertex.rpartition(".")[2] for vertex in placed.device}
    for vertex, device in placed.device.items():
        own = tensors(vertex)
        if vertex.endswith(".mlp") and "experts" not in parts:
            own += tensors(vertex.replace(".mlp", ".experts"))
        if vertex not in but:
            assert {loader.place(name) for name in own} == {ALL[device]}, vertex
    return loader


def with_caches(blocks: str, caches: str, vision: str = ""):
    """A plan of blocks in halves, with the device of every cache."""
    whole, devices = plan(blocks), {}
    for vertex, device in whole.device.items():
        devices[vertex] = device
        if vertex.endswith(".attention"):
            block = vertex.removesuffix("attention")
            devices |= {f"{block}cache": caches[len(devices) // 4], f"{block}output": device}
    return by_hand({**({"vision": vision} if vision else {}), **devices})


def test_all_caches_may_be_on_the_processor_or_each_with_its_block():
    names = {"c": "CPU", **GPUS}
    apart, remarks = llama_cpp.overrides(with_caches("a/c a/a b/b", "ccc"), names=names)
    whole, same = llama_cpp.overrides(plan("a/c a/a b/b"), names=names)
    assert apart == whole.rstrip() + " --no-kv-offload\n"
    assert remarks == same
    assert llama_cpp.overrides(with_caches("a/c a/a b/b", "aab"), names=names)[0] == whole
    assert llama_cpp.layers(with_caches("c/c c/c", "cc"), names={"c": "CPU"})[0] == (
        "--n-gpu-layers 0 --device none\n"
    )
    # Their blocks are in no order that the loader knows, but their caches are.
    assert not [each for each in llama_cpp.overrides(with_caches("a/a b/b a/a", "ccc"),
                names=names)[1] if "Keys and values of" in each]  # fmt: skip
    with pytest.raises(InputError, match=r"cache of block 1: on CPU, and the projections are on C"):
        llama_cpp.overrides(with_caches("a/c a/a b/b", "acb"), names=names)


@pytest.mark.parametrize(
    ("device", "option"),
    [("c", "--no-mmproj-offload"), ("b", "--mmproj-device CUDA1"),
     ("r", "--mmproj-device RPC0")],
)  # fmt: skip
def test_what_sees_has_a_device_of_its_own(device, option):
    placed = with_caches("a/a a/a", "aa", vision=device)
    text, remarks = llama_cpp.overrides(placed, names={"a": "CUDA0", device: ALL[device]})
    assert f" {option}" in text
    assert any("--mmproj FILE" in each for each in remarks)
    split = text.split("--tensor-split ")[1].split()[0]
    assert split == "3"


@st.composite
def homes(draw) -> list[str]:
    """Devices of blocks: adjacent ones on every device, the first ones on the processor."""
    devices = draw(st.permutations("abrs"))[: draw(st.integers(0, 4))]
    devices = [*("c" * draw(st.booleans() if devices else st.just(True))), *devices]
    return [device for device in devices for _ in range(draw(st.integers(1, 40)))]


@given(homes=homes(), embedding=st.sampled_from("cabrs"))
@settings(deadline=None)
def test_tensor_split_has_every_layer_where_the_plan_has_it(homes, embedding) -> None:
    placed = plan(" ".join(homes), embedding=embedding)
    text, remarks = llama_cpp.layers(placed, names=used(placed))
    loader = check(placed, text, but={"embedding"})
    assert "--override-tensor" not in text
    assert loader.homes == [ALL[home] for home in (*homes, homes[-1])]  # keys and values, too
    assert ("token embedding" in " ".join(remarks)) == (embedding != "c")


@given(homes=homes() | st.lists(st.sampled_from("cabrs"), min_size=1), data=st.data())
@settings(deadline=None)
def test_override_tensor_has_every_tensor_where_the_plan_has_it(homes, data) -> None:
    anywhere, count = st.sampled_from("cabrs"), data.draw(st.integers(1, 3))
    blocks = ["/".join([home, *(data.draw(anywhere) for _ in range(count - 1))]) for home in homes]
    embedding, norm, head = (data.draw(anywhere) for _ in range(3))
    placed = plan(" ".join(blocks), embedding=embedding, norm=norm, head=head)
    text, remarks = llama_cpp.overrides(placed, names=used(placed))
    loader = check(placed, text)
    elsewhere = [
        f"Keys and values of block {number} stay on {found}, and the plan counts them on "
        for number, (home, found) in enumerate(zip(homes, loader.homes, strict=False))
        if ALL[home] != found
    ]
    said = [each for each in remarks if each.startswith("Keys and values")]
    assert [one.startswith(other) for one, other in zip(said, elsewhere, strict=True)] == [
        True for _ in elsewhere
    ]


def used(placed) -> dict[str, str]:
    return {device: ALL[device] for device in placed.devices}


def test_tensor_split_counts_blocks_and_the_output_layer() -> None:
    text, remarks = llama_cpp.layers(plan("a a b"), names={"a": "CUDA1", "b": "CUDA0"})
    assert text == "--n-gpu-layers 4 --device CUDA1,CUDA0 --split-mode layer --tensor-split 2,2\n"
    assert Loader(text, 3).homes == ["CUDA1", "CUDA1", "CUDA0", "CUDA0"]
    assert "keeps the token embedding on the CPU; the plan has it on CUDA1" in remarks[2]
    assert "--ctx-size" in remarks[1]


def test_the_processor_has_the_first_layers() -> None:
    text, remarks = llama_cpp.layers(plan("c a b"), names=used(plan("c a b")))
    assert Loader(text, 3).homes == ["CPU", "CUDA0", "CUDA1", "CUDA1"]
    assert "--no-op-offload" in remarks[-1]
    text = llama_cpp.layers(plan("c c"), names={"c": "CPU"}).text
    assert text == "--n-gpu-layers 0 --device none\n"


@pytest.mark.parametrize(
    ("homes", "number", "found", "wanted"),
    [
        ("a a c", 2, "CUDA0", "CPU"),
        ("a b a a b b", 1, "CUDA0", "CUDA1"),
        ("a/b b/b b/a a/b", 3, "CUDA1", "CUDA0"),
        ("c a a c b", 3, "CUDA0", "CPU"),
    ],
)
def test_keys_and_values_that_llama_cpp_has_elsewhere_are_told(homes, number, found, wanted):
    placed = plan(homes, embedding="c")
    with pytest.raises(InputError, match=f"has block {number} after other devices") as fault:
        llama_cpp.layers(placed, names=used(placed))
    assert "; solve again with --device-order " in str(fault.value)
    _, remarks = llama_cpp.overrides(placed, names=used(placed))
    assert [each for each in remarks if each.startswith("Keys")] == [
        f"Keys and values of block {number} stay on {found}, and the plan counts them on {wanted}. "
        "llama.cpp has them where --tensor-split has the block: adjacent ones on every device, the "
        "first ones on the CPU."
    ]
    assert "optpart solve --device-order c," in " ".join(remarks)


@pytest.mark.parametrize(
    ("placed", "message"),
    [
        (plan("a b", head="a", norm="a"), "norm: on CUDA0, and --tensor-split keeps a layer"),
        (plan("a b", head="a"), "head: on CUDA0"),
        (plan("a/b a"), "mlp of block 0: on CUDA1"),
        (plan("a/a/c a/a/a"), "experts of block 0: on CPU"),
    ],
)
def test_what_tensor_split_cannot_express_is_for_override_tensor(placed, message) -> None:
    with pytest.raises(InputError, match=message) as fault:
        llama_cpp.layers(placed, names=used(placed))
    assert "use --to llama.cpp-ot" in str(fault.value)
    check(placed, llama_cpp.overrides(placed, names=used(placed)).text)


def test_experts_on_the_processor_are_one_pattern() -> None:
    placed = plan("a/a/c a/a/c a/a/a", embedding="c")
    text, remarks = llama_cpp.overrides(placed, names=used(placed))
    assert text == (
        "--n-gpu-layers 4 --device CUDA0 --split-mode layer --tensor-split 4 --override-tensor "
        r"'^blk\.(0|1)\.ffn_(gate|up|down|gate_up)(_exps|\.\d+)\.=CPU'"
        "\n"
    )
    assert "--no-op-offload" in remarks[-1]


def test_attention_that_is_colocated_has_its_keys_and_values_with_it() -> None:
    """As the remark proposes, on a card that has no room for all experts."""
    workload = llm_names.read("mixtral-8x7b", Step(granularity="attention+mlp+experts"))
    (pattern,) = re.findall("--colocate '(.*?)'", llama_cpp._TOGETHER)
    together = colocate_cells(workload.graph, pattern)
    (group,) = together.colocation
    assert [together.names[v] for v in group] == [f"block.{n}.attention" for n in range(32)]


def test_devices_of_servers_and_their_buffers_have_different_names() -> None:
    placed = plan("a r/s s", embedding="c")
    text, remarks = llama_cpp.overrides(placed, names=used(placed))
    assert text == (
        "--n-gpu-layers 4 --rpc 10.0.0.2:50052,host-3:50052 --device CUDA0,RPC0,RPC1 "
        "--split-mode layer --tensor-split 1,1,2 --override-tensor "
        r"'^blk\.(1)\.(ffn_|post_ffw_norm|exp_probs_b|layer_output_norm)=RPC0[host-3:50052]'"
        "\n"
    )
    assert "--list-devices" in remarks[-1]


def test_devices_of_a_server_are_numbered_after_those_of_earlier_ones() -> None:
    names = {"a": "RPC0[x:1]", "b": "RPC1[x:1]", "c": "RPC1[y:1]"}
    words = shlex.split(llama_cpp.layers(plan("a b c"), names=names).text)
    assert words[words.index("--rpc") + 1] == "x:1,y:1"
    assert words[words.index("--device") + 1] == "RPC0,RPC1,RPC3"


@pytest.mark.parametrize("name", ["RPC0", "RPC[a,b]", "RPC0[host]", "CUDA", "BLAS", "CUDA0,CUDA1"])
def test_names_that_llama_cpp_does_not_have_are_refused(name) -> None:
    with pytest.raises(InputError, match="which the target does not know"):
        llama_cpp.overrides(plan("a a"), names={"a": name})


def test_a_head_that_may_be_the_embedding_is_told() -> None:
    placed = plan("a b", embedding="a")
    assert "output.weight" in " ".join(llama_cpp.overrides(placed, names=GPUS).remarks)
    placed = plan("a a", embedding="a")
    assert "output.weight" not in " ".join(llama_cpp.overrides(placed, names=GPUS).remarks)


def test_parts_of_other_names_must_be_together() -> None:
    modules = {"model.layers.0.self_attn": "a", "model.layers.0.mlp": "a"}
    assert "--tensor-split 2" in llama_cpp.layers(by_hand(modules), names=GPUS).text
    modules["model.layers.0.mlp"] = "b"
    with pytest.raises(InputError, match="block 0: is split into self_attn, mlp; split blocks"):
        llama_cpp.layers(by_hand(modules), names=GPUS)


def test_more_devices_than_llama_cpp_is_compiled_for_are_refused() -> None:
    names = {f"d{k}": f"CUDA{k}" for k in range(17)}
    with pytest.raises(InputError, match=r"plan: uses 17 devices, and llama\.cpp at most 16"):
        llama_cpp.layers(plan(" ".join(names)), names=names)
