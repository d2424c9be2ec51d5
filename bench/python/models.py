"""Models that are compiled and run: by hand, and of others in reduced configurations, all with random weights."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A decoder's: attention with rotations over what came before, and a gated MLP, each behind an RMS norm."""

    def __init__(self, width: int = 256, heads: int = 4, length: int = 64) -> None:
        super().__init__()
        self.heads, inner = heads, 704
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        half = width // heads // 2
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, a * self.sin + b * self.cos), -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        gate, value = self.up(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * value)


class Logits(nn.Module):
    """Of a model of transformers', whose results are objects: a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(tokens)[0]


def transformer(name: str, suffix: str, **more: Any) -> nn.Module:
    import transformers
    config = getattr(transformers, name + "Config")(
        hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=704, vocab_size=1000,
        max_position_embeddings=256, use_cache=False, **more)
    return Logits(getattr(transformers, name + suffix)(config))


def vision(name: str) -> nn.Module:
    import torchvision
    return torchvision.models.get_model(name, weights=None)


@dataclass
class Model:
    make: Callable[[], nn.Module]
    data: Callable[[], torch.Tensor]
    exported: bool = True  # is run from an ONNX file, too

    def build(self) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        """The module in eval, an input, and what float64 says of it."""
        torch.manual_seed(0)
        module, x = self.make().eval(), self.data()
        with torch.no_grad():
            exact = copy.deepcopy(module).double()(x.double() if x.is_floating_point() else x)
        return module, x, exact


MODELS = {
    "mlp": Model(lambda: nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)),
                 lambda: torch.randn(64, 512)),
    "decoder": Model(Block, lambda: torch.randn(1, 64, 256), exported=False),
    "bert": Model(lambda: transformer("Bert", "Model"), lambda: torch.randint(0, 1000, (1, 128))),
    "llama": Model(lambda: transformer("Llama", "ForCausalLM", num_key_value_heads=2),
                   lambda: torch.randint(0, 1000, (1, 128)), exported=False),
    "resnet18": Model(lambda: vision("resnet18"), lambda: torch.randn(1, 3, 224, 224)),
    "mobilenet_v3_small": Model(lambda: vision("mobilenet_v3_small"), lambda: torch.randn(1, 3, 224, 224)),
}
