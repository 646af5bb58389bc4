"""``optpart import``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.base.choices import Communication, Memory
from optpart.base.errors import FaultsOf, InputError
from optpart.base.limits import LARGEST_SEED, MOST_DEVICES, MOST_EXPERT_GROUPS, MOST_TOKENS
from optpart.base.terminal import say
from optpart.commands.options import LanguageModel, NewInstance, option_of, say_size, spread
from optpart.interop.formats.detect import FORMATS, Format, format_of

if TYPE_CHECKING:
    from optpart.interop.costs.costed import Costed
    from optpart.interop.devices.named import NamedCluster
    from optpart.problem.instance import Instance

_SUFFIXES = ", ".join(suffix for row in FORMATS.values() for suffix in row.suffixes)
_FORMATS = ", ".join(f"{row.name} ({row.summary})" for row in FORMATS.values())


def _count(help: str) -> Any:
    return typer.Option(help=help, min=1, max=MOST_TOKENS)


def _given(options: object, **read: Any) -> dict[str, Any]:
    """Return the options that were given, and those that were read."""
    every = {**vars(options), **read}
    return {name: value for name, value in every.items() if not (value is None or value is False)}


@dataclass(frozen=True)
class Costing:
    """Options of sources of costs."""

    measured: Annotated[
        list[str] | None,
        typer.Option(
            help="DEVICE=FILE: times that were measured on a device or a type of device; "
            "repeatable."
        ),
    ] = None
    fill: Annotated[str | None, typer.Option(help="roofline: estimate what was not measured.")] = (
        None
    )
    exact: Annotated[
        bool, typer.Option("--exact", help="Keep fractions of measured nanoseconds.")
    ] = False
    efficiencies: Annotated[
        Path | None, typer.Option(help="Attained parts of peaks by class, .toml.")
    ] = None
    node_memory: Annotated[Path | None, typer.Option(help="Memory statistics of ONNX Runtime.")] = (
        None
    )

    @property
    def given(self) -> dict[str, Any]:
        """Those that were given, as :class:`optpart.interop.costs.registry.Options` has them."""
        return _given(self, measured=_pairs("--measured", self.measured, Path))


@dataclass(frozen=True)
class Reading:
    """Options of readers of models, workflows and profiles."""

    shape: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE: an open size of an ONNX or PyTorch model; repeatable."),
    ] = None
    model: Annotated[str | None, typer.Option(help="Which model of several in the file.")] = None
    break_cycles: Annotated[
        bool,
        typer.Option(
            "--break-cycles",
            help="Remove edges that close while loops of TensorFlow, and list them.",
        ),
    ] = False
    language: LanguageModel = field(default_factory=LanguageModel)
    tokens: Annotated[int | None, _count("New tokens per sequence.")] = None
    prefill_tokens: Annotated[
        int | None, _count("Tokens of a prompt that a decoding step reads beside its own.")
    ] = None
    expert_groups: Annotated[
        int | None,
        typer.Option(
            help="Vertices that the experts of a block are split into.",
            min=2,
            max=MOST_EXPERT_GROUPS,
        ),
    ] = None
    kv_dtype: Annotated[str | None, typer.Option(help="Type of keys and values.")] = None
    activations: Annotated[str | None, typer.Option(help="Type of hidden states.")] = None
    tied: Annotated[
        str | None, typer.Option(help="copy or share a matrix of embedding and head.")
    ] = None
    logits: Annotated[str | None, typer.Option(help="last (default) or all.")] = None
    bandwidth: Annotated[
        str | None, typer.Option(help="Between the machines of a workflow, such as '10 Gbit/s'.")
    ] = None
    latency: Annotated[
        str | None, typer.Option(help="Between the machines of a workflow, such as '1 us'.")
    ] = None
    cores: Annotated[
        bool, typer.Option("--cores", help="A device per core of a workflow's machines.")
    ] = False
    inputs: Annotated[
        bool, typer.Option("--inputs", help="A vertex hands out the input files of a workflow.")
    ] = False
    training: Annotated[
        bool, typer.Option("--training", help="Forward and backward pass of a PipeDream profile.")
    ] = False
    microbatch: Annotated[int | None, _count("Of a Sailor profile.")] = None
    tensor_parallel: Annotated[int | None, _count("Degree of a Sailor profile.")] = None
    measured_pass: Annotated[
        str | None, typer.Option(help="forward, backward or training of a Sailor profile.")
    ] = None
    gpus: Annotated[
        list[str] | None, typer.Option(help="GPU types of a Sailor profile; repeatable.")
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that were given, as readers have them."""
        return _given(
            self,
            **vars(self.language),
            language=None,
            shape=None,
            shapes=_pairs("--shape", self.shape, int),
        )


