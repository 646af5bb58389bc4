"""The table of formats, and the detection of a file's format.

A file gives an :class:`~optpart.problem.instance.Instance`, or a
:class:`~optpart.problem.workload.Workload`, which needs devices and costs to become one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optpart.base.choices import close
from optpart.base.errors import ArgumentError, FaultsOf, InputError
from optpart.base.files import read_text
from optpart.base.registry import Registry

if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.problem.workload import Workload

#: What a row looks at to recognise its files.
Content = Literal["text", "json", "bytes", "folder", "name"]


@dataclass(frozen=True)
class Format:
    """A row of the table.

    Attributes
    ----------
    name : str
    summary : str
        One line of help.
    module : str
        The module that reads the format; see :meth:`load`.
    suffixes : tuple of str
        Suffixes that only this format has, in lower case, with the dot.
    distinctive : bool
        Whether ``sniff`` accepts no other format, so that it takes precedence.
    needs_devices : bool
        Whether files of instances have no devices of their own, but run on any number.
    needs_cluster : bool
        Whether the devices of an instance are in a second file.
    gives : {"instance", "workload"}
        What a file holds.
    content : {"text", "json", "bytes", "folder", "name"}
        What ``sniff`` looks at; ``name`` if there is no file, but only a name.
    takes : tuple of str
        Keyword parameters of ``read``. ``step`` stands for every field of
        :class:`~optpart.interop.formats.llm.Step`, ``devices`` for the names of the cluster's
        devices.
    of_machines : tuple of str
        Keyword parameters of ``read_instance``, which returns an instance on the machines that a
        workload's own file describes, and remarks; empty if files describe none.
    """

    name: str
    summary: str
    module: str
    suffixes: tuple[str, ...] = ()
    distinctive: bool = False
    needs_devices: bool = False
    needs_cluster: bool = False
    gives: Literal["instance", "workload"] = "instance"
    content: Content = "text"
    takes: tuple[str, ...] = ()
    of_machines: tuple[str, ...] = ()

    def load(self) -> Any:
        """Return the module, which has some of these functions.

        ``read``
            Reads a path; with ``needs_devices``, also takes their number, with ``needs_cluster``
            their file, and the parameters that ``takes`` lists.
        ``sniff``, optional
            Returns whether something looks like this format: the text or the first bytes of a
            file without suffix or with ``.txt``; an object in a ``.json`` file without the key
            ``format``; the path of a folder; or a name.
        ``from_dict``, of instances in JSON
            Builds an instance from a parsed document and a name.
        """
        return import_module(self.module)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a user on how a file is read."""
        return tuple(
            option
            for each in self.takes
            if each != "devices"
            for option in (STEP if each == "step" else (each,))
        )


#: What a step of a language model is: the fields of :class:`~optpart.interop.formats.llm.Step`.
STEP = (
    "mode", "batch", "tokens", "context", "kv_dtype", "activations", "granularity", "tied",
    "logits", "reserve", "prefill_tokens", "expert_use", "expert_groups", "images", "image_size",
    "words_only",
)  # fmt: skip


def _own(name: str, summary: str, *suffixes: str, module: str = "", **traits: Any) -> Format:
    """Return the row of a format of this package; its module is called as it is."""
    module = f"optpart.interop.formats.{module or name.replace('-', '_')}"
    return Format(name, summary, module, suffixes, **traits)


def _model(name: str, summary: str, *suffixes: str, **traits: Any) -> Format:
    """Return the row of a format of workloads."""
    return _own(name, summary, *suffixes, gives="workload", **traits)


