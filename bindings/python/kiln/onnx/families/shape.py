"""What moves elements: other shapes, other orders, parts and joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import kiln
from kiln import Value, ops
from kiln.onnx._fold import range_count
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, op
from kiln.onnx._types import Size, at_least, equal, is_literal, numpy_type, product, sizes
from kiln.onnx._values import Tensor
from kiln.onnx.families.elementwise import convert


def _clamped(size: Size, least: Size, most: Size) -> Size:
    return kiln.dim_min(kiln.dim_max(size, least), most)


@op("Reshape")
def reshape(n: Node, x: Value, shape: Known) -> Value:
    """Another shape: 0 is the size of x's dim (unless allowzero), -1 what remains."""
    told = sizes(shape)
    if not n.flag("allowzero"):
        told = [x.shape[i] if isinstance(each, int) and each == 0 else each for i, each in enumerate(told)]
    if told.count(-1) == 1 and all(isinstance(each, int) for each in [*told, *x.shape]) and 0 in x.shape:
        told[told.index(-1)] = 0  # of no elements nothing remains to tell it from
    return ops.reshape(x, shape=told)


@op("Flatten")
def flatten(n: Node, x: Value) -> Value:
    """Two dims: those before axis, and the others."""
    axis = n.integer("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return ops.reshape(x, shape=[product(x.shape[:axis]), product(x.shape[axis:])])


@op("Transpose")
def transpose(n: Node, x: Value) -> Value:
    """Dims in another order; without perm in the reverse one."""
    return ops.permute(x, dims=n.ints("perm", range(x.ndim)[::-1]))


@op("Squeeze")
def squeeze(n: Node, x: Value, axes: Known | None = None) -> Value:
    """Without dims of size 1: those that are told, else all."""
    ones = [i for i, size in enumerate(x.shape) if size == 1]
    return ops.squeeze(x, dims=n.axes(axes, x.ndim, ones))


@op("Unsqueeze")
def unsqueeze(n: Node, x: Value, axes: Known | None = None) -> Value:
    """With further dims of size 1."""
    count = axes.size if axes is not None else len(n.ints("axes"))
    return ops.unsqueeze(x, dims=n.axes(axes, x.ndim + count))


@op("Concat")
def concat(n: Node, *xs: Value) -> Value:
    """One after the other along a dim."""
    return ops.concat(*xs, dim=n.axis(n.integer("axis", 1), xs[0].ndim))


@op("Split")
def split(n: Node, x: Value, split: Known | None = None) -> tuple[Value, ...]:
    """Parts along a dim: of sizes that are told, else as equal as may be, the last one smaller."""
    dim = n.axis(n.integer("axis", 0), x.ndim)
    if split is not None or n.has("split"):
        told = sizes(split) if split is not None else n.ints("split")
    else:
        count = n.integer("num_outputs", len(n.ir.outputs))
        size = x.shape[dim]
        part = (size + count - 1) // count
        told = [part] * (count - 1) + [size - part * (count - 1)]
    if len(told) == 1:
        return (x,)
    return tuple(ops.split(x, sizes=told, dim=dim))


def cut(n: Node, x: Value, dim: int, start: Size, end: Size, step: int) -> Value:
    """A slice as ONNX has it: ends below 0 count from the end, and what is beyond the size is cut."""
    size = x.shape[dim]
    if isinstance(size, kiln.Dim) and step == 1 and isinstance(start, int) and isinstance(end, int) and (
            (start, end) == (0, 1) or start == -1 and end >= 2**31 - 1):
        # The first or last one: of size 1, not min(1, n), so that it broadcasts; of an empty dim it is the call's error.
        start = start + size if start < 0 else 0
        return ops.slice(x, dim=dim, start=start, end=start + 1)

    def place(index: Size, least: Size, most: Size) -> Size:
        if isinstance(index, int) and abs(index) >= 2**31 - 1:
            return least if index < 0 else most
        if isinstance(index, int):
            index = index + size if index < 0 else index
        elif not at_least(index, 0):  # it counts from the end where a run finds it below 0
            index = index + size * (1 - _clamped(index + 1, 0, 1))
        return _clamped(index, least, most)
    if step > 0:
        first = place(start, 0, size)
        last = place(end, 0, size)
        if equal(kiln.dim_max(last, first), last) is not True:
            last = kiln.dim_max(last, first)
        return x if first == 0 and step == 1 and last == size else ops.slice(x, dim=dim, start=first, end=last, step=step)
    first, last = place(start, -1 if size == 0 else 0, size - 1), place(end, -1, size - 1)
    if size == 0 or isinstance(first, int) and isinstance(last, int) and first <= last:
        return ops.slice(x, dim=dim, start=0, end=0)
    # Kiln counts literals below 0 from the end, so that "before the first" is -size - 1.
    return ops.slice(x, dim=dim, start=first, end=-size - 1 if isinstance(last, int) and last == -1 else last, step=step)


@op("Slice", since=1)
def slice_1(n: Node, x: Value) -> Value:
    """Slices that attributes tell."""
    starts, ends = n.ints("starts"), n.ints("ends")
    for axis, start, end in zip(n.ints("axes", range(len(starts))), starts, ends, strict=True):
        x = cut(n, x, n.axis(axis, x.ndim), start, end, 1)
    return x


@op("Slice", since=10)
def slice(n: Node, x: Value, starts: Tensor, ends: Tensor, axes: Known | None = None, steps: Known | None = None) -> Value:
    """Slices that inputs tell; where these are computed from data, the result's sizes are what a run finds."""
    count = n.literal(starts.shape, "the number of slices")[0]
    along = [int(axis) for axis in axes.flat] if axes is not None else range(count)
    by = [int(step) for step in steps.flat] if steps is not None else [1] * count
    first, last = _bounds(n, starts, "starts", by), _bounds(n, ends, "ends", by)
    for axis, start, end, step in zip(along, first, last, by, strict=True):
        dim = n.axis(axis, x.ndim)
        if isinstance(start, Value) or isinstance(end, Value):
            x = _cut_by_values(n, x, dim, start, end)
        else:
            x = cut(n, x, dim, start, end, step)
    return x


def _bounds(n: Node, told: Tensor, name: str, steps: Sequence[int]) -> list[Size | Value]:
    """Sizes, or scalars that are computed."""
    if told.known is None and not told.deciders and set(steps) == {1}:
        values = ops.convert(told.in_graph(n.frame.graph), dtype="i64")
        return [ops.squeeze(ops.slice(values, dim=0, start=i, end=i + 1), dims=[0]) for i in range(len(steps))]
    return [*sizes(n.frame.converter.known(n, name, told))]


def _cut_by_values(n: Node, x: Value, dim: int, start: Size | Value, end: Size | Value) -> Value:
    """A slice of which a run tells the begin or the end, and so the size."""
    size = ops.size(value=x.shape[dim])

    def place(index: Size | Value) -> Value:
        if not isinstance(index, Value):
            index = ops.size(value=index)
        index = ops.where(ops.lt(index, 0), index + size, index)
        return ops.minimum(ops.maximum(index, 0), size)
    first = place(start)
    count = ops.maximum(place(end) - first, 0)
    symbol = ops.resolve(count, bound=x.shape[dim], symbol=n.frame.converter.fresh_symbol("slice"))
    return ops.index_select(x, ops.iota(shape=[symbol.node.attr("symbol")]) + first, dim=dim)


@op("Expand")
def expand(n: Node, x: Value, shape: Known) -> Value:
    """Repeated along dims of size 1 and new ones; unlike a view, it may also keep dims of x where 1 is asked for."""
    return expand_to(x, sizes(shape))


def expand_to(x: Value, shape: Sequence[Size]) -> Value:
    """x and a shape, broadcast to each other."""
    rank = max(x.ndim, len(shape))
    have = [1] * (rank - x.ndim) + list(x.shape)
    want = [1] * (rank - len(shape)) + list(shape)
    target = [a if isinstance(b, int) and b == 1 else b for a, b in zip(have, want, strict=True)]
    return x if list(x.shape) == target else ops.expand(x, shape=target)


@op("Tile")
def tile(n: Node, x: Value, repeats: Known) -> Value:
    """Beside itself."""
    return ops.tile(x, repeats=sizes(repeats))


@op("ConstantOfShape")
def constant_of_shape(n: Node, shape: Known) -> Value:
    """One element everywhere: an attribute, else 0 of f32."""
    value = n.array("value").reshape(()) if n.has("value") else np.array(0, np.float32)
    made = n.frame.graph.constant(value)
    return ops.expand(made, shape=sizes(shape)) if shape.size else made


@op("Pad", since=1)
def pad_1(n: Node, x: Value) -> Value:
    """Attributes tell how much, and of what."""
    return _padded(n, x, n.ints("pads"), range(x.ndim), n.number("value", 0.0))


@op("Pad", since=11)
def pad(n: Node, x: Value, pads: Known, value: Value | None = None, axes: Known | None = None) -> Value:
    """Inputs tell how much, along which dims, and of what."""
    along = n.axes(axes, x.ndim) if axes is not None else list(range(x.ndim))
    return _padded(n, x, sizes(pads), along, value)


def _padded(n: Node, x: Value, pads: Sequence[Size], axes: Sequence[int], value: Value | float | None) -> Value:
    mode = n.text("mode", "constant", among=("constant", "reflect", "edge", "wrap"))
    if mode == "constant" and any(isinstance(each, kiln.Dim) for each in pads):
        return _padded_by_sizes(x, pads, axes, value)
    pads = n.literal(pads, f"a pad, with mode '{mode}',")
    low, high = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[len(axes) + i]
    kiln_mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode]
    if mode != "constant" or value is None or isinstance(value, float):
        return ops.pad(x, low=low, high=high, value=value if isinstance(value, float) else 0.0, mode=kiln_mode)
    inside = ops.pad(ops.full(value=1, dtype="bool", shape=x.shape), low=low, high=high)
    return ops.where(inside, ops.pad(x, low=low, high=high), ops.reshape(value, shape=[]))


