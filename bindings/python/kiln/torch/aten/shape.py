"""Views, and what moves elements."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch import sizes
from kiln.torch.lowering import Lowering
from kiln.torch.rows import DTYPES, Unsupported, row


@row("view.default _unsafe_view.default", "reshape", view=True)
def _(b: Lowering, x: kiln.Value, size: Sequence[Any]) -> kiln.Value:
    return b.reshape(x, b.sizes())


@row("alias.default detach.default lift_fresh_copy.default", "", view=True)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    return x


@row("t.default", "permute", view=True)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    return b.op("permute", x, dims=[1, 0]) if len(x.shape) == 2 else x


@row("permute.default", "permute", view=True)
def _(b: Lowering, x: kiln.Value, dims: Sequence[int]) -> kiln.Value:
    return b.op("permute", x, dims=[b.dim(dim, len(x.shape)) for dim in dims]) if dims else x


@row("transpose.int", "permute", view=True)
def _(b: Lowering, x: kiln.Value, dim0: int, dim1: int) -> kiln.Value:
    dims = list(range(len(x.shape)))
    if not dims:
        return x
    dim0, dim1 = b.dim(dim0, len(dims)), b.dim(dim1, len(dims))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return b.op("permute", x, dims=dims)


@row("expand.default", "expand", view=True)
def _(b: Lowering, x: kiln.Value, size: Sequence[Any], *, implicit: bool = False) -> kiln.Value:
    return b.op("expand", x, shape=b.sizes())


@row("unsqueeze.default squeeze.default squeeze.dim squeeze.dims", "reshape", view=True)
def _(b: Lowering, x: kiln.Value, dim: Any = None) -> kiln.Value:
    return b.reshape(x, b.sizes())


def _from_start(at: Any, size: Any) -> Any:
    """An index of torch's, whose negatives count from the end. Of one that is made of sizes a run tells which it is."""
    if isinstance(at, int):
        return at + size if at < 0 else at
    if "-" not in at.text:  # symbols are never below 0
        return at
    return at + size * kiln.dim_min(kiln.dim_max(0 - at, 0), 1)


