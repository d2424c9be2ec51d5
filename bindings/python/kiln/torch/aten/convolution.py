"""Convolutions, transposed ones and the gradients of both."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, Unsupported, row


def _spread(values: Sequence[Any], count: int) -> list[int]:
    """One number for each dim of space."""
    if any(not isinstance(each, int) for each in values):
        raise Unsupported("a stride, padding or dilation that is not known")
    return list(values) * count if len(values) == 1 else list(values)


def _attrs(n: int, stride: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any],
           groups: int) -> dict[str, Any]:
    return {"stride": _spread(stride, n), "padding": _spread(padding, n), "dilation": _spread(dilation, n),
            "groups": groups}


def _kernel(weight: kiln.Value) -> list[int]:
    sizes = list(weight.shape[2:])
    if any(not isinstance(size, int) for size in sizes):
        raise Unsupported("a kernel whose size is not known")
    return sizes


@row("convolution.default", "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value, bias: kiln.Value | None, stride: Sequence[Any],
      padding: Sequence[Any], dilation: Sequence[Any], transposed: bool, output_padding: Sequence[Any],
      groups: int) -> kiln.Value:
    n = len(x.shape) - 2
    _kernel(weight)
    attrs = _attrs(n, stride, padding, dilation, groups)
    operands = [x, weight] + ([bias] if bias is not None else [])
    if transposed:
        return b.op(f"conv_transpose{n}d", *operands, output_padding=_spread(output_padding, n), **attrs)
    return b.op(f"conv{n}d", *operands, **attrs)


@row("convolution_backward.default", "conv1d_backward_input conv1d_backward_weight conv2d_backward_input "
     "conv2d_backward_weight conv3d_backward_input conv3d_backward_weight conv1d conv2d conv3d sum", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, weight: kiln.Value, bias_sizes: Any, stride: Sequence[Any],
      padding: Sequence[Any], dilation: Sequence[Any], transposed: bool, output_padding: Sequence[Any], groups: int,
      output_mask: Sequence[bool]) -> tuple[Any, Any, Any]:
    n = len(x.shape) - 2
    attrs = _attrs(n, stride, padding, dilation, groups)
    dx = dw = db = None
    whole = dy
    for i, extra in enumerate(_spread(output_padding, n) if transposed else []):
        if extra >= attrs["stride"][i]:  # behind what a window of the other convolution would reach
            dy = b.op("slice", dy, dim=i + 2, start=0, end=dy.shape[i + 2] - extra)
    if output_mask[0]:
        dx = b.op(f"conv{n}d", dy, weight, **attrs) if transposed else \
            b.op(f"conv{n}d_backward_input", weight, dy, size=x.shape[2:], **attrs)
    if output_mask[1]:
        inputs = (dy, x) if transposed else (x, dy)  # a transposed convolution is the other's gradient
        dw = b.op(f"conv{n}d_backward_weight", *inputs, kernel=_kernel(weight), **attrs)
    if output_mask[2]:
        dims = [0, *range(2, n + 2)]
        db = b.cast(b.op("sum", b.wide(whole), dims=dims), b.dtype)
    return dx, dw, db
