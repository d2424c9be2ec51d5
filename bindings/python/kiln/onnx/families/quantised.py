"""Numbers of few bits: to and from floats, and products of them."""

from __future__ import annotations

import numpy as np

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Results, op
from kiln.onnx._types import numpy_type
from kiln.onnx._values import Tensor
from kiln.onnx.families.convolution import convolve
from kiln.onnx.families.elementwise import convert

_BYTES = ("i8", "u8")


def _spread(n: Node, value: Value, x: Value, axis: int, block: int) -> Value:
    """A scale or zero point as it broadcasts to x: of all, of an axis, or of blocks along it."""
    if block:
        wide = ops.repeat_interleave(value, repeats=block, dim=axis)
        return wide if wide.shape == x.shape else ops.slice(wide, dim=axis, end=x.shape[axis])
    if value.ndim == 0:
        return value
    if value.shape == (1,):
        return ops.reshape(value, shape=[])
    return ops.reshape(value, shape=[value.shape[0] if i == axis else 1 for i in range(x.ndim)])


def _scalar(value: Value) -> Value:
    return ops.reshape(value, shape=[]) if value.shape == (1,) else value


def _axis(n: Node, x: Value) -> int:
    return n.axis(n.integer("axis", 1), x.ndim) if x.ndim and -x.ndim <= n.integer("axis", 1) < x.ndim else 0


@op("QuantizeLinear", ignores=("precision", "saturate"))
def quantize(n: Node, x: Value, scale: Value, zero: Value | None = None) -> Value:
    """round(x / scale) + zero, as much as the type holds; 8-bit floats are rounded to by themselves."""
    to = str(zero.dtype) if zero is not None else n.dtype("output_dtype", "u8")
    axis, block = _axis(n, x), n.integer("block_size", 0)
    if str(x.dtype) not in ("f32", "f16", "bf16", "f64"):
        x = convert(x, "f32")
    if str(scale.dtype) != str(x.dtype):
        raise n.refuse(f"x is {x.dtype} and its scale {scale.dtype}: dtypes do not mix")
    if to in _BYTES:
        zeros = None if zero is None else _scalar(zero)
        return ops.quantize(x, _scalar(scale), zeros, dtype=to, axis=axis, group=block)
    ratio = x / _spread(n, scale, x, axis, block)
    if to.startswith("f8"):
        return convert(ratio, to, n.flag("saturate", True))
    if to not in ("i16", "u16"):
        raise n.refuse(f"to {to}, one of i8, u8, i16, u16 and 8-bit floats was expected")
    return _narrowed(convert(ratio, "f32"), None if zero is None else _spread(n, zero, x, axis, block), to)


def _narrowed(x: Value, zero: Value | None, to: str) -> Value:
    """Rounded, moved by the zero point, and as much as the type holds."""
    whole = ops.round(x)
    if zero is not None:
        whole = whole + convert(zero, str(x.dtype))
    limits = np.iinfo(numpy_type(to))
    return convert(ops.clamp(whole, min=float(limits.min), max=float(limits.max)), to)


@op("DequantizeLinear")
def dequantize(n: Node, stored: Tensor, scale: Value, zero: Value | None = None) -> Value:
    """(x - zero) * scale, as floats of the scale's type or the one that is asked for; x may be weights of 4 bits."""
    packed = n.frame.converter.weights.packed(stored, n.ir.inputs[0].name or n.name)  # type: ignore[union-attr]
    if packed is not None and str(scale.dtype) in ("f32", "f16", "bf16"):
        return ops.dequantize(packed, _scalar(scale), None if zero is None else _scalar(zero), bits=4,
                              signed=stored.dtype == "i4", axis=n.axis(n.integer("axis", 1), len(stored.shape)),
                              group=n.integer("block_size", 0), dtype=n.dtype("output_dtype", str(scale.dtype)))
    x = stored.in_graph(n.frame.graph)
    to, axis, block = n.dtype("output_dtype", str(scale.dtype)), _axis(n, x), n.integer("block_size", 0)
    if str(x.dtype) in _BYTES and str(scale.dtype) != "f64":
        zeros = None if zero is None else _scalar(zero)
        return ops.dequantize(x, _scalar(scale), zeros, axis=axis, group=block, dtype=to)
    if zero is not None and str(x.dtype) in ("i16", "u16", "i32"):
        moved = convert(convert(x, "i32") - convert(_spread(n, zero, x, axis, block), "i32"), "f32")
    else:
        moved = convert(x, "f32")
        if zero is not None:
            moved = moved - convert(_spread(n, zero, x, axis, block), "f32")
    return convert(moved * convert(_spread(n, scale, x, axis, block), "f32"), to)


def _moved(x: Value, zero: Value | None, axis: int | None = None) -> Value:
    """x - zero in i32; a zero point of several is one for each index of an axis."""
    wide = convert(x, "i32")
    if zero is None:
        return wide
    zero = _scalar(convert(zero, "i32"))
    if zero.ndim == 1 and axis is not None:
        zero = ops.reshape(zero, shape=[zero.shape[0] if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return wide - zero


@op("MatMulInteger")
def matmul_integer(n: Node, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Value:
    """Products of bytes, exact in i32."""
    if a_zero is None and b_zero is None and str(b.dtype) == "i8":
        return ops.matmul(a, b)
    return ops.matmul(_moved(a, a_zero, -2), _moved(b, b_zero, -1))


@op("ConvInteger", ignores=("kernel_shape",))
def conv_integer(n: Node, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None) -> Results:
    """A convolution of bytes, exact in i32; padding is the zero point."""
    return convolve(n, _moved(x, x_zero), _moved(w, w_zero, 0))


def _rescaled(total: Value, factor: Value, scale: Value, zero: Value) -> Value:
    ratio = convert(total, "f32") * convert(factor, "f32") / _scalar(convert(scale, "f32"))
    return _narrowed(ratio, _scalar(zero), str(zero.dtype))


@op("QLinearMatMul")
def qlinear_matmul(n: Node, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
                   y_scale: Value, y_zero: Value) -> Value:
    """The product of quantised matrices, quantised."""
    total = ops.matmul(_moved(a, a_zero, -2), _moved(b, b_zero, -1))
    rows, columns = _scalar(convert(a_scale, "f32")), _scalar(convert(b_scale, "f32"))
    if rows.ndim == 1:
        rows = ops.unsqueeze(rows, dims=[1])
    return _rescaled(total, rows * columns, y_scale, y_zero)


@op("QLinearConv", ignores=("kernel_shape",))
def qlinear_conv(n: Node, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
                 y_scale: Value, y_zero: Value, b: Value | None = None) -> Value:
    """The convolution of quantised tensors, quantised; the bias is in i32, of the product's scale."""
    total = convolve(n, _moved(x, x_zero), _moved(w, w_zero, 0), b)
    factor = _scalar(x_scale) * _scalar(w_scale)
    if factor.ndim == 1:
        factor = ops.reshape(factor, shape=[factor.shape[0], *[1] * (x.ndim - 2)])
    return _rescaled(total, factor, y_scale, y_zero)
