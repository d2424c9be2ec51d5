"""Losses and their gradients."""

from __future__ import annotations

from typing import Any

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, INTEGERS, row

_REDUCTIONS = ("none", "mean", "sum")


def _reduced(b: Lowering, each: kiln.Value, reduction: int) -> kiln.Value:
    name = _REDUCTIONS[reduction]
    if name != "none" and each.shape:
        each = b.op(name, each)
    return b.cast(each, b.dtype)


def _given(b: Lowering, dy: kiln.Value, x: kiln.Value, reduction: int) -> kiln.Value:
    """What each element's gradient is multiplied by."""
    dy = b.cast(dy, str(x.dtype))
    if _REDUCTIONS[reduction] != "mean":
        return dy
    count: Any = 1
    for size in x.shape:
        count = count * size
    return b.op("div", dy, b.operand(count, str(x.dtype)))


@row("mse_loss.default", "mse_loss", FLOATS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, reduction: int = 1) -> kiln.Value:
    return _reduced(b, b.op("square", b.op("sub", b.wide(x), b.wide(target))), reduction)


@row("mse_loss_backward.default", "mul sub div", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, target: kiln.Value, reduction: int) -> kiln.Value:
    x, target = b.wide(x), b.wide(target)
    slope = b.op("mul", b.op("sub", x, target), 2.0)
    return b.cast(b.op("mul", slope, _given(b, dy, x, reduction)), b.dtype)


def _bent(b: Lowering, x: kiln.Value, target: kiln.Value) -> tuple[kiln.Value, kiln.Value]:
    difference = b.op("sub", b.wide(x), b.wide(target))
    return difference, b.op("abs", difference)


@row("smooth_l1_loss.default", "smooth_l1_loss", FLOATS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, reduction: int = 1, beta: float = 1.0) -> kiln.Value:
    made = b.op("smooth_l1_loss", b.wide(x), b.wide(target), beta=beta, reduction="none")
    return _reduced(b, made, reduction)


@row("smooth_l1_loss_backward.default", "where sign div mul", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, target: kiln.Value, reduction: int, beta: float) -> kiln.Value:
    difference, size = _bent(b, x, target)
    line = b.op("sign", difference)
    slope = line if beta == 0 else b.op("where", b.op("lt", size, beta), b.op("div", difference, beta), line)
    return b.cast(b.op("mul", slope, _given(b, dy, difference, reduction)), b.dtype)


@row("huber_loss.default", "huber_loss", FLOATS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, reduction: int = 1, delta: float = 1.0) -> kiln.Value:
    made = b.op("huber_loss", b.wide(x), b.wide(target), delta=delta, reduction="none")
    return _reduced(b, made, reduction)


@row("huber_loss_backward.default", "where sign mul", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, target: kiln.Value, reduction: int, delta: float) -> kiln.Value:
    difference, size = _bent(b, x, target)
    slope = b.op("where", b.op("lt", size, delta), difference, b.op("mul", b.op("sign", difference), delta))
    return b.cast(b.op("mul", slope, _given(b, dy, difference, reduction)), b.dtype)


@row("binary_cross_entropy.default", "binary_cross_entropy mul", FLOATS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, weight: kiln.Value | None = None,
      reduction: int = 1) -> kiln.Value:
    made = b.op("binary_cross_entropy", b.wide(x), b.wide(target), reduction="none")
    if weight is not None:
        made = b.op("mul", made, b.wide(weight))
    return _reduced(b, made, reduction)


@row("binary_cross_entropy_backward.default", "mul sub div maximum", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, target: kiln.Value, weight: kiln.Value | None = None,
      reduction: int = 1) -> kiln.Value:
    x, target = b.wide(x), b.wide(target)
    below = b.op("maximum", b.op("mul", b.op("sub", 1.0, x), x), 1e-12)
    slope = b.op("div", b.op("sub", x, target), below)
    if weight is not None:
        slope = b.op("mul", slope, b.wide(weight))
    return b.cast(b.op("mul", slope, _given(b, dy, x, reduction)), b.dtype)


