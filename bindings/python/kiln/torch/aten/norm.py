"""Normalisations and their gradients."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import DTYPES, FLOATS, Unsupported, row

Three = tuple[Any, Any, Any]


def _own(b: Lowering, result: int, made: kiln.Value) -> kiln.Value:
    """A result in torch's type and shape."""
    fake = b.outs[result]
    assert fake is not None
    made = b.cast(made, DTYPES[fake.dtype])
    shape = b.sizes(fake)
    return made if list(made.shape) == shape else b.reshape(made, shape)


def _same(b: Lowering, x: kiln.Value, *others: kiln.Value | None) -> list[kiln.Value | None]:
    """Operands in x's type; torch has f32 weights beside 16-bit activations under autocast."""
    return [None if each is None else b.cast(each, str(x.dtype)) for each in others]


def _mixed(b: Lowering, x: kiln.Value, *others: kiln.Value | None) -> kiln.Value:
    """x in f32 where an operand is."""
    wider = any(each is not None and str(each.dtype) != str(x.dtype) for each in others)
    return b.wide(x) if wider else x


@row("native_layer_norm.default", "layer_norm", FLOATS)
def _(b: Lowering, x: kiln.Value, normalized_shape: Sequence[Any], weight: kiln.Value | None,
      bias: kiln.Value | None, eps: float) -> Three:
    x = _mixed(b, x, weight, bias)
    weight, bias = _same(b, x, weight, bias)
    made = b.several("layer_norm", x, *_optional(b, x, weight, bias, normalized_shape), eps=eps,
                axes=len(normalized_shape), statistics=True)
    return tuple(_own(b, i, each) for i, each in enumerate(made))  # type: ignore[return-value]


def _optional(b: Lowering, x: kiln.Value, scale: kiln.Value | None, bias: kiln.Value | None,
              shape: Sequence[Any]) -> list[kiln.Value]:
    """scale and bias, of which the second needs the first."""
    if scale is None and bias is None:
        return []
    if scale is None:
        scale = b.full(1, str(x.dtype), shape)
    return [scale] if bias is None else [scale, bias]


@row("native_layer_norm_backward.default", "layer_norm_backward sum", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, normalized_shape: Sequence[Any], mean: kiln.Value,
      rstd: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, output_mask: Sequence[bool]) -> Three:
    x = _mixed(b, x, weight, bias)
    dy, weight = _same(b, x, dy, weight)  # type: ignore[assignment]
    axes = len(normalized_shape)
    scale = [weight] if weight is not None else []
    made = b.several("layer_norm_backward", x, *_statistics(b, x, mean, rstd), dy, *scale, axes=axes)
    outer = list(range(len(x.shape) - axes))
    dbias = made[2] if len(made) > 2 and made[2] is not None else None
    dscale = made[1]
    if dbias is None:
        dbias = b.op("sum", b.wide(dy), dims=outer) if outer else dy
    return tuple(_own(b, i, each) if wanted and b.outs[i] is not None else None  # type: ignore[return-value]
                 for i, (each, wanted) in enumerate(zip((made[0], dscale, dbias), output_mask)))


def _statistics(b: Lowering, x: kiln.Value, *all_: kiln.Value) -> list[kiln.Value]:
    """Statistics in the type that Kiln has them in."""
    dtype = "f64" if str(x.dtype) == "f64" else "f32"
    return [b.cast(each, dtype) for each in all_]


@row("native_group_norm.default", "group_norm", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, N: Any, C: Any, HxW: Any,
      group: int, eps: float) -> Three:
    x = _mixed(b, x, weight, bias)
    weight, bias = _same(b, x, weight, bias)
    made = b.several("group_norm", x, *_optional(b, x, weight, bias, [C]), groups=group, eps=eps, statistics=True)
    return tuple(_own(b, i, each) for i, each in enumerate(made))  # type: ignore[return-value]


@row("native_group_norm_backward.default", "group_norm_backward", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, mean: kiln.Value, rstd: kiln.Value, weight: kiln.Value | None, N: Any,
      C: Any, HxW: Any, group: int, output_mask: Sequence[bool]) -> Three:
    x = _mixed(b, x, weight)
    dy, weight = _same(b, x, dy, weight)  # type: ignore[assignment]
    scale = [weight] if weight is not None else []
    made = b.several("group_norm_backward", x, *_statistics(b, x, mean, rstd), dy, *scale, groups=group)
    return tuple(_own(b, i, each) if wanted and b.outs[i] is not None else None  # type: ignore[return-value]
                 for i, (each, wanted) in enumerate(zip(made, output_mask)))


@row("_native_batch_norm_legit_no_training.default", "batch_norm", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, running_mean: kiln.Value,
      running_var: kiln.Value, momentum: float, eps: float) -> Three:
    y = _inference(b, x, weight, bias, running_mean, running_var, eps)
    none, nothing = (b.full(0, DTYPES[fake.dtype], [0]) for fake in b.outs[1:] if fake is not None)
    return y, none, nothing


def _inference(b: Lowering, x: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, mean: kiln.Value,
               variance: kiln.Value, eps: float) -> kiln.Value:
    wide = _mixed(b, x, weight, bias, mean, variance)
    dtype = str(wide.dtype)
    weight = b.full(1, dtype, mean.shape) if weight is None else b.cast(weight, dtype)
    bias = b.full(0, dtype, mean.shape) if bias is None else b.cast(bias, dtype)
    made = b.op("batch_norm", wide, weight, bias, b.cast(mean, dtype), b.cast(variance, dtype), eps=eps)
    return _own(b, 0, made)


