"""Convolutions."""

from __future__ import annotations

import itertools
from typing import Any

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, Results, kiln_op, op
from kiln.onnx._types import product, sizes
from kiln.onnx._windows import windows


def convolve(n: Node, x: Value, w: Value, b: Value | None = None) -> Results:
    """A convolution with the node's attributes."""
    over = windows(n, n.literal(w.shape[2:], "the kernel's size"), x.shape[2:])
    function = kiln_op(f"conv{len(over.kernel)}d")
    padding = over.padding
    if not over.is_literal:
        x, padding = over.around(x), [0] * len(padding)
    return function(x, w, b, stride=over.stride, padding=padding, dilation=over.dilation, groups=n.integer("group", 1))


@op("Conv", ignores=("kernel_shape",))
def conv(n: Node, x: Value, w: Value, b: Value | None = None) -> Results:
    """Convolution as machine learning means it."""
    return convolve(n, x, w, b)


@op("ConvTranspose", ignores=("kernel_shape",))
def conv_transpose(n: Node, x: Value, w: Value, b: Value | None = None) -> Results:
    """The transposed convolution; `output_shape` or auto_pad tell how much is cut off."""
    kernel = n.literal(w.shape[2:], "the kernel's size")
    rank = len(kernel)
    if not 1 <= rank <= 3:
        raise n.refuse(f"{rank} dims of space, 1 to 3 were expected")
    stride, dilation = n.ints("strides", [1] * rank), n.ints("dilations", [1] * rank)
    extra = n.ints("output_padding", [0] * rank)
    mode = n.text("auto_pad", "NOTSET", among=("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    pads = n.ints("pads", [0] * 2 * rank) if mode == "NOTSET" else [0] * 2 * rank
    low, high = pads[:rank], pads[rank:]
    wanted: Any = n.ints("output_shape", [])[-rank:]
    if not wanted and mode.startswith("SAME"):
        wanted = [size * step for size, step in zip(x.shape[2:], stride, strict=True)]
    if wanted:
        for i in range(rank):
            full = (x.shape[2 + i] - 1) * stride[i] + extra[i] + (kernel[i] - 1) * dilation[i] + 1
            total = n.literal([full - wanted[i]], "what is cut off")[0]
            if total < 0:
                extra[i], total = extra[i] - total, 0
            low[i] = total // 2 if mode == "SAME_UPPER" else total - total // 2
            high[i] = total - low[i]
    padding = [each for pair in zip(low, high, strict=True) for each in pair]
    function = kiln_op(f"conv_transpose{rank}d")
    return function(x, w, b, stride=stride, padding=padding, output_padding=extra, dilation=dilation,
                    groups=n.integer("group", 1))


@op("Col2Im")
def col2im(n: Node, x: Value, size: Known, kernel: Known) -> Value:
    """Images of which the columns are windows; where windows overlap they add up."""
    rank = kernel.size
    pads = n.ints("pads", [0] * 2 * rank)
    padding = [each for i in range(rank) for each in (pads[i], pads[rank + i])]
    made = ops.col2im(x, size=sizes(size), kernel=n.literal(sizes(kernel), "the kernel"),
                      stride=n.ints("strides", [1] * rank), padding=padding, dilation=n.ints("dilations", [1] * rank))
    return ops.reshape(made, shape=[*made.shape[:2], *sizes(size)])


@op("DeformConv", ignores=("kernel_shape",))
def deform_conv(n: Node, x: Value, w: Value, offset: Value, b: Value | None = None, mask: Value | None = None) -> Value:
    """A convolution whose windows' elements lie where offsets tell, between elements of x; in two dims of space.

    Made of grid_sample for each element of the window, then one product.
    """
    over = windows(n, n.literal(w.shape[2:], "the kernel's size"), x.shape[2:])
    if len(over.kernel) != 2:
        raise n.refuse(f"{len(over.kernel)} dims of space, 2 were expected")
    groups, parts = n.integer("group", 1), n.integer("offset_group", 1)
    batch, channels, height, width = n.literal(x.shape, "x's shape")
    rows, columns = n.literal(offset.shape[2:], "the offsets' shape")
    kh, kw = over.kernel
    offsets = ops.reshape(offset, shape=[batch * parts, kh * kw, 2, rows, columns])
    images = ops.reshape(x, shape=[batch * parts, channels // parts, height, width])
    masks = None if mask is None else ops.reshape(mask, shape=[batch * parts, kh * kw, 1, rows, columns])

    def places(count: int, size: int, dim: int, axis: int, element: int) -> tuple[Value, Value]:
        """From -1 to 1, as grid_sample has them, between the middles of the outermost elements."""
        begin = element * over.dilation[axis] - over.low[axis]
        start = ops.iota(shape=[rows, columns], dim=dim, dtype=x.dtype) * over.stride[axis] + begin
        return start, ops.full(value=2.0 / max(size - 1, 1), dtype=x.dtype, shape=())
    taken = []
    for i, j in itertools.product(range(kh), range(kw)):
        k = i * kw + j
        at = [ops.squeeze(ops.slice(ops.slice(offsets, dim=1, start=k, end=k + 1), dim=2, start=d, end=d + 1),
                          dims=[1, 2]) for d in range(2)]
        (y0, fy), (x0, fx) = places(rows, height, 0, 0, i), places(columns, width, 1, 1, j)
        grid = ops.stack((at[1] + x0) * fx - 1.0, (at[0] + y0) * fy - 1.0, dim=3)
        sample = ops.grid_sample(images, grid, align_corners=True)
        if masks is not None:
            sample = sample * ops.squeeze(ops.slice(masks, dim=1, start=k, end=k + 1), dims=[1])
        taken.append(ops.reshape(sample, shape=[batch, groups, channels // groups, rows * columns]))
    windows_ = ops.stack(*taken, dim=3)  # [N, groups, C / groups, kernel, places]
    outputs = w.shape[0]
    flat = ops.reshape(windows_, shape=[batch, groups, channels // groups * kh * kw, rows * columns])
    weights = ops.reshape(w, shape=[1, groups, outputs // groups, product(w.shape[1:])])
    made = ops.reshape(ops.matmul(weights, flat), shape=[batch, outputs, rows, columns])
    return made if b is None else made + ops.reshape(b, shape=[1, outputs, 1, 1])




@op("CausalConvWithState")
def causal_conv(n: Node, x: Value, w: Value, b: Value | None = None, past: Value | None = None) -> tuple[Value, Value]:
    """Each channel by its own window over what came before, and the last elements as the state of the next step."""
    kernel = n.literal([w.shape[2]], "the kernel's size")[0]
    batch, channels, length = x.shape
    state = ops.full(dtype=x.dtype, shape=[batch, channels, kernel - 1]) if past is None else past
    whole = ops.concat(state, x, dim=2) if kernel > 1 else x
    y = ops.conv1d(whole, w, b, groups=n.literal([channels], "the number of channels")[0])
    if n.text("activation", "none", among=("none", "silu", "swish")) != "none":
        y = ops.silu(y)
    return y, ops.slice(whole, dim=2, start=length, end=whole.shape[2])
