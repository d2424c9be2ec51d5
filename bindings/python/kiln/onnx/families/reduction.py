"""Reductions, searches, running sums, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kiln
from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, Results, op
from kiln.onnx._types import FLOATS, Size, product


def _reduced(function: Any, x: Value, dims: Sequence[int], keepdim: bool) -> Results:
    """The reduction; over no dims at all (Kiln takes none for all) each element is its own."""
    if dims or not x.ndim:
        return function(x, dims=list(dims), keepdim=keepdim)
    return function(ops.unsqueeze(x, dims=[x.ndim]), dims=[x.ndim], keepdim=False)


def _integer_mean(total: Value, count: Size) -> Value:
    """Of integers, cut towards 0."""
    divisor = ops.convert(ops.size(value=count), dtype=total.dtype)
    return ops.floor_divide(total - ops.fmod(total, divisor), divisor)  # what fmod leaves has the sign of the total


@op("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare")
def reduce(n: Node, x: Value, axes: Known | None = None) -> Results:
    """Over axes: an attribute, or in newer opsets an input; none told: all, or none with noop_with_empty_axes."""
    told = axes if axes is not None and axes.size else None
    if n.flag("noop_with_empty_axes") and told is None and not n.has("axes"):
        dims: list[int] = []
    else:
        dims = n.axes(told, x.ndim)
    keepdim, is_float = n.flag("keepdims", True), str(x.dtype) in FLOATS

    def over(function: Any, value: Value) -> Results:
        return _reduced(function, value, dims, keepdim)
    if n.op in ("ReduceMax", "ReduceMin") and str(x.dtype) == "bool":
        return over(ops.any if n.op == "ReduceMax" else ops.all, x)
    if n.op == "ReduceMean" and not is_float:
        return _integer_mean(over(ops.sum, x), product(x.shape[dim] for dim in dims))
    if n.op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
        of = x if is_float else ops.convert(x, dtype="f64")
        made = (ops.sqrt(over(ops.sum, ops.square(of))) if n.op == "ReduceL2" else
                ops.log(over(ops.sum, of)) if n.op == "ReduceLogSum" else over(ops.logsumexp, of))
        return made if is_float else ops.convert(made, dtype=x.dtype)  # cut towards 0, as the mean of integers is
    simple = {"ReduceSum": ops.sum, "ReduceMean": ops.mean, "ReduceProd": ops.prod, "ReduceMax": ops.max,
              "ReduceMin": ops.min}
    if n.op in simple:
        return over(simple[n.op], x)
    return over(ops.sum, ops.abs(x) if n.op == "ReduceL1" else ops.square(x))


@op("ArgMax", "ArgMin")
def arg_extreme(n: Node, x: Value) -> Value:
    """The index of the first, or last, largest or smallest element along a dim."""
    axis, keepdim = n.axis(n.integer("axis", 0), x.ndim), n.flag("keepdims", True)
    function = ops.argmax if n.op == "ArgMax" else ops.argmin
    if not n.flag("select_last_index"):
        return function(x, dim=axis, keepdim=keepdim)
    found = function(ops.flip(x, dims=[axis]), dim=axis, keepdim=keepdim)
    return ops.sub(ops.size(value=x.shape[axis] - 1), found)


@op("CumSum", "CumProd")
def cumulative(n: Node, x: Value, axis: Known) -> Value:
    """Running sums or products along a dim."""
    dim = n.axis(int(axis.item()), x.ndim)
    exclusive, reverse = n.flag("exclusive"), n.flag("reverse")
    if n.op == "CumSum":
        return ops.cumsum(x, dim=dim, exclusive=exclusive, reverse=reverse)
    if reverse:
        x = ops.flip(x, dims=[dim])
    if exclusive:  # a 1 comes in, the last goes out
        low, high = [0] * x.ndim, [0] * x.ndim
        low[dim], high[dim] = 1, -1
        x = ops.pad(x, low=low, high=high, value=1.0)
    made = ops.cumprod(x, dim=dim)
    return ops.flip(made, dims=[dim]) if reverse else made


@op("TopK", ignores=("sorted",))
def top_k(n: Node, x: Value, k: Known | None = None) -> tuple[Value, Value]:
    """The k largest or smallest elements along a dim, and where they are."""
    count = k.reshape(-1)[0] if k is not None else n.integer("k")
    count = count if isinstance(count, kiln.Dim) else int(count)
    dim = n.axis(n.integer("axis", -1), x.ndim)
    values, indices = ops.topk(x, dim=dim, k=count, largest=n.flag("largest", True))
    return values, indices


@op("Unique")
def unique(n: Node, x: Value) -> tuple[Value, Value, Value, Value]:
    """The different elements, where each is first, which each element is, and how often each is there.

    In order, or, where not sorted, as they come. Of slices along an axis those of a single dim.
    """
    if n.has("axis"):
        axis = n.axis(n.integer("axis"), x.ndim)
        if any(size != 1 for i, size in enumerate(x.shape) if i != axis):
            return _unique_slices(n, x, axis)
    shape = x.shape
    flat = ops.reshape(x, shape=[-1])
    values, inverse, counts, _ = ops.unique(flat)
    total, found = flat.shape[0], values.shape[0]
    places = ops.iota(shape=[total])
    first = ops.scatter_min(ops.full(value=float(2**53), dtype="i64", shape=[found]), inverse, places, dim=0)
    if not n.flag("sorted", True):
        order = ops.argsort(first)
        rank = ops.scatter(ops.full(dtype="i64", shape=[found]), order, ops.iota(shape=[found]), dim=0)
        values, first, counts = (ops.index_select(each, order, dim=0) for each in (values, first, counts))
        inverse = ops.index_select(rank, inverse, dim=0)
    if n.has("axis"):
        axis = n.axis(n.integer("axis"), len(shape))
        values = ops.reshape(values, shape=[found if i == axis else 1 for i in range(len(shape))])
    return values, first, inverse, counts


def _unique_slices(n: Node, x: Value, axis: int) -> tuple[Value, Value, Value, Value]:
    """Of whole slices: each gets a number, its rank among them in the order of their elements; time is as n^2."""
    count = n.literal([x.shape[axis]], "the size of axis")[0]
    others = [i for i in range(x.ndim) if i != axis]
    rows = ops.reshape(ops.permute(x, dims=[axis, *others]), shape=[count, -1])
    a, b = ops.unsqueeze(rows, dims=[1]), ops.unsqueeze(rows, dims=[0])
    # Of each pair the first element that differs decides: -1, 0 or 1, weighted by its place.
    differs = ops.convert(ops.ne(a, b), dtype="i32")
    sign = ops.convert(ops.lt(b, a), dtype="i32") - ops.convert(ops.lt(a, b), dtype="i32")
    is_first = ops.convert(ops.eq(ops.cumsum(differs, dim=2), 1), dtype="i32")
    order = ops.sum(sign * differs * is_first, dims=[2])
    equal = ops.eq(order, 0)
    places = ops.iota(shape=[count, count], dim=1)
    first_equal = ops.min(ops.where(equal, places, ops.full(value=float(count), dtype="i64", shape=[])), dims=[1])
    is_new = ops.eq(first_equal, ops.iota(shape=[count]))
    before = ops.convert(ops.gt(order, 0), dtype="i64") if n.flag("sorted", True) else ops.convert(
        ops.lt(places, ops.unsqueeze(first_equal, dims=[1])), dtype="i64")
    rank = ops.sum(before * ops.unsqueeze(ops.convert(is_new, dtype="i64"), dims=[0]), dims=[1])
    firsts, _ = ops.masked_select(ops.iota(shape=[count]), is_new)
    firsts = ops.index_select(firsts, ops.argsort(ops.index_select(rank, firsts, dim=0)), dim=0)
    times = ops.sum(ops.convert(equal, dtype="i64"), dims=[1])
    return ops.index_select(x, firsts, dim=axis), firsts, rank, ops.index_select(times, firsts, dim=0)
