"""Element by element: arithmetic, functions, comparisons, where."""

from __future__ import annotations

import math
from typing import Any

import torch

import kiln
from kiln.torch.lowering import Lowering, Number
from kiln.torch.rows import FLOATS, INTEGERS, REAL, SMALL_FLOATS, DTYPES, Unsupported, row


def common(b: Lowering, *args: Any, dtype: str | None = None) -> list[kiln.Value]:
    """Operands in the result's type; beside numbers, which torch does not round to 16 bits, 16-bit floats in f32."""
    dtype = dtype or b.dtype
    if dtype in SMALL_FLOATS and any(not isinstance(arg, kiln.Value) for arg in args):
        dtype = "f32"
    return [b.operand(arg, dtype) for arg in args]


def promoted(b: Lowering, *indices: int) -> str:
    """The type in which torch compares arguments."""
    x, y = (b.fake(index) for index in indices)
    x, y = (value.node.pytype(0) if isinstance(value, torch.SymInt | torch.SymFloat) else value for value in (x, y))
    dtype = torch.result_type(x, y)
    if dtype not in DTYPES:
        raise Unsupported(f"compared as {dtype}")
    return DTYPES[dtype]


def _unary(name: str, op: str, dtypes: frozenset[str] = REAL) -> None:
    @row(name, op, dtypes)
    def make(b: Lowering, x: kiln.Value) -> kiln.Value:
        return b.op(op, b.cast(x, b.dtype))


for _name in ("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
              "erfc erfinv lgamma digamma sqrt rsqrt reciprocal sigmoid").split():
    _unary(f"{_name}.default", _name)
for _name in "abs neg".split():
    _unary(f"{_name}.default", _name, FLOATS | INTEGERS)


