"""Small models of torch's with random weights, and how they are exported."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass
class Case:
    """A model, examples of its inputs (the first is exported), and which of their dims may vary."""

    module: nn.Module
    examples: list[tuple[torch.Tensor, ...]]
    dynamic: list[dict[int, str]] = field(default_factory=list)
    exporters: tuple[str, ...] = ("torchscript", "dynamo")
    tolerance: float = 1e-5


class Attention(nn.Module):
    """Self-attention of which nothing in the sizes is a number."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.attention, self.norms = nn.ModuleList(Attention(16, 4) for _ in range(2)), nn.ModuleList(
            nn.LayerNorm(16) for _ in range(4))
        self.feed = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(2))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for i in range(2):
            x = x + self.attention[i](self.norms[2 * i](x))
            x = x + self.feed[i](self.norms[2 * i + 1](x))
        return x


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layer, self.head = kind(6, 8, num_layers=2, bidirectional=True), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.layer(x)
        return self.head(y)


class Depthwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        def block(a: int, b: int, stride: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(a, a, 3, stride, 1, groups=a, bias=False), nn.BatchNorm2d(a), nn.ReLU6(),
                                 nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b), nn.Hardswish())
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), block(8, 16, 1), block(16, 16, 2), nn.AdaptiveAvgPool2d(1),
                                  nn.Flatten(), nn.Linear(16, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention(16, 2)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        return self.attention(x, mask[:, None, None, :])


class Quantised(nn.Module):
    """Weights and activations through 8 bits and back."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.fake_quantize_per_tensor_affine(x, 0.02, 0, -128, 127)
        scales = torch.full((4,), 0.004)
        weight = torch.fake_quantize_per_channel_affine(self.conv.weight, scales, torch.zeros(4, dtype=torch.int32), 0,
                                                        -128, 127)
        y = nn.functional.conv2d(x, weight, self.conv.bias).relu().mean((2, 3))
        return self.head(torch.fake_quantize_per_tensor_affine(y, 0.01, 10, 0, 255))


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            y = self.a(x)
        else:
            y = self.b(x) * 2
        return y


class Cond(Branches):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.a(x), lambda x: self.b(x) * 2, (x,))


class Turns(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        for _ in range(int(turns)):
            x = torch.tanh(self.step(x))
        return x


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        def block(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.SiLU())
        self.down, self.middle, self.up = block(3, 8), block(8, 16), block(24, 8)
        self.wide, self.head = nn.ConvTranspose2d(16, 16, 2, 2), nn.Conv2d(8, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down(x)
        b = nn.functional.interpolate(self.wide(self.middle(nn.functional.max_pool2d(a, 2))), scale_factor=0.5,
                                      mode="nearest")
        b = nn.functional.interpolate(b, size=a.shape[2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.head(self.up(torch.cat([a, b], 1))))


class Cached(nn.Module):
    """A step of a decoder that keeps its keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        total = k.shape[2]
        visible = torch.arange(total)[None] <= torch.arange(length)[:, None] + (total - length)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible), k, v


class While(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.while_loop import while_loop
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))[1]


def _cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         nn.Conv2d(8, 8, 3), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8 * 3 * 3, 5),
                         nn.Softmax(-1))


def _branches() -> Case:
    examples = [(torch.ones(2, 4),), (-torch.ones(2, 4),)]
    return Case(torch.jit.script(Branches()), examples, [{0: "batch"}], ("torchscript",))


def _randn(*shapes: tuple[int, ...]) -> list[tuple[torch.Tensor, ...]]:
    return [(torch.randn(*shape),) for shape in shapes]


CASES: dict[str, Callable[[], Case]] = {
    "mlp": lambda: Case(nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 4)),
                        _randn((2, 8), (5, 8)), [{0: "batch"}]),
    "cnn": lambda: Case(_cnn(), _randn((2, 3, 16, 16), (3, 3, 16, 16)), [{0: "batch"}]),
    "transformer": lambda: Case(Transformer(), [(torch.randint(0, 50, size),) for size in ((2, 7), (3, 12), (1, 5))],
                                [{0: "batch", 1: "length"}]),
    "lstm": lambda: Case(Recurrent(nn.LSTM), _randn((7, 2, 6), (4, 2, 6)), [{0: "length"}]),
    "gru": lambda: Case(Recurrent(nn.GRU), _randn((7, 2, 6), (4, 2, 6)), [{0: "length"}]),
    "depthwise": lambda: Case(Depthwise(), _randn((2, 3, 16, 16), (1, 3, 24, 32)), [{0: "batch", 2: "height", 3: "width"}],
                              tolerance=1e-4),
    "masked": lambda: Case(Masked(), [(torch.randn(2, 6, 16), torch.tensor([6, 3])),
                                      (torch.randn(3, 9, 16), torch.tensor([9, 1, 4]))],
                           [{0: "batch", 1: "length"}, {0: "batch"}]),
    "quantised": lambda: Case(Quantised(), _randn((2, 3, 8, 8), (4, 3, 8, 8)), [{0: "batch"}], ("torchscript",)),
    "if": _branches,
    "cond": lambda: Case(Cond(), [(torch.ones(2, 4),), (-torch.ones(2, 4),)], [], ("dynamo",)),
    "loop": lambda: Case(torch.jit.script(Turns()), [(torch.randn(2, 4), torch.tensor(3)),
                                                     (torch.randn(2, 4), torch.tensor(5)),
                                                     (torch.randn(2, 4), torch.tensor(0))], [], ("torchscript",)),
    "while": lambda: Case(While(), _randn((3,)), [], ("dynamo",)),
    "unet": lambda: Case(UNet(), _randn((1, 3, 16, 16), (2, 3, 16, 16)), [{0: "batch"}], tolerance=1e-4),
    "cached": lambda: Case(Cached(), [(torch.randn(b, t, 16), torch.randn(b, 2, p, 8), torch.randn(b, 2, p, 8))
                                      for b, t, p in ((2, 3, 5), (1, 1, 9), (1, 4, 0))],
                           [{0: "batch", 1: "length"}, *({0: "batch", 2: "past"},) * 2], ("torchscript",)),
}


def export(case: Case, exporter: str) -> bytes:
    """The model as an ONNX file's bytes."""
    file = io.BytesIO()
    names = [f"x{i}" for i in range(len(case.examples[0]))]
    arguments: Any = {"input_names": names, "output_names": ["y"]}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == "torchscript":
            dynamic = dict(zip(names, case.dynamic, strict=False))
            torch.onnx.export(case.module, case.examples[0], file, dynamo=False, dynamic_axes=dynamic, **arguments)
        else:
            shapes = [{dim: torch.export.Dim.DYNAMIC for dim in each} for each in case.dynamic]
            program = torch.onnx.export(case.module, case.examples[0], dynamo=True, verbose=False,
                                        dynamic_shapes=tuple(shapes) if shapes else None, **arguments)
            assert program is not None
            program.save(file)
    return file.getvalue()