def _padded_by_sizes(x: Value, pads: Sequence[Size], axes: Sequence[int], value: Value | float | None) -> Value:
    """With amounts that only a run tells, whatever their signs: cut where they are below 0, then joined with numbers."""
    for axis, low, high in zip(axes, pads, pads[len(axes):], strict=False):
        size = x.shape[axis]
        x = ops.slice(x, dim=axis, start=kiln.dim_max(0 - low, 0), end=size - kiln.dim_max(0 - high, 0))
        parts = []
        for amount in (low, high):
            shape = [kiln.dim_max(amount, 0) if i == axis else each for i, each in enumerate(x.shape)]
            parts.append(ops.full(value=value or 0.0, dtype=x.dtype, shape=shape) if value is None or isinstance(
                value, float) else ops.expand(ops.reshape(value, shape=[]), shape=shape))
        x = ops.concat(parts[0], x, parts[1], dim=axis)
    return x


@op("DepthToSpace")
def depth_to_space(n: Node, x: Value) -> Value:
    """Channels as blocks of pixels; of DCR the block comes first in the channels, of CRD the channels."""
    b = n.integer("blocksize")
    batch, channels, height, width = x.shape
    first = n.text("mode", "DCR", among=("DCR", "CRD")) == "DCR"
    depth = channels // b**2
    apart = ops.reshape(x, shape=[batch, b, b, depth, height, width] if first else [batch, depth, b, b, height, width])
    moved = ops.permute(apart, dims=[0, 3, 4, 1, 5, 2] if first else [0, 1, 4, 2, 5, 3])
    return ops.reshape(moved, shape=[batch, depth, height * b, width * b])


