"""Models that torch exports to ONNX compute in parts what ONNX Runtime computes of the whole."""

import subprocess
import sys

import numpy as np
import pytest
from tight import on_two

import optpart as op
from optpart.interop.formats.detect import read_workload

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

_TEXT = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "attn_implementation": "eager",
}  # fmt: skip
_T5 = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
_VIT = {"image_size": 64, "patch_size": 16}
_RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [2, 2], "layer_type": "basic"}

#: Class of transformers, its configuration, and settings.
CONFIGURED = {
    "resnet": ("ResNetModel", "ResNetConfig", _RESNET),
    "mobilenet": ("MobileNetV2Model", "MobileNetV2Config", {"image_size": 64}),
    "vit": ("ViTModel", "ViTConfig", _TEXT | _VIT),
    "llama": ("LlamaModel", "LlamaConfig", _TEXT | {"num_key_value_heads": 2}),
    "bert": ("BertModel", "BertConfig", _TEXT),
    "t5-encoder": ("T5EncoderModel", "T5Config", _T5 | {"attn_implementation": "eager"}),
}


class Hidden(torch.nn.Module):
    """What a model of transformers hands out first."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x, return_dict=False)[0]


class Chooses(torch.nn.Module):
    """One of two layers, by the data."""

    def __init__(self):
        super().__init__()
        self.first, self.left, self.right = (torch.nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        y = self.first(x)
        y = torch.cond(y.sum() > 0, self.left, self.right, (y,))
        return self.first(y)


def exported(name, opset, path):
    """Export a model by torch's dynamo exporter, with its weights beside it."""
    torch.manual_seed(0)
    settings, x = {}, torch.randn(2, 32)
    if name in CONFIGURED:
        model, config, given = CONFIGURED[name]
        built = getattr(transformers, model)(getattr(transformers, config)(**given))
        model, is_image = Hidden(built), "image_size" in given or name == "resnet"
        x = torch.randn(1, 3, 64, 64) if is_image else torch.randint(0, 60, (1, 8))
    elif name == "choice":
        model = Chooses()
    else:
        layers = [torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)]
        model = torch.nn.Sequential(*layers)
        settings["dynamic_shapes"] = ({0: torch.export.Dim("batch")},)
    torch.onnx.export(
        model.eval(), (x,), path, dynamo=True, opset_version=opset, external_data=True,
        optimize=opset > 18, verbose=False, **settings,
    )  # fmt: skip
    return x.numpy()


def planned(workload):
    """Return a plan for two devices, neither of which holds the whole model."""
    return op.solve(on_two(workload, 4), seconds=3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("opset", [18, 20, 23])
@pytest.mark.parametrize("name", [*CONFIGURED, "choice", "dynamic"])
def test_the_parts_compute_what_the_whole_does(name, opset, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    path, shapes = made / "model.onnx", {"batch": 2} if name == "dynamic" else {}
    x = exported(name, opset, path)
    assert onnx.load(path, load_external_data=False).opset_import[0].version == opset
    plan = planned(read_workload(path, shapes=shapes))
    op.export(plan, "onnx", tmp_path / "parts", model=path, shapes=shapes)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: x})

    elsewhere = (tmp_path / "parts").rename(tmp_path / "moved")
    np.savez(tmp_path / "inputs.npz", **{session.get_inputs()[0].name: x})
    command = [sys.executable, elsewhere / "run.py", tmp_path / "inputs.npz", "outputs.npz"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with np.load(tmp_path / "outputs.npz") as found:
        for output, value in zip(session.get_outputs(), expected, strict=True):
            np.testing.assert_allclose(found[output.name], value, rtol=1e-3, atol=1e-5)
