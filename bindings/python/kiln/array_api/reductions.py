"""Sums, extremes, and what is cumulated."""

from __future__ import annotations

from typing import Any

from kiln import _kiln
from kiln._kiln import DType
from kiln._kiln import dtype as to_dtype
from kiln._traced import Traced, array_of, axes, bool_, call, convert, float_of, i64, kind
from kiln.array_api.creation import full
from kiln.array_api.shapes import concat, reshape

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var"]


def _accumulated(x: Traced, dtype: Any) -> DType | None:
    """Sums of small integers are of 64 bits."""
    if dtype is not None:
        return to_dtype(dtype)
    if kind(x.dtype) in "ib":
        return i64
    return _kiln.u64 if kind(x.dtype) == "u" else None


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Traced:
    x = array_of(x)
    return _reduced("sum", x, axis, keepdims, dtype=_accumulated(x, dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Traced:
    x = array_of(x)
    return _reduced("prod", x, axis, keepdims, dtype=_accumulated(x, dtype))


def _reduced(op: str, x: Traced, axis: Any, keepdims: Any, **attrs: Any) -> Traced:
    dims = axes(x, axis)
    if not dims:  # no dims named would be all of them
        x, dims = call("unsqueeze", x, dims=[0]), [0]
        keepdims = False
    return call(op, x, dims=dims, keepdim=keepdims, **attrs)


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("mean", float_of(x, "mean"), axis, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("max", array_of(x), axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("min", array_of(x), axis, keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Traced:
    return _reduced("var", float_of(x, "var"), axis, keepdims, correction=correction)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Traced:
    return _reduced("std", float_of(x, "std"), axis, keepdims, correction=correction)


def _truth(x: Any) -> Traced:
    return convert(array_of(x), bool_)


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("all", _truth(x), axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("any", _truth(x), axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return sum(_truth(x), axis=axis, keepdims=keepdims)


def _place(op: str, x: Any, axis: int | None, keepdims: Any) -> Traced:
    x = array_of(x)
    if axis is not None:
        return call(op, x, dim=axis, keepdim=keepdims)
    flat = call(op, reshape(x, [-1]), dim=0, keepdim=False)
    return reshape(flat, [1] * x.ndim) if keepdims else flat


def argmax(x: Any, /, *, axis: int | None = None, keepdims: Any = False) -> Traced:
    return _place("argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: Any = False) -> Traced:
    return _place("argmin", x, axis, keepdims)


def _cumulative(op: str, x: Any, axis: int | None, dtype: Any, include_initial: Any, first: int) -> Traced:
    x = array_of(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[{op}] an array of {x.ndim} dims needs an axis")
        axis = 0
    dim = axes(x, axis)[0]
    result = call(op, x, dim=dim, dtype=_accumulated(x, dtype))
    if not include_initial:
        return result
    shape = [1 if i == dim else size for i, size in enumerate(x.shape)]
    return concat([full(shape, first, dtype=result.dtype), result], axis=dim)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Traced:
    return _cumulative("cumsum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Traced:
    return _cumulative("cumprod", x, axis, dtype, include_initial, 1)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Traced:
    parts = [array_of(part) for part in (prepend, x, append) if part is not None]
    result = concat(parts, axis=axis) if len(parts) > 1 else parts[0]
    dim = axes(result, axis)[0]
    for _ in range(n):
        before = (slice(None),) * dim
        result = result[(*before, slice(1, None))] - result[(*before, slice(None, -1))]
    return result
