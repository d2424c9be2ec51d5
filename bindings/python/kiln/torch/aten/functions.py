"""Functions of elements that are made of others."""

from __future__ import annotations

import math

import kiln
from kiln.torch.aten.pointwise import common
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, INTEGERS, row

NAN = float("nan")


def _where(b: Lowering, condition: kiln.Value, x: kiln.Value | float, y: kiln.Value) -> kiln.Value:
    return b.op("where", condition, b.operand(x, str(y.dtype)), y)


def _larger(name: str, op: str) -> None:
    """Of two numbers, of which NaN is none."""
    @row(f"{name}.default", f"{op} where isnan", FLOATS | INTEGERS)
    def make(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
        x, y = common(b, x, y)
        return b.op("where", b.op("isnan", x), y, b.op("where", b.op("isnan", y), x, b.op(op, x, y)))


_larger("fmax", "maximum")
_larger("fmin", "minimum")


@row("frac.default", "sub trunc", FLOATS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    return b.op("sub", x, b.op("trunc", x))


@row("logit.default", "log sub div clamp", FLOATS)
def _(b: Lowering, x: kiln.Value, eps: float | None = None) -> kiln.Value:
    wide = b.wide(x)
    if eps is not None:
        wide = b.op("clamp", wide, min=eps, max=1 - eps)
    return b.cast(b.op("log", b.op("div", wide, b.op("sub", 1.0, wide))), b.dtype)


@row("logit_backward.default", "where div mul sub", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, eps: float | None = None) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    low = 0.0 if eps is None else eps
    outside = b.op("or", b.op("lt", x, low), b.op("gt", x, 1 - low))
    slope = b.op("div", dy, b.op("mul", x, b.op("sub", 1.0, x)))
    return b.cast(_where(b, outside, NAN if eps is None else 0.0, slope), b.dtype)


def _infinite(name: str, sign: str) -> None:
    @row(f"{name}.default", "eq", FLOATS)
    def make(b: Lowering, x: kiln.Value) -> kiln.Value:
        return b.op("eq", x, float(f"{sign}inf"))


_infinite("isposinf", "")
_infinite("isneginf", "-")


@row("signbit.default", "lt copysign", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    if str(x.dtype) in FLOATS:
        x = b.op("copysign", b.full(1, str(x.dtype), []), x)
    return b.op("lt", x, 0)


@row("angle.default", "where isnan lt", FLOATS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    below = _where(b, b.op("lt", x, 0.0), math.pi, b.full(0, b.dtype, list(x.shape)))
    return b.op("where", b.op("isnan", x), x, below)


@row("heaviside.default", "where eq gt", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, values: kiln.Value) -> kiln.Value:
    return b.op("where", b.op("eq", x, 0), values, b.cast(b.op("gt", x, 0), b.dtype))


@row("rad2deg.default deg2rad.default", "mul", FLOATS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    factor = 180 / math.pi if "rad2deg" in str(b.target) else math.pi / 180
    return b.cast(b.op("mul", b.wide(x), factor), b.dtype)


@row("sinc.default", "sin mul div where", FLOATS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    turn = b.op("mul", b.wide(x), math.pi)
    return b.cast(_where(b, b.op("eq", turn, 0.0), 1.0, b.op("div", b.op("sin", turn), turn)), b.dtype)


@row("special_entr.default", "log mul neg where", FLOATS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    wide = b.wide(x)
    inside = b.op("neg", b.op("mul", wide, b.op("log", wide)))
    below = _where(b, b.op("lt", wide, 0.0), -math.inf, inside)
    return b.cast(_where(b, b.op("eq", wide, 0.0), 0.0, below), b.dtype)


@row("special_xlog1py.default special_xlog1py.other_scalar", "log1p mul where isnan", FLOATS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value | float) -> kiln.Value:
    x, y = (b.wide(each) for each in common(b, x, y))
    product = _where(b, b.op("eq", x, 0.0), 0.0, b.op("mul", x, b.op("log1p", y)))
    return b.cast(b.op("where", b.op("isnan", y), y, product), b.dtype)


@row("logaddexp2.default", "logaddexp mul", FLOATS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
    x, y = (b.op("mul", b.wide(each), math.log(2)) for each in common(b, x, y))
    return b.cast(b.op("mul", b.op("logaddexp", x, y), 1 / math.log(2)), b.dtype)


@row("ldexp.Tensor", "mul exp2", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
    x, y = (b.wide(each) for each in common(b, x, y))
    return b.cast(b.op("mul", x, b.op("exp2", y)), b.dtype)


@row("round.decimals", "round mul div", FLOATS)
def _(b: Lowering, x: kiln.Value, *, decimals: int) -> kiln.Value:
    wide, by = b.wide(x), float(10 ** abs(decimals))
    there, back = ("mul", "div") if decimals >= 0 else ("div", "mul")
    return b.cast(b.op(back, b.op("round", b.op(there, wide, by)), by), b.dtype)
