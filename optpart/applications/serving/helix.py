"""Clusters and profiles of Helix (Mei et al., ASPLOS 2025), with its rates.

A cluster (``cluster24.ini``) lists machines by type and links; ``machine_profiles.ini`` in the same
folder has the speed of network cards. A model is a folder such as ``llama2_70b``, with the measured
times of one layer by batch size of every type (``a100/decode_bs2time.csv``, milliseconds). Helix
divides bits per second by bytes per token, and so does this reader; the ratio is what its plans
were made for.

The rate with ``k`` layers follows its formula. A machine has room for the keys and values of
``16 · blocks(k)`` tokens, of which 30% are used by requests of 750 + 240 tokens; of these, the
share that is in its batch at a time is that of ``k`` layers in the time of a whole round, in which
all other layers take the average time of all machines. The batch holds one prompt per 240 decoding
steps, and its time is interpolated. The times of layers that this needs are those of typical plans,
in ten rounds from a first guess. All this is in doubles, as there; the result counts as exact.
"""

from __future__ import annotations

import re
from collections import Counter
from configparser import ConfigParser
from configparser import Error as SyntaxFault
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from optpart.applications.serving.plan import Interval
from optpart.applications.serving.problem import Machine, Serving
from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text

_UNITS = {"kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_INPUT, _OUTPUT, _BLOCK, _USED = 750, 240, 16, 0.3
_ROUNDS = 10


@dataclass(frozen=True)
class _Kind:
    """What Helix's source says of a type of machine with a model.

    ``typical`` layers; ``most`` of them, which count where few machines make up the model; a first
    guess of its ``speed`` in layers per second; ``blocks`` of keys and values with 1, 2, … layers.
    """

    typical: int
    most: int
    speed: float
    blocks: tuple[int, ...]


def _kinds(table: str) -> dict[str, _Kind]:
    rows = re.findall(r"(\w+): (\d+) (\d+) (\S+) \|([^|]+)\|", table)
    return {
        name: _Kind(int(typical), int(most), float(speed), tuple(map(int, blocks.split())))
        for name, typical, most, speed, blocks in rows
    }


#: By model: layers, bytes of a token between layers, and types of machines.
_MODELS = {
    "llama1_30b": (
        60,
        2 * 6656,
        _kinds("""
            A100: 12 18 48 | 80613 39046 25190 18263 14106 11335 9355 7871 6716 5792 5037 4407 3874
                3417 3021 2675 2369 2097 |
            V100: 4 7 25 | 29454 13467 8137 5473 3874 2808 2047 |
            L4: 8 11 9 | 41191 19335 12050 8407 6221 4764 3724 2943 2336 1850 1453 |
            L4x2: 14 22 15 | 91244 44165 28600 20817 16147 13034 10811 9143 7845 6807 5958 5251 4652
                4139 3694 3305 2962 2657 2384 2138 1916 1714 |
            T4: 4 7 8 | 26849 12164 7269 4821 3353 2374 1675 |
            T4x2: 10 15 15 | 56268 26618 16901 12043 9128 7185 5797 4756 3946 3299 2769 2327 1953
                1633 1356 |
            T4x4: 20 30 23 | 123328 60196 39284 28828 22554 18372 15384 13144 11401 10007 8866 7915
                7111 6422 5824 5301 4840 4430 4063 3733 3434 3163 2915 2687 2477 2284 2106 1940 1785
                1641 |
        """),
    ),
    "llama2_70b": (
        80,
        2 * 8192,
        _kinds("""
            A100: 8 12 80 | 498326 236107 148700 104997 78775 61294 48807 39442 32158 26331 21564
                17591 |
            V100: 3 4 40 | 172256 71952 38517 21800 |
            L4: 4 7 20 | 266146 121017 71296 46944 32333 22592 15634 |
            L4x2: 9 14 30 | 578630 275491 174956 124689 94529 74422 60060 49288 40910 34208 28724
                24155 20288 16974 |
            T4: 3 4 12.5 | 155320 63484 32872 17566 |
            T4x2: 6 9 20 | 366898 168665 103099 70316 50646 37533 28167 21142 15678 |
            T4x4: 12 18 30 | 763104 366320 235082 169464 130092 103845 85097 71036 60099 51350 44192
                38226 33179 28852 25102 21822 18927 16353 |
        """),
    ),
}  # fmt: skip
#: Bytes of a token at source and sink.
_TOKEN = 2

_Curve = list[tuple[int, float]]


def read(cluster: str | Path, model: str | Path) -> Serving:
    """Read a cluster of Helix, with the profiles of a model.

    Raises
    ------
    InputError
        If a file is missing or is not as expected, or the model or a type is not known.
    """
    path, folder = Path(cluster), Path(model)
    if folder.name not in _MODELS:
        raise InputError("--model", f"no rates of {folder.name!r}", choice(folder.name, _MODELS))
    layers, activation, kinds = _MODELS[folder.name]
    file = _parsed(path)
    profiles = _parsed(path.parent / "machine_profiles.ini")
    with FaultsOf(path):
        try:
            n = int(file["NodeNames"]["total_compute_nodes"])
            types = [file[f"ComputeNode-{i}"]["type"] for i in range(n)]
        except (KeyError, ValueError) as error:
            raise InputError("", f"has no {error}", "give a cluster of Helix") from None
        for kind in types:
            if kind not in kinds or kind not in profiles:
                raise InputError("type", f"{kind!r} is not known", choice(kind, kinds))
        rates = _rates(folder, layers, kinds, Counter(types))
        machines = []
        for i, kind in enumerate(types):
            card = min(
                _speed(profiles[kind][f"{way}_nic_speed"]) for way in ("inbound", "outbound")
            )
            limit = card / activation
            machines.append(Machine(f"{kind}-{i}", tuple(min(r, limit) for r in rates[kind])))
        links: dict[tuple[int, int], Fraction | None] = {}
        for section in file.sections():
            if section.startswith("Link-"):
                start, end = section.split("-")[1:]
                u = n if start == "source" else int(start)
                v = n + 1 if end == "sink" else int(end)
                speed = _speed(file[section]["bandwidth"])
                links[u, v] = speed / (_TOKEN if max(u, v) >= n else activation)
                if max(u, v) < n:
                    links[v, u] = links[u, v]
    return Serving(f"{path.stem}-{folder.name}", layers, tuple(machines), links)


def read_layers(path: str | Path, serving: Serving) -> list[Interval]:
    """Return the layers of every machine in a plan of Helix (``ilp_sol.ini``)."""
    file = _parsed(Path(path))
    shift = int(file["Settings"]["offset"])
    intervals: list[Interval] = []
    for i in range(len(serving.machines)):
        held = [int(k) for k in re.findall(r"\d+", file["Solution"][f"compute_node_{i + shift}"])]
        intervals.append((held[0], held[-1] + 1))
    return intervals


def _parsed(path: Path) -> ConfigParser:
    found = ConfigParser(interpolation=None)
    with FaultsOf(path):
        try:
            found.read_string(read_text(path))
        except SyntaxFault as error:
            problem = str(error).splitlines()[0]
            raise InputError("", f"is no INI file ({problem})", "give one of Helix") from None
    return found


def _speed(text: str) -> Fraction:
    number, _, unit = text.partition("*")
    try:
        return Fraction(number.strip()) * _UNITS[unit.strip()]
    except (KeyError, ValueError):
        raise InputError("", f"{text!r} is no speed", "give one such as 10 * gbps") from None


def _curve(path: Path) -> _Curve:
    with FaultsOf(path):
        try:
            rows = [line.split(",") for line in read_text(path).split()]
            return [(int(size), float(time) * 0.001) for size, time in rows]
        except ValueError:
            raise InputError("", "is no table of sizes and times", "give one of Helix") from None


def _time(curve: _Curve, size: int) -> float:
    """Interpolate the time of a layer; beyond the last size, there is none."""
    for (low, fast), (high, slow) in pairwise(curve):
        if low <= size < high:
            return fast if size == low else fast + (slow - fast) * (size - low) / (high - low)
    return curve[-1][1]


def _rates(
    folder: Path, layers: int, kinds: dict[str, _Kind], types: Counter[str]
) -> dict[str, list[Fraction]]:
    """Return the tokens per second of every type, with 1, 2, … layers."""
    curves = {
        kind: [_curve(folder / kind.lower() / f"{of}_bs2time.csv") for of in ("prompt", "decode")]
        for kind in types
    }
    few = sum(number * kinds[kind].typical for kind, number in types.items()) < 1.2 * layers
    typical = {kind: kinds[kind].most if few else kinds[kind].typical for kind in types}

    def rate(kind: str, k: int, speed: dict[str, float]) -> float:
        time = {each: 1 / value for each, value in speed.items()}
        total = sum(number * typical[each] * time[each] for each, number in types.items())
        held = sum(number * typical[each] for each, number in types.items())
        own = k * time[kind]
        share = own / ((layers - k) * (total / held) + own)
        room = int(_USED * (_BLOCK * kinds[kind].blocks[k - 1] * k) / k) / (_INPUT + _OUTPUT)
        prompts = room * share / _OUTPUT
        prompt, decode = round(prompts * _INPUT), round(room * share)
        if prompts > 1:
            prompts, prompt, decode = 1.0, _INPUT, _OUTPUT
        scale = 1 / prompts
        prompt_time = _time(curves[kind][0], int(prompt * scale))
        decode_time = _time(curves[kind][1], decode) * scale
        return scale * (prompt + decode) / (k * (prompt_time + decode_time))

    speed = {kind: kinds[kind].speed for kind in types}
    for _ in range(_ROUNDS):
        speed = {kind: rate(kind, typical[kind], speed) * typical[kind] for kind in types}
    return {
        kind: [Fraction(rate(kind, k, speed)) for k in range(1, len(kinds[kind].blocks) + 1)]
        for kind in types
    }
