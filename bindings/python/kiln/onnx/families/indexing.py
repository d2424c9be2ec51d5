"""What picks and places elements by indices; those below 0 count from the end."""

from __future__ import annotations

from functools import reduce

import numpy as np

import kiln
from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, op
from kiln.onnx._types import Size, product


def from_start(indices: Value, size: Size) -> Value:
    """Indices that may be below 0, as Kiln has them: from 0 on."""
    if str(indices.dtype) not in ("i64", "i32"):
        indices = ops.convert(indices, dtype="i64")
    if indices.node.kind == "constant" and isinstance(size, int):
        array = np.asarray(indices.node.constant)
        if (array >= 0).all():
            return indices
        return indices.graph.constant(np.where(array < 0, array + size, array).astype(array.dtype))
    return ops.where(ops.lt(indices, 0), indices + ops.size(value=size, dtype=indices.dtype), indices)


@op("Gather")
def gather(n: Node, x: Value, indices: Value) -> Value:
    """Parts of x along a dim, in whose place the indices' dims come."""
    axis = n.axis(n.integer("axis", 0), x.ndim)
    found = from_start(indices, x.shape[axis])
    if indices.ndim == 1:
        return ops.index_select(x, found, dim=axis)
    return ops.embedding(x, found) if axis == 0 and x.ndim == 2 else ops.index(x, found, dim=axis)


@op("GatherElements")
def gather_elements(n: Node, x: Value, indices: Value) -> Value:
    """An element of x for each index, along a dim."""
    axis = n.axis(n.integer("axis", 0), x.ndim)
    return ops.gather(x, from_start(indices, x.shape[axis]), dim=axis)


def _columns(indices: Value, sizes: tuple[Size, ...]) -> list[Value]:
    """The last dim's elements one by one, each an index of a dim of that size."""
    parts = [ops.squeeze(ops.slice(indices, dim=indices.ndim - 1, start=i, end=i + 1), dims=[indices.ndim - 1])
             for i in range(len(sizes))]
    return [from_start(part, size) for part, size in zip(parts, sizes, strict=True)]


def _length(n: Node, indices: Value) -> int:
    return n.literal([indices.shape[-1]], "the last dim of the indices")[0]


@op("GatherND")
def gather_nd(n: Node, x: Value, indices: Value) -> Value:
    """Elements or parts of x, each by a row of indices; the first batch_dims dims are common to both."""
    batch = n.integer("batch_dims", 0)
    columns = _columns(indices, x.shape[batch:batch + _length(n, indices)])
    leading = [ops.iota(shape=indices.shape[:-1], dim=dim, dtype=indices.dtype) for dim in range(batch)]
    return ops.index(x, *leading, *columns)


@op("ScatterElements", "Scatter")
def scatter_elements(n: Node, x: Value, indices: Value, updates: Value) -> Value:
    """x with other elements at the places that indices tell along a dim, or combined with what stands there."""
    axis = n.axis(n.integer("axis", 0), x.ndim)
    found = from_start(indices, x.shape[axis])
    reduction = n.text("reduction", "none", among=("none", "add", "mul", "min", "max"))
    if reduction == "none":
        return ops.scatter(x, found, updates, dim=axis)
    return ops.scatter_reduce(x, found, updates, dim=axis, reduction=reduction)


@op("ScatterND")
def scatter_nd(n: Node, x: Value, indices: Value, updates: Value) -> Value:
    """x with other elements or parts, each at a row of indices, or combined with what stands there."""
    reduction = n.text("reduction", "none", among=("none", "add", "mul", "min", "max"))
    length = _length(n, indices)
    columns = _columns(indices, x.shape[:length])
    if reduction in ("none", "add"):
        return (ops.index_put if reduction == "none" else ops.index_put_add)(x, updates, *columns)
    # The dims that are indexed count as one; index_reduce combines parts along it.
    places = reduce(lambda place, each: place * ops.size(value=each[1], dtype=each[0].dtype) + each[0],
                    zip(columns[1:], x.shape[1:length], strict=True), columns[0])
    rest = x.shape[length:]
    flat = ops.reshape(x, shape=[product(x.shape[:length]), *rest])
    source = ops.reshape(updates, shape=[product(indices.shape[:-1]), *rest])
    made = ops.index_reduce(flat, ops.reshape(places, shape=[source.shape[0]]), source, dim=0, reduction=reduction)
    return ops.reshape(made, shape=x.shape)


@op("OneHot")
def one_hot(n: Node, indices: Value, depth: Known, values: Value) -> Value:
    """The second of two values where the index along a new dim is the index, else the first."""
    count = depth.reshape(-1)[0]
    count = count if isinstance(count, kiln.Dim) else int(count)
    axis = n.axis(n.integer("axis", -1), indices.ndim + 1)
    found = ops.convert(indices, dtype="i64") if str(indices.dtype) != "i64" else indices
    found = ops.unsqueeze(ops.where(ops.lt(found, 0), found + ops.size(value=count), found), dims=[axis])
    shape = [*indices.shape[:axis], count, *indices.shape[axis:]]
    off, on = (ops.reshape(ops.slice(values, dim=0, start=i, end=i + 1), shape=[]) for i in range(2))
    return ops.where(ops.eq(ops.iota(shape=shape, dim=axis), found), on, off)


@op("NonZero")
def nonzero(n: Node, x: Value) -> Value:
    """The indices of what is not 0, [rank, how many], which a run tells."""
    found, _ = ops.nonzero(x)
    return ops.permute(found, dims=[1, 0])


@op("Compress")
def compress(n: Node, x: Value, condition: Value) -> Value:
    """The parts along an axis, or elements, where the condition holds; it may be shorter than they are many."""
    if not n.has("axis"):
        x, axis = ops.reshape(x, shape=[-1]), 0
    else:
        axis = n.axis(n.integer("axis"), x.ndim)
    found, _ = ops.nonzero(condition)
    return ops.index_select(x, ops.squeeze(found, dims=[1]), dim=axis)


@op("TensorScatter")
def tensor_scatter(n: Node, past: Value, update: Value, starts: Value | None = None) -> Value:
    """A cache with new elements along a dim, from a place for each row of the batch on; circular ones wrap."""
    axis = n.axis(n.integer("axis", -2), past.ndim)
    places = ops.iota(shape=update.shape, dim=axis)
    if starts is not None:
        places = places + ops.reshape(ops.convert(starts, dtype="i64"), shape=[past.shape[0], *[1] * (past.ndim - 1)])
    if n.text("mode", "linear", among=("linear", "circular")) == "circular":
        places = ops.remainder(places, ops.size(value=past.shape[axis]))
    return ops.scatter(past, places, update, dim=axis)


@op("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(n: Node, x: Value, indices: Value) -> Value:
    """Elements of the last dim."""
    found = ops.reshape(from_start(indices, x.shape[-1]), shape=[-1])
    made = ops.index_select(x, found, dim=x.ndim - 1)
    return ops.reshape(made, shape=[1, -1]) if x.ndim == 1 else made


@op("Binarizer", domain="ai.onnx.ml")
def binarizer(n: Node, x: Value) -> Value:
    """1 above the threshold, else 0."""
    threshold = n.frame.graph.constant(np.array(n.number("threshold", 0.0), np.float32))
    return ops.convert(ops.gt(x, ops.convert(threshold, dtype=x.dtype)), dtype=x.dtype)
