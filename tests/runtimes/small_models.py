"""Modules of PyTorch with random weights, of which each is called once per block."""

import torch
from torch import nn


class Logits(nn.Module):
    """A model of transformers that returns its logits only."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        return self.model(pixels).logits


def resnet_50():
    import transformers

    return Logits(transformers.ResNetForImageClassification(transformers.ResNetConfig()))


def vit(width=192, blocks=6):
    import transformers

    sizes = {
        "hidden_size": width, "intermediate_size": 4 * width, "num_attention_heads": width // 64,
        "num_hidden_layers": blocks, "image_size": 64, "patch_size": 16,
    }  # fmt: skip
    config = transformers.ViTConfig(**sizes)
    return Logits(transformers.ViTForImageClassification(config))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        x = x + self.out(
            nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            .transpose(1, 2)
            .reshape(b, t, width)
        )
        return x + self.mlp(x)


class GPT(nn.Module):
    """A decoder of our own."""

    def __init__(self, width=256, blocks=6, vocabulary=1000, positions=64):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.one(x) if x.sum() > 0 else self.two(x)


class Transposing(nn.Module):
    """Two layers, between which a view crosses that is not contiguous."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 16), nn.Linear(4, 4)

    def forward(self, x):
        return self.two(self.one(x).transpose(1, 2))


MODELS = {"resnet-50": resnet_50, "vit": vit, "gpt": GPT, "dynamic": GPT}


def inputs_of(name, batch, seed=1):
    torch.manual_seed(seed)
    if name == "resnet-50":
        return (torch.randn(batch, 3, 64, 64),)
    if name == "vit":
        return (torch.randn(batch, 3, 64, 64),)
    return (torch.randint(0, 1000, (batch, 32)),)
