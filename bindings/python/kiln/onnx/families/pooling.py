"""Pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, Results, kiln_op, op
from kiln.onnx._types import FLOATS, Size, numpy_type, product, sizes
from kiln.onnx._windows import Windows, windows


def _windows(n: Node, x: Value) -> Windows:
    return windows(n, n.ints("kernel_shape"), x.shape[2:])


def _arguments(n: Node, over: Windows) -> dict[str, Any]:
    return {"kernel": over.kernel, "stride": over.stride, "ceil_mode": n.flag("ceil_mode")}


@op("AveragePool")
def average_pool(n: Node, x: Value) -> Results:
    """The mean of each window; padding counts with count_include_pad."""
    over, rank = _windows(n, x), x.ndim - 2
    counts_padding = n.flag("count_include_pad")
    if over.is_even and set(over.dilation) == {1}:
        return kiln_op(f"avg_pool{rank}d")(x, **_arguments(n, over), padding=over.low,
                                                count_include_pad=counts_padding)
    function, none = kiln_op(f"sum_pool{rank}d"), [0] * rank
    arguments = {**_arguments(n, over), "dilation": over.dilation, "padding": none}
    ones = ops.full(value=1.0, dtype=x.dtype, shape=[1, 1, *x.shape[2:]])
    total, count = over.around(x), over.around(ones, 1.0 if counts_padding else 0.0)
    return function(total, **arguments) / function(count, **arguments)


def _coordinates(index: Value, space: tuple[Size, ...]) -> list[Value]:
    """A place in dims of space that count as one, dim by dim."""
    found = []
    for size in reversed(space[1:]):
        found.append(ops.remainder(index, ops.size(value=size)))
        index = ops.floor_divide(index, ops.size(value=size))
    return [index, *reversed(found)]


@op("MaxPool", ignores=("storage_order",))
def max_pool(n: Node, x: Value) -> Results:
    """The largest element of each window, and its place in x, all of whose dims count as one."""
    over, rank = _windows(n, x), x.ndim - 2
    arguments = {**_arguments(n, over), "dilation": over.dilation}
    space, low = x.shape[2:], [0] * rank
    if over.is_even:
        arguments["padding"] = over.low
    else:
        is_float, lowest = str(x.dtype) in FLOATS, 0
        if not is_float:
            lowest = int(np.iinfo(numpy_type(str(x.dtype))).min)
        x = over.around(x, float("-inf") if is_float else 0.0, "" if is_float else str(lowest))
        arguments["padding"], low = [0] * rank, over.low
    if not n.wants(1):
        return kiln_op(f"max_pool{rank}d")(x, **arguments)
    y, index = kiln_op(f"max_pool{rank}d_with_indices")(x, **arguments)
    by_column = n.flag("storage_order")
    if not over.is_even or by_column:  # places in what was padded
        at = [each - (before if isinstance(before, int) else ops.size(value=before))
              for each, before in zip(_coordinates(index, x.shape[2:]), low, strict=True)]
        order = list(zip(at, space, strict=True))
        if by_column:
            order.reverse()
        index = order[0][0]
        for place, size in order[1:]:
            index = index * ops.size(value=size) + place
    image = ops.iota(shape=y.shape[:2], dim=0) * ops.size(value=y.shape[1]) + ops.iota(shape=y.shape[:2], dim=1)
    image = ops.reshape(image * ops.size(value=product(space)), shape=[*y.shape[:2], *[1] * rank])
    return y, index + image


@op("LpPool")
def lp_pool(n: Node, x: Value) -> Results:
    """sum(|x|^p)^(1/p) of each window."""
    over, rank = _windows(n, x), x.ndim - 2
    arguments = {**_arguments(n, over), "dilation": over.dilation, "p": n.number("p", 2)}
    if over.is_even:
        arguments["padding"] = over.low
    else:
        x = over.around(x)
    return kiln_op(f"lp_pool{rank}d")(x, **arguments)


@op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(n: Node, x: Value) -> Value:
    """Of all dims of space, which become 1."""
    if n.op == "GlobalLpPool":
        return ops.norm(x, dims=list(range(2, x.ndim)), keepdim=True, p=n.number("p", 2))
    return (ops.global_avg_pool if n.op == "GlobalAveragePool" else ops.global_max_pool)(x)


@op("MaxUnpool")
def max_unpool(n: Node, x: Value, indices: Value, shape: Known | None = None) -> Results:
    """x's elements at their indices in what was pooled, and zeros; a larger shape is told for what the pool lost."""
    over, rank = windows(n, n.ints("kernel_shape"), x.shape[2:]), x.ndim - 2
    space = [(size - 1) * over.stride[i] + over.kernel[i] - over.low[i] - over.high[i]
             for i, size in enumerate(x.shape[2:])]
    local = ops.remainder(indices, ops.size(value=product(space)))
    made = kiln_op(f"max_unpool{rank}d")(x, local, size=space)
    if shape is None:
        return made
    more = n.literal([a - b for a, b in zip(sizes(shape)[2:], space, strict=True)], "what output_shape adds")
    return ops.pad(made, low=[0] * x.ndim, high=[0, 0, *more])
