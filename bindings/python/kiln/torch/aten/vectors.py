"""Norms and distances of vectors, products of three, determinants."""

from __future__ import annotations

import math
from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering, Number, number
from kiln.torch.rows import DTYPES, FLOATS, INTEGERS, Unsupported, row


def _pairs(b: Lowering, x: kiln.Value, y: kiln.Value) -> kiln.Value:
    """Each of x minus each of y."""
    return b.op("sub", b.op("unsqueeze", b.wide(x), dims=[len(x.shape) - 1]),
                b.op("unsqueeze", b.wide(y), dims=[len(y.shape) - 2]))


@row("_cdist_forward.default", "sub norm", FLOATS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value, p: float, compute_mode: int | None) -> kiln.Value:
    between = _pairs(b, x, y)
    return b.cast(b.op("norm", between, dims=[len(between.shape) - 1], p=p), b.dtype)


@row("_cdist_backward.default", "sub sign mul div where sum pow", FLOATS, when="p is finite and 1 or more")
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, y: kiln.Value, p: float, distance: kiln.Value) -> kiln.Value:
    if p < 1 or math.isinf(p):
        raise Unsupported(f"p is {p}")
    between = _pairs(b, x, y)
    last = len(between.shape) - 1
    dy, distance = (b.op("unsqueeze", b.wide(each), dims=[last]) for each in (dy, distance))
    if p == 1:
        slope = b.op("sign", between)
    else:
        near = b.op("eq", distance, 0.0)
        safe = b.op("where", near, b.full(1, str(between.dtype), []), distance)
        ratio = b.op("div", between, safe)
        if p != 2:
            ratio = b.op("mul", b.op("sign", ratio), b.op("pow", b.op("abs", ratio), p - 1))
        slope = b.op("where", near, b.full(0, str(between.dtype), []), ratio)
    made = b.op("sum", b.op("mul", slope, dy), dims=[last - 1])
    return b.cast(made, b.dtype)


@row("dist.default", "sub norm", FLOATS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value, p: Number = 2) -> kiln.Value:
    between = b.op("sub", b.wide(x), b.wide(y))
    if not between.shape:
        between = b.reshape(between, [1])
    return b.cast(b.op("norm", between, dims=list(range(len(between.shape))), p=number(p)), b.dtype)


@row("renorm.default", "norm div where mul", FLOATS)
def _(b: Lowering, x: kiln.Value, p: Number, dim: int, maxnorm: Number) -> kiln.Value:
    wide = b.wide(x)
    others = [i for i in range(len(x.shape)) if i != b.dim(dim, len(x.shape))]
    size = b.op("norm", wide, dims=others, keepdim=True, p=number(p))
    shrink = b.op("div", number(maxnorm), b.op("add", size, 1e-7))
    factor = b.op("where", b.op("gt", size, number(maxnorm)), shrink, b.full(1, str(wide.dtype), []))
    return b.cast(b.op("mul", wide, factor), b.dtype)


def _sides(b: Lowering, v: kiln.Value, dim: int) -> list[int]:
    """The dims over which weight_norm has the norm of v."""
    dim = b.dim(dim, len(v.shape))
    return [i for i in range(len(v.shape)) if i != dim]


@row("_weight_norm_interface.default", "norm mul div", FLOATS)
def _(b: Lowering, v: kiln.Value, g: kiln.Value, dim: int = 0) -> tuple[kiln.Value, kiln.Value]:
    wide = b.wide(v)
    size = b.op("norm", wide, dims=_sides(b, v, dim), keepdim=True, p=2.0)
    made = b.op("mul", wide, b.op("div", b.wide(g), size))
    fake = b.outs[1]
    assert fake is not None
    return b.cast(made, b.dtype), b.cast(size, DTYPES[fake.dtype])


@row("_weight_norm_interface_backward.default", "sum mul sub div", FLOATS)
def _(b: Lowering, dw: kiln.Value, v: kiln.Value, g: kiln.Value, size: kiln.Value,
      dim: int) -> tuple[kiln.Value, kiln.Value]:
    dtype = str(g.dtype)
    dw, v, g, size = (b.wide(each) for each in (dw, v, g, size))
    along = b.op("sum", b.op("mul", dw, v), dims=_sides(b, v, dim), keepdim=True)
    dg = b.op("div", along, size)
    inner = b.op("sub", dw, b.op("mul", v, b.op("div", dg, size)))
    return b.cast(b.op("mul", b.op("div", g, size), inner), b.dtype), b.cast(dg, dtype)


@row("linalg_cross.default", "roll mul sub", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value, *, dim: int = -1) -> kiln.Value:
    x, y = (b.op("expand", b.wide(each), shape=b.sizes()) for each in (x, y))
    dims = [b.dim(dim, len(x.shape))]

    def turned(value: kiln.Value, by: int) -> kiln.Value:
        return b.op("roll", value, shifts=[-by], dims=dims)
    made = b.op("sub", b.op("mul", turned(x, 1), turned(y, 2)), b.op("mul", turned(x, 2), turned(y, 1)))
    return b.cast(made, b.dtype)


@row("_trilinear.default", "unsqueeze mul sum", FLOATS)
def _(b: Lowering, x: kiln.Value, y: kiln.Value, z: kiln.Value, expand1: Sequence[int], expand2: Sequence[int],
      expand3: Sequence[int], sumdim: Sequence[int], unroll_dim: int = 1) -> kiln.Value:
    wide = [b.op("unsqueeze", b.wide(each), dims=list(dims)) if dims else b.wide(each)
            for each, dims in ((x, expand1), (y, expand2), (z, expand3))]
    product = b.op("mul", b.op("mul", wide[0], wide[1]), wide[2])
    return b.cast(b.op("sum", product, dims=list(sumdim)) if sumdim else product, b.dtype)


@row("_linalg_det.default", "det", FLOATS, when="its factors are not used, as in inference")
def _(b: Lowering, x: kiln.Value) -> tuple[Any, Any, Any]:
    if b.used(1) or b.used(2):
        raise Unsupported("the factors, which a gradient takes: Kiln has none")
    return b.op("det", x), None, None


@row("trace.default", "diagonal sum", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value) -> kiln.Value:
    on = b.op("diagonal", b.cast(b.wide(x), b.dtype if b.dtype in INTEGERS else str(b.wide(x).dtype)))
    return b.cast(b.op("sum", on, dims=[0]), b.dtype)
