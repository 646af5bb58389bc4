"""Plans for language models, as options of llama.cpp.

The rules are those of its sources in 2026:

- ``load_tensors`` gives every layer a home: of ``L`` blocks and the output layer, the last
  ``--n-gpu-layers`` are on the devices of ``--device`` in order, in the proportions of
  ``--tensor-split``, and all before on the processor. The token embedding is on the processor.
- Keys and values of a block are at its home, whatever else is moved (``llama_kv_cache``); or those
  of all blocks, with the attention over them, are on the processor (``--no-kv-offload``).
- ``--override-tensor`` moves tensors whose names match a pattern, the first of several
  (``parse_tensor_buffer_overrides``). A head that uses the matrix of the embedding goes by the
  name of the embedding.
- The vision tower is on a device of its own choice, ``--mmproj-device``, or on the processor,
  ``--no-mmproj-offload``; it is no layer.
- Buffers of a device at an RPC server are called ``RPC``, its number there, and the server; the
  device itself is called ``RPC`` and its number among those of all servers in the order of
  ``--rpc``, which has to come first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, groupby
from statistics import fmean
from typing import NamedTuple, TypeAlias

from optpart.base.errors import InputError
from optpart.base.files import Kind, begins
from optpart.base.languages import to_shell
from optpart.exporters.chain import Chain, chain_of
from optpart.exporters.plan import NO_ORDER, Plan, Text, named
from optpart.interop.formats.gguf import TENSORS
from optpart.interop.formats.llm import ATTENTION, CACHE, EXPERTS, MLP, OUTPUT
from optpart.interop.formats.llm_parts import BLOCK, EMBEDDING, HEAD, NORM, VISION

KIND = Kind("options of llama.cpp", begins(rb"--n-gpu-layers \d+( --.*)?\n\Z"))

_CPU = "CPU"
_RPC = re.compile(r"RPC(\d{1,3})\[([\w.-]+:\d{1,5})\]", re.ASCII)
_NAME = rf"CPU|(CUDA|ROCm|MUSA|Vulkan|SYCL|CANN|MTL|HTP)\d+|GPUOpenCL|OpenVINO|{_RPC.pattern}"
#: Devices whose buffers have another name.
_BUFFERS = {"GPUOpenCL": "OpenCL"}

#: A device, and those of the blocks before.
_Homes: TypeAlias = "tuple[str, _Homes] | None"

#: What the program is compiled for (``llama_max_devices``).
_MOST_DEVICES = 16

_CACHE = (
    "llama.cpp must be given the cache that the model was imported with, by --parallel, --ctx-size "
    "(of all sequences), --cache-type-k and --cache-type-v; without --ctx-size it has room for all "
    "positions that the model knows."
)
_COPIED = (
    "llama.cpp copies weights from the CPU to a card and computes there where 32 tokens or more "
    "come at once; --no-op-offload computes them on the CPU, as the plan does."
)
_TOGETHER = (
    "optpart solve --device-order {order} finds the best plan without such blocks. Of blocks in "
    r"parts, optpart import --colocate 'block\.\d+\.(attention)' keeps all attention on one device."
)
_TIED = (
    "If the model has no tensor output.weight, its head uses the matrix of the embedding, and "
    "--override-tensor moves both of them or neither."
)
_SEES = (
    "llama.cpp is given the vision tower by --mmproj FILE. Before version b10541, it had no "
    "--mmproj-device, and the environment variable MTMD_BACKEND_DEVICE instead."
)
_NUMBERS = (
    "llama.cpp numbers the devices of its RPC servers one after another: with more of them at a "
    "server than are named here, those of later servers have other numbers (--list-devices)."
)


@dataclass(frozen=True)
class _Move:
    """Tensors of the plan that are not at the home of their layer."""

    what: str
    pattern: str
    device: str


@dataclass(frozen=True)
class _Placed:
    """Where llama.cpp has a plan; devices by the names that are given for them.

    Attributes
    ----------
    chain : Chain
    homes : tuple of str
        Of every block, and of the output layer.
    away : mapping from int to str
        Blocks whose attention is not at home, and where it is.
    moves : tuple of _Move
    order : tuple of str
        Devices of the plan, processors first.
    sees : str or None
        The device of the vision tower.
    cached : bool
        Whether the processor has all caches.
    """

    chain: Chain
    homes: tuple[str, ...]
    away: Mapping[int, str]
    moves: tuple[_Move, ...]
    order: tuple[str, ...]
    sees: str | None
    cached: bool


def layers(plan: Plan, *, names: Mapping[str, str] | None = None) -> Text:
    """Return options of llama.cpp that split a model by layers, ``--tensor-split``.

    Parameters
    ----------
    names : mapping from str to str
        What llama.cpp calls the devices: ``CUDA0``, ``Vulkan1``, ``RPC0[host:port]``, ``CPU``.
    """
    placed = _placed(plan, names)
    for number, device in placed.away.items():
        raise InputError(
            f"device {device!r}",
            f"has block {number} after other devices; --tensor-split gives each device adjacent "
            "layers, the CPU the first",
            f"solve again with --device-order {to_shell([','.join(placed.order)])}, or use "
            "--to llama.cpp-ot",
        )
    for move in placed.moves:
        if move.what != EMBEDDING:
            problem = f"on {move.device}, and --tensor-split keeps a layer together"
            raise InputError(move.what, problem, "use --to llama.cpp-ot, which moves it")
    remarks = [
        f"llama.cpp keeps the token embedding on the CPU; the plan has it on {move.device}. "
        "--to llama.cpp-ot moves it."
        for move in placed.moves
    ]
    return _options(placed, (), remarks)


def overrides(plan: Plan, *, names: Mapping[str, str] | None = None) -> Text:
    """Return options of llama.cpp that split by layers and move tensors, ``--override-tensor``.

    Parameters
    ----------
    names : mapping from str to str
        What llama.cpp calls the devices: ``CUDA0``, ``Vulkan1``, ``RPC0[host:port]``, ``CPU``.
    """
    placed = _placed(plan, names)
    remarks = [
        f"Keys and values of block {number} stay on {placed.homes[number]}, and the plan counts "
        f"them on {device}. llama.cpp has them where --tensor-split has the block: adjacent ones "
        "on every device, the first ones on the CPU."
        for number, device in placed.away.items()
        if not placed.cached
    ]
    if remarks:
        remarks.append(_TOGETHER.format(order=to_shell([",".join(placed.order)])))
    tied = {EMBEDDING, HEAD} & {move.what for move in placed.moves}
    ends = {*placed.chain.devices_of(EMBEDDING), *placed.chain.devices_of(HEAD)}
    return _options(placed, placed.moves, [*remarks, *([_TIED] if tied and len(ends) > 1 else [])])


def _placed(plan: Plan, names: Mapping[str, str] | None) -> _Placed:
    chain = chain_of(plan)
    known = named(plan, names or {}, valid=_NAME, example="CUDA0", processor=_CPU)
    if len(known) - (_CPU in known.values()) > _MOST_DEVICES:
        problem = f"uses {len(known)} devices, and llama.cpp at most {_MOST_DEVICES} and the CPU"
        raise InputError("plan", problem, "solve again with fewer devices")
    parts = [_parts(chain, known, number) for number in range(chain.blocks)]
    wanted = [of_part[ATTENTION] for of_part in parts]
    homes = _homes(wanted)
    cached = bool(parts) and all(each.get(CACHE) == _CPU for each in parts)
    for number, each in enumerate(parts):
        if not cached and CACHE in each and each[CACHE] != each[ATTENTION]:
            problem = f"on {each[CACHE]}, and the projections are on {each[ATTENTION]}"
            why = "llama.cpp has all caches on the CPU, or each with its block"
            remedy = r"leave +cache out, or import with --colocate 'block\.\d+\.(cache)'"
            raise InputError(f"cache of block {number}", f"{problem}; {why}", remedy)
    ends = [known[device] for device in (*chain.devices_of(HEAD), *chain.devices_of(NORM))]
    fits = bool(ends) and (ends[0] != _CPU if ends[0] not in homes else homes[-1] == ends[0])
    homes.append(ends[0] if fits or not homes else homes[-1])
    return _Placed(
        chain,
        tuple(homes),
        {
            number: device
            for number, (device, home) in enumerate(zip(wanted, homes, strict=False))
            if device != home
        },
        (*_in_blocks(parts, homes), *_outside(chain, known, homes)),
        tuple(sorted(known, key=lambda device: known[device] != _CPU)),
        next((known[device] for device in chain.devices_of(VISION)), None),
        cached,
    )


def _homes(wanted: Sequence[str]) -> list[str]:
    """Return homes of the blocks, most of them as wanted.

    Parameters
    ----------
    wanted : sequence of str
        Device of the attention of every block.

    Returns
    -------
    list of str
        Adjacent blocks on every device, the first ones on the processor.
    """
    of_device: dict[str, list[int]] = {}
    for number, device in enumerate(wanted):
        of_device.setdefault(device, []).append(number)
    others = sorted(of_device, key=lambda device: fmean(of_device[device]))
    order = (_CPU, *(device for device in others if device != _CPU))
    # The most blocks as wanted if the last one is on this device, and the blocks, from the end.
    best: list[_Fit] = [_Fit(0, None)] * len(order)
    for wish in wanted:
        so_far = accumulate(best, _better)
        best = [
            _Fit(fit.right + (device == wish), (device, fit.homes))
            for device, fit in zip(order, so_far, strict=True)
        ]
    last = reduce(_better, best).homes
    found = []
    while last is not None:
        device, last = last
        found.append(device)
    return found[::-1]


class _Fit(NamedTuple):
    """How many blocks are as wanted, and the devices of all."""

    right: int
    homes: _Homes


def _better(one: _Fit, other: _Fit) -> _Fit:
    return one if one.right >= other.right else other


def _parts(chain: Chain, known: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the device of every part of a block."""
    here = [each for each in chain.links if (each.place, each.number) == (BLOCK, number)]
    if len({each.device for each in here}) == 1:
        apart = {CACHE} & {each.half for each in here}
        return dict.fromkeys((ATTENTION, MLP, EXPERTS, *apart), known[here[0].device])
    of_half = {each.half: known[each.device] for each in here}
    cached = {half: of_half.pop(half) for half in (CACHE, OUTPUT) if half in of_half}
    if of_half.keys() not in ({ATTENTION, MLP}, {ATTENTION, MLP, EXPERTS}):
        problem = f"is split into {', '.join(of_half)}"
        raise InputError(f"block {number}", problem, "split blocks into attention and mlp")
    return {EXPERTS: of_half[MLP], **of_half, **cached}


