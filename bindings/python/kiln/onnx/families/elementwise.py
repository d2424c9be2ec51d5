"""Arithmetic, comparisons, logic and conversions, element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce


from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, Results, kiln_op, op
from kiln.onnx._types import FLOATS, INTEGERS, SIGNED, numpy_type
from kiln.onnx._values import Tensor

_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor", "IsNaN": "isnan",
    "Log": "log", "Neg": "neg", "Not": "not_", "BitwiseNot": "bit_not", "Reciprocal": "reciprocal", "Round": "round",
    "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh"}
_BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "And": "and_", "Or": "or_", "Xor": "xor", "Equal": "eq",
    "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le", "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor"}


@op(*_UNARY)
def unary(n: Node, x: Value) -> Results:
    """The function of its name."""
    return kiln_op(_UNARY[n.op])(x)


@op(*_BINARY)
def binary(n: Node, a: Value, b: Value) -> Results:
    """The function of its name; operands broadcast, and have one dtype."""
    return kiln_op(_BINARY[n.op])(a, b)


def _all(function: Callable[..., Value], xs: tuple[Value, ...]) -> Value:
    return reduce(function, xs) if len(xs) > 1 else ops.clone(xs[0])


@op("Max", "Min", "Sum")
def variadic(n: Node, *xs: Value) -> Value:
    """The largest, least or sum of its inputs, which broadcast."""
    return _all({"Max": ops.maximum, "Min": ops.minimum, "Sum": ops.add}[n.op], xs)


@op("Mean")
def mean(n: Node, *xs: Value) -> Value:
    """The mean of its inputs, which broadcast."""
    return _all(ops.add, xs) / len(xs)


@op("Mod")
def mod(n: Node, a: Value, b: Value) -> Value:
    """What a division leaves: of b's sign, or, with fmod, of a's."""
    return ops.fmod(a, b) if n.flag("fmod") else ops.remainder(a, b)


@op("Pow")
def pow(n: Node, x: Value, y: Value) -> Value:
    """x to the power y, in x's dtype; a power of floats of an integer is computed in f64."""
    base, exponent = str(x.dtype), str(y.dtype)
    if base == exponent:
        return ops.pow(x, y)
    if base in FLOATS:
        return ops.pow(x, ops.convert(y, dtype=base))
    between = "f64" if exponent in FLOATS else "i64"
    made = ops.pow(ops.convert(x, dtype=between), ops.convert(y, dtype=between))
    return ops.convert(made, dtype=base)


@op("BitShift")
def bit_shift(n: Node, x: Value, y: Value) -> Value:
    """Bits, to the left or right."""
    left = n.text("direction", among=("LEFT", "RIGHT")) == "LEFT"
    return (ops.shift_left if left else ops.shift_right)(x, y)


@op("Clip", since=6)
def clip_6(n: Node, x: Value) -> Value:
    """min(max(x, min), max), with bounds that are attributes."""
    least, most = n.number("min", float("-inf")), n.number("max", float("inf"))
    return ops.clamp(x, min=least, max=most)


@op("Clip", since=11)
def clip(n: Node, x: Value, least: Value | None = None, most: Value | None = None) -> Value:
    """min(max(x, min), max), with bounds that are inputs."""
    made = x if least is None else ops.maximum(x, least)
    return made if most is None else ops.minimum(made, most)


@op("IsInf")
def is_inf(n: Node, x: Value) -> Value:
    """Whether x is infinite, of the signs that are asked for."""
    positive, negative = n.flag("detect_positive", True), n.flag("detect_negative", True)
    made = ops.isinf(x)
    if positive and negative:
        return made
    if not positive and not negative:
        return ops.full(dtype="bool", shape=x.shape)
    return ops.and_(made, ops.gt(x, 0.0) if positive else ops.lt(x, 0.0))


@op("Where")
def where(n: Node, condition: Value, a: Value, b: Value) -> Value:
    """a where the condition holds, else b."""
    return ops.where(condition, a, b)


def convert(x: Value, dtype: str, saturate: bool = True) -> Value:
    """Another dtype; nothing where it is x's."""
    return x if str(x.dtype) == dtype else ops.convert(x, dtype=dtype, saturate=saturate)


@op("Cast")
def cast(n: Node, x: Tensor) -> Tensor:
    """Another dtype."""
    if n.text("round_mode", "up") != "up":
        raise n.refuse(f"round_mode '{n.text('round_mode')}' is of f8e8m0, a type that Kiln does not have")
    to = n.dtype("to")
    made = Tensor.of(convert(x.in_graph(n.frame.graph), to, n.flag("saturate", True)), x.deciders)
    if x.known is not None and x.known.dtype == object and to in ("f32", "f64"):
        made.counts = x.known
    return made


@op("CastLike")
def cast_like(n: Node, x: Value, like: Value) -> Value:
    """The dtype of another value."""
    return convert(x, str(like.dtype), n.flag("saturate", True))


@op("BitCast")
def bit_cast(n: Node, x: Value) -> Value:
    """The same bits as another type of that width; of integers and bool alone."""
    dtype, to = str(x.dtype), n.dtype("to")
    if dtype == to:
        return ops.clone(x)
    if dtype == "bool" and to in ("u8", "i8"):
        return convert(x, to)
    if dtype not in INTEGERS or to not in INTEGERS:
        raise n.refuse(f"Kiln has no op that takes the bits of {dtype} for {to}; of integers alone")
    if numpy_type(dtype).itemsize != numpy_type(to).itemsize:
        raise n.wrong(f"{dtype} and {to} have not the same width")
    half = 1 << (8 * numpy_type(to).itemsize - 1)
    if to in SIGNED:  # convert keeps the number where it can; what is too large wraps by hand
        low = ops.bit_and(x, half - 1)
        return ops.where(ops.eq(low, x), convert(low, to), ops.add(convert(low, to), -half))
    low = convert(ops.bit_and(x, half - 1), to)
    return ops.where(ops.lt(x, 0), ops.add(low, half), low)


@op("Identity", "OptionalGetElement")
def identity(n: Node, x: Value) -> Value:
    """x."""
    return x


@op("OptionalHasElement")
def has_element(n: Node, x: Value | None = None) -> Value:
    """Whether its input is there, which is known when the model is read."""
    return ops.full(value=float(x is not None), dtype="bool", shape=())


@op("Dropout", since=7, ignores=("ratio", "seed"))
def dropout_7(n: Node, x: Value) -> tuple[Value, Value]:
    """x, as always where nothing is trained; and that all was kept."""
    return x, ops.full(value=1, dtype="bool", shape=x.shape)


@op("Dropout", since=12, ignores=("seed",))
def dropout(n: Node, x: Value, ratio: Known | None = None, training: Known | None = None) -> tuple[Value, Value]:
    """x; in training with a ratio above 0 the numbers are those of a generator that ONNX does not tell."""
    if training is not None and training.item() and (0.5 if ratio is None else ratio.item()):
        raise n.refuse("dropout in training is random, and its numbers are not told")
    return x, ops.full(value=1, dtype="bool", shape=x.shape)
