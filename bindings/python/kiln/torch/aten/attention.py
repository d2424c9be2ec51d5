"""Attention, as torch's CPU kernels have it, and its gradients."""

from __future__ import annotations

import math
from typing import Any, Sequence

import kiln
from kiln.torch import elements
from kiln.torch.lowering import Lowering, number
from kiln.torch.rows import DTYPES, FLOATS, INTEGERS, Unsupported, row


_WHEN = "dropout_p is 0, scale is not, and a mask is not also causal"


def _said(b: Lowering, q: kiln.Value, k: kiln.Value, dropout_p: float, is_causal: bool, mask: kiln.Value | None,
          scale: float | None) -> tuple[list[kiln.Value], dict[str, Any]]:
    """The mask, if there is one, and attributes. Torch counts a causal mask from the first key, Kiln from the last."""
    if dropout_p:
        raise Unsupported("dropout")
    if scale == 0:
        raise Unsupported("a scale of 0, by which Kiln means 1 / sqrt(D)")
    if is_causal and mask is not None:
        raise Unsupported("a mask, and causal")
    queries, keys = q.shape[2], k.shape[2]
    causal = is_causal and type(queries) is type(keys) and queries == keys
    attrs = {"causal": causal, "scale": 0.0 if scale is None else number(scale)}
    if is_causal and not causal:
        rows, columns = (b.op("iota", shape=[queries, keys], dim=dim) for dim in (0, 1))
        mask = b.op("ge", rows, columns)
    if mask is None:
        return [], attrs
    if str(mask.dtype) != "bool":
        mask = b.cast(mask, str(q.dtype))
    return [b.reshape(mask, [1] * (4 - len(mask.shape)) + list(mask.shape))], attrs


@row("_scaled_dot_product_flash_attention_for_cpu.default", "attention", FLOATS | {"bool"}, when=_WHEN)
def _(b: Lowering, q: kiln.Value, k: kiln.Value, v: kiln.Value, dropout_p: float = 0.0, is_causal: bool = False, *,
      attn_mask: kiln.Value | None = None, scale: float | None = None) -> tuple[kiln.Value, kiln.Value]:
    mask, attrs = _said(b, q, k, dropout_p, is_causal, attn_mask, scale)
    y, logsumexp = b.several("attention", q, k, v, *mask, logsumexp=True, **attrs)
    fake = b.outs[1]
    assert fake is not None
    return y, b.cast(logsumexp, DTYPES[fake.dtype])


@row("_scaled_dot_product_flash_attention_for_cpu_backward.default", "attention_backward", FLOATS | {"bool"},
     when=_WHEN)
def _(b: Lowering, dy: kiln.Value, q: kiln.Value, k: kiln.Value, v: kiln.Value, y: kiln.Value, logsumexp: kiln.Value,
      dropout_p: float, is_causal: bool, *, attn_mask: kiln.Value | None = None,
      scale: float | None = None) -> tuple[kiln.Value, kiln.Value, kiln.Value]:
    mask, attrs = _said(b, q, k, dropout_p, is_causal, attn_mask, scale)
    logsumexp = b.cast(logsumexp, "f64" if b.dtype == "f64" else "f32")
    dq, dk, dv = b.several("attention_backward", q, k, v, y, logsumexp, dy, *mask, **attrs)
    return dq, dk, dv


@row("_safe_softmax.default", "softmax where all eq", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: int, dtype: Any = None) -> kiln.Value:
    x = b.cast(x, b.dtype)
    dim = b.dim(dim, len(x.shape))
    hidden = b.op("all", b.op("eq", x, float("-inf")), dims=[dim], keepdim=True)
    return b.op("where", hidden, b.full(0, b.dtype, []), b.op("softmax", x, dim=dim))


@row("higher_order::flex_attention", "attention expand mul", FLOATS | INTEGERS | {"bool"},
     when="scale is not 0, nothing reads the largest scores, and functions are of what is pointwise and of indices")
def _(b: Lowering, q: kiln.Value, k: kiln.Value, v: kiln.Value, score: Any, block_mask: Sequence[Any], scale: float,
      kernel_options: Any, of_score: Sequence[Any] = (), of_mask: Sequence[Any] = ()) -> tuple[kiln.Value | None, ...]:
    if b.used(2):
        raise Unsupported("its largest scores")
    if scale == 0:
        raise Unsupported("a scale of 0, by which Kiln means 1 / sqrt(D)")
    if k.shape[0] == 1 and q.shape[0] != 1:
        k, v = (b.op("expand", x, shape=[q.shape[0], *x.shape[1:]]) for x in (k, v))
    mask, dtype = block_mask[-1], str(q.dtype)
    captured = [b.operand(x, "i64") if isinstance(x, kiln.Dim | int) else x for x in (
        *elements.captured_by(score, 5, of_score), *elements.captured_by(mask, 4, of_mask))]
    if any(isinstance(x, float) for x in captured):
        raise Unsupported("a captured number")
    used = [x for x in captured if x is not None]
    graphs: dict[str, kiln.Graph] = {}
    dims = [*q.shape[:3], k.shape[2]]
    if not elements.gives_what_it_is_given(score, 0):
        graphs["score_graph"] = elements.graph_of(b.context, score, elements.wide(dtype), dims, captured, 0)
    if not elements.gives_true(mask):
        graphs["mask_graph"] = elements.graph_of(b.context, mask, None, dims, captured, len(of_score))
    first = [b.full(True, "bool", [1] * 4), *used] if used and graphs else []
    logsumexp = b.used(1)
    y, *others = b.several("attention", q, k, v, *first, scale=number(scale), logsumexp=logsumexp, **graphs)
    return y, b.op("mul", others[0], 1 / math.log(2)) if logsumexp else None, None  # torch has it of powers of 2
