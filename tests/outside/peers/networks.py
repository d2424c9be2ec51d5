"""Layers of neural networks: norms, softmax, attention, positions, weights in fewer bits."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


@peer("batch_norm", "torch.nn.functional.batch_norm")
def batch_norm(c):
    x, scale, bias, mean, variance = c.tensors()
    return F.batch_norm(x, mean, variance, scale, bias, eps=c.eps)


@peer("layer_norm", "torch.nn.functional.layer_norm")
def layer_norm(c):
    x, *scale_and_bias = c.tensors()
    return F.layer_norm(x, x.shape[x.ndim - c.axes:], *scale_and_bias, eps=c.eps)


@peer("rms_norm", "torch.nn.functional.rms_norm")
def rms_norm(c):
    x, *scale = c.tensors()
    return F.rms_norm(x, x.shape[-1:], *scale, eps=c.eps)


@peer("softmax", "torch.softmax")
def softmax(c):
    return torch.softmax(c.tensor(0), c.dim)


@peer("attention", "torch.nn.functional.scaled_dot_product_attention")
def attention(c):
    """PyTorch's own causal mask lets query i see keys up to i, Kiln's those up to i + (S - T): it is given as a mask."""
    q, k, v, *mask = c.tensors()
    mask = mask[0] if mask else None
    if c.causal:
        rows, keys = q.shape[2], k.shape[2]
        causal = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows)
        if mask is None or mask.dtype == torch.bool:
            mask = causal if mask is None else mask & causal
        else:
            mask = mask.masked_fill(~causal, -torch.inf)
    if mask is not None:
        mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, mask, scale=c.scale or None, enable_gqa=True)


@peer("rope", "none: numpy, by its definition")
def rope(c):
    x, positions = c.x
    depth = x.shape[-1]
    angle = positions.astype(np.float64)[:, None] * c.theta ** (-2 * np.arange(depth // 2) / depth)
    turn = np.exp(1j * angle)
    if c.interleaved:
        y = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
        return np.stack([y.real, y.imag], -1).reshape(x.shape)
    y = (x[..., :depth // 2] + 1j * x[..., depth // 2:]) * turn
    return np.concatenate([y.real, y.imag], -1)


@peer("dequantize", "none: numpy, by its definition")
def dequantize(c):
    weight, scales, *zeros = c.x
    numbers = weight.astype(np.int64)
    if c.bits == 4:
        numbers = np.stack([numbers & 15, numbers >> 4], -1).reshape(*weight.shape[:-1], -1)
        numbers = np.where(c.signed & (numbers > 7), numbers - 16, numbers)
    axis = c.axis % numbers.ndim

    def spread(v):
        if c.group:
            return np.repeat(v, c.group, axis)
        return v.reshape([-1 if d == axis else 1 for d in range(numbers.ndim)])
    with np.errstate(invalid="ignore", over="ignore"):
        shifted = numbers - spread(zeros[0].astype(np.int64)) if zeros else numbers
        return (shifted.astype(np.float32) * spread(scales).astype(np.float32)).astype(np.float64)
