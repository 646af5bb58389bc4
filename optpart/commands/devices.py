"""``optpart devices``."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.commands.options import Json
from optpart.errors import InputError
from optpart.terminal import put, say

if TYPE_CHECKING:
    from optpart.devices.spec import DeviceSpec, LinkSpec

_GIB = 2**30


def devices(
    name: Annotated[
        str | None, typer.Argument(help="A device or a link, to see all that is known of it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the devices and links that a cluster file can name."""
    from optpart.devices import library

    known, links = library.devices(), library.links()
    if name is not None and name not in {*known, *links}:
        remedy = library.nearest(name, {**known, **links})
        raise InputError("NAME", f"no device or link {name!r} in the library", remedy)
    if name is not None:
        one = known.get(name) or links[name]
        if as_json:
            put(json.dumps(_document(one), indent=1) + "\n")
        else:
            _show(one)
    elif as_json:
        document = {
            "devices": [_document(spec) for spec in known.values()],
            "links": [_document(spec) for spec in links.values()],
        }
        put(json.dumps(document, indent=1) + "\n")
    else:
        _list(list(known.values()), list(links.values()))


def _list(devices: list[DeviceSpec], links: list[LinkSpec]) -> None:
    precisions = ("float32", "bfloat16", "float16", "int8")
    say("Peak rates in TFLOP/s (int8: TOP/s), dense; bandwidth of memory in GB/s")
    say(f"{'device':16} type {''.join(f'{p:>9}' for p in precisions)} {'GB/s':>7} {'memory':>8}")
    for device in devices:
        rates = "".join(f"{_scaled(device.peak.get(p), 1000):>9}" for p in precisions)
        say(
            f"{device.name:16} {device.type:4} {rates} {_scaled(device.bandwidth):>7} "
            f"{_memory(device.memory):>8}"
        )
    say("")
    say("GB/s in each direction, as stated and as assumed to be left for payload")
    say(f"{'link':16} {'stated':>7} {'payload':>8} {'latency':>8}")
    for link in links:
        say(
            f"{link.name:16} {_scaled(link.nominal):>7} {_scaled(link.bandwidth):>8} "
            f"{_scaled(link.latency, 1000):>5} us"
        )
    say("")
    say("'optpart devices NAME' shows the source; latencies and overheads are assumptions")


def _show(spec: DeviceSpec | LinkSpec) -> None:
    from optpart.devices.spec import DeviceSpec
    from optpart.problem.units import written

    say(f"{spec.name}: {spec.summary}")
    if isinstance(spec, DeviceSpec):
        say(f"  type        {spec.type}")
        for precision, rate in spec.peak.items():
            say(f"  {precision:11} {written(rate, 'speed')}")
        say(f"  bandwidth   {written(spec.bandwidth, 'bandwidth')}")
        say(f"  memory      {_memory(spec.memory)}")
        say(f"  overhead    {written(spec.overhead, 'time')} per operation (assumed)")
    else:
        say(f"  stated      {written(spec.nominal, 'bandwidth')} in each direction")
        say(f"  efficiency  {float(spec.efficiency):.3f} (assumed)")
        say(f"  payload     {written(spec.bandwidth, 'bandwidth')} in each direction")
        say(f"  latency     {written(spec.latency, 'time')} (assumed)")
    say(f"  source      {spec.source}")
    say(f"  entered     {spec.date}")


def _document(spec: DeviceSpec | LinkSpec) -> dict[str, Any]:
    """Return a spec as JSON, in nanoseconds and bytes as everywhere."""
    from optpart.devices.spec import DeviceSpec
    from optpart.problem.document import number

    if isinstance(spec, DeviceSpec):
        figures: dict[str, Any] = {
            "type": spec.type,
            "peak": {precision: number(rate) for precision, rate in spec.peak.items()},
            "bandwidth": number(spec.bandwidth),
            "memory": None if spec.memory is None else number(spec.memory),
            "overhead": number(spec.overhead),
        }
    else:
        figures = {
            "nominal": number(spec.nominal),
            "efficiency": number(spec.efficiency),
            "bandwidth": number(spec.bandwidth),
            "latency": number(spec.latency),
        }
    return {
        "name": spec.name,
        "summary": spec.summary,
        **figures,
        "source": spec.source,
        "date": spec.date,
    }


def _scaled(value: Fraction | None, unit: int = 1) -> str:
    """Write with four significant digits, without an exponent."""
    return "-" if value is None else f"{float(f'{float(value) / unit:.4g}'):g}"


def _memory(size: Fraction | None) -> str:
    if size is None:
        return "-"
    if size % _GIB == 0:
        return f"{size // _GIB} GiB"
    return f"{_scaled(size, 10**9)} GB"
