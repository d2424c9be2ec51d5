"""Activations that are lines joined, and gates."""

import torch

from peers import peer
from peers.pointwise import of_floats

F = torch.nn.functional

for op, function in {"relu6": F.relu6, "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "softsign": F.softsign,
                     "tanhshrink": F.tanhshrink}.items():
    of_floats(op, function, f"torch.nn.functional.{op}")


@peer("leaky_relu", "torch.nn.functional.leaky_relu")
def leaky_relu(c):
    return F.leaky_relu(c.tensor(0), c.negative_slope)


@peer("prelu", "torch.nn.functional.prelu")
def prelu(c):
    x, slope = c.tensors()
    return F.prelu(x, slope.reshape(-1))


@peer("hardtanh", "torch.nn.functional.hardtanh")
def hardtanh(c):
    return F.hardtanh(c.tensor(0), c.min, c.max)


@peer("threshold", "torch.nn.functional.threshold")
def threshold(c):
    return F.threshold(c.tensor(0), c.threshold, c.value)


@peer("hardshrink", "torch.nn.functional.hardshrink")
def hardshrink(c):
    return F.hardshrink(c.tensor(0), c.attrs["lambda"])


@peer("softshrink", "torch.nn.functional.softshrink")
def softshrink(c):
    x = c.tensor(0)
    return torch.where(x.isnan(), x, F.softshrink(x, c.attrs["lambda"]))


@peer("glu", "torch.nn.functional.glu")
def glu(c):
    return F.glu(c.tensor(0), c.dim)


@peer("swiglu", "torch.nn.functional.silu of the first half, times the second")
def swiglu(c):
    gate, x = torch.chunk(c.tensor(0), 2, c.dim)
    return F.silu(gate) * x