@op("SpaceToDepth")
def space_to_depth(n: Node, x: Value) -> Value:
    """Blocks of pixels as channels."""
    b = n.integer("blocksize")
    batch, channels, height, width = x.shape
    first = n.text("mode", "DCR", among=("DCR", "CRD")) == "DCR"
    apart = ops.reshape(x, shape=[batch, channels, height // b, b, width // b, b])
    moved = ops.permute(apart, dims=[0, 3, 5, 1, 2, 4] if first else [0, 1, 3, 5, 2, 4])
    return ops.reshape(moved, shape=[batch, channels * b * b, height // b, width // b])


@op("Trilu")
def trilu(n: Node, x: Value, k: Known | None = None) -> Value:
    """Upper or lower triangles of matrices."""
    diagonal = 0 if k is None else int(k.item())
    return (ops.triu if n.flag("upper", True) else ops.tril)(x, diagonal=diagonal)


@op("EyeLike")
def eye_like(n: Node, x: Value) -> Value:
    """1 on one diagonal, 0 elsewhere."""
    rows, columns = (ops.iota(shape=x.shape, dim=dim) for dim in (0, 1))
    return ops.convert(ops.eq(columns, rows + n.integer("k", 0)), dtype=n.dtype("dtype", x.dtype))


@op("Range")
def arange(n: Node, start: Tensor, limit: Tensor, delta: Tensor) -> Value:
    """Numbers from start to before limit, delta apart."""
    told = [n.frame.converter.known(n, name, each) if each.counts is None else each.counts
            for name, each in (("start", start), ("limit", limit), ("delta", delta))]
    first, last, step = (each.item() for each in told)
    count: Size
    if all(is_literal(each) for each in told):
        count = range_count(first, last, step)
    else:
        first, last, step = (int(each) if isinstance(each, float) and each.is_integer() else each
                             for each in (first, last, step))
        if any(isinstance(each, float) for each in (first, last, step)):
            raise n.refuse("a range of a size and of a number with a fraction is not supported")
        step = n.literal([step], "the step of a range")[0]
        span = last - first if step > 0 else first - last
        count = kiln.dim_max((span + abs(step) - 1) // abs(step), 0)
    dtype = numpy_type(start.dtype)
    begin = ops.size(value=first, dtype=start.dtype) if isinstance(first, kiln.Dim) else np.asarray(first, dtype)
    return ops.add(ops.mul(convert(ops.iota(shape=[count]), start.dtype), np.asarray(step, dtype)), begin)


@op("ReverseSequence")
def reverse_sequence(n: Node, x: Value, lengths: Value) -> Value:
    """The first elements of each row of the batch the other way round."""
    return ops.reverse_sequence(x, lengths, dim=n.integer("time_axis", 0), batch_dim=n.integer("batch_axis", 1))
