"""Fixed input files: one per format, and invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def document(**changes: Any) -> dict[str, Any]:
    """Return a tiny instance."""
    base: dict[str, Any] = {
        "format": "optpart-instance/1",
        "name": "mine",
        "vertices": [
            {"name": "a", "ops": 4, "memory": 1, "outputs": [6]},
            {"name": "b", "ops": 2},
            {"name": "c", "ops": 3},
        ],
        "edges": [["a", "b", 0], ["a", "c", 0]],
        "devices": [{"name": "x", "speed": 1, "type": "CPU"}, {"name": "y", "speed": 2}],
        "bandwidth": [[None, 3], [3, None]],
    }
    return {**base, **changes}


def _line(vertices: int, **changes: Any) -> dict[str, Any]:
    """Return vertices one after the other, each bound to the devices in turn."""
    return document(
        name="line",
        vertices=[
            {"name": f"v{i}", "ops": i + 1, "outputs": [i + 2], "devices": ["xy"[i % 2]]}
            for i in range(vertices)
        ],
        edges=[[f"v{i}", f"v{i + 1}", 0] for i in range(vertices - 1)],
        **changes,
    )


_MEMORY = [{"name": "x", "speed": 1, "memory": 4}, {"name": "y", "speed": 1, "memory": 4}]

DOCUMENTS: dict[str, Any] = {
    "mine": document(),
    "exact": document(
        name="exact",
        vertices=[
            {"name": "a", "ops": "10/3", "outputs": ["1/7", 0.25]},
            {"name": "b", "ops": 1e-3},
            {"name": "ç", "ops": "123456789012345678901/1000"},
        ],
        edges=[["a", "b", 0], ["a", "ç", 1], ["b", "ç", None]],
        latency=[[0, "1/3"], [0.5, 0]],
    ),
    "line": _line(6),
    "ports": _line(6, model={"communication": "port"}),
    "empty": document(name="empty", vertices=[], edges=[]),
    "single": document(name="single", vertices=[{"name": "a", "ops": 4}], edges=[]),
    "greedy": document(
        name="greedy",
        vertices=[
            {"name": "a", "ops": 1, "memory": 3},
            {"name": "b", "ops": 1, "memory": 4, "devices": ["x"]},
        ],
        edges=[],
        devices=_MEMORY,
        bandwidth=[[None, 1], [1, None]],
        model={"memory": "estimate"},
    ),
    "too-large": document(
        name="too-large",
        vertices=[{"name": "a", "ops": 1, "memory": 5}],
        edges=[],
        devices=_MEMORY,
        model={"memory": "estimate"},
    ),
    "too-much": document(
        name="too-much",
        vertices=[{"name": f"v{i}", "ops": 1, "memory": 3} for i in range(3)],
        edges=[],
        devices=_MEMORY,
        model={"memory": "estimate"},
    ),
    "no-link": document(
        name="no-link",
        vertices=[
            {"name": "a", "ops": 4, "outputs": [6], "devices": ["x"]},
            {"name": "b", "ops": 2, "devices": ["y"]},
        ],
        edges=[["a", "b", 0]],
        bandwidth=[[None, 0], [0, None]],
    ),
    "moirai": {
        "devices": 2,
        "capacity": [5, 6.5],
        "nodes": [{"id": 1, "p": [2, 3], "mem": 1}, {"id": 2, "p": [4, 5], "mem": 0}],
        "edges": [{"src": 1, "dst": 2, "comm": [[0, 1], [2, 0]]}],
    },
    "dnn": {
        "maxFPGAs": 1,
        "maxCPUs": 1,
        "maxSizePerFPGA": 9,
        "nodes": [
            {"id": 1, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "size": 1},
            {"id": 2, "supportedOnFpga": 0, "cpuLatency": 2, "size": 1, "colorClass": 3},
        ],
        "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}],
    },
}

#: Faulty instances, by what is wrong.
FAULTY: dict[str, Any] = {
    "not-json": "{",
    "not-utf8": b"\xff\xfe{}",
    "not-an-object": [],
    "version": document(format="optpart-instance/9"),
    "unknown-key": document(colour="red"),
    "unknown-vertex-key": document(vertices=[{"name": "a", "colour": 1}], edges=[]),
    "missing-name": document(vertices=[{"ops": 1}], edges=[]),
    "duplicate-name": document(vertices=[{"name": "a"}, {"name": "a"}], edges=[]),
    "duplicate-key": '{"format": "optpart-instance/1", "name": "a", "name": "b"}',
    "edge-to-nowhere": document(edges=[["a", "z", 0]]),
    "edge-of-no-output": document(edges=[["b", "c", 0]]),
    "cycle": document(edges=[["a", "b", 0], ["b", "c", None], ["c", "a", None]]),
    "negative": document(vertices=[{"name": "a", "ops": -1}], edges=[]),
    "nan": '{"format": "optpart-instance/1", "vertices": [{"name": "a", "ops": NaN}]}',
    "huge": document(vertices=[{"name": "a", "ops": "1e999999999"}], edges=[]),
    "zero-speed": document(devices=[{"name": "x", "speed": 0}]),
    "no-devices": document(devices=[], bandwidth=[]),
    "matrix-size": document(bandwidth=[[None, 3]]),
    "group-without-device": document(
        vertices=[{"name": "a", "devices": ["x"]}, {"name": "b", "devices": ["y"]}],
        edges=[],
        colocation=[["a", "b"]],
    ),
    "device-type": document(vertices=[{"name": "a", "device_type": "TPU"}], edges=[]),
    "model": document(model={"communication": "pigeon"}),
    "memory-model": document(model={"memory": "elephant"}),
}

TEXTS = {
    "graph.stg": "2\n0 0 0\n1 9 1 0\n2 4 2 0 1\n3 0 1 2\n# notes\n",
    "shop.jsp": "# notes\n2 2\n0 4 1 2\n1 3 0 5\n",
    "shop.fjs": "2 3 1.5\n2 1 1 4 2 2 6 3 5\n1 2 1 3 3 2\n",
    "birgin.fjs": "3 2 2\n0 2\n1 2\n1 0 4\n2 0 6 1 5\n1 1 3\n",
    "santiago.txt": "#critical\n0.0\n#tasks\n0: 4, 7\n1: 6., 2.5\n#edges\n0: 0, 1, 3\n#end\n",
    "graph.gxl": (
        '<gxl><graph id="three">'
        '<attr name="Total schedule length"><int>9</int></attr>'
        '<attr name="Number of processors"><int>2</int></attr>'
        '<node id="1"><attr name="Weight"><int>2</int></attr></node>'
        '<node id="2"><attr name="Weight"><int>3</int></attr></node>'
        '<node id="3"><attr name="Weight"><int>4</int></attr></node>'
        '<edge from="1" to="2"><attr name="Weight"><int>7</int></attr></edge>'
        '<edge from="1" to="3"><attr name="Weight"><int>1</int></attr></edge>'
        "</graph></gxl>"
    ),
    "thesis.csv": (
        "id,name,ops,memory,size,device,successors,colocated\n"
        "0,load,30,4,50,CPU,1; 2,\n1,,20.5,4,50,ALL,,2\n2,norm,1/3,4,,ALL,3,\n3,last,1,0,,GPU,,\n"
    ),
    "devices.csv": (
        "id,memory,speed,type,rates\nd0,900,10,CPU,25;50\nd1,,30,GPU,40\nd2,700,40,GPU,\n"
    ),
    "cluster.toml": (
        'bandwidth = 25\nlatency = 0.1\n\n[[device]]\nname = "cpu"\ntype = "CPU"\nspeed = 10\n'
        'memory = 64.5\n\n[[device]]\nname = "gpu"\ntype = "GPU"\nspeed = "40/3"\ncount = 2\n\n'
        '[[link]]\nfrom = "gpu0"\nto = "gpu1"\nbandwidth = "infinite"\n'
    ),
    "bad.toml": "speed = ",
    "graph.pbtxt": (
        'node { name: "a" op: "Const" }\n'
        'node { name: "b" op: "Split" input: "a" input: "a:2" input: "a" }\n'
        'node { name: "c" op: "Add" input: "b" input: "^a" input: "^b" }\n'
        'node { name: "cell/d" op: "Mul" input: "c" input: "b:1" }\n'
        'node { name: "cell/e" op: "Mul" input: "cell/d" }\n'
    ),
    "costs.csv": (
        "name,ops,memory,sizes\na,1,2,3;4;5\nb,2,2,1;1\nc,3,0,7\ncell/d,1/3,0,1\ncell/e,5,1,\n"
    ),
    "rules.csv": "pattern,device\n[ab],x\n.*,y\n",
    "times.csv": "name,time\nv0,3\nv1,4\nv2,1\nv3,2\nv4,5\nv5,6\n",
}

BINARY = {"cut.pb": b"\x0a\x20\x0a\x01a\x12\x05Const"}

#: Models of communication and memory: every pair gets an instance of its own.
COMMUNICATION = ("delay", "sendrecv", "link", "port")
MEMORY = ("none", "estimate", "edges", "refcount")


def write(folder: Path) -> None:
    """Write all files into a folder, invalid ones into ``bad``."""
    (folder / "bad").mkdir()
    for name, content in DOCUMENTS.items():
        _put(folder / f"{name}.json", content)
    for name, content in FAULTY.items():
        _put(folder / "bad" / f"{name}.json", content)
    for name, text in TEXTS.items():
        _put(folder / name, text)
    for name, raw in BINARY.items():
        _put(folder / name, raw)


def _put(path: Path, content: Any) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