@dataclass(frozen=True)
class Asked:
    """Arguments and options of ``optpart import``; what makes the instance."""

    file: Annotated[
        Path,
        typer.Argument(
            help=f"A file ({_SUFFIXES}, or of another FORMAT), a folder, or the name of a language "
            "model, such as llama-3-8b."
        ),
    ]
    output: NewInstance
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{_FORMATS}; needed only if neither suffix nor content identifies the format.",
        ),
    ] = None
    cluster: Annotated[
        Path | None, typer.Option(help="Devices: a .toml, or the device .csv of a thesis graph.")
    ] = None
    devices: Annotated[
        int | None,
        typer.Option(
            help="Draw a cluster of this many devices instead; for stg, equal devices.",
            min=1,
            max=MOST_DEVICES,
        ),
    ] = None
    costs: Annotated[
        str | None,
        typer.Option(
            help="Where run times come from: roofline, file, measured, drawn, unit, or a CSV with "
            "name, ops, memory, sizes. Instances have their own; all else needs this."
        ),
    ] = None
    memory: Annotated[
        Memory | None,
        typer.Option(
            help="How memory counts; by default, limits of the devices count if there are any, "
            "and an instance's file decides."
        ),
    ] = None
    communication: Annotated[
        Communication | None,
        typer.Option(
            metavar="MODEL", help="How transfers count: delay (default), sendrecv, link or port."
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of what is drawn; 0 by default.", min=0, max=LARGEST_SEED),
    ] = None
    name: Annotated[str | None, typer.Option(help="Name of the instance.")] = None
    colocate: Annotated[
        str | None,
        typer.Option(
            help="Regular expression; vertices whose names start with the same match are colocated."
        ),
    ] = None
    costing: Costing = field(default_factory=Costing)
    reading: Reading = field(default_factory=Reading)

    @cached_property
    def row(self) -> Format:
        """The format."""
        row = format_of(self.file, self.format_)
        if row.content != "name" and not os.path.exists(self.file):
            problem = "cannot be read (No such file or directory)"
            raise InputError("", problem, "name a readable file", str(self.file))
        return row

    def made(self) -> Costed:
        """Make the instance; whatever means nothing to the file is refused."""
        if self.row.gives == "instance":
            return self._instance()
        if self.row.of_machines and self.cluster is None and self.devices is None:
            return self._on_machines()
        return self._workload()

    def _refuse(self, given: Mapping[str, Any], why: str, remedy: str = "leave it out") -> None:
        for option, value in given.items():
            if value is not None:
                raise InputError(option_of(option), why, remedy, str(self.file))

    def _refuse_reading(self, taken: Iterable[str]) -> None:
        others = {key: value for key, value in self.reading.given.items() if key not in taken}
        self._refuse(others, f"means nothing to the format {self.row.name}")

    def _instance(self) -> Costed:
        """Take an instance as it is, but for the models that were asked for."""
        from optpart.interop.formats.detect import read_instance

        row = self.row
        self._refuse_reading(())
        given = {
            "costs": self.costs,
            **self.costing.given,
            "seed": self.seed,
            "colocate": self.colocate,
        }
        self._refuse(given, "means nothing to an instance, which has its own costs")
        if row.needs_cluster:
            self._refuse(
                {"devices": self.devices}, "cannot be drawn", "give the CSV of the devices"
            )
            if self.cluster is None:
                raise InputError("--cluster", "missing", "give the CSV of the devices")
            return self._with_models(row.load().read(self.file, self.cluster))
        self._refuse({"cluster": self.cluster}, "means nothing to an instance, which has devices")
        return self._with_models(read_instance(self.file, self.format_, self.devices))

    def _on_machines(self) -> Costed:
        """Make an instance of a file that describes devices beside a workload."""
        from dataclasses import replace

        row = self.row
        given = {"costs": self.costs, **self.costing.given}
        why = "means nothing to the machines of the file, which have their own times"
        self._refuse(given, why, "leave it out, or give other devices with --cluster")
        self._refuse({"seed": self.seed}, "nothing is drawn")
        self._refuse({"colocate": self.colocate}, "needs devices", "give --cluster and --costs")
        self._refuse_reading(row.of_machines)
        instance, remarks = row.load().read_instance(self.file, **self.reading.given)
        made = self._with_models(instance, by_limits=True)
        return replace(made, remarks=(*remarks, *made.remarks))

    def _with_models(self, instance: Instance, *, by_limits: bool = False) -> Costed:
        """Let memory and transfers count as asked for, else as in the file, or by the limits."""
        from dataclasses import replace

        from optpart.interop.costs.costed import Costed, memory_model
        from optpart.interop.costs.registry import told, with_communication

        asked = self.memory or (None if by_limits else instance.model.memory)
        memory, remarks = memory_model(instance, asked)
        if memory != instance.model.memory:
            instance = replace(instance, model=replace(instance.model, memory=memory))
        made = with_communication(Costed(instance, remarks), self.communication)
        return told(made) if remarks else made

    def _workload(self) -> Costed:
        """Make an instance of a workload, a cluster and costs."""
        from dataclasses import replace

        from optpart.interop.costs.registry import Options, apply, check_options
        from optpart.interop.formats.detect import read_workload
        from optpart.interop.formats.graph_edits import colocate_cells

        self._refuse_reading(self.row.options)
        costs, table = self._source()
        cluster, drawn = self._cluster()
        if self.seed is not None and not drawn and costs != "drawn":
            self._refuse({"seed": self.seed}, "nothing is drawn")
        options = Options(
            file=table,
            seed=self.seed if costs == "drawn" else None,
            memory=self.memory,
            communication=self.communication,
            **self.costing.given,
        )
        check_options(costs, options)
        names = cluster.cluster.names
        workload = read_workload(self.file, self.format_, devices=names, **self.reading.given)
        with FaultsOf(self.file):
            if self.colocate is not None:
                graph = colocate_cells(workload.graph, self.colocate)
                workload = replace(workload, graph=graph)
            return apply(
                costs, replace(workload, assumed=(*workload.assumed, *drawn)), cluster, options
            )

    def _source(self) -> tuple[str, Path | None]:
        """Return the source of costs and, of a table, its file."""
        from optpart.interop.costs.registry import SOURCES

        named = [name for name in SOURCES if name != "table"]
        choices = f"{', '.join(named)}, or a CSV"
        if self.costs is None:
            raise InputError(
                "--costs", f"missing; {self.row.summary} have no run times", f"give {choices}",
                str(self.file),
            )  # fmt: skip
        if self.costs in named:
            return self.costs, None
        if self.costs.lower().endswith(".csv") or os.path.isfile(self.costs):
            return "table", Path(self.costs)
        raise InputError("--costs", f"unknown {self.costs!r}", f"give {choices}")

    def _cluster(self) -> tuple[NamedCluster, tuple[str, ...]]:
        """Return the devices, and a remark if they are drawn."""
        from optpart.interop.devices.named import NamedCluster
        from optpart.interop.formats import cluster_toml
        from optpart.interop.generate.cluster import drawn_cluster

        if (self.cluster is None) == (self.devices is None):
            remedy = "give either --cluster FILE or --devices N"
            raise InputError("--cluster", "no devices", remedy)
        if self.cluster is not None:
            return cluster_toml.read_named(self.cluster), ()
        assert self.devices is not None
        seed = self.seed or 0
        drawn = NamedCluster.unnamed(drawn_cluster(seed, self.devices))
        return drawn, (f"Speeds and bandwidths of {self.devices} devices were drawn, seed {seed}.",)


@spread
def import_(asked: Asked) -> None:
    """Make an instance of a graph, a model, a workflow or a profile.

    Instances are read as they are. Everything else is a workload: it needs
    devices (--cluster or --devices) and --costs.
    """
    from dataclasses import replace

    from optpart.interop.formats import native

    made = asked.made()
    instance = made.instance if asked.name is None else replace(made.instance, name=asked.name)
    native.write(instance, asked.output)
    for remark in made.remarks:
        say(remark)
    say_size(instance, asked.output)


def _pairs(option: str, given: list[str] | None, kind: type[int] | type[Path]) -> Any:
    """Read what was given as ``NAME=VALUE``."""
    if given is None:
        return None
    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.rpartition("=") if kind is int else each.partition("=")
        if not (name and equals and value) or (kind is int and not value.isdecimal()):
            what = "NAME=NUMBER" if kind is int else "DEVICE=FILE"
            raise InputError(option, f"{each!r} is no {what}", f"give {what}")
        if name in found:
            raise InputError(option, f"{name!r} for the second time", "give it once")
        found[name] = kind(value)
    return found
