"""The loader of llama.cpp has every part of a model where our plan has it, and computes the same.

The devices are servers of llama.cpp's RPC backend on this machine. The programs are built by
``tests/runtimes/build_llama_cpp``; ``OPTPART_LLAMA_CPP`` names the folder where they are.
"""

import os
import random
import re
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from language_plans import plan as by_hand
from llama_cpp_loader import Loader
from llama_models import write

import optpart as op
from optpart.exporters import llama_cpp
from optpart.interop.costs.registry import Options, apply
from optpart.interop.formats import gguf
from optpart.interop.formats.cluster_toml import loads_named
from optpart.interop.formats.llm import RUNTIME, Step

pytest.importorskip("gguf")

BUILT = Path(__file__).parents[2] / ".venv-runtimes" / "llama.cpp" / "build" / "bin"
PROGRAMS = os.environ.get("OPTPART_LLAMA_CPP", str(BUILT))
COMPLETION = shutil.which("llama-completion", path=PROGRAMS)
FIT = shutil.which("llama-fit-params", path=PROGRAMS)
SERVER = shutil.which("ggml-rpc-server", path=PROGRAMS)

LLAMA_2_13B = {
    "blocks": 40, "hidden": 5120, "ffn": 13824, "heads": 40, "kv_heads": 40, "vocab": 32_000,
}  # fmt: skip
LLAMA_3_8B = {
    "blocks": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8, "vocab": 128_256,
}  # fmt: skip
LLAMA_3_70B = {
    "blocks": 80, "hidden": 8192, "ffn": 28672, "heads": 64, "kv_heads": 8, "vocab": 128_256,
}  # fmt: skip

pytestmark = pytest.mark.skipif(
    not (COMPLETION and SERVER), reason=f"no llama-completion and ggml-rpc-server in {PROGRAMS}"
)


