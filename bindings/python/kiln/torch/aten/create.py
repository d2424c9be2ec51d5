"""What makes tensors of nothing but numbers and sizes."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch import sizes
from kiln.torch.lowering import Fraction, Lowering, element
from kiln.torch.rows import FLOATS, Unsupported, row


def _filled(b: Lowering, value: Any) -> kiln.Value:
    if isinstance(value, kiln.Dim | Fraction):
        return b.op("expand", b.operand(value, b.dtype), shape=b.sizes())
    return b.full(value, b.dtype, b.sizes())


@row("full.default", "full size")
def _(b: Lowering, size: Sequence[Any], fill_value: Any, **_: Any) -> kiln.Value:
    return _filled(b, fill_value)


@row("full_like.default", "full size")
def _(b: Lowering, x: kiln.Value, fill_value: Any, **_: Any) -> kiln.Value:
    return _filled(b, fill_value)


@row("fill.Scalar", "full size")
def _(b: Lowering, x: kiln.Value, value: Any) -> kiln.Value:
    return _filled(b, value)


@row("fill.Tensor", "expand convert")
def _(b: Lowering, x: kiln.Value, value: kiln.Value) -> kiln.Value:
    return b.op("expand", b.cast(value, b.dtype), shape=b.sizes())


@row("new_full.default", "full size")
def _(b: Lowering, x: kiln.Value, size: Sequence[Any], fill_value: Any, **_: Any) -> kiln.Value:
    return _filled(b, fill_value)


@row("zeros.default zeros_like.default new_zeros.default", "full")
def _(b: Lowering, *_: Any, **__: Any) -> kiln.Value:
    return _filled(b, 0)


@row("ones.default ones_like.default new_ones.default", "full")
def _(b: Lowering, *_: Any, **__: Any) -> kiln.Value:
    return _filled(b, 1)


@row("empty.memory_format empty_like.default new_empty.default empty_permuted.default", "full")
def _(b: Lowering, *_: Any, **__: Any) -> kiln.Value:
    return _filled(b, 0)


@row("empty_strided.default new_empty_strided.default", "full", when="dense ones")
def _(b: Lowering, *_: Any, **__: Any) -> kiln.Value:
    if sizes.memory_order(b.out) is None:
        raise Unsupported("elements that do not lie dense")
    return _filled(b, 0)


@row("scalar_tensor.default", "full size")
def _(b: Lowering, value: Any, **_: Any) -> kiln.Value:
    return _filled(b, value)


@row("arange.default", "iota")
def _(b: Lowering, end: Any, **_: Any) -> kiln.Value:
    return _arange(b, 0, 1)


@row("arange.start", "iota add")
def _(b: Lowering, start: Any, end: Any, **_: Any) -> kiln.Value:
    return _arange(b, start, 1)


@row("arange.start_step", "iota add mul")
def _(b: Lowering, start: Any, end: Any, step: Any = 1, **_: Any) -> kiln.Value:
    return _arange(b, start, step)


def _arange(b: Lowering, start: Any, step: Any) -> kiln.Value:
    """In the type that torch counts in: f64 for floats, of which it rounds each once."""
    if b.dtype not in FLOATS:  # torch counts in integers then
        start, step = element(start, b.dtype), element(step, b.dtype)
    dtype = "f64" if b.dtype in FLOATS else b.dtype
    made = b.op("iota", shape=b.sizes(), dtype=dtype)
    if isinstance(step, kiln.Dim) or step != 1:
        made = b.op("mul", made, b.operand(step, dtype))
    if isinstance(start, kiln.Dim) or start != 0:
        made = b.op("add", made, b.operand(start, dtype))
    return b.cast(made, b.dtype)


@row("eye.default eye.m", "iota eq convert")
def _(b: Lowering, *_: Any, **__: Any) -> kiln.Value:
    rows, columns = (b.op("iota", shape=b.sizes(), dim=dim) for dim in (0, 1))
    return b.cast(b.op("eq", rows, columns), b.dtype)


def _line(b: Lowering, start: Any, end: Any, steps: Any) -> kiln.Value:
    """From start to end in f64: torch has the first half from the one, the second from the other."""
    if b.dtype not in FLOATS:
        raise Unsupported("integers")
    count = b.op("iota", shape=b.sizes(), dtype="f64")
    if isinstance(steps, int) and steps < 2:
        return b.op("expand", b.operand(start, "f64"), shape=b.sizes())
    last = b.op("sub", b.operand(steps, "f64"), 1.0)
    low, high = b.operand(start, "f64"), b.operand(end, "f64")
    step = b.op("div", b.op("sub", high, low), last)
    back = b.op("sub", high, b.op("mul", b.op("sub", last, count), step))
    first = b.op("lt", count, b.op("floor", b.op("mul", b.op("add", last, 1.0), 0.5)))
    return b.op("where", first, b.op("add", low, b.op("mul", count, step)), back)


_LINES = " ".join(f"{{name}}.{kind}" for kind in ("default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"))


@row(_LINES.format(name="linspace"), "iota mul add where", when="of floats")
def _(b: Lowering, start: Any, end: Any, steps: Any, **_: Any) -> kiln.Value:
    return b.cast(_line(b, start, end, steps), b.dtype)


@row(_LINES.format(name="logspace"), "iota mul add where pow", when="of floats")
def _(b: Lowering, start: Any, end: Any, steps: Any, base: float = 10.0, **_: Any) -> kiln.Value:
    return b.cast(b.op("pow", b.full(base, "f64", []), _line(b, start, end, steps)), b.dtype)


@row("zero.default", "full")
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    return _filled(b, 0)
