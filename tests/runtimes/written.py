"""Writes the files of ``tests/interop/formats/pytorch`` with the PyTorch that is installed."""

from pathlib import Path

import torch
from torch import nn
from torch.export import Dim

FOLDER = Path(__file__).parents[1] / "interop" / "formats" / "pytorch"


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.blocks = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.last(x).flatten()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(20, 8), nn.Linear(8, 24), nn.Linear(8, 20)

    def forward(self, ids):
        b, t = ids.shape
        q, k, v = self.qkv(self.embed(ids)).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        x = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x.transpose(1, 2).reshape(b, t, 8)
        return self.head(nn.functional.pad(torch.cat([x, x], 1), (0, 0, 0, t // 3 + 1)))


class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.one, self.other, (x,))


#: Inputs and dynamic shapes by name.
MODELS = {
    "perceptron": (Perceptron, torch.randn(4, 8), {"x": {0: Dim("batch", min=2, max=64)}}),
    "attention": (
        Attention,
        torch.randint(0, 20, (4, 12)),
        {"ids": {0: Dim("batch", min=2, max=9), 1: 2 * Dim("half", min=3, max=60)}},
    ),
    "choice": (Choice, torch.randn(4, 8), None),
}


def write(name, path):
    """Write one, without the paths of source files."""
    model, example, shapes = MODELS[name]
    program = torch.export.export(model().eval(), (example,), dynamic_shapes=shapes)
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            node.meta.pop("stack_trace", None)
    torch.export.save(program, path)


if __name__ == "__main__":
    for each in MODELS:
        write(each, FOLDER / f"{each}.pt2")
