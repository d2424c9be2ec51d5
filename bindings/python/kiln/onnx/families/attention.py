"""Attention. What Kiln's attention does not cover comes through the body that ONNX gives the op."""

from __future__ import annotations

from kiln import Value, ops
from kiln.onnx import _functions
from kiln.onnx._node import Node
from kiln.onnx._registry import op
from kiln.onnx._types import FLOATS, equal
from kiln.onnx._values import Tensor


def _heads(x: Value, heads: int) -> Value:
    """[B, T, heads * D] as [B, heads, T, D]."""
    batch, length, size = x.shape
    return ops.permute(ops.reshape(x, shape=[batch, length, heads, size // heads]), dims=[0, 2, 1, 3])


def _through_body(n: Node) -> list[Tensor | None]:
    inputs = [n.frame.find(each) if each is not None and each.name else None for each in n.ir.inputs]
    function = _functions.body(n, inputs)
    if function is None:
        raise n.refuse("ONNX has no body for it at this opset")
    n.read |= n.resolved.keys()
    return list(n.frame.converter.call(function, n, inputs))


@op("Attention", since=23, ignores=("softmax_precision", "qk_matmul_output_mode", "q_num_heads", "kv_num_heads"))
def attention(n: Node, q: Value, k: Value, v: Value, mask: Value | None = None, past_k: Value | None = None,
              past_v: Value | None = None, lengths: Value | None = None) -> list[Value | Tensor | None]:
    """softmax(q k^T scale + mask) v, of [B, H, T, D], or of [B, T, H D] with the numbers of heads."""
    flat, causal = q.ndim == 3, n.flag("is_causal")
    window, softcap = [n.integer("left_window_size", -1), n.integer("right_window_size", -1)], n.number("softcap", 0.0)
    if lengths is not None or n.wants(3) or (softcap and mask is not None):
        return list(_through_body(n))
    keys = k.shape[1 if flat else 2] + (0 if past_k is None else past_k.shape[2])
    if (causal or window != [-1, -1]) and equal(q.shape[1 if flat else 2], k.shape[1 if flat else 2]) is not True:
        return list(_through_body(n))  # Kiln aligns the ends of queries and keys, ONNX their begins
    if mask is not None and (str(mask.dtype) not in ("bool", str(q.dtype)) or equal(mask.shape[-1], keys) is not True):
        return list(_through_body(n))
    if flat:
        q = _heads(q, n.integer("q_num_heads"))
        k, v = (_heads(each, n.integer("kv_num_heads")) for each in (k, v))
    if past_k is not None and past_v is not None:
        k, v = ops.concat(past_k, k, dim=2), ops.concat(past_v, v, dim=2)
    if mask is not None:
        mask = ops.unsqueeze(mask, dims=list(range(4 - mask.ndim))) if mask.ndim < 4 else mask
    if str(q.dtype) not in FLOATS:
        raise n.refuse(f"of {q.dtype}")
    y = ops.attention(q, k, v, mask, causal=causal, window=window, scale=n.number("scale", 0.0), softcap=softcap)
    if flat:
        batch, heads, length, size = y.shape
        y = ops.reshape(ops.permute(y, dims=[0, 2, 1, 3]), shape=[batch, length, heads * size])
    return [y, k, v]


@op("RotaryEmbedding", since=23)
def rotary(n: Node, x: Value, cos: Value, sin: Value, positions: Value | None = None) -> Value:
    """Pairs of the first elements of a head rotated by angles of which the cosines and sines are given."""
    flat = x.ndim == 3
    heads = n.integer("num_heads", 0)
    if flat:
        x = _heads(x, heads)
    if positions is not None:  # of tables, whose rows the positions pick
        cos, sin = ops.embedding(cos, positions), ops.embedding(sin, positions)
    cos, sin = ops.unsqueeze(cos, dims=[1]), ops.unsqueeze(sin, dims=[1])
    size = x.shape[3]
    turned = n.integer("rotary_embedding_dim", 0) or size
    rest = None if turned == size else ops.slice(x, dim=3, start=turned, end=size)
    part = x if rest is None else ops.slice(x, dim=3, end=turned)
    half = turned // 2
    if n.flag("interleaved"):
        a, b = (ops.slice(part, dim=3, start=i, end=turned, step=2) for i in range(2))
    else:
        a, b = ops.slice(part, dim=3, end=half), ops.slice(part, dim=3, start=half, end=turned)
    cos, sin = (ops.slice(each, dim=3, end=half) if each.shape[3] != half else each for each in (cos, sin))
    real, imaginary = a * cos - b * sin, b * cos + a * sin
    if n.flag("interleaved"):
        made = ops.reshape(ops.stack(real, imaginary, dim=4), shape=part.shape)
    else:
        made = ops.concat(real, imaginary, dim=3)
    made = made if rest is None else ops.concat(made, rest, dim=3)
    if not flat:
        return made
    batch, _, length, _ = made.shape
    return ops.reshape(ops.permute(made, dims=[0, 2, 1, 3]), shape=[batch, length, heads * size])
