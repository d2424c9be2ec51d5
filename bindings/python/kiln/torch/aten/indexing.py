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
    dims, made = _places(b, x, indices)
    first, order = _order(dims, len(x.shape))
    if order:
        x = b.op("permute", x, dims=order)
    return b.op("index", x, *made, dim=first)


@row("index_put.default _unsafe_index_put.default", "index_put index_put_add permute where add")
def _(b: Lowering, x: kiln.Value, indices: Sequence[kiln.Value | None], values: kiln.Value,
      accumulate: bool = False) -> kiln.Value:
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