def _in_blocks(parts: Sequence[Mapping[str, str]], homes: Sequence[str]) -> list[_Move]:
    """Return the parts of blocks that are not at home.

    The tensors of experts match the pattern of the feed-forward, too, so that they come first.
    """
    moved: dict[tuple[str, str], list[int]] = {}
    for part in (EXPERTS, MLP, ATTENTION):
        for number, of_part in enumerate(parts):
            if of_part[part] != (of_part[MLP] if part == EXPERTS else homes[number]):
                moved.setdefault((part, of_part[part]), []).append(number)
    return [
        _Move(
            f"{part} of block {numbers[0]}",
            rf"^blk\.({'|'.join(map(str, numbers))})\.{TENSORS[part]}",
            device,
        )
        for (part, device), numbers in moved.items()
    ]


def _outside(chain: Chain, known: Mapping[str, str], homes: Sequence[str]) -> list[_Move]:
    """Return the parts outside of blocks that are not at home."""
    return [
        _Move(place, f"^{TENSORS[place]}", known[device])
        for place, home in ((EMBEDDING, _CPU), (NORM, homes[-1]), (HEAD, homes[-1]))
        for device in chain.devices_of(place)
        if known[device] != home
    ]


def _options(placed: _Placed, moves: Sequence[_Move], remarks: Sequence[str]) -> Text:
    counts = {home: len(list(run)) for home, run in groupby(placed.homes)}
    on_cpu = counts.pop(_CPU, 0)
    for move in moves:
        if move.device != _CPU:
            counts.setdefault(move.device, 0)
    named_here = dict.fromkeys(
        (*counts, *([placed.sees] if placed.sees not in (None, _CPU) else []))
    )
    servers, devices, buffers = _servers(list(named_here))
    options = ["--n-gpu-layers", str(len(placed.homes) - on_cpu)]
    if servers:
        options += ["--rpc", ",".join(servers)]
    options += ["--device", ",".join(devices[name] for name in counts) or "none"]
    if len(placed.homes) > on_cpu:
        options += ["--split-mode", "layer", "--tensor-split", ",".join(map(str, counts.values()))]
    if moves:
        texts = [f"{move.pattern}={buffers.get(move.device, move.device)}" for move in moves]
        options += ["--override-tensor", ",".join(texts)]
    if placed.cached and counts:
        options += ["--no-kv-offload"]
    if placed.sees == _CPU:
        options += ["--no-mmproj-offload"]
    elif placed.sees is not None:
        options += ["--mmproj-device", devices[placed.sees]]
    on_cpu += sum(move.device == _CPU for move in moves)
    return Text(
        to_shell(options) + "\n",
        [
            NO_ORDER.format("llama.cpp"),
            _CACHE,
            *remarks,
            *([_SEES] if placed.sees is not None else []),
            *([_COPIED] if on_cpu and counts else []),
            *([_NUMBERS] if len(servers) > 1 else []),
        ],
    )


def _servers(names: Sequence[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the RPC servers, and the names of devices and of their buffers."""
    remote = {name: _RPC.fullmatch(name) for name in names}
    most: dict[str, int] = {}
    for found in remote.values():
        if found:
            most[found[2]] = max(most.get(found[2], 0), int(found[1]) + 1)
    first, total = {}, 0
    for server, count in most.items():
        first[server], total = total, total + count
    devices = {
        name: f"RPC{first[found[2]] + int(found[1])}" if found else name
        for name, found in remote.items()
    }
    return list(most), devices, {name: _BUFFERS.get(name, name) for name in names}
