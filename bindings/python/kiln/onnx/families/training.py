"""Losses, and the steps of optimisers."""

from __future__ import annotations

from collections.abc import Callable

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import op

_TRAINING = "ai.onnx.preview.training"


def _loss(n: Node, logarithms: Value, target: Value, weight: Value | None) -> Value:
    ignored = n.integer("ignore_index", 0) if n.has("ignore_index") else -(2**62)
    reduction = n.text("reduction", "mean", among=("mean", "sum", "none"))
    if str(target.dtype) not in ("i64", "i32"):
        target = ops.convert(target, dtype="i64")
    return ops.nll_loss(logarithms, target, weight, ignore_index=ignored, reduction=reduction)


@op("NegativeLogLikelihoodLoss")
def nll_loss(n: Node, x: Value, target: Value, weight: Value | None = None) -> Value:
    """-x at the target's class, times its weight."""
    return _loss(n, x, target, weight)


@op("SoftmaxCrossEntropyLoss")
def cross_entropy(n: Node, x: Value, target: Value, weight: Value | None = None) -> tuple[Value, Value]:
    """The same of the logarithm of the softmax, which is a result, too."""
    logarithms = ops.log_softmax(x, dim=1)
    return _loss(n, logarithms, target, weight), logarithms


def _each(n: Node, rate: Value, turn: Value, tensors: tuple[Value, ...], kinds: int,
          step: Callable[..., tuple[Value, ...]]) -> list[Value]:
    """The step of each tensor that is optimised: the inputs are all tensors, then all their gradients, ..."""
    count = len(tensors) // kinds
    made = [step(n, ops.reshape(rate, shape=[]), ops.reshape(turn, shape=[]), *tensors[i::count]) for i in range(count)]
    return [value for column in zip(*made, strict=True) for value in column]


@op("Adagrad", domain=_TRAINING)
def adagrad(n: Node, rate: Value, turn: Value, *tensors: Value) -> list[Value]:
    """Tensors, gradients, sums of squares."""
    return _each(n, rate, turn, tensors, 3, _adagrad)


def _adagrad(n: Node, rate: Value, turn: Value, x: Value, gradient: Value, squares: Value) -> tuple[Value, ...]:
    rate = rate / (ops.convert(turn, dtype=rate.dtype) * n.number("decay_factor", 0.0) + 1.0)
    gradient = gradient + x * n.number("norm_coefficient", 0.0)
    squares = squares + gradient * gradient
    return x - rate * gradient / (ops.sqrt(squares) + n.number("epsilon", 0.0)), squares


@op("Adam", domain=_TRAINING)
def adam(n: Node, rate: Value, turn: Value, *tensors: Value) -> list[Value]:
    """Tensors, gradients, means, means of squares."""
    return _each(n, rate, turn, tensors, 4, _adam)


def _adam(n: Node, rate: Value, turn: Value, x: Value, gradient: Value, mean: Value, square: Value) -> tuple[Value, ...]:
    alpha, beta = n.number("alpha", 0.9), n.number("beta", 0.999)
    gradient = gradient + x * n.number("norm_coefficient", 0.0)
    mean = mean * alpha + gradient * (1 - alpha)
    square = square * beta + gradient * gradient * (1 - beta)
    count = ops.convert(turn, dtype=rate.dtype)

    def power(base: float) -> Value:
        return ops.pow(ops.full(value=base, dtype=rate.dtype, shape=[]), count)
    corrected = rate * ops.sqrt(1.0 - power(beta)) / (1.0 - power(alpha))
    rate = ops.where(ops.gt(turn, 0), corrected, rate)
    x = x - rate * mean / (ops.sqrt(square) + n.number("epsilon", 0.0))
    return x * (1 - n.number("norm_coefficient_post", 0.0)), mean, square


@op("Momentum", domain=_TRAINING)
def momentum(n: Node, rate: Value, turn: Value, *tensors: Value) -> list[Value]:
    """Tensors, gradients, momenta."""
    return _each(n, rate, turn, tensors, 3, _momentum)


def _momentum(n: Node, rate: Value, turn: Value, x: Value, gradient: Value, speed: Value) -> tuple[Value, ...]:
    alpha, beta = n.number("alpha"), n.number("beta")
    mode = n.text("mode", among=("standard", "nesterov"))
    gradient = gradient + x * n.number("norm_coefficient")
    weight = ops.where(ops.gt(turn, 0), ops.full(value=beta, dtype=x.dtype, shape=[]),
                       ops.full(value=1.0, dtype=x.dtype, shape=[]))
    speed = speed * alpha + gradient * weight
    return x - rate * (speed if mode == "standard" else gradient + speed * alpha), speed
