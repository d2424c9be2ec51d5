"""Models that are compiled and run: by hand, and of others by their configurations, all with random weights."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from figure import effort


class Rotation(nn.Module):
    """Of pairs of elements, by angles that follow from the positions."""

    def __init__(self, width: int, positions: torch.Tensor) -> None:
        super().__init__()
        angles = positions[:, None] * 10000.0 ** (-torch.arange(width // 2) / (width // 2))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, a * self.sin + b * self.cos), -1)


class Block(nn.Module):
    """A decoder's: attention with rotations over what came before, and a gated MLP, each behind an RMS norm."""

    def __init__(self, width: int = 256, heads: int = 4, length: int = 64, inner: int = 704) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.rotate = Rotation(width // heads, torch.arange(length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        gate, value = self.up(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * value)


class StepBlock(nn.Module):
    """A decoder's for one token more: `keys` and `values` are those of all before it, its own come back."""

    def __init__(self, width: int, heads: int, shared: int, inner: int, position: int) -> None:
        super().__init__()
        self.width, self.shared, self.each = width, shared, width // heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, width + 2 * shared * self.each, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.rotate = Rotation(self.each, torch.tensor([position]))

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        part = self.shared * self.each
        q, k, v = self.qkv(self.before(x)).split((self.width, part, part), -1)
        q = self.rotate(q.view(1, self.shared, -1, self.each))  # heads that share keys are queries of one
        k, v = self.rotate(k.view(1, self.shared, 1, self.each)), v.view(1, self.shared, 1, self.each)
        y = F.scaled_dot_product_attention(q, torch.cat((keys, k), 2), torch.cat((values, v), 2))
        x = x + self.out(y.reshape(1, 1, self.width))
        gate, value = self.up(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * value), k, v


class Step(nn.Module):
    """A Llama's for one token, after `keys` - 1 others: logits, and the keys and values of each block."""

    def __init__(self, layers: int, words: int, keys: int = 512) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(words, 2048), nn.RMSNorm(2048)
        self.blocks = nn.ModuleList(StepBlock(2048, 32, 8, 8192, keys - 1) for _ in range(layers))
        self.logits = nn.Linear(2048, words, bias=False)

    def forward(self, token: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, made = self.table(token), []
        for i, block in enumerate(self.blocks):
            x, *own = block(x, keys[i], values[i])
            made.append(own)
        return self.logits(self.last(x)), torch.stack([k for k, _ in made]), torch.stack([v for _, v in made])


class Logits(nn.Module):
    """Of a model of transformers', whose results are objects: a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(tokens)[0]


def transformer(name: str, suffix: str, **config: Any) -> nn.Module:
    import transformers
    return Logits(getattr(transformers, name + suffix)(getattr(transformers, name + "Config")(**config)))


def vision(name: str) -> nn.Module:
    import torchvision
    return torchvision.models.get_model(name, weights=None)


@dataclass
class Model:
    make: Callable[[], nn.Module]
    data: Callable[[], tuple[torch.Tensor, ...]]
    target: float | None = None   # of the quickest peer's time over that of Kiln with frozen weights
    relaxed: float | None = None  # the same with rounding relaxed, where that is asked for
    large: bool = False  # one of each kind is all that memory is asked for
    note: str = ""

    def build(self) -> tuple[nn.Module, tuple[torch.Tensor, ...], list[torch.Tensor]]:
        """The module in eval, its inputs, and what float64 says of them."""
        torch.manual_seed(0)
        module, x = self.make().eval(), self.data()
        with torch.no_grad():
            exact = copy.deepcopy(module).double()(*(each.double() if each.is_floating_point() else each for each in x))
        return module, x, results(exact)


def results(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (tuple, list)) else [given]


def image() -> tuple[torch.Tensor]:
    return (torch.randn(1, 3, 224, 224),)


LAYERS = 8  # of sixteen: more would need the memory of a larger machine, for each peer has weights of its own
MODELS = {
    "mlp": Model(lambda: nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)),
                 lambda: (torch.randn(64, 512),)),
    "decoder": Model(Block, lambda: (torch.randn(1, 64, 256),)),
    "mlp_784": Model(lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                           nn.Linear(512, 10)), lambda: (torch.randn(64, 784),), 1.1),
    "block": Model(lambda: Block(768, 12, 128, 2048), lambda: (torch.randn(1, 128, 768),), 1.1),
    "gpt2": Model(lambda: transformer("GPT2", "LMHeadModel", n_layer=2 if effort.brief else 12, use_cache=False),
                  lambda: (torch.randint(0, 50257, (1, 128)),), 1.1, note="124M, 1 x 128"),
    "bert": Model(lambda: transformer("Bert", "Model"), lambda: (torch.randint(0, 30522, (8, 128)),), 1.1,
                  note="base, 8 x 128"),
    "llama_step": Model(lambda: Step(LAYERS, 32000), lambda: (
        torch.randint(0, 32000, (1, 1)), *(torch.randn(LAYERS, 1, 8, 511, 64) for _ in "kv")), 1.1, large=True,
        note=f"1 token, 512 keys, f32, {LAYERS} layers of a Llama of 1B, 32,000 words"),
    "resnet18": Model(lambda: vision("resnet18"), image, 1.05, relaxed=1.3),
    "resnet50": Model(lambda: vision("resnet50"), image, 1.0),
    "mobilenet_v3": Model(lambda: vision("mobilenet_v3_large"), image, 1.0, note="large"),
    "convnext_tiny": Model(lambda: vision("convnext_tiny"), image, 1.0),
}