@row("binary_cross_entropy_with_logits.default", "binary_cross_entropy_with_logits", FLOATS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, weight: kiln.Value | None = None,
      pos_weight: kiln.Value | None = None, reduction: int = 1) -> kiln.Value:
    x, target = b.wide(x), b.wide(target)
    weights = [] if weight is None and pos_weight is None else \
        [b.full(1, str(x.dtype), []) if each is None else b.wide(each) for each in (weight, pos_weight)]
    return _reduced(b, b.op("binary_cross_entropy_with_logits", x, target, *weights, reduction="none"), reduction)


def _weights(b: Lowering, x: kiln.Value, target: kiln.Value, weight: kiln.Value | None,
             ignore_index: int) -> kiln.Value:
    """Of each target, 0 where it is to be ignored."""
    counts = b.op("ne", target, b.operand(ignore_index, str(target.dtype)))
    safe = b.op("where", counts, target, b.full(0, str(target.dtype), []))
    one = b.full(1, str(x.dtype), []) if weight is None else \
        b.op("index", b.cast(weight, str(x.dtype)), safe, dim=0)
    return b.op("where", counts, one, b.full(0, str(x.dtype), []))


@row("nll_loss_forward.default nll_loss2d_forward.default", "nll_loss where sum", FLOATS | INTEGERS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, weight: kiln.Value | None, reduction: int,
      ignore_index: Any) -> tuple[kiln.Value, kiln.Value]:
    wide = b.wide(x)
    weights = [] if weight is None else [b.cast(weight, str(wide.dtype))]
    y = b.op("nll_loss", wide, target, *weights, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])
    if _REDUCTIONS[reduction] == "none" and target.shape:
        return b.cast(y, b.dtype), b.full(0, b.dtype, [])
    each = _weights(b, wide, target, weight, ignore_index)
    return b.cast(y, b.dtype), b.cast(b.op("sum", each) if target.shape else each, b.dtype)


@row("nll_loss_backward.default nll_loss2d_backward.default", "where eq iota mul div", FLOATS | INTEGERS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, target: kiln.Value, weight: kiln.Value | None, reduction: int,
      ignore_index: Any, total_weight: kiln.Value) -> kiln.Value:
    wide = b.wide(x)
    dtype = str(wide.dtype)
    dim = 1 if len(x.shape) > 1 else 0
    given = b.cast(dy, dtype)
    if _REDUCTIONS[reduction] == "mean":
        given = b.op("div", given, b.cast(total_weight, dtype))
    each = b.op("neg", b.op("mul", _weights(b, wide, target, weight, ignore_index), given))
    counts = b.op("ne", target, b.operand(ignore_index, str(target.dtype)))
    each = b.op("where", counts, each, b.full(0, dtype, []))  # also where none counts, and the mean is of nothing
    target = b.op("unsqueeze", b.cast(target, "i64"), dims=[dim])
    chosen = b.op("eq", b.op("iota", shape=list(x.shape), dim=dim), target)
    each = b.op("unsqueeze", each, dims=[dim]) if each.shape or len(target.shape) > 1 else b.reshape(each, [1])
    return b.cast(b.op("where", chosen, each, b.full(0, dtype, [])), b.dtype)


@row("soft_margin_loss.default", "log1p exp mul neg", FLOATS)
def _(b: Lowering, x: kiln.Value, target: kiln.Value, reduction: int = 1) -> kiln.Value:
    x, target = b.wide(x), b.wide(target)
    return _reduced(b, b.op("log1p", b.op("exp", b.op("mul", b.op("neg", target), x))), reduction)


@row("soft_margin_loss_backward.default", "exp mul div neg add", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, target: kiln.Value, reduction: int) -> kiln.Value:
    x, target = b.wide(x), b.wide(target)
    z = b.op("exp", b.op("mul", b.op("neg", target), x))
    slope = b.op("div", b.op("mul", b.op("neg", target), z), b.op("add", z, 1.0))
    return b.cast(b.op("mul", slope, _given(b, dy, x, reduction)), b.dtype)
