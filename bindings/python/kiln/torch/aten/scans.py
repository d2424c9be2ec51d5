"""Running sums, sorting and searching."""

from __future__ import annotations

from typing import Any

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, INTEGERS, REAL, Unsupported, row


def _running(name: str) -> None:
    @row(f"{name}.default", name, REAL)
    def make(b: Lowering, x: kiln.Value, dim: int, *, dtype: Any = None) -> kiln.Value:
        if not x.shape:
            return b.cast(b.op("clone", x), b.dtype)
        return b.op(name, b.cast(x, b.dtype), dim=b.dim(dim, len(x.shape)))


_running("cumsum")
_running("cumprod")


@row("logcumsumexp.default", "logcumsumexp", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: int) -> kiln.Value:
    return b.op("logcumsumexp", x, dim=b.dim(dim, len(x.shape))) if x.shape else b.op("clone", x)


def _extreme(name: str) -> None:
    @row(f"{name}.default", name, FLOATS | INTEGERS)
    def make(b: Lowering, x: kiln.Value, dim: int) -> tuple[kiln.Value, kiln.Value]:
        if not x.shape:
            return b.op("clone", x), b.full(0, "i64", [])
        values, indices = b.several(name, x, dim=b.dim(dim, len(x.shape)))
        return values, indices


_extreme("cummax")
_extreme("cummin")


@row("sort.default", "sort", REAL)
def _(b: Lowering, x: kiln.Value, dim: int = -1, descending: bool = False) -> tuple[kiln.Value, kiln.Value]:
    return _sort(b, x, dim, descending)


@row("sort.stable", "sort", REAL)
def _(b: Lowering, x: kiln.Value, *, stable: bool | None = None, dim: int = -1,
      descending: bool = False) -> tuple[kiln.Value, kiln.Value]:
    return _sort(b, x, dim, descending)


def _sort(b: Lowering, x: kiln.Value, dim: int, descending: bool) -> tuple[kiln.Value, kiln.Value]:
    if not x.shape:
        return b.op("clone", x), b.full(0, "i64", [])
    values, indices = b.several("sort", x, dim=b.dim(dim, len(x.shape)), descending=descending)
    return values, indices


@row("topk.default", "topk", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, k: Any, dim: int = -1, largest: bool = True,
      sorted: bool = True) -> tuple[kiln.Value, kiln.Value]:
    if not x.shape:
        raise Unsupported("of a scalar")
    values, indices = b.several("topk", x, dim=b.dim(dim, len(x.shape)), k=k, largest=largest)
    return values, indices


@row("kthvalue.default", "kthvalue", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, k: Any, dim: int = -1, keepdim: bool = False) -> tuple[kiln.Value, kiln.Value]:
    if not x.shape:
        raise Unsupported("of a scalar")
    values, indices = b.several("kthvalue", x, dim=b.dim(dim, len(x.shape)), k=k, keepdim=keepdim)
    return values, indices


@row("median.dim", "median", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, dim: int, keepdim: bool = False) -> tuple[kiln.Value, kiln.Value]:
    if not x.shape:
        raise Unsupported("of a scalar")
    b.need_elements([b.dim(dim, len(x.shape))])
    values, indices = b.several("median", x, dim=b.dim(dim, len(x.shape)), keepdim=keepdim)
    return values, indices


@row("searchsorted.Tensor", "searchsorted", FLOATS | INTEGERS)
def _(b: Lowering, sorted_sequence: kiln.Value, x: kiln.Value, *, out_int32: bool = False, right: bool = False,
      side: str | None = None, sorter: Any = None) -> kiln.Value:
    if sorter is not None:
        raise Unsupported("a sorter")
    return b.cast(b.op("searchsorted", sorted_sequence, x, right=right or side == "right"), b.dtype)


@row("bucketize.Tensor", "searchsorted", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, boundaries: kiln.Value, *, out_int32: bool = False,
      right: bool = False) -> kiln.Value:
    return b.cast(b.op("searchsorted", boundaries, x, right=right), b.dtype)


@row("median.default", "median reshape", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    b.need_elements(range(len(x.shape)))
    return b.several("median", b.op("reshape", x, shape=[-1]), dim=0)[0]


@row("isin.Tensor_Tensor", "eq any not", REAL)
def _(b: Lowering, x: kiln.Value, among: kiln.Value, *, assume_unique: bool = False,
      invert: bool = False) -> kiln.Value:
    each = b.op("eq", b.op("unsqueeze", x, dims=[len(x.shape)]), b.op("reshape", among, shape=[-1]))
    found = b.op("any", each, dims=[len(x.shape)])
    return b.op("not", found) if invert else found
