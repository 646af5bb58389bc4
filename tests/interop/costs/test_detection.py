"""This machine as a cluster: what is measured, and what is taken from elsewhere and said so."""

import json
import subprocess
from fractions import Fraction

import pytest

from optpart.base.errors import InputError
from optpart.interop.costs import benchmark, detection
from optpart.interop.costs.efficiency import defaults
from optpart.interop.formats import cluster_toml

CPU = {"name": "cpu", "type": "CPU", "peak": {"float32": 60.0}}
CPU |= {"bandwidth": 16.0, "overhead": 500.0}
GPU = {
    "name": "cuda0",
    "type": "GPU",
    "peak": {"float32": 6000.0, "float16": 12000.0},
    "bandwidth": 800.0,
    "overhead": 4000.0,
    "model": "GPU \u00e0 la carte",
    "memory": 2**33,
}
LINKS = [
    {"from": a, "to": b, "bandwidth": 12.5, "latency": 8000.0}
    for a, b in (("cpu", "cuda0"), ("cuda0", "cpu"))
]


@pytest.fixture
def machine(monkeypatch):
    """Let the program that measures say what is given, and ``nvidia-smi`` list some GPUs."""

    def say(found, listed=None):
        def run(command, **_):
            smi = command[0] == "smi"
            return subprocess.CompletedProcess(command, 0, listed if smi else found, "no luck")

        monkeypatch.setattr(detection.subprocess, "run", run)
        monkeypatch.setattr(detection.shutil, "which", lambda name: listed and "smi")

    return say


def test_figures_are_such_that_products_take_as_long_as_measured(machine):
    machine(json.dumps({"by": "PyTorch 2", "devices": [CPU, GPU], "links": LINKS}))
    found = detection.detect()
    cluster = cluster_toml.loads_named(found.text)
    cpu, gpu = cluster.specs
    attained = defaults().classes["contraction"]
    assert cpu.peak["float32"] * attained.compute == 60
    assert gpu.peak["float16"] * attained.compute == 12000
    assert gpu.bandwidth * attained.bandwidth == 800
    assert (cpu.overhead, gpu.overhead) == (500, 4000)
    assert cluster.cluster.bandwidth[0, 1] == Fraction("12.5")
    assert cluster.cluster.latency[1, 0] == 8000
    assert [remark.partition(":")[0] for remark in found.remarks] == [
        *("cpu", "cuda0", "cpu to cuda0", "cuda0 to cpu"),
    ]


def test_without_pytorch_gpus_have_the_figures_of_the_library_which_is_said(machine):
    listed = "NVIDIA GeForce RTX 3090, 24000, 4, 16\nNVIDIA RTX 9990, 1, 4, 16\n"
    machine(json.dumps({"by": "NumPy", "devices": [CPU], "links": []}), listed)
    found = detection.detect()
    cluster = cluster_toml.loads_named(found.text)
    assert cluster.cluster.names == ("cpu", "cuda0")
    assert cluster.specs[1].peak["float32"] == 35600
    assert "cuda0: NVIDIA GeForce RTX 3090, not measured: the library's" in found.remarks[1]
    assert "NVIDIA RTX 9990: left out, the library has no such device" in found.remarks[2]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx-1080ti"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 3080 Ti", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ],
)
def test_a_model_is_the_librarys_only_if_nothing_is_left_of_its_name(model, name):
    assert detection.same_model(model) == name


def test_a_program_that_fails_ends_in_one_line(machine):
    machine("")
    with pytest.raises(InputError, match=r"measuring them failed \(no luck\); write a cluster"):
        detection.detect()


def test_the_processor_is_measured_with_numpy_alone():
    found = benchmark.with_numpy(0.05)
    assert (found["name"], found["type"]) == ("cpu", "CPU")
    assert {*found["peak"]} == {"float64", "float32"}
    assert min(*found["peak"].values(), found["bandwidth"], found["overhead"]) > 0
