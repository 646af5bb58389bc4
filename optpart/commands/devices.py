"""``optpart devices``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.base.errors import InputError
from optpart.base.languages import to_json
from optpart.base.terminal import note, put, say
from optpart.commands.options import Json, file_to_write, time_limit

if TYPE_CHECKING:
    from optpart.interop.devices.spec import DeviceSpec, LinkSpec
    from optpart.study.report.console import PlainConsole

_GIB = 2**30


def devices(
    name: Annotated[
        str | None, typer.Argument(help="A device or a link, to see all that is known of it.")
    ] = None,
    as_json: Json = False,
    detect: Annotated[
        bool,
        typer.Option(
            "--detect", help="Measure the devices of this machine, and write a cluster file."
        ),
    ] = False,
    output: Annotated[
        Path | None, file_to_write("-o", "--output", help="For --detect: the cluster file.")
    ] = None,
    seconds: Annotated[
        float | None, time_limit("For --detect: how long to measure; 10 by default.", "--seconds")
    ] = None,
) -> None:
    """List the devices and links that a cluster file can name, or measure those of this machine."""
    if detect:
        _detect(name, as_json, output, 10.0 if seconds is None else seconds)
        return
    for option, given in (("--output", output), ("--seconds", seconds)):
        if given is not None:
            raise InputError(option, "means nothing without --detect", "add --detect")
    from optpart.interop.devices import library

    known, links = library.devices(), library.links()
    if name is not None and name not in {*known, *links}:
        remedy = library.nearest(name, {**known, **links})
        raise InputError("NAME", f"no device or link {name!r} in the library", remedy)
    if name is not None:
        one = known.get(name) or links[name]
        if as_json:
            put(to_json(_document(one), indent=1) + "\n")
        else:
            _show(one)
    elif as_json:
        document = {
            "devices": [_document(spec) for spec in known.values()],
            "links": [_document(spec) for spec in links.values()],
        }
        put(to_json(document, indent=1) + "\n")
    else:
        _list(list(known.values()), list(links.values()))


def _detect(name: str | None, as_json: bool, output: Path | None, seconds: float) -> None:
    from optpart.base.files import check_target, write_text
    from optpart.interop.costs.detection import detect
    from optpart.interop.formats.cluster_toml import KIND

    for option, given in (("NAME", name), ("--json", as_json)):
        if given:
            raise InputError(option, "means nothing with --detect", "leave it out")
    if output is not None:
        check_target(output, KIND)
    found = detect(seconds)
    for remark in found.remarks:
        (note if output is None else say)(remark)
    if output is None:
        put(found.text)
    else:
        write_text(output, found.text, KIND)
        say(f"→ {output}")


def _list(devices: list[DeviceSpec], links: list[LinkSpec]) -> None:
    from optpart.study.report.console import plain_console

    print_library(plain_console(), devices, links)


def print_library(console: PlainConsole, devices: list[DeviceSpec], links: list[LinkSpec]) -> None:
    """Print the figures of devices and links in two tables."""
    from optpart.study.report.console import plain_table

    precisions = ("float32", "bfloat16", "float16", "int8")
    console.tell("Peak rates in TFLOP/s (int8: TOP/s), dense; bandwidth of memory in GB/s")
    table = plain_table("device", "type", *precisions, "GB/s", "memory", words=2)
    for device in devices:
        rates = [_scaled(device.peak.get(p), 1000) for p in precisions]
        table.add_row(
            device.name,
            device.type or "-",
            *rates,
            _scaled(device.bandwidth),
            _memory(device.memory),
        )
    console.show(table)
    console.tell("")
    console.tell("GB/s in each direction, as stated and as assumed to be left for payload")
    table = plain_table("link", "stated", "payload", "latency")
    for link in links:
        latency = f"{_scaled(link.latency, 1000)} us"
        table.add_row(link.name, _scaled(link.nominal), _scaled(link.bandwidth), latency)
    console.show(table)
    console.tell("")
    console.tell("'optpart devices NAME' shows the source; latencies and overheads are assumptions")


def _show(spec: DeviceSpec | LinkSpec) -> None:
    from optpart.interop.devices.spec import DeviceSpec
    from optpart.problem.units import written
    from optpart.study.report.console import plain_console

    rows: list[tuple[str, ...]] = []
    if isinstance(spec, DeviceSpec):
        rows.append(("  type", spec.type or "-"))
        rows += [(f"  {name}", written(rate, "speed")) for name, rate in spec.peak.items()]
        rows.append(("  bandwidth", written(spec.bandwidth, "bandwidth")))
        rows.append(("  memory", _memory(spec.memory)))
        rows.append(("  overhead", f"{written(spec.overhead, 'time')} per operation (assumed)"))
    else:
        stated, payload = written(spec.nominal, "bandwidth"), written(spec.bandwidth, "bandwidth")
        rows.append(("  stated", f"{stated} in each direction"))
        rows.append(("  efficiency", f"{float(spec.efficiency):.3f} (assumed)"))
        rows.append(("  payload", f"{payload} in each direction"))
        rows.append(("  latency", f"{written(spec.latency, 'time')} (assumed)"))
    rows += [("  source", spec.source), ("  entered", str(spec.date))]
    console = plain_console()
    console.tell(f"{spec.name}: {spec.summary}")
    console.tell_rows(rows)


def _document(spec: DeviceSpec | LinkSpec) -> dict[str, Any]:
    """Return a spec as JSON, in nanoseconds and bytes as everywhere."""
    from optpart.interop.devices.spec import DeviceSpec
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
