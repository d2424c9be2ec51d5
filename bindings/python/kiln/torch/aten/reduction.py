"""Sums, means, extremes and what else makes one element of many."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering, Number, number
from kiln.torch.rows import FLOATS, INTEGERS, REAL, SMALL_FLOATS, Unsupported, row


def dims_of(b: Lowering, x: kiln.Value, dim: Any) -> list[int]:
    """The dims to reduce; none said: all."""
    rank = len(x.shape)
    if dim is None or dim == []:
        return list(range(rank))
    return [b.dim(each, rank) for each in ([dim] if isinstance(dim, int) else dim)] if rank else []


@row("sum.default sum.dim_IntList", "sum", REAL)
def _(b: Lowering, x: kiln.Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> kiln.Value:
    return _sum(b, x, dim, keepdim)


def _sum(b: Lowering, x: kiln.Value, dim: Any, keepdim: bool) -> kiln.Value:
    if not x.shape:
        return b.cast(b.op("clone", x), b.dtype)
    x = b.cast(x, "f32" if b.dtype in SMALL_FLOATS else b.dtype)
    return b.cast(b.op("sum", x, dims=dims_of(b, x, dim), keepdim=keepdim), b.dtype)


@row("mean.default mean.dim", "mean", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> kiln.Value:
    x = b.cast(x, b.dtype) if b.dtype not in SMALL_FLOATS else x
    if not x.shape:
        return b.cast(b.op("clone", x), b.dtype)
    return b.cast(b.op("mean", x, dims=dims_of(b, x, dim), keepdim=keepdim), b.dtype)


@row("prod.default prod.dim_int", "prod", REAL)
def _(b: Lowering, x: kiln.Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> kiln.Value:
    if not x.shape:
        return b.cast(b.op("clone", x), b.dtype)
    return b.op("prod", b.cast(x, b.dtype), dims=dims_of(b, x, dim), keepdim=keepdim)


def _truth(name: str) -> None:
    @row(f"{name}.default {name}.dim {name}.dims", name, REAL)
    def make(b: Lowering, x: kiln.Value, dim: Any = None, keepdim: bool = False) -> kiln.Value:
        if b.dtype != "bool":
            raise Unsupported(f"the result is {b.dtype}")
        if not x.shape or dim == []:
            return b.cast(x, "bool")
        return b.op(name, x, dims=dims_of(b, x, dim), keepdim=keepdim)


_truth("any")
_truth("all")


def _extreme(name: str, op: str) -> None:
    @row(f"{name}.default a{name}.default", op, FLOATS | INTEGERS)
    def make_all(b: Lowering, x: kiln.Value, dim: Any = None, keepdim: bool = False) -> kiln.Value:
        if not x.shape:
            return b.op("clone", x)
        dims = dims_of(b, x, dim)
        b.need_elements(dims)
        return b.op(op, x, dims=dims, keepdim=keepdim)

    @row(f"{name}.dim", f"{op}_with_indices", FLOATS | INTEGERS)
    def make(b: Lowering, x: kiln.Value, dim: int, keepdim: bool = False) -> tuple[kiln.Value, kiln.Value]:
        if not x.shape:
            return b.op("clone", x), b.full(0, "i64", [])
        b.need_elements(dims_of(b, x, dim))
        made = b.several(f"{op}_with_indices", x, dim=b.dim(dim, len(x.shape)), keepdim=keepdim)
        return made[0], made[1]

    @row(f"arg{name}.default", f"arg{name}", FLOATS | INTEGERS)
    def make_index(b: Lowering, x: kiln.Value, dim: int | None = None, keepdim: bool = False) -> kiln.Value:
        if not x.shape:
            return b.full(0, "i64", [])
        b.need_elements(dims_of(b, x, dim))
        if dim is None:
            flat = b.op(f"arg{name}", b.op("reshape", x, shape=[-1]), dim=0)
            return b.reshape(flat, b.sizes())
        return b.op(f"arg{name}", x, dim=b.dim(dim, len(x.shape)), keepdim=keepdim)


_extreme("max", "max")
_extreme("min", "min")


@row("var.correction std.correction", "var std", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: Any = None, *, correction: Number | None = None,
      keepdim: bool = False) -> kiln.Value:
    return _spread(b, _name_of(b), x, dim, correction, keepdim)


def _name_of(b: Lowering) -> str:
    return "std" if "std" in str(b.target) else "var"


def _spread(b: Lowering, op: str, x: kiln.Value, dim: Any, correction: Number | None, keepdim: bool) -> kiln.Value:
    if not x.shape:
        raise Unsupported("of a scalar")
    by = 1.0 if correction is None else number(correction)
    return b.op(op, x, dims=dims_of(b, x, dim), keepdim=keepdim, correction=by)


@row("var_mean.correction std_mean.correction", "var std mean", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: Any = None, *, correction: Number | None = None,
      keepdim: bool = False) -> tuple[kiln.Value, kiln.Value]:
    return (_spread(b, _name_of(b), x, dim, correction, keepdim),
            b.op("mean", x, dims=dims_of(b, x, dim), keepdim=keepdim))


@row("logsumexp.default", "logsumexp", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: Sequence[int], keepdim: bool = False) -> kiln.Value:
    if not x.shape:
        return b.op("clone", x)
    return b.op("logsumexp", x, dims=dims_of(b, x, dim), keepdim=keepdim)


@row("linalg_vector_norm.default", "norm", FLOATS)
def _(b: Lowering, x: kiln.Value, ord: Number = 2, dim: Any = None, keepdim: bool = False, *,
      dtype: Any = None) -> kiln.Value:
    if not x.shape:
        x = b.reshape(x, [1])
        return b.reshape(b.op("norm", b.cast(x, b.dtype), dims=[0], p=number(ord)), [])
    return b.op("norm", b.cast(x, b.dtype), dims=dims_of(b, x, dim), keepdim=keepdim, p=number(ord))


@row("_softmax.default", "softmax", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: int, half_to_float: bool) -> kiln.Value:
    return _softmax(b, "softmax", x, dim)


@row("_log_softmax.default", "log_softmax", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: int, half_to_float: bool) -> kiln.Value:
    return _softmax(b, "log_softmax", x, dim)


def _softmax(b: Lowering, op: str, x: kiln.Value, dim: int) -> kiln.Value:
    x = b.cast(x, b.dtype)
    if not x.shape:
        return b.reshape(b.op(op, b.reshape(x, [1]), dim=0), [])
    return b.op(op, x, dim=b.dim(dim, len(x.shape)))


@row("_softmax_backward_data.default", "mul sub sum", FLOATS)
def _(b: Lowering, dy: kiln.Value, y: kiln.Value, dim: int, input_dtype: Any) -> kiln.Value:
    dy, y = b.wide(dy), b.wide(y)
    product = b.op("mul", dy, y)
    total = b.op("sum", product, dims=dims_of(b, y, dim), keepdim=True) if y.shape else product
    return b.cast(b.op("sub", product, b.op("mul", y, total)), b.dtype)


@row("_log_softmax_backward_data.default", "mul sub sum exp", FLOATS)
def _(b: Lowering, dy: kiln.Value, y: kiln.Value, dim: int, input_dtype: Any) -> kiln.Value:
    dy, y = b.wide(dy), b.wide(y)
    total = b.op("sum", dy, dims=dims_of(b, y, dim), keepdim=True) if y.shape else dy
    return b.cast(b.op("sub", dy, b.op("mul", b.op("exp", y), total)), b.dtype)


@row("histc.default", "histogram convert", FLOATS)
def _(b: Lowering, x: kiln.Value, bins: int = 100, min: Number = 0, max: Number = 0) -> kiln.Value:
    return b.cast(b.op("histogram", x, bins=bins, min=number(min), max=number(max)), b.dtype)


@row("aminmax.default", "min max", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[kiln.Value, kiln.Value]:
    if not x.shape:
        return b.op("clone", x), b.op("clone", x)
    dims = dims_of(b, x, dim)
    b.need_elements(dims)
    return b.op("min", x, dims=dims, keepdim=keepdim), b.op("max", x, dims=dims, keepdim=keepdim)


@row("nansum.default", "sum where isnan", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> kiln.Value:
    return _sum(b, b.op("where", b.op("isnan", x), b.full(0, str(x.dtype), []), x), dim, keepdim)


@row("norm.ScalarOpt_dim norm.Scalar", "norm", FLOATS)
def _(b: Lowering, x: kiln.Value, p: Number | None, dim: Any = None, keepdim: bool = False) -> kiln.Value:
    if not x.shape:
        raise Unsupported("of a scalar")
    return b.op("norm", x, dims=dims_of(b, x, dim), keepdim=keepdim, p=2.0 if p is None else number(p))


@row("count_nonzero.default count_nonzero.dim_IntList", "ne sum", REAL)
def _(b: Lowering, x: kiln.Value, dim: Any = None) -> kiln.Value:
    counts = b.cast(b.cast(x, "bool") if str(x.dtype) == "bool" else b.op("ne", x, 0), "i64")
    return b.op("sum", counts, dims=dims_of(b, x, dim)) if x.shape else counts