@row("sgn.default sign.default", "sign where isnan", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    """Of NaN 0, where Kiln's is NaN."""
    sign = b.op("sign", x)
    return sign if b.dtype in INTEGERS else b.op("where", b.op("isnan", x), b.full(0, b.dtype, []), sign)


def _integral(name: str) -> None:
    @row(f"{name}.default", name, FLOATS | INTEGERS)
    def make(b: Lowering, x: kiln.Value) -> kiln.Value:
        return b.op(name, x) if b.dtype in FLOATS else b.op("clone", x)


for _name in "ceil floor trunc round".split():
    _integral(_name)


def _test(name: str, op: str) -> None:
    @row(f"{name}.default", op, REAL)
    def make(b: Lowering, x: kiln.Value) -> kiln.Value:
        return b.op(op, b.cast(x, "u8") if str(x.dtype) == "bool" else x)


for _name in "isfinite isinf isnan".split():
    _test(_name, _name)


@row("add.Tensor add.Scalar", "add mul or", REAL)
def _(b: Lowering, x: Any, y: Any, alpha: Number = 1) -> kiln.Value:
    if b.dtype == "bool":
        return b.op("or", *common(b, x, y))
    return _scaled(b, "add", x, y, alpha)


@row("sub.Tensor sub.Scalar", "sub mul", FLOATS | INTEGERS)
def _(b: Lowering, x: Any, y: Any, alpha: Number = 1) -> kiln.Value:
    return _scaled(b, "sub", x, y, alpha)


@row("rsub.Tensor rsub.Scalar", "sub mul", FLOATS | INTEGERS)
def _(b: Lowering, x: Any, y: Any, alpha: Number = 1) -> kiln.Value:
    if alpha != 1:
        raise Unsupported("alpha is not 1")
    return _scaled(b, "sub", y, x, alpha)


def _scaled(b: Lowering, op: str, x: Any, y: Any, alpha: Any) -> kiln.Value:
    if alpha == 1 and not isinstance(alpha, kiln.Dim):
        return b.cast(b.op(op, *common(b, x, y)), b.dtype)
    x, y, alpha = common(b, x, y, alpha)
    return b.cast(b.op(op, x, b.op("mul", y, alpha)), b.dtype)


@row("mul.Tensor mul.Scalar", "mul and", REAL)
def _(b: Lowering, x: Any, y: Any) -> kiln.Value:
    if b.dtype == "bool":
        return b.op("and", *common(b, x, y))
    return b.cast(b.op("mul", *common(b, x, y)), b.dtype)


@row("div.Tensor div.Scalar true_divide.Tensor true_divide.Scalar", "div", REAL)
def _(b: Lowering, x: Any, y: Any) -> kiln.Value:
    return b.cast(b.op("div", *common(b, x, y)), b.dtype)


@row("div.Tensor_mode div.Scalar_mode", "div floor_divide trunc", FLOATS | INTEGERS)
def _(b: Lowering, x: Any, y: Any, rounding_mode: str | None = None) -> kiln.Value:
    x, y = common(b, x, y)
    if rounding_mode == "floor":
        return b.cast(b.op("floor_divide", x, y), b.dtype)
    quotient = b.op("div", x, y)
    return b.cast(b.op("trunc", quotient) if rounding_mode == "trunc" and b.dtype in FLOATS else quotient, b.dtype)


def _binary(name: str, op: str, dtypes: frozenset[str] = FLOATS | INTEGERS) -> None:
    @row(name, op, dtypes)
    def make(b: Lowering, x: Any, y: Any) -> kiln.Value:
        return b.cast(b.op(op, *common(b, x, y)), b.dtype)


_binary("floor_divide.default floor_divide.Scalar", "floor_divide")
_binary("remainder.Tensor remainder.Scalar", "remainder")
_binary("fmod.Tensor fmod.Scalar", "fmod")
_binary("maximum.default", "maximum")
_binary("minimum.default", "minimum")
_binary("atan2.default", "atan2", REAL)
_binary("hypot.default", "hypot", FLOATS)
_binary("copysign.Tensor copysign.Scalar", "copysign", REAL)
_binary("logaddexp.default", "logaddexp", FLOATS)
_binary("xlogy.Tensor xlogy.Scalar_Other", "xlogy", REAL)


@row("pow.Tensor_Tensor pow.Scalar", "pow", FLOATS | INTEGERS)
def _(b: Lowering, x: Any, y: Any) -> kiln.Value:
    return b.cast(b.op("pow", *common(b, x, y)), b.dtype)


@row("pow.Tensor_Scalar", "pow square sqrt rsqrt reciprocal mul", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, exponent: Any) -> kiln.Value:
    if b.dtype in INTEGERS and isinstance(exponent, int) and exponent < 0:
        raise Unsupported(f"integers to the power {exponent}, which torch refuses")
    wide = b.wide(b.cast(x, b.dtype))
    simple = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    op = simple.get(exponent) if not isinstance(exponent, kiln.Dim) else None
    if op == "square" or op and b.dtype in FLOATS:
        return b.cast(b.op(op, wide), b.dtype)
    if exponent == 3:
        return b.cast(b.op("mul", b.op("square", wide), wide), b.dtype)
    return b.cast(b.op("pow", *common(b, x, exponent)), b.dtype)


def _bits(name: str, bits: str, truth: str) -> None:
    @row(f"bitwise_{name}.Tensor bitwise_{name}.Scalar", f"{bits} {truth}", INTEGERS | {"bool"})
    def make(b: Lowering, x: Any, y: Any) -> kiln.Value:
        return b.op(truth if b.dtype == "bool" else bits, *common(b, x, y))

    @row(f"logical_{name}.default", truth, REAL)
    def make_logical(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
        return b.op(truth, b.cast(x, "bool"), b.cast(y, "bool"))


for _name in "and or xor".split():
    _bits(_name, f"bit_{_name}", _name)


@row("bitwise_not.default", "bit_not not", INTEGERS | {"bool"})
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    return b.op("not" if b.dtype == "bool" else "bit_not", x)


@row("logical_not.default", "not", REAL)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    return b.op("not", b.cast(x, "bool"))


def _compare(name: str) -> None:
    @row(f"{name}.Tensor {name}.Scalar", name, REAL)
    def make(b: Lowering, x: Any, y: Any) -> kiln.Value:
        dtype = promoted(b, 0, 1)
        if dtype == "bool" and name not in ("eq", "ne"):
            dtype = "u8"
        if dtype[0] in "iu" and isinstance(y, float):
            raise Unsupported("integers compared with a float")
        return b.op(name, b.operand(x, dtype), b.operand(y, dtype))


for _name in "eq ne lt le gt ge".split():
    _compare(_name)


@row("where.self where.ScalarSelf where.ScalarOther where.Scalar", "where")
def _(b: Lowering, condition: kiln.Value, x: Any, y: Any) -> kiln.Value:
    return b.op("where", b.cast(condition, "bool"), b.operand(x, b.dtype), b.operand(y, b.dtype))


@row("masked_fill.Scalar masked_fill.Tensor", "where")
def _(b: Lowering, x: kiln.Value, mask: kiln.Value, value: Any) -> kiln.Value:
    return b.op("where", mask, b.operand(value, b.dtype), x)


@row("clamp.default", "maximum minimum", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, min: Any = None, max: Any = None) -> kiln.Value:
    return _clamp(b, x, min, max)


@row("clamp.Tensor", "maximum minimum", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, min: Any = None, max: Any = None) -> kiln.Value:
    return _clamp(b, x, min, max)


@row("clamp_min.default clamp_min.Tensor", "maximum", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, min: Any) -> kiln.Value:
    return _clamp(b, x, min, None)


@row("clamp_max.default clamp_max.Tensor", "minimum", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, max: Any) -> kiln.Value:
    return _clamp(b, x, None, max)


def _clamp(b: Lowering, x: kiln.Value, low: Any, high: Any) -> kiln.Value:
    x = b.cast(x, b.dtype)
    for op, bound in (("maximum", low), ("minimum", high)):
        if isinstance(bound, float) and math.isnan(bound) or isinstance(bound, float) and b.dtype not in FLOATS:
            raise Unsupported(f"a bound of {bound}")
        if bound is not None:
            x = b.op(op, x, b.operand(bound, b.dtype))
    return x


@row("lerp.Tensor lerp.Scalar", "lerp", FLOATS)
def _(b: Lowering, x: kiln.Value, end: kiln.Value, weight: Any) -> kiln.Value:
    return b.cast(b.op("lerp", *common(b, x, end, weight)), b.dtype)


@row("addcmul.default", "add mul", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value, z: kiln.Value, value: Number = 1) -> kiln.Value:
    return _addc(b, "mul", x, y, z, value)


@row("addcdiv.default", "add mul div", FLOATS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value, z: kiln.Value, value: Number = 1) -> kiln.Value:
    return _addc(b, "div", x, y, z, value)


def _addc(b: Lowering, op: str, x: kiln.Value, y: kiln.Value, z: kiln.Value, value: Number) -> kiln.Value:
    x, y, z = (b.wide(b.cast(each, b.dtype)) for each in (x, y, z))
    if value != 1:
        y = b.op("mul", b.operand(value, str(x.dtype)), y)
    return b.cast(b.op("add", x, b.op(op, y, z)), b.dtype)


@row("nan_to_num.default", "nan_to_num", FLOATS)
def _(b: Lowering, x: kiln.Value, nan: float | None = None, posinf: float | None = None,
      neginf: float | None = None) -> kiln.Value:
    return b.op("nan_to_num", x, nan=nan, posinf=posinf, neginf=neginf)


@row("bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar", "shift_left", INTEGERS)
def _(b: Lowering, x: Any, y: Any) -> kiln.Value:
    return b.op("shift_left", *common(b, x, y))


@row("bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar", "shift_right", INTEGERS)
def _(b: Lowering, x: Any, y: Any) -> kiln.Value:
    return b.op("shift_right", *common(b, x, y))