@pytest.fixture(scope="module")
def servers():
    """Yield the addresses of two servers."""
    places, running = [], []
    try:
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            places.append(f"127.0.0.1:{port}")
            running.append(
                subprocess.Popen(
                    [SERVER, "--port", str(port)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        for place in places:
            _wait_for(place)
        yield places
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _wait_for(place: str) -> None:
    host, _, port = place.partition(":")
    for _ in range(100):
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"no server at {place}")


@pytest.fixture
def names(servers):
    """Return what llama.cpp calls three devices."""
    return {"host": "CPU", "near": f"RPC0[{servers[0]}]", "far": f"RPC0[{servers[1]}]"}


class Loaded(NamedTuple):
    """What llama.cpp says of a run.

    Attributes
    ----------
    layers, caches : list of str
        Device of every block and the output layer, and of the keys and values of every block.
    moved : dict of str to str
        Buffer of every tensor that ``--override-tensor`` has moved.
    held, cached, computing : dict of str to float
        MiB of weights, of keys and values, and of intermediate results, by buffer.
    text : str
        The first tokens; later ones differ where rounding does.
    """

    layers: list[str]
    caches: list[str]
    moved: dict[str, str]
    held: dict[str, float]
    cached: dict[str, float]
    computing: dict[str, float]
    text: str


def run(model: Path, options: str = "", *, context=256, more="") -> Loaded:
    """Let llama.cpp compute a few tokens."""
    asked = f"-n 100 -c {context} --temp 0 -v -no-cnv --no-warmup --fit off --no-repack {more}"
    command = [COMPLETION, "-m", str(model), "-p", "word1", *shlex.split(f"{asked} {options}")]
    for _ in range(20):
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="latin-1",  # the bytes that it makes up are no text
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        if "~llama_context" in done.stderr:
            break
    else:  # llama.cpp may end before what it says is written
        pytest.fail("llama.cpp never said all")

    def sizes(what: str) -> dict[str, float]:
        found = re.findall(rf"(\S+) {what} buffer size = +([\d.]+) MiB", done.stderr)
        return {name: float(size) for name, size in found}

    return Loaded(
        re.findall(r"layer +\d+ assigned to device (\w+)", done.stderr),
        re.findall(r"layer +\d+: dev = (\w+)", done.stderr),
        dict(re.findall(r"tensor (\S+) \(.*\) buffer type overridden to (\S+)", done.stderr)),
        sizes("model"),
        sizes("KV"),
        sizes("compute"),
        done.stdout[:64],
    )


def agrees(found: Loaded, text: str, model: dict[str, int]) -> Loader:
    """Compare a run with the loader as our other tests restate it."""
    blocks = len(found.layers) - 1
    loader = Loader(text, blocks)
    buffers = {name: f"RPC0[{at}]" for name, at in zip(("RPC0", "RPC1"), loader.servers)}  # noqa: B905
    assert [buffers.get(name, name) for name in found.layers] == loader.homes
    assert [buffers.get(name, name) for name in found.caches] == loader.homes[:-1]
    places = {name: loader.place(name) for name in model}
    assert {name: places[name] for name in found.moved} == found.moved
    for buffer in buffers.values():
        held = sum(size for name, size in model.items() if places[name] == buffer)
        assert found.held.get(buffer, 0) == pytest.approx(held / 2**20, abs=0.02)
    return loader


def planned(path: Path, limits: dict[str, float], step: Step, **goal) -> op.Result:
    """Return the proven plan for devices that may hold these shares of the model."""
    workload = gguf.read(path, step)
    whole = sum(int(each) for each in workload.graph.memory.fractions())
    slack = 3 * max(int(each) for each in workload.graph.tensor_size.fractions())
    of = {"host": "ryzen-9-7950x", "near": "rtx-3090", "far": "rtx-3070"}
    cluster = loads_named(
        'default_link = "pcie-4-x16"\n'
        + "".join(
            f'[[device]]\nof = "{of[name]}"\nname = "{name}"\n'
            f"memory = {int(share * whole) + slack}\n"
            for name, share in limits.items()
        )
    )
    result = op.solve(apply("roofline", workload, cluster, Options()).instance, seconds=30, **goal)
    assert result.status == "OPTIMAL"
    return result


def used(result: op.Result, names: dict[str, str]) -> dict[str, str]:
    return {device: names[device] for device in {*result.placement.values()}}


def test_a_plan_of_whole_blocks_is_what_is_loaded(tmp_path, names):
    path = tmp_path / "model.gguf"
    model = write(path, blocks=9, hidden=256, ffn=512)
    limits = {"host": 1, "near": 0.5, "far": 0.3}
    result = planned(
        path, limits, Step(context=256, reserve=0), device_order=["host", "near", "far"]
    )
    text, _ = op.export(result, "llama.cpp", names=used(result, names))
    found = run(path, text)
    loader = agrees(found, text, model)
    of_block = [result.placement[f"block.{number}"] for number in range(9)]
    assert {*of_block} == {"host", "near", "far"}
    assert loader.homes == [names[each] for each in (*of_block, result.placement["head"])]
    assert found.text == run(path, "--device none").text


def test_the_cache_takes_what_the_plan_counts(tmp_path, names):
    path = tmp_path / "model.gguf"
    write(path, blocks=6, hidden=512, ffn=64)
    step = Step(context=2048, granularity="attention+mlp")
    placed = by_hand("host near near far far far")
    found = run(path, llama_cpp.layers(placed, names=names).text, context=2048)
    held = gguf.read(path, step).graph.memory.fractions()
    alone = gguf.read(path, Step(context=1, granularity="attention+mlp")).graph.memory.fractions()
    one = float(held[1] - alone[1]) * 2048 / 2047 / 2**20
    assert [found.cached[names[each]] for each in ("host", "near", "far")] == [
        one,
        2 * one,
        3 * one,
    ]


def test_experts_on_the_processor_are_a_proven_plan(tmp_path, names):
    path = tmp_path / "model.gguf"
    model = write(path, blocks=6, hidden=512, ffn=1024, experts=8, shared=128)
    result = planned(path, {"host": 1, "near": 0.45}, Step(context=256, reserve=0))
    parts = {
        part: {result.placement[f"block.{number}.{part}"] for number in range(6)}
        for part in ("attention", "mlp", "experts")
    }
    assert parts == {"attention": {"near"}, "mlp": {"near"}, "experts": {"host", "near"}}
    text, remarks = op.export(result, "llama.cpp-ot", names=used(result, names))
    assert not [each for each in remarks if each.startswith("Keys and values")]
    found = run(path, text)
    agrees(found, text, model)
    assert {*found.caches} == {"RPC0"}
    for number in range(6):
        device = result.placement[f"block.{number}.experts"]
        moved = {name for name in found.moved if re.match(rf"blk\.{number}\.ffn_\w+_exps", name)}
        assert len(moved) == (3 if device == "host" else 0)
    assert found.text == run(path, "--device none").text


@pytest.mark.parametrize("seed", range(6))
def test_parts_may_be_anywhere(tmp_path, names, seed):
    draw, path = random.Random(seed), tmp_path / "model.gguf"
    blocks, experts = draw.randint(1, 7), draw.choice([0, 4])
    tied = not experts and draw.random() < 0.3
    sizes = {"hidden": 256, "ffn": 256, "experts": experts, "shared": 64 * experts}
    model = write(path, blocks=blocks, tied=tied, **sizes)
    anywhere = [*names]
    devices = ["/".join(draw.choices(anywhere, k=3 if experts else 2)) for _ in range(blocks)]
    embedding = "host" if tied else draw.choice(anywhere)
    norm, head = draw.choices(anywhere, k=2)
    placed = by_hand(" ".join(devices), embedding=embedding, norm=norm, head=head)
    known = {device: names[device] for device in placed.devices}
    text, _ = llama_cpp.overrides(placed, names=known)
    found = run(path, text)
    if not tied:  # the head is a second tensor of the same name
        agrees(found, text, model)
    assert found.text == run(path, "--device none").text


@pytest.mark.parametrize(
    ("sizes", "context"),
    [
        ({}, 1024),
        ({}, 4096),
        ({"ffn": 2048}, 2048),
        ({"vocab": 16000}, 2048),
        ({"hidden": 512, "vocab": 8000}, 2048),
        ({"experts": 8}, 2048),
        ({"experts": 8, "ffn": 1024, "shared": 512}, 2048),
    ],
)
def test_the_reserve_has_room_for_intermediate_results(tmp_path, names, sizes, context):
    path = tmp_path / "model.gguf"
    write(path, **{"blocks": 6, "hidden": 256, "ffn": 512, "context": 8192, **sizes})
    placed = by_hand("host host near near far far")
    text, _ = llama_cpp.layers(placed, names=names)
    found = run(path, text, context=context)
    room = (gguf.read(path, Step(context=context)).reserve - RUNTIME) / 2**20
    assert max(found.computing.values()) <= room


@pytest.mark.parametrize(
    ("sizes", "homes"),
    [
        ({**LLAMA_2_13B}, "host " * 4 + "near " * 27 + "far " * 9),
        ({**LLAMA_2_13B}, "near " * 30 + "far " * 10),
        ({**LLAMA_3_8B}, "near " * 20 + "far " * 12),
        ({**LLAMA_3_8B}, "near " * 32),
        ({**LLAMA_3_8B, "experts": 8, "vocab": 32_000}, "near " * 20 + "far " * 12),
        ({**LLAMA_3_70B}, "host " * 10 + "near " * 35 + "far " * 35),
        ({**LLAMA_3_70B}, "near " * 40 + "far " * 40),
    ],
)
@pytest.mark.skipif(FIT is None, reason=f"no llama-fit-params in {PROGRAMS}")
def test_models_of_published_sizes_take_what_the_plan_counts(tmp_path, names, sizes, homes):
    """Weights and cache to the megabyte; of the reserve, more than half is needed."""
    path = tmp_path / "model.gguf"
    write(path, **sizes, context=4096, hollow=True)
    placed = by_hand(homes, embedding="host")
    known = {device: names[device] for device in placed.devices}
    text, _ = llama_cpp.layers(placed, names=known)
    command = [FIT, "-m", str(path), "-c", "4096", "--fit-print", "on", *shlex.split(text)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = re.findall(r"^(\w+) (\d+) (\d+) (\d+) *$", done.stdout, re.MULTILINE)
    needed = {name: [int(each) for each in row] for name, *row in rows}
    workload = gguf.read(path, Step(context=4096, granularity="block"))
    held = dict.fromkeys(placed.devices, 0.0)
    for vertex, size in zip(workload.graph.names, workload.graph.memory.fractions(), strict=True):
        held[placed.device[vertex]] += float(size) / 2**20
    numbers = [each for each in ("near", "far") if each in known]
    called = {each: f"RPC{k}" for k, each in enumerate(numbers)} | {"host": "Host"}
    for device, size in held.items():
        weights, cache, _ = needed[called[device]]
        assert weights + cache == pytest.approx(size, abs=2)
    room = (workload.reserve - RUNTIME) / 2**20
    most = max(computing for _, _, computing in needed.values())
    assert most <= room <= 1.8 * most


def test_a_tied_head_goes_by_the_name_of_the_embedding(tmp_path, names):
    path = tmp_path / "model.gguf"
    write(path, blocks=2, tied=True)
    placed = by_hand("near far", embedding="near")
    text, remarks = llama_cpp.overrides(placed, names={k: names[k] for k in ("near", "far")})
    found = run(path, text)
    assert found.moved == {"token_embd.weight": names["near"]}
    assert any("both of them or neither" in each for each in remarks)


def test_a_device_of_no_such_name_is_refused_by_llama_cpp_too(tmp_path):
    path = tmp_path / "model.gguf"
    write(path, blocks=1)
    with pytest.raises(AssertionError, match="unknown buffer type"):
        run(path, "--override-tensor ^output=RPC0")