@row("_native_batch_norm_legit_functional.default", "batch_norm_training batch_norm mul add rsqrt", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, running_mean: kiln.Value,
      running_var: kiln.Value, training: bool, momentum: float, eps: float) -> Any:
    if not training:
        y = _inference(b, x, weight, bias, running_mean, running_var, eps)
        none = [b.full(0, DTYPES[fake.dtype], [0]) for fake in b.outs[1:3] if fake is not None]
        return y, *none, _own(b, 3, b.op("clone", running_mean)), _own(b, 4, b.op("clone", running_var))
    y, mean, variance, rstd = _training(b, x, weight, bias, eps)
    count = _count(b, x)
    unbiased = b.op("mul", variance, b.op("div", count, b.op("sub", count, 1.0)))
    return (_own(b, 0, y), _own(b, 1, mean), _own(b, 2, rstd), _own(b, 3, _moved(b, running_mean, mean, momentum)),
            _own(b, 4, _moved(b, running_var, unbiased, momentum)))


@row("_native_batch_norm_legit.no_stats", "batch_norm_training rsqrt", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, training: bool, momentum: float,
      eps: float) -> Three:
    y, mean, variance, rstd = _training(b, x, weight, bias, eps)
    return _own(b, 0, y), _own(b, 1, mean), _own(b, 2, rstd)


def _training(b: Lowering, x: kiln.Value, weight: kiln.Value | None, bias: kiln.Value | None, eps: float) -> Any:
    wide = b.wide(x)
    weight, bias = _same(b, wide, weight, bias)
    y, mean, variance = b.several("batch_norm_training", wide, *_optional(b, wide, weight, bias, [x.shape[1]]), eps=eps)
    return y, mean, variance, b.op("rsqrt", b.op("add", variance, eps))


def _moved(b: Lowering, old: kiln.Value, new: kiln.Value, momentum: float) -> kiln.Value:
    wide, dtype = b.wide(old), str(old.dtype)
    new = b.cast(new, str(wide.dtype))
    return b.cast(b.op("add", b.op("mul", new, momentum), b.op("mul", wide, 1 - momentum)), dtype)


def _count(b: Lowering, x: kiln.Value) -> kiln.Value:
    """How many elements a channel has, as a number of the statistics' type."""
    count: Any = 1
    for dim, size in enumerate(x.shape):
        count = count if dim == 1 else count * size
    return b.operand(count, "f64" if str(x.dtype) == "f64" else "f32")


@row("native_batch_norm_backward.default", "batch_norm_backward mul add sub rsqrt sum", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, weight: kiln.Value | None, running_mean: kiln.Value | None,
      running_var: kiln.Value | None, save_mean: kiln.Value | None, save_invstd: kiln.Value | None, train: bool,
      eps: float, output_mask: Sequence[bool]) -> Three:
    x, dy = b.wide(x), b.wide(dy)
    weight = None if weight is None else b.cast(weight, str(x.dtype))
    if train:
        assert save_mean is not None and save_invstd is not None
        mean, rstd = _same(b, x, save_mean, save_invstd)
        assert mean is not None and rstd is not None
    else:
        if running_mean is None or running_var is None:
            raise Unsupported("no running statistics")
        mean = b.cast(running_mean, str(x.dtype))
        rstd = b.op("rsqrt", b.op("add", b.cast(running_var, str(x.dtype)), eps))
    made = _batch_gradients(b, dy, x, weight, mean, rstd, train)
    return tuple(_own(b, i, each) if wanted and b.outs[i] is not None else None  # type: ignore[return-value]
                 for i, (each, wanted) in enumerate(zip(made, output_mask)))


def _batch_gradients(b: Lowering, dy: kiln.Value, x: kiln.Value, weight: kiln.Value | None, mean: kiln.Value,
                     rstd: kiln.Value, train: bool) -> list[kiln.Value]:
    """By the statistics that torch saved: 1 / sqrt(variance + eps), where Kiln's op takes the variance."""
    shape = [size if dim == 1 else 1 for dim, size in enumerate(x.shape)]
    others = [dim for dim in range(len(x.shape)) if dim != 1]

    def along(value: kiln.Value) -> kiln.Value:
        return b.reshape(value, shape)
    centred = b.op("sub", x, along(mean))
    dbias = b.op("sum", dy, dims=others)
    dscale = b.op("mul", b.op("sum", b.op("mul", dy, centred), dims=others), rstd)
    factor = rstd if weight is None else b.op("mul", rstd, weight)
    inner = dy
    if train:
        count = b.cast(_count(b, x), str(x.dtype))
        spread = b.op("div", b.op("mul", dscale, rstd), count)
        inner = b.op("sub", b.op("sub", dy, along(b.op("div", dbias, count))), b.op("mul", centred, along(spread)))
    return [b.op("mul", inner, along(factor)), dscale, dbias]


@row("_fused_rms_norm.default", "rms_norm", FLOATS)
def _(b: Lowering, x: kiln.Value, normalized_shape: Sequence[Any], weight: kiln.Value | None,
      eps: float | None) -> tuple[kiln.Value, kiln.Value]:
    if len(normalized_shape) != 1:
        raise Unsupported("over more than the last dim")
    if eps is None:
        import torch
        eps = torch.finfo(torch.float64 if b.dtype == "f64" else torch.float32).eps
    x = _mixed(b, x, weight)
    (weight,) = _same(b, x, weight)
    y, rstd = b.several("rms_norm", x, *([weight] if weight is not None else []), eps=eps, statistics=True)
    return _own(b, 0, y), _own(b, 1, rstd)
