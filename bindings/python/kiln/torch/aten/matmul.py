"""Products of matrices."""

from __future__ import annotations

from typing import Any

import kiln
from kiln.torch.lowering import Lowering, Number, number
from kiln.torch.rows import FLOATS, INTEGERS, NUMBERS, Unsupported, row


def _product(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
    if str(x.dtype) in ("i8", "u8"):
        raise Unsupported("products of 8-bit integers, which are i32 in Kiln")
    return b.op("matmul", x, y)


@row("mm.default bmm.default mv.default dot.default vdot.default", "matmul", NUMBERS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
    return _product(b, x, y)


@row("addmm.default addmv.default baddbmm.default", "matmul add mul linear", NUMBERS)
def _(b: Lowering, bias: kiln.Value, x: kiln.Value, y: kiln.Value, *, beta: Number = 1,
      alpha: Number = 1) -> kiln.Value:
    wide_x = x
    if b.dtype in FLOATS and (beta != 1 or alpha != 1):
        wide_x, y, bias = b.wide(x), b.wide(y), b.wide(bias)
    if b.dtype in INTEGERS and not (number(beta).is_integer() and number(alpha).is_integer()):
        raise Unsupported("integers times a float")
    if beta == 1 and alpha == 1 and len(y.shape) == 2 and len(x.shape) == 2 and len(bias.shape) == 1 \
            and b.dtype in FLOATS and bias.shape[0] == y.shape[1]:
        return b.op("linear", x, b.op("permute", y, dims=[1, 0]), bias)
    made: Any = _product(b, wide_x, y) if str(x.dtype) not in ("f16", "bf16") or alpha != 1 or beta != 1 else \
        b.op("matmul", b.wide(x), b.wide(y))
    if alpha != 1:
        made = b.op("mul", made, b.operand(alpha, str(made.dtype)))
    if beta != 0:
        bias = b.cast(bias, str(made.dtype))
        made = b.op("add", made, bias if beta == 1 else b.op("mul", bias, b.operand(beta, str(made.dtype))))
    return b.cast(made, b.dtype)


@row("linear.default", "linear", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value, bias: kiln.Value | None = None) -> kiln.Value:
    return b.op("linear", x, weight, bias)


@row("addbmm.default", "matmul sum add mul", FLOATS)
def _(b: Lowering, bias: kiln.Value, x: kiln.Value, y: kiln.Value, *, beta: Number = 1,
      alpha: Number = 1) -> kiln.Value:
    made = b.op("sum", b.op("matmul", b.wide(x), b.wide(y)), dims=[0])
    return _added(b, bias, made, beta, alpha)


@row("addr.default", "outer add mul", FLOATS)
def _(b: Lowering, bias: kiln.Value, x: kiln.Value, y: kiln.Value, *, beta: Number = 1,
      alpha: Number = 1) -> kiln.Value:
    return _added(b, bias, b.op("outer", b.wide(x), b.wide(y)), beta, alpha)


def _added(b: Lowering, bias: kiln.Value, made: kiln.Value, beta: Number, alpha: Number) -> kiln.Value:
    if alpha != 1:
        made = b.op("mul", made, number(alpha))
    if beta != 0:
        wide = b.wide(bias)
        made = b.op("add", made, wide if beta == 1 else b.op("mul", wide, number(beta)))
    return b.cast(made, b.dtype)


@row("_grouped_mm.default", "grouped_matmul add", FLOATS | {"i32"}, when="of rows by groups")
def _(b: Lowering, x: kiln.Value, weights: kiln.Value, offsets: kiln.Value | None = None,
      bias: kiln.Value | None = None, out_dtype: Any = None) -> kiln.Value:
    if len(x.shape) != 2 or len(weights.shape) != 3 or offsets is None or bias is not None:
        raise Unsupported("not rows by groups")
    return b.cast(b.op("grouped_matmul", x, weights, offsets), b.dtype)
