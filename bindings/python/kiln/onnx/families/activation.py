"""Activations."""

from __future__ import annotations

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Results, kiln_op, op
from kiln.onnx._types import product

_SAME = {"Relu": "relu", "Softsign": "softsign", "HardSwish": "hardswish", "Mish": "mish"}


@op(*_SAME)
def same(n: Node, x: Value) -> Results:
    """The op of Kiln's of that name."""
    return kiln_op(_SAME[n.op])(x)


@op("Softplus")
def softplus(n: Node, x: Value) -> Value:
    """log(1 + exp(x)); a line from where on it is one in x's dtype."""
    return ops.softplus(x, threshold=40.0)


@op("Elu", "Celu")
def elu(n: Node, x: Value) -> Value:
    """x above 0, else what goes down to -alpha."""
    return (ops.elu if n.op == "Elu" else ops.celu)(x, alpha=n.number("alpha", 1.0))


@op("Selu")
def selu(n: Node, x: Value) -> Value:
    """gamma times elu."""
    alpha, gamma = n.number("alpha", 1.67326319217681884765625), n.number("gamma", 1.05070102214813232421875)
    return ops.elu(x, alpha=alpha) * gamma


@op("LeakyRelu")
def leaky_relu(n: Node, x: Value) -> Value:
    """x from 0 on, else alpha x."""
    return ops.leaky_relu(x, negative_slope=n.number("alpha", 0.01))


@op("PRelu")
def prelu(n: Node, x: Value, slope: Value) -> Value:
    """x from 0 on, else slope x; the slope broadcasts to x."""
    return ops.where(ops.lt(x, 0), x * slope, x)


@op("ThresholdedRelu")
def thresholded_relu(n: Node, x: Value) -> Value:
    """x above alpha, else 0."""
    return ops.threshold(x, threshold=n.number("alpha", 1.0))


@op("HardSigmoid")
def hard_sigmoid(n: Node, x: Value) -> Value:
    """alpha x + beta, between 0 and 1."""
    return ops.clamp(x * n.number("alpha", 0.2) + n.number("beta", 0.5), min=0.0, max=1.0)


@op("Shrink")
def shrink(n: Node, x: Value) -> Value:
    """x moved towards 0 by bias, and 0 from -lambd to lambd."""
    lambd, bias = n.number("lambd", 0.5), n.number("bias", 0.0)
    if str(x.dtype) not in ("f64", "f32", "f16", "bf16"):
        raise n.refuse(f"of {x.dtype}: bounds are floats, and dtypes do not mix")
    return ops.where(ops.lt(x, -lambd), x + bias, ops.where(ops.gt(x, lambd), x - bias, ops.full(
        dtype=x.dtype, shape=())))


@op("Gelu")
def gelu(n: Node, x: Value) -> Value:
    """x times the normal distribution's cumulative function."""
    return ops.gelu(x, approximate=n.text("approximate", "none", among=("none", "tanh")))


@op("Swish")
def swish(n: Node, x: Value) -> Value:
    """x * sigmoid(alpha x)."""
    alpha = n.number("alpha", 1.0)
    return ops.silu(x) if alpha == 1.0 else x * ops.sigmoid(x * alpha)


_ALONG = {"Softmax": ops.softmax, "LogSoftmax": ops.log_softmax}


def _hardmax(x: Value, dim: int) -> Value:
    best = ops.argmax(x, dim=dim, keepdim=True)
    return ops.convert(ops.eq(ops.iota(shape=x.shape, dim=dim), best), dtype=x.dtype)


def _along(n: Node, x: Value, axis: int) -> Value:
    return _hardmax(x, axis) if n.op == "Hardmax" else _ALONG[n.op](x, dim=axis)


@op("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(n: Node, x: Value) -> Value:
    """Along one dim."""
    return _along(n, x, n.axis(n.integer("axis", -1), x.ndim))


@op("Softmax", "LogSoftmax", "Hardmax", since=1)
def softmax_1(n: Node, x: Value) -> Value:
    """Along all dims from axis on, which count as one."""
    axis = n.axis(n.integer("axis", 1), x.ndim)
    if axis == x.ndim - 1:
        return _along(n, x, axis)
    flat = ops.reshape(x, shape=[*x.shape[:axis], product(x.shape[axis:])])
    return ops.reshape(_along(n, flat, axis), shape=x.shape)
