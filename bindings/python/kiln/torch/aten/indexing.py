"""What picks elements by indices, and what puts them there."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering, Number
from kiln.torch.rows import FLOATS, INTEGERS, Unsupported, row

_REDUCTIONS = {"sum": "add", "prod": "mul", "amin": "min", "amax": "max", "mean": "mean"}


@row("embedding.default", "embedding")
def _(b: Lowering, weight: kiln.Value, index: kiln.Value, padding_idx: int = -1, scale_grad_by_freq: bool = False,
      sparse: bool = False) -> kiln.Value:
    return b.op("embedding", weight, index)


@row("embedding_dense_backward.default", "embedding_backward", when="scale_grad_by_freq is False")
def _(b: Lowering, dy: kiln.Value, index: kiln.Value, num_weights: Any, padding_idx: Any,
      scale_grad_by_freq: bool) -> kiln.Value:
    if scale_grad_by_freq:
        raise Unsupported("gradients are divided by how often an index is there")
    rows = b.sizes()[0]
    made = b.op("embedding_backward", index, b.wide(dy), rows=rows, padding_idx=max(padding_idx, -1))
    return b.cast(made, b.dtype)


@row("_embedding_bag.default _embedding_bag_forward_only.default", "embedding_bag", FLOATS | {"i64", "i32"},
     when="only the sums are used, as in inference; without weights, padding_idx and include_last_offset")
def _(b: Lowering, weight: kiln.Value, index: kiln.Value, offsets: kiln.Value, scale_grad_by_freq: bool = False,
      mode: int = 0, sparse: bool = False, per_sample_weights: kiln.Value | None = None,
      include_last_offset: bool = False, padding_idx: int = -1) -> tuple[Any, Any, Any, Any]:
    if any(b.used(i) for i in (1, 2, 3)):
        raise Unsupported("its places, which a gradient takes")
    if per_sample_weights is not None or include_last_offset or padding_idx >= 0:
        raise Unsupported("weights, padding or a last offset")
    offsets = b.cast(offsets, str(index.dtype))
    return b.op("embedding_bag", weight, index, offsets, mode=("sum", "mean", "max")[mode]), None, None, None


def _places(b: Lowering, x: kiln.Value, indices: Sequence[kiln.Value | None]) -> tuple[list[int], list[kiln.Value]]:
    """The dims that are indexed, and the indices, none of which is below 0."""
    dims, made = [], []
    for dim, index in enumerate(indices):
        if index is None:
            continue
        if str(index.dtype) in ("bool", "u8"):
            raise Unsupported("a mask as index, whose size is known when it runs")
        index = index if str(index.dtype) in ("i64", "i32") else b.cast(index, "i64")
        made.append(_from_start(b, x, dim, index))
        dims.append(dim)
    return dims, made


def _from_start(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value) -> kiln.Value:
    """Indices of a dim, of which those below 0 count from its end."""
    size = b.operand(x.shape[dim], str(index.dtype))
    return b.op("where", b.op("lt", index, 0), b.op("add", index, size), index)


def _order(dims: list[int], rank: int) -> tuple[int, list[int] | None]:
    """The first indexed dim, and, where others stand between them, an order in which they come first."""
    if dims == list(range(dims[0], dims[0] + len(dims))):
        return dims[0], None
    return 0, dims + [dim for dim in range(rank) if dim not in dims]


@row("index.Tensor _unsafe_index.Tensor", "index permute where add")
def _(b: Lowering, x: kiln.Value, indices: Sequence[kiln.Value | None]) -> kiln.Value:
    return _index(b, x, indices)


def _index(b: Lowering, x: kiln.Value, indices: Sequence[kiln.Value | None]) -> kiln.Value:
    dims, made = _places(b, x, indices)
    first, order = _order(dims, len(x.shape))
    if order:
        x = b.op("permute", x, dims=order)
    return b.op("index", x, *made, dim=first)


@row("index_put.default _unsafe_index_put.default", "index_put index_put_add permute where add",
     when="a mask puts the same at all its places")
def _(b: Lowering, x: kiln.Value, indices: Sequence[kiln.Value | None], values: kiln.Value,
      accumulate: bool = False) -> kiln.Value:
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) == 1 and str(given[0][1].dtype) == "bool":
        return _put_by_mask(b, x, *given[0], b.cast(values, b.dtype), accumulate)
    return _put(b, x, indices, values, accumulate)


def _put(b: Lowering, x: kiln.Value, indices: Sequence[kiln.Value | None], values: kiln.Value,
         accumulate: bool) -> kiln.Value:
    dims, made = _places(b, x, indices)
    first, order = _order(dims, len(x.shape))
    if accumulate and b.dtype == "bool":
        raise Unsupported("bools that are added")
    if order:
        x = b.op("permute", x, dims=order)
    put = b.op("index_put_add" if accumulate else "index_put", x, b.cast(values, b.dtype), *made, dim=first)
    if order:
        put = b.op("permute", put, dims=[order.index(dim) for dim in range(len(order))])
    return put


def _put_by_mask(b: Lowering, x: kiln.Value, dim: int, mask: kiln.Value, values: kiln.Value,
                 accumulate: bool) -> kiln.Value:
    """The mask is of the dims from `dim` on; where values have a dim for its places, that has one element."""
    inner = len(x.shape) - dim - len(mask.shape)
    at = len(values.shape) - inner - 1
    if at >= 0 and values.shape[at] != 1 or b.dtype == "bool" and accumulate:
        raise Unsupported("a mask as index, of which each place is given something else")
    if at >= 0:
        values = b.reshape(values, [*values.shape[:at], *[1] * len(mask.shape), *values.shape[at + 1:]])
    if inner:
        mask = b.op("unsqueeze", mask, dims=list(range(len(mask.shape), len(mask.shape) + inner)))
    if accumulate:
        values = b.op("add", x, values)
    return b.op("where", mask, values, x)


@row("_unsafe_masked_index.default", "index where maximum minimum")
def _(b: Lowering, x: kiln.Value, mask: kiln.Value, indices: Sequence[kiln.Value | None], fill: Number) -> kiln.Value:
    made = _index(b, x, [_inside(b, x, dim, index) for dim, index in enumerate(indices)])
    return b.op("where", mask, made, b.full(fill, b.dtype, []))


@row("_unsafe_masked_index_put_accumulate.default", "index_put_add where maximum minimum", FLOATS | INTEGERS | {"bool"})
def _(b: Lowering, x: kiln.Value, mask: kiln.Value, indices: Sequence[kiln.Value | None],
      values: kiln.Value) -> kiln.Value:
    values = b.op("where", mask, values, b.full(0, b.dtype, []))
    return _put(b, x, [_inside(b, x, dim, index) for dim, index in enumerate(indices)], values, True)


def _inside(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value | None) -> kiln.Value | None:
    if index is None:
        return None
    last = b.operand(x.shape[dim] - 1, str(index.dtype))
    return b.op("maximum", b.op("minimum", index, last), 0)


def _running_places(b: Lowering, mask: kiln.Value) -> kiln.Value:
    """Of each element the number of those before it that the mask has; of the first that it has 0."""
    flat = b.cast(b.op("reshape", mask, shape=[-1]), "i64")
    return b.op("sub", b.op("cumsum", flat, dim=0), 1)


@row("masked_scatter.default", "cumsum index where")
def _(b: Lowering, x: kiln.Value, mask: kiln.Value, source: kiln.Value) -> kiln.Value:
    if any(size == 0 for size in (*source.shape, *x.shape)):
        raise Unsupported("of nothing")
    mask, x = (b.op("expand", each, shape=b.sizes()) for each in (mask, x))
    places = b.op("maximum", _running_places(b, mask), 0)
    picked = b.op("index", b.op("reshape", source, shape=[-1]), b.reshape(places, b.sizes()), dim=0)
    return b.op("where", mask, b.cast(picked, b.dtype), x)


@row("masked_scatter_backward.default", "cumsum index_put where slice")
def _(b: Lowering, dy: kiln.Value, mask: kiln.Value, sizes: Sequence[Any]) -> kiln.Value:
    count: Any = 1
    for size in sizes:
        count = count * size
    mask = b.op("expand", mask, shape=list(dy.shape))
    flat = b.op("reshape", mask, shape=[-1])
    places = b.op("where", flat, _running_places(b, mask), b.operand(count, "i64"))  # behind the last
    room = b.full(0, b.dtype, [count + 1])
    put = b.op("index_put", room, b.op("reshape", dy, shape=[-1]), places, dim=0)
    return b.reshape(b.op("slice", put, dim=0, start=0, end=count), list(sizes))


@row("gather.default", "gather")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, *, sparse_grad: bool = False) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    return b.op("gather", x, index, dim=b.dim(dim, len(x.shape)))


def _scatter(b: Lowering, op: str, x: kiln.Value, dim: int, index: kiln.Value, source: kiln.Value,
             **attrs: Any) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    return b.op(op, x, index, source, dim=b.dim(dim, len(x.shape)), **attrs)


@row("scatter.src", "scatter")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, src: kiln.Value) -> kiln.Value:
    return _scatter(b, "scatter", x, dim, index, src)


@row("scatter.value", "scatter full")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, value: Number) -> kiln.Value:
    return _scatter(b, "scatter", x, dim, index, b.full(value, b.dtype, list(index.shape)))


@row("scatter_add.default", "scatter_add", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, src: kiln.Value) -> kiln.Value:
    return _scatter(b, "scatter_add", x, dim, index, src)


@row("scatter_reduce.two", "scatter_reduce", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, src: kiln.Value, reduce: str, *,
      include_self: bool = True) -> kiln.Value:
    return _scatter(b, "scatter_reduce", x, dim, index, src, reduction=_REDUCTIONS[reduce], include_self=include_self)


@row("index_select.default", "index_select")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value) -> kiln.Value:
    if not x.shape:
        raise Unsupported("of a scalar")
    index = b.reshape(index, [1]) if not index.shape else index
    return b.op("index_select", x, index, dim=b.dim(dim, len(x.shape)))


@row("index_add.default", "index_add mul", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, source: kiln.Value, *, alpha: Number = 1) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    if alpha != 1:
        source = b.op("mul", source, b.operand(alpha, b.dtype))
    return b.op("index_add", x, index, source, dim=b.dim(dim, len(x.shape)))


@row("index_fill.int_Scalar", "index_put full where lt add")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, value: Number) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    dim = b.dim(dim, len(x.shape))
    return b.op("index_put", x, b.full(value, b.dtype, []), _from_start(b, x, dim, index), dim=dim)


@row("index_fill.int_Tensor", "index_put where lt add")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, value: kiln.Value) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    dim = b.dim(dim, len(x.shape))
    return b.op("index_put", x, b.cast(value, b.dtype), _from_start(b, x, dim, index), dim=dim)


@row("index_reduce.default", "index_reduce", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, source: kiln.Value, reduce: str, *,
      include_self: bool = True) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    return b.op("index_reduce", x, index, source, dim=b.dim(dim, len(x.shape)), reduction=_REDUCTIONS[reduce],
                include_self=include_self)


@row("put.default", "index_put index_put_add reshape")
def _(b: Lowering, x: kiln.Value, index: kiln.Value, source: kiln.Value, accumulate: bool = False) -> kiln.Value:
    flat = b.op("reshape", x, shape=[-1])
    return b.reshape(_put(b, flat, [index], b.reshape(source, list(index.shape)), accumulate), list(x.shape))


@row("index_copy.default", "index_put")
def _(b: Lowering, x: kiln.Value, dim: int, index: kiln.Value, source: kiln.Value) -> kiln.Value:
    if not x.shape or not index.shape:
        raise Unsupported("of a scalar")
    return b.op("index_put", x, source, index, dim=b.dim(dim, len(x.shape)))


@row("take.default", "index reshape")
def _(b: Lowering, x: kiln.Value, index: kiln.Value) -> kiln.Value:
    flat = b.op("reshape", x, shape=[-1])
    _, places = _places(b, flat, [index])
    return b.op("index", flat, places[0], dim=0)