_ROWS = (
    _own("native", "instances as optpart writes them", content="json"),
    _own("gxl", "task graphs of the University of Auckland", ".gxl"),
    _own("jsplib", "classical job shops of OR-Library", ".jsp"),
    _own("fjs", "flexible job shops", ".fjs"),
    _own("santiago", "task graphs on unrelated machines by Santiago et al.", distinctive=True),
    _own("saga", "task graphs on networks by SAGA", distinctive=True, content="json"),
    _own("moirai", "model graphs with measured times by Moirai", content="json"),
    _own(
        "dnn-partitioning", "model graphs by Tarnawski et al.", distinctive=True, content="json"
    ),
    _own("stg", "task graphs of the Standard Task Graph Set", ".stg", needs_devices=True),
    _own(
        "thesis", "graphs and devices in two CSV files as in [L]", ".csv",
        module="thesis_csv", needs_cluster=True,
    ),
    _model("onnx", "models in ONNX", ".onnx", content="bytes", takes=("shapes",)),
    _model(
        "pytorch", "models of PyTorch, as torch.export.save writes them", ".pt2",
        content="bytes", takes=("shapes", "model", "granularity"),
    ),
    _model(
        "tensorflow", "graphs of TensorFlow (GraphDef)", ".pb", ".pbtxt",
        takes=("devices", "break_cycles"),
    ),
    _model(
        "gguf", "language models of llama.cpp", ".gguf", content="bytes", takes=("step", "mmproj"),
    ),
    _model(
        "safetensors", "transformers of Hugging Face as safetensors, with config.json",
        ".safetensors", ".safetensors.index.json",
        module="hugging_face", content="bytes", takes=("step",),
    ),
    _model(
        "hugging-face", "transformers of Hugging Face, a folder with config.json",
        content="folder", takes=("step",),
    ),
    _model(
        "llm", "language models by name, such as llama-3-8b",
        module="llm_names", content="name", takes=("step", "weights"),
    ),
    _model(
        "wfformat", "scientific workflows of WfCommons",
        distinctive=True, content="json", takes=("inputs",),
        of_machines=("inputs", "bandwidth", "latency", "cores"),
    ),
    _model(
        "pipedream", "profiles of networks on one GPU by PipeDream",
        distinctive=True, takes=("training",),
    ),
    _model(
        "sailor", "layers of language models with measured times by Sailor, a folder",
        content="folder", takes=("model", "microbatch", "tensor_parallel", "measured_pass", "gpus"),
    ),
    _model("dot", "graphs in DOT, the language of Graphviz", ".dot", ".gv", distinctive=True),
    _model("graphml", "graphs in GraphML", ".graphml", distinctive=True),
)  # fmt: skip

#: The formats, by name.
FORMATS = Registry("format", {row.name: row for row in _ROWS}, Format, group="optpart.formats")

_WEIGHTS = "give what torch.export.save writes (.pt2), ONNX, or the folder of Hugging Face"
_KERAS = "give a frozen GraphDef (.pb), or the model as tf2onnx writes it (.onnx)"
_COMPILED = "give the model that it was made of, such as its .onnx"

#: What files of models hold that no reader knows, and what to give instead.
_INSTEAD = {
    **dict.fromkeys((".bin", ".pth", ".pt", ".ckpt"), ("holds weights, but no graph", _WEIGHTS)),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), ("is a file of Keras", _KERAS)),
    ".tflite": ("is a model of TensorFlow Lite", _KERAS),
    ".mlmodel": ("is a model of Core ML", _COMPILED),
    ".mlpackage": ("is a model of Core ML", _COMPILED),
    **dict.fromkeys((".engine", ".plan", ".trt"), ("is an engine of TensorRT", _COMPILED)),
}

#: Suffixes for which the content decides.
_TEXTS = ("", ".txt")

#: So many bytes tell binary formats apart.
_BEGINNING = 4096

_IMPORT = "make an instance of it with 'optpart import … --cluster … --costs …'"


