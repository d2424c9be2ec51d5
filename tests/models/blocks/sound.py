"""Blocks of models of sound."""

import math

from block import block

EVEN = {"frames": {"min": 2, "divisor": 2}}


@block(calls=[{"batch": 2, "frames": 16}, {"batch": 1, "frames": 26}], symbols=EVEN)
def whisper(b):
    """Whisper's encoder with one layer: two convolutions, sinusoids for places, attention whose keys have no bias."""
    batch, length = "batch", "(frames - 1)//2 + 1"
    x = b.floats("mel", [batch, 16, "frames"])
    x = b.gelu(b.conv1d(x, b.weight("conv1.weight", [64, 16, 3]), b.bias("conv1.bias", [64]), padding=[1]))
    x = b.gelu(b.conv1d(x, b.weight("conv2.weight", [64, 64, 3]), b.bias("conv2.bias", [64]), padding=[1], stride=[2]))
    x = b.permute(x, dims=[0, 2, 1])

    step = b.fixed("f32", [], [-math.log(10000.0) / 31])
    rates = b.exp(b.mul(b.iota(shape=[length, 32], dim=1, dtype="f32"), step))
    angles = b.mul(b.iota(shape=[length, 32], dim=0, dtype="f32"), rates)
    places = b.concat(b.sin(angles), b.cos(angles), dim=1)
    x = b.add(x, places if b.dtype == "f32" else b.convert(places, dtype=b.dtype))

    y = b.layer_normed(x, "attn_ln", 64)
    query = b.heads(b.dense(y, "attn.query", 64, 64), [batch, length, 4, 16])
    key = b.heads(b.dense(y, "attn.key", 64, 64, bias=False), [batch, length, 4, 16])
    value = b.heads(b.dense(y, "attn.value", 64, 64), [batch, length, 4, 16])
    attended = b.merged(b.attention(query, key, value), [batch, length, 64])
    x = b.add(x, b.dense(attended, "attn.out", 64, 64))
    y = b.gelu(b.dense(b.layer_normed(x, "mlp_ln", 64), "mlp.0", 128, 64))
    x = b.add(x, b.dense(y, "mlp.2", 64, 128))
    b.result("y", b.layer_normed(x, "ln_post", 64))
