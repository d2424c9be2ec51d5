"""The character model: in PyTorch for training, and as a Kiln graph for inference."""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from graphs import Graph  # noqa: E402

LAYERS = 4
DIM = 160
HEADS = 4
GROUPS = 2  # of keys and values; a group serves HEADS // GROUPS query heads
HEAD = DIM // HEADS
HIDDEN = 416
THETA = 10000.0
EPSILON = 1e-5


def rotate(x):
    """Rotary positions 0 .. T-1 for x [.., T, D]; element i turns with element i + D/2."""
    length, dim = x.shape[-2:]
    exponents = -2.0 * torch.arange(dim // 2, dtype=x.dtype) / dim
    angles = torch.arange(length, dtype=x.dtype)[:, None] * THETA ** exponents
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * self.weight


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = Norm()
        self.query = nn.Linear(DIM, HEADS * HEAD, bias=False)
        self.key = nn.Linear(DIM, GROUPS * HEAD, bias=False)
        self.value = nn.Linear(DIM, GROUPS * HEAD, bias=False)
        self.attended = nn.Linear(HEADS * HEAD, DIM, bias=False)
        self.feed_norm = Norm()
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        normed = self.attention_norm(x)

        def heads(linear, count):
            return linear(normed).view(batch, length, count, HEAD).transpose(1, 2)

        query = rotate(heads(self.query, HEADS))
        key = rotate(heads(self.key, GROUPS)).repeat_interleave(HEADS // GROUPS, dim=1)
        value = heads(self.value, GROUPS).repeat_interleave(HEADS // GROUPS, dim=1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attended(mixed.transpose(1, 2).reshape(batch, length, HEADS * HEAD))
        normed = self.feed_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, DIM)
        for index in range(LAYERS):
            self.add_module(f"layer{index}", Layer())
        self.final_norm = Norm()
        self.head = nn.Linear(DIM, vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                onto_residual = name.endswith(("attended.weight", "down.weight"))
                deviation = 0.04 / (2 * LAYERS) ** 0.5 if onto_residual else 0.04
                nn.init.normal_(parameter, std=deviation)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for index in range(LAYERS):
            x = getattr(self, f"layer{index}")(x)
        return self.head(self.final_norm(x))


def emit_norm(graph, name, x, variant):
    """The norm composed of elementary ops.

    `variant` chooses the operand order of the commutative ones: bit 0 that of the sum with
    epsilon, bit 1 that of the scaling of x, bit 2 that of the product with the weight. A pattern
    that recognizes the norm has to find every one of them.
    """
    def commuted(bit, *operands):
        return operands[::-1] if variant & bit else operands

    square = graph.node(f"{name}.square", "mul", x, x)
    mean = graph.node(f"{name}.mean", "mean", square, dims=[-1], keepdim=True)
    shifted = graph.node(f"{name}.shifted", "add", *commuted(1, mean, "epsilon"))
    inverse = graph.node(f"{name}.inverse", "rsqrt", shifted)
    scaled = graph.node(f"{name}.scaled", "mul", *commuted(2, x, inverse))
    return graph.node(f"{name}.normed", "mul", *commuted(4, scaled, f"{name}.weight"))


def emit_layer(graph, name, x, index):
    def linear(part, operand):
        return graph.node(f"{name}.{part}", "linear", operand, f"{name}.{part}.weight")

    def heads(part, count):
        split = graph.node(f"{name}.{part}.split", "reshape", linear(part, normed),
                           shape=["batch", "length", count, HEAD])
        return graph.node(f"{name}.{part}.heads", "permute", split, dims=[0, 2, 1, 3])

    def rotated(part, count):
        return graph.node(f"{name}.{part}.rotated", "rope", heads(part, count), "positions",
                          theta=THETA)

    normed = emit_norm(graph, f"{name}.attention_norm", x, 2 * index)
    query, key, value = rotated("query", HEADS), rotated("key", GROUPS), heads("value", GROUPS)
    mixed = graph.node(f"{name}.attention", "attention", query, key, value, causal=True)
    joined = graph.node(f"{name}.attention.positions", "permute", mixed, dims=[0, 2, 1, 3])
    joined = graph.node(f"{name}.attention.joined", "reshape", joined,
                        shape=["batch", "length", HEADS * HEAD])
    x = graph.node(f"{name}.attention.residual", "add", x, linear("attended", joined))

    normed = emit_norm(graph, f"{name}.feed_norm", x, 2 * index + 1)
    gate = graph.node(f"{name}.gate.silu", "silu", linear("gate", normed))
    product = graph.node(f"{name}.product", "mul", gate, linear("up", normed))
    return graph.node(f"{name}.feed.residual", "add", x, linear("down", product))


def export(weights, path):
    """Writes the inference graph for weights under the names of the model's state."""
    graph = Graph({"batch": {"min": 0, "max": 256, "hint": 8},
                   "length": {"min": 1, "max": 1024, "hint": 128}})
    tokens = graph.input("tokens", "i64", ["batch", "length"])
    graph.parameters(weights)
    graph.constant("epsilon", "f32", [], [EPSILON])
    graph.node("positions", "iota", shape=["length"], dim=0, dtype="i64")
    x = graph.node("embedded", "embedding", "embedding.weight", tokens)
    for index in range(LAYERS):
        x = emit_layer(graph, f"layer{index}", x, index)
    x = emit_norm(graph, "final_norm", x, 0)
    x = graph.node("scores", "linear", x, "head.weight")
    graph.output("logits", x)
    graph.write(path)
