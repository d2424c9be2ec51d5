"""Attention, as torch's CPU kernels have it, and its gradients."""

from __future__ import annotations

from typing import Any

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import DTYPES, FLOATS, Unsupported, row


def _mask(b: Lowering, q: kiln.Value, k: kiln.Value, mask: kiln.Value | None, is_causal: bool) -> dict[str, Any]:
    """How masks are said: torch counts a causal one from the first key, Kiln from the last."""
    queries, keys = q.shape[2], k.shape[2]
    said: dict[str, Any] = {"mask": None, "causal": False}
    if is_causal and type(queries) is type(keys) and queries == keys and mask is None:
        said["causal"] = True
    elif is_causal:
        rows, columns = (b.op("iota", shape=[queries, keys], dim=dim) for dim in (0, 1))
        if mask is not None:
            raise Unsupported("a mask, and causal")
        said["mask"] = b.op("ge", rows, columns)
    elif mask is not None:
        said["mask"] = mask if str(mask.dtype) == "bool" else b.cast(mask, str(q.dtype))
    if said["mask"] is not None:
        mask = said["mask"]
        said["mask"] = b.op("reshape", mask, shape=[1] * (4 - len(mask.shape)) + list(mask.shape))
    return said


@row("_scaled_dot_product_flash_attention_for_cpu.default", "attention", FLOATS | {"bool"}, when="dropout_p is 0")
def _(b: Lowering, q: kiln.Value, k: kiln.Value, v: kiln.Value, dropout_p: float = 0.0, is_causal: bool = False, *,
      attn_mask: kiln.Value | None = None, scale: float | None = None) -> tuple[kiln.Value, kiln.Value]:
    if dropout_p:
        raise Unsupported("dropout")
    said = _mask(b, q, k, attn_mask, is_causal)
    mask = said.pop("mask")
    y, logsumexp = b.several("attention", q, k, v, *([mask] if mask is not None else []), scale=scale or 0.0,
                              logsumexp=True, **said)
    fake = b.outs[1]
    assert fake is not None
    return y, b.cast(logsumexp, DTYPES[fake.dtype])


@row("_scaled_dot_product_flash_attention_for_cpu_backward.default", "attention_backward", FLOATS | {"bool"},
     when="dropout_p is 0")
def _(b: Lowering, dy: kiln.Value, q: kiln.Value, k: kiln.Value, v: kiln.Value, y: kiln.Value, logsumexp: kiln.Value,
      dropout_p: float, is_causal: bool, *, attn_mask: kiln.Value | None = None,
      scale: float | None = None) -> tuple[kiln.Value, kiln.Value, kiln.Value]:
    if dropout_p:
        raise Unsupported("dropout")
    said = _mask(b, q, k, attn_mask, is_causal)
    mask = said.pop("mask")
    logsumexp = b.cast(logsumexp, "f64" if b.dtype == "f64" else "f32")
    dq, dk, dv = b.several("attention_backward", q, k, v, y, logsumexp, dy, *([mask] if mask is not None else []),
                      scale=scale or 0.0, **said)
    return dq, dk, dv


@row("_safe_softmax.default", "softmax where all eq", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: int, dtype: Any = None) -> kiln.Value:
    x = b.cast(x, b.dtype)
    dim = b.dim(dim, len(x.shape))
    hidden = b.op("all", b.op("eq", x, float("-inf")), dims=[dim], keepdim=True)
    return b.op("where", hidden, b.full(0, b.dtype, []), b.op("softmax", x, dim=dim))