def read_instance(
    path: str | Path, format: str | None = None, devices: int | None = None
) -> Instance:
    """Read an instance from a file in any of the formats.

    Parameters
    ----------
    format : str, optional
        One of :data:`FORMATS`. By default, the suffix decides: ``.gxl``, ``.stg``, ``.fjs`` or
        ``.jsp``; for ``.json``, ``.txt`` and files without a suffix, the content does.
    devices : int, optional
        For task graphs of the Standard Task Graph Set, which have none of their own.

    Raises
    ------
    InputError
        If the file is faulty, of no known format or of several, or contains only part of an
        instance.
    """
    instance: Instance
    found, document = _found(path, format)
    if found.gives != "instance":
        raise InputError("", f"{found.summary} have no run times of a cluster", _IMPORT, str(path))
    if found.needs_cluster:
        remedy = "make an instance of them with 'optpart import … --cluster DEVICES.csv'"
        raise InputError("", f"{found.summary}: only the graph", remedy, str(path))
    if found.needs_devices:
        if devices is None:
            raise InputError(
                "",
                f"{found.summary} have no devices of their own",
                "give their number with 'optpart import --devices'",
                str(path),
            )
        instance = _read(found, path, devices)
        return instance
    if devices is not None:
        raise InputError("devices", "given, but the file has its own", "omit them", str(path))
    if document is not None:
        with FaultsOf(path):
            name = () if found.name == "native" else (Path(path).stem,)
            instance = found.load().from_dict(document, *name)
            return instance
    instance = _read(found, path)
    return instance


def read_workload(
    path: str | Path,
    format: str | None = None,
    *,
    devices: Sequence[str] = (),
    **options: Any,
) -> Workload:
    """Read a workload: what a model file says, before it meets any device.

    Parameters
    ----------
    path : str or Path
        A file or, where there is none of that name, the name of a language model.
    format : str, optional
        One of :data:`FORMATS`; by default, suffix or content decide.
    devices : sequence of str
        Names of the devices that it will run on. A TensorFlow graph may name some of them.
    **options
        What the format's row in :data:`FORMATS` takes; ``None`` is not given.

    Raises
    ------
    InputError
        If the file is faulty, of no known format or of several, holds an instance, or an option
        means nothing to its format.
    """
    found = format_of(path, format)
    if found.gives != "workload":
        remedy = "read it with 'optpart.load'"
        raise InputError("", f"holds an instance already ({found.name})", remedy, str(path))
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in found.options:
            near = close(option, found.options, 0.7)
            remedy = f"did you mean {' or '.join(near)}?" if near else "leave it out"
            raise ArgumentError(option, f"means nothing to the format {found.name}", remedy)
    if "devices" in found.takes:
        given["devices"] = devices
    if "step" in found.takes:
        from optpart.interop.formats.llm import Step

        told = {option: given.pop(option) for option in STEP if option in given}
        given["step"] = Step(**told)
    workload: Workload = found.load().read(path, **given)
    return workload


def format_of(path: str | Path, name: str | None = None) -> Format:
    """Return the format with the given name, else by the suffix, else by the content.

    Raises
    ------
    InputError
        If there is no such format, or the file is of no known format, or of several.
    """
    return _found(path, name)[0]


def _found(path: str | Path, name: str | None) -> tuple[Format, Any]:
    """Return the format and, where it was parsed on the way to it, the document in JSON."""
    if name is not None:
        with FaultsOf(path):
            return FORMATS.find(name), None
    by_name = _of_name(path)
    if by_name is not None:
        return by_name, None
    if os.path.isdir(path):
        return _of_folder(path), None
    by_suffix = {each: row for row in FORMATS.values() for each in row.suffixes}
    alike = [each for each in by_suffix if Path(path).name.lower().endswith(each)]
    if alike:
        return by_suffix[max(alike, key=len)], None
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        return _of_json(path)
    if suffix in _TEXTS:
        return _of_content(path), None
    if suffix == ".toml":
        problem, remedy = "a cluster is only part of an instance", "name it in 'optpart import … "
        raise InputError("", problem, remedy + "--cluster FILE.toml'", str(path))
    if suffix in _INSTEAD:
        raise InputError("", *_INSTEAD[suffix], str(path))
    near = close(suffix, by_suffix, 0.8)
    raise InputError(
        "",
        f"unknown suffix {suffix!r}",
        (f"did you mean {' or '.join(near)}? U" if near else "u")
        + f"se {', '.join(('.json', *by_suffix, '.txt'))}, or name the format with "
        "'optpart import --format'",
        str(path),
    )