def bounds(b: Lowering, size: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Where a slice of torch's begins and ends, which clamps what lies outside and counts negatives from the end."""
    start, end = 0 if start is None else start, size if end is None else end
    if isinstance(end, int) and end >= 2 ** 62:
        end = size
    made = []
    for at in (start, end):
        at = _from_start(at, size)
        if isinstance(at, int) and isinstance(size, int):
            at = min(max(at, 0), size)
        elif not (isinstance(at, int) and at == 0) and at is not size:
            at = kiln.dim_min(at, size)
            if isinstance(at, kiln.Dim) and "-" in at.text:
                at = kiln.dim_max(at, 0)
        made.append(at)
    low, high = made
    if isinstance(low, int) and isinstance(high, int):
        high = max(low, high)
    elif high is not size and not _in_order(start, end):
        high = kiln.dim_max(low, high)  # what begins behind its end is empty
    return low, high


def known(low: Any, high: Any, length: Any) -> tuple[Any, Any]:
    """The same bounds, of a slice without steps whose length torch knows and an expression may not tell."""
    if not isinstance(length, int) or isinstance(low, int) and isinstance(high, int):
        return low, high
    return (low, low + length) if isinstance(low, int) else (high - length, high)


def _in_order(start: Any, end: Any) -> bool:
    """Whether a slice begins before its end, whatever the size."""
    if isinstance(start, int) and isinstance(end, int):
        return start == 0 or start <= end and (start < 0) == (end < 0)
    return isinstance(start, int) and start == 0


@row("slice.Tensor", "slice", view=True)
def _(b: Lowering, x: kiln.Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> kiln.Value:
    dim = b.dim(dim, len(x.shape))
    low, high = bounds(b, x.shape[dim], start, end)
    if step == 1:
        low, high = known(low, high, b.out.shape[dim])
    if isinstance(low, int) and low == 0 and step == 1 and type(high) is type(x.shape[dim]) and high == x.shape[dim]:
        return x
    return b.op("slice", x, dim=dim, start=low, end=high, step=step)


@row("select.int", "slice reshape", view=True)
def _(b: Lowering, x: kiln.Value, dim: int, index: Any) -> kiln.Value:
    dim = b.dim(dim, len(x.shape))
    index = _from_start(index, x.shape[dim])
    part = b.op("slice", x, dim=dim, start=index, end=index + 1)
    return b.op("squeeze", part, dims=[dim])


@row("split.Tensor unsafe_split.Tensor", "split", view=True)
def _(b: Lowering, x: kiln.Value, split_size: Any, dim: int = 0) -> list[kiln.Value]:
    dim = b.dim(dim, len(x.shape))
    return _split(b, x, [b.size(part.shape[dim]) for part in b.outs if part is not None], dim)


@row("split_with_sizes.default unsafe_split_with_sizes.default", "split", view=True)
def _(b: Lowering, x: kiln.Value, split_sizes: Sequence[Any], dim: int = 0) -> list[kiln.Value]:
    return _split(b, x, list(split_sizes), b.dim(dim, len(x.shape)))


def _split(b: Lowering, x: kiln.Value, all_: list[Any], dim: int) -> list[kiln.Value]:
    return list(b.several("split", x, sizes=all_, dim=dim))


@row("unbind.int", "slice squeeze", view=True)
def _(b: Lowering, x: kiln.Value, dim: int = 0) -> list[kiln.Value]:
    dim = b.dim(dim, len(x.shape))
    return [b.op("squeeze", b.op("slice", x, dim=dim, start=i, end=i + 1), dims=[dim]) for i in range(len(b.outs))]


@row("diagonal.default", "diagonal", view=True)
def _(b: Lowering, x: kiln.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> kiln.Value:
    rank = len(x.shape)
    return b.op("diagonal", x, offset=offset, dim1=b.dim(dim1, rank), dim2=b.dim(dim2, rank))


@row("unfold.default", "unfold", view=True)
def _(b: Lowering, x: kiln.Value, dimension: int, size: int, step: int) -> kiln.Value:
    if not x.shape:
        return b.reshape(x, [1])
    return b.op("unfold", x, dim=b.dim(dimension, len(x.shape)), size=size, step=step)


@row("as_strided.default", "permute as_strided", view=True, when="of what lies dense in memory, from its begin on")
def _(b: Lowering, x: kiln.Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> kiln.Value:
    order = sizes.memory_order(b.fake(0))
    if order is None or sizes.known(b.fake(0).storage_offset()) != 0:
        raise Unsupported("of what does not lie dense in memory, from its begin on")
    if order != list(range(len(order))):
        x = b.op("permute", x, dims=order)
    return b.op("as_strided", x, shape=b.sizes(), strides=list(stride), offset=storage_offset or 0)


# What makes memory of its own.

@row("clone.default", "clone")
def _(b: Lowering, x: kiln.Value, *, memory_format: Any = None) -> kiln.Value:
    return b.op("clone", x)


@row("copy_.default", "copy_", when="of an input, by what has its type and size")
def _(b: Lowering, dest: kiln.Value, src: kiln.Value, non_blocking: bool = False) -> kiln.Value:
    if dest.node.kind != "input":
        raise Unsupported("what is written is no input")
    shape = list(dest.shape)
    src = b.cast(src, str(dest.dtype))
    return b.op("copy_", dest, src if list(src.shape) == shape else b.op("expand", src, shape=shape))


@row("cat.default", "concat")
def _(b: Lowering, tensors: Sequence[kiln.Value], dim: int = 0) -> kiln.Value:
    kept = [x for x in tensors if not (len(x.shape) == 1 and isinstance(x.shape[0], int) and x.shape[0] == 0)]
    kept = kept or list(tensors[:1])
    return b.op("concat", *(b.cast(x, b.dtype) for x in kept), dim=b.dim(dim, len(kept[0].shape)))


@row("stack.default", "stack")
def _(b: Lowering, tensors: Sequence[kiln.Value], dim: int = 0) -> kiln.Value:
    return b.op("stack", *(b.cast(x, b.dtype) for x in tensors), dim=b.dim(dim, len(tensors[0].shape) + 1))


@row("flip.default", "flip")
def _(b: Lowering, x: kiln.Value, dims: Sequence[int]) -> kiln.Value:
    if not x.shape or not dims:
        return b.op("clone", x)
    return b.op("flip", x, dims=[b.dim(dim, len(x.shape)) for dim in dims])


@row("roll.default", "roll reshape")
def _(b: Lowering, x: kiln.Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> kiln.Value:
    if not x.shape:
        return b.op("clone", x)
    if not dims:
        flat = b.op("roll", b.op("reshape", x, shape=[-1]), shifts=list(shifts), dims=[0])
        return b.reshape(flat, x.shape)
    places = [b.dim(dim, len(x.shape)) for dim in dims]
    if len(set(places)) < len(places):
        raise Unsupported("a dim is rolled twice")
    return b.op("roll", x, shifts=list(shifts), dims=places)


@row("repeat.default", "tile")
def _(b: Lowering, x: kiln.Value, repeats: Sequence[Any]) -> kiln.Value:
    return b.op("tile", x, repeats=list(repeats)) if repeats else b.op("clone", x)


@row("rot90.default", "flip permute")
def _(b: Lowering, x: kiln.Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> kiln.Value:
    first, second = (b.dim(dim, len(x.shape)) for dim in dims)
    flipped = {0: [], 1: [second], 2: [first, second], 3: [first]}[k % 4]
    made = b.op("flip", x, dims=flipped) if flipped else b.op("clone", x)
    order = list(range(len(x.shape)))
    if k % 2:
        order[first], order[second] = second, first
    return b.op("permute", made, dims=order)


@row("channel_shuffle.default", "reshape permute")
def _(b: Lowering, x: kiln.Value, groups: Any) -> kiln.Value:
    channels, rest = x.shape[1], list(x.shape[2:])
    if not isinstance(channels, int) or not isinstance(groups, int):
        raise Unsupported("channels or groups that are not known")
    apart = b.reshape(x, [x.shape[0], groups, channels // groups, *rest])
    turned = b.op("permute", apart, dims=[0, 2, 1, *range(3, len(rest) + 3)])
    return b.reshape(turned, list(x.shape))


@row("block_diag.default", "pad concat reshape")
def _(b: Lowering, tensors: Sequence[kiln.Value]) -> kiln.Value:
    blocks = [b.reshape(b.cast(x, b.dtype), [1] * (2 - len(x.shape)) + list(x.shape)) for x in tensors]
    widths = [x.shape[1] for x in blocks]
    if any(not isinstance(width, int) for width in widths):
        raise Unsupported("a width that is not known")
    made = [b.op("pad", x, low=[0, sum(widths[:i])], high=[0, sum(widths[i + 1:])]) for i, x in enumerate(blocks)]
    return b.op("concat", *made, dim=0)


@row("tril.default", "tril")
def _(b: Lowering, x: kiln.Value, diagonal: int = 0) -> kiln.Value:
    return b.op("tril", x, diagonal=diagonal)


@row("triu.default", "triu")
def _(b: Lowering, x: kiln.Value, diagonal: int = 0) -> kiln.Value:
    return b.op("triu", x, diagonal=diagonal)


@row("pixel_shuffle.default", "pixel_shuffle")
def _(b: Lowering, x: kiln.Value, upscale_factor: int) -> kiln.Value:
    return b.op("pixel_shuffle", x, factor=upscale_factor)


@row("pixel_unshuffle.default", "pixel_unshuffle")
def _(b: Lowering, x: kiln.Value, downscale_factor: int) -> kiln.Value:
    return b.op("pixel_unshuffle", x, factor=downscale_factor)


# Gradients of views.

@row("slice_backward.default", "slice_scatter full")
def _(b: Lowering, dy: kiln.Value, input_sizes: Sequence[Any], dim: int, start: Any, end: Any, step: int) -> kiln.Value:
    dim = b.dim(dim, len(input_sizes))
    zeros = b.full(0, b.dtype, b.sizes())
    low, high = bounds(b, b.sizes()[dim], start, end)
    if step == 1:
        low, high = known(low, high, dy.shape[dim])
    return b.op("slice_scatter", zeros, dy, dim=dim, start=low, end=high, step=step)


@row("select_backward.default", "select_scatter full")
def _(b: Lowering, dy: kiln.Value, input_sizes: Sequence[Any], dim: int, index: Any) -> kiln.Value:
    dim = b.dim(dim, len(input_sizes))
    return _select_scatter(b, b.full(0, b.dtype, b.sizes()), dy, dim, index)


def _select_scatter(b: Lowering, x: kiln.Value, part: kiln.Value, dim: int, index: Any) -> kiln.Value:
    index = _from_start(index, x.shape[dim])
    return b.op("select_scatter", x, part, dim=dim, index=index)


@row("select_scatter.default", "select_scatter")
def _(b: Lowering, x: kiln.Value, src: kiln.Value, dim: int, index: Any) -> kiln.Value:
    return _select_scatter(b, x, b.cast(src, b.dtype), b.dim(dim, len(x.shape)), index)


@row("slice_scatter.default", "slice_scatter")
def _(b: Lowering, x: kiln.Value, src: kiln.Value, dim: int = 0, start: Any = None, end: Any = None,
      step: int = 1) -> kiln.Value:
    dim = b.dim(dim, len(x.shape))
    low, high = bounds(b, x.shape[dim], start, end)
    if step == 1:
        low, high = known(low, high, src.shape[dim])
    src = b.cast(src, b.dtype)
    return b.op("slice_scatter", x, src, dim=dim, start=low, end=high, step=step)


@row("_to_copy.default", "convert clone")
def _(b: Lowering, x: kiln.Value, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
      non_blocking: bool = False, memory_format: Any = None) -> kiln.Value:
    made = _convert(b, x)
    return b.op("clone", x) if made is x else made


@row("prims::convert_element_type.default", "convert clone")
def _(b: Lowering, x: kiln.Value, dtype: Any) -> kiln.Value:
    made = _convert(b, x)
    return b.op("clone", x) if made is x else made


def _convert(b: Lowering, x: kiln.Value) -> kiln.Value:
    dtype = DTYPES[b.out.dtype]
    if dtype.startswith("f8") and str(x.dtype) != dtype:
        return b.op("convert", x, dtype=dtype, saturate=False)
    return b.cast(x, dtype)


@row("copy.default", "convert expand")
def _(b: Lowering, x: kiln.Value, src: kiln.Value, non_blocking: bool = False) -> kiln.Value:
    return b.op("clone", b.op("expand", _convert(b, src), shape=b.sizes()))


def _diagonal_scatter(b: Lowering, x: kiln.Value, src: kiln.Value, offset: int, dim1: int, dim2: int) -> kiln.Value:
    """x with src on a diagonal: where two dims' indices differ by offset, the element at the smaller place."""
    rank = len(x.shape)
    dim1, dim2 = b.dim(dim1, rank), b.dim(dim2, rank)
    rows, columns = (b.op("iota", shape=list(x.shape), dim=dim) for dim in (dim1, dim2))
    on = b.op("eq", columns, b.op("add", rows, offset))
    others = [dim for dim in range(rank) if dim not in (dim1, dim2)]
    along = rows if offset >= 0 else columns
    length = src.shape[-1]
    if not isinstance(length, int):
        raise Unsupported("a diagonal whose length is not known")
    if length == 0:
        return b.op("clone", x)
    place = b.op("minimum", along, length - 1)
    spread = b.op("unsqueeze", src, dims=[rank - 1])  # others, diagonal, 1
    order = [*others, dim1, dim2]
    place = b.op("permute", place, dims=order)
    wide = b.op("expand", spread, shape=[*[x.shape[dim] for dim in others], length, x.shape[dim2]])
    picked = b.op("gather", wide, place, dim=rank - 2)
    picked = b.op("permute", picked, dims=[order.index(dim) for dim in range(rank)])
    return b.op("where", on, b.cast(picked, str(x.dtype)), x)


@row("diagonal_scatter.default", "where gather iota", when="the diagonal's length is known")
def _(b: Lowering, x: kiln.Value, src: kiln.Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> kiln.Value:
    return _diagonal_scatter(b, x, src, offset, dim1, dim2)


@row("diagonal_backward.default", "where gather iota full", when="the diagonal's length is known")
def _(b: Lowering, dy: kiln.Value, input_sizes: Sequence[Any], offset: int, dim1: int, dim2: int) -> kiln.Value:
    return _diagonal_scatter(b, b.full(0, b.dtype, b.sizes()), dy, offset, dim1, dim2)


@row("diag_embed.default", "where gather iota full", when="the diagonal's length is known")
def _(b: Lowering, x: kiln.Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> kiln.Value:
    return _diagonal_scatter(b, b.full(0, b.dtype, b.sizes()), x, offset, dim1, dim2)
