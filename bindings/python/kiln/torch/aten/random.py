"""What draws random numbers, of a seed and a counter: `options={"random": "kiln"}`."""

from __future__ import annotations

import math
from functools import wraps
from typing import Any, Callable, Sequence

import kiln
from kiln.torch.lowering import Lowering, Number, number, why_not_tensor
from kiln.torch.random import drawn
from kiln.torch.rows import FLOATS, SMALL_FLOATS, Unsupported

Key = tuple[kiln.Value, kiln.Value]  # the seed, and the number of the first block


def _row(overloads: str, ops: str, **said: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(make)
        def made(b: Lowering, seed: kiln.Value, counter: int, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
            if generator is not None:
                raise Unsupported("a generator of its own")
            reason = next((why for why in map(why_not_tensor, b.outs) if why), "")
            if reason:
                raise Unsupported(f"its result is {reason}")
            return make(b, (b.cast(seed, "u64"), b.full(counter, "u64", [])), *args, **kwargs)
        drawn(overloads, ops, **said)(made)
        return make
    return add


def _type(b: Lowering) -> str:
    """The element type in which numbers are drawn."""
    return "f64" if b.dtype not in FLOATS or b.dtype == "f64" else "f32"


def _uniform(b: Lowering, key: Key, dtype: str, low: Number = 0, high: Number = 1) -> kiln.Value:
    if dtype in SMALL_FLOATS:  # a number of f32 next to 1 would be rounded to it
        steps = 2.0 ** {"f16": 11, "bf16": 8}[dtype]
        step = b.op("floor", _uniform(b, key, "f32", 0, steps))
        return b.cast(b.op("add", b.op("mul", step, (number(high) - number(low)) / steps), number(low)), dtype)
    return b.op("uniform", *key, low=number(low), high=number(high), shape=b.sizes(), dtype=dtype)


def _normal(b: Lowering, key: Key, dtype: str, mean: Number = 0, std: Number = 1) -> kiln.Value:
    return b.op("normal", *key, mean=number(mean), std=number(std), shape=b.sizes(), dtype=dtype)


def _exponential(b: Lowering, key: Key) -> kiln.Value:
    """-log(1 - u), but never 0, of which the logarithm is often taken."""
    dtype = _type(b)
    least = 2.0 ** (-54 if dtype == "f64" else -25)
    return b.op("maximum", b.op("neg", b.op("log1p", b.op("neg", _uniform(b, key, dtype)))), least)


@_row("native_dropout.default", "dropout", when="it trains")
def _(b: Lowering, key: Key, x: kiln.Value, p: float, train: bool | None) -> tuple[kiln.Value, ...]:
    if train is False:
        raise Unsupported("dropout that drops nothing")
    return b.several("dropout", x, *key, p=number(p))


@_row("bernoulli.default", "bernoulli convert")
def _(b: Lowering, key: Key, p: kiln.Value) -> kiln.Value:
    return b.cast(b.op("bernoulli", p, *key), b.dtype)


@_row("bernoulli.p", "bernoulli full convert")
def _(b: Lowering, key: Key, x: kiln.Value, p: float = 0.5) -> kiln.Value:
    return b.cast(b.op("bernoulli", b.full(number(p), _type(b), b.sizes()), *key), b.dtype)


@_row("bernoulli.Tensor", "bernoulli expand convert")
def _(b: Lowering, key: Key, x: kiln.Value, p: kiln.Value) -> kiln.Value:
    return b.cast(b.op("bernoulli", b.op("expand", p, shape=b.sizes()), *key), b.dtype)


@_row("rand.default rand_like.default", "uniform floor mul add convert")
def _(b: Lowering, key: Key, *_: Any, **__: Any) -> kiln.Value:
    return _uniform(b, key, b.dtype)


@_row("uniform.default", "uniform floor mul add convert")
def _(b: Lowering, key: Key, x: kiln.Value, low: float = 0, high: float = 1) -> kiln.Value:
    return _uniform(b, key, b.dtype, low, high)


@_row("randn.default randn_like.default", "normal")
def _(b: Lowering, key: Key, *_: Any, **__: Any) -> kiln.Value:
    return _normal(b, key, b.dtype)


@_row("normal_functional.default", "normal")
def _(b: Lowering, key: Key, x: kiln.Value, mean: float = 0, std: float = 1) -> kiln.Value:
    return _normal(b, key, b.dtype, mean, std)


@_row("normal.float_float", "normal")
def _(b: Lowering, key: Key, mean: float, std: float, size: Sequence[Any], **_: Any) -> kiln.Value:
    return _normal(b, key, b.dtype, mean, std)


@_row("normal.Tensor_float normal.float_Tensor normal.Tensor_Tensor", "normal mul add")
def _(b: Lowering, key: Key, mean: Any = 0.0, std: Any = 1.0) -> kiln.Value:
    dtype = _type(b)
    scaled = b.op("mul", _normal(b, key, dtype), b.operand(std, dtype))
    return b.cast(b.op("add", scaled, b.operand(mean, dtype)), b.dtype)


@_row("log_normal.default", "normal exp")
def _(b: Lowering, key: Key, x: kiln.Value, mean: float = 1, std: float = 2) -> kiln.Value:
    return b.cast(b.op("exp", _normal(b, key, _type(b), mean, std)), b.dtype)


@_row("exponential.default", "uniform log1p neg maximum mul")
def _(b: Lowering, key: Key, x: kiln.Value, lambd: float = 1) -> kiln.Value:
    return b.cast(b.op("mul", _exponential(b, key), 1 / number(lambd)), b.dtype)


@_row("geometric.default", "uniform log1p neg maximum mul ceil convert", when="p is below 1")
def _(b: Lowering, key: Key, x: kiln.Value, p: float) -> kiln.Value:
    if not 0 < number(p) < 1:
        raise Unsupported(f"a probability of {p}")
    return b.cast(b.op("ceil", b.op("mul", _exponential(b, key), -1 / math.log1p(-p))), b.dtype)


@_row("cauchy.default", "uniform tan mul add")
def _(b: Lowering, key: Key, x: kiln.Value, median: float = 0, sigma: float = 1) -> kiln.Value:
    angle = _uniform(b, key, _type(b), -math.pi / 2, math.pi / 2)
    return b.cast(b.op("add", b.op("mul", b.op("tan", angle), number(sigma)), number(median)), b.dtype)


def _randint(b: Lowering, key: Key, low: Any, high: Any) -> kiln.Value:
    if isinstance(low, kiln.Dim) or isinstance(high, kiln.Dim):
        raise Unsupported("a size as the border of a range")
    dtype = b.dtype if b.dtype in ("i64", "i32") else "i64"
    return b.cast(b.op("randint", *key, low=low, high=high, shape=b.sizes(), dtype=dtype), b.dtype)


@_row("randint.default", "randint convert")
def _(b: Lowering, key: Key, high: Any, size: Sequence[Any], **_: Any) -> kiln.Value:
    return _randint(b, key, 0, high)


@_row("randint.low", "randint convert")
def _(b: Lowering, key: Key, low: Any, high: Any, size: Sequence[Any], **_: Any) -> kiln.Value:
    return _randint(b, key, low, high)


@_row("randint_like.default", "randint convert")
def _(b: Lowering, key: Key, x: kiln.Value, high: Any, **_: Any) -> kiln.Value:
    return _randint(b, key, 0, high)


@_row("randint_like.low_dtype", "randint convert")
def _(b: Lowering, key: Key, x: kiln.Value, low: Any, high: Any, **_: Any) -> kiln.Value:
    return _randint(b, key, low, high)


@_row("randperm.default", "permutation convert")
def _(b: Lowering, key: Key, n: Any, **_: Any) -> kiln.Value:
    return b.cast(b.op("permutation", *key, n=n), b.dtype)


@_row("multinomial.default", "multinomial")
def _(b: Lowering, key: Key, weights: kiln.Value, samples: Any, replacement: bool = False) -> kiln.Value:
    return b.op("multinomial", weights, *key, samples=samples, replacement=replacement)