def _of_name(path: str | Path) -> Format | None:
    """Return the format that knows a name for which there is no file."""
    if os.path.lexists(path):
        return None
    rows = [row for row in FORMATS.values() if row.content == "name"]
    found = next((row for row in rows if row.load().sniff(str(path))), None)
    if found is None:
        near = [n for row in rows for n in get_close_matches(str(path), row.load().names(), 3, 0.8)]
        if near:
            problem, remedy = "neither a file nor a model", f"is it {' or '.join(near)}?"
            raise InputError("", problem, remedy, str(path))
    return found


def _of_folder(path: str | Path) -> Format:
    rows = [row for row in FORMATS.values() if row.content == "folder"]
    found = _sniffed(rows, path, path)
    if found is None:
        files = " ".join(suffix for row in FORMATS.values() for suffix in row.suffixes)
        problem = "is a folder without config.json, and no profile of Sailor"
        raise InputError("", problem, f"name a model's file in it ({files})", str(path))
    return found


def _of_json(path: str | Path) -> tuple[Format, Any]:
    """Tell formats in JSON apart by their keys; a document is parsed once."""
    from optpart.interop.formats.json import read_json  # the command line needs the table alone

    with FaultsOf(path):
        document = read_json(path)
        if isinstance(document, Mapping) and "format" not in document:
            found = _sniffed(_sniffing("json"), document, path)
            if found is not None:
                return found, document
        return FORMATS["native"], document


def _of_content(path: str | Path) -> Format:
    """Tell files apart by their first bytes, else by their text."""
    if os.path.isfile(path) and not os.path.getsize(path):
        raise InputError("", "is empty", "give a whole file", str(path))
    found = _sniffed(_sniffing("bytes"), _beginning(path), path)
    if found is None:
        found = _sniffed(_sniffing("text"), _text(path), path)
    if found is None:
        raise InputError(
            "",
            "is in no known format",
            "name the format with 'optpart import --format'",
            str(path),
        )
    return found


def _text(path: str | Path) -> str:
    try:
        return read_text(path)
    except InputError as error:
        if "UTF-8" not in error.problem:
            raise
        files = ", ".join(row.name for row in FORMATS.values() if row.content == "bytes")
        problem = f"is neither text nor a model of {files}"
        raise InputError("", problem, _WEIGHTS, str(path)) from None


def _beginning(path: str | Path) -> bytes:
    if not os.path.isfile(path):  # a pipe can be read only once, and holds text
        return b""
    with suppress(OSError), open(path, "rb") as stream:
        return stream.read(_BEGINNING)
    return b""


def _sniffing(content: Content) -> list[Format]:
    """Return the formats that look at this kind of content."""
    rows = [row for row in FORMATS.values() if row.content == content]
    return [row for row in rows if hasattr(row.load(), "sniff")]


def _read(row: Format, path: str | Path, *devices: int) -> Any:
    return row.load().read(path, *devices)


def _sniffed(rows: list[Format], content: Any, path: str | Path) -> Format | None:
    """Return the format that the content looks like; of several, the only one that reads it."""
    alike = [row for row in rows if row.load().sniff(content)]
    alike = [row for row in alike if row.distinctive] or alike
    if len(alike) < 2:
        return alike[0] if alike else None
    readable = []
    for row in alike:
        with suppress(InputError):
            _read(row, path, *([1] if row.needs_devices else []))
            readable.append(row)
    if len(readable) > 1:
        raise InputError(
            "",
            f"can be read both as {' and as '.join(row.name for row in readable)}",
            "name the format with 'optpart import --format'",
            str(path),
        )
    return (readable or alike)[0]
