"""Layers of neural networks: norms, softmax, positions, weights in fewer bits."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


@peer("batch_norm", "torch.nn.functional.batch_norm")
def batch_norm(c):
    x, scale, bias, mean, variance = c.tensors()
    return F.batch_norm(x, mean, variance, scale, bias, eps=c.eps)


@peer("layer_norm", "torch.native_layer_norm")
def layer_norm(c):
    x, *scale_and_bias = c.tensors()
    scale, bias = [*scale_and_bias, None, None][:2]
    results = torch.native_layer_norm(x, x.shape[x.ndim - c.axes:], scale, bias, c.eps)
    return list(results) if c.statistics else results[0]


@peer("rms_norm", "torch.nn.functional.rms_norm")
def rms_norm(c):
    x, *scale = c.tensors()
    y = F.rms_norm(x, x.shape[-1:], *scale, eps=c.eps)
    return [y, torch.rsqrt((x * x).mean(-1, keepdim=True) + c.eps)] if c.statistics else y


@peer("softmax", "torch.softmax")
def softmax(c):
    return torch.softmax(c.tensor(0), c.dim)


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


def spread(c, v, numbers):
    """Scales or zero points as `numbers`, which they belong to, are broadcast with them."""
    if v.ndim == 0:
        return v
    axis = c.axis % numbers.ndim
    if c.group:
        return np.repeat(v, c.group, axis)
    return v.reshape([-1 if d == axis else 1 for d in range(numbers.ndim)])


@peer("dequantize", "none: numpy, by its definition")
def dequantize(c):
    weight, scales, *zeros = c.x
    numbers = weight.astype(np.int64)
    if c.bits == 4:
        numbers = np.stack([numbers & 15, numbers >> 4], -1).reshape(*weight.shape[:-1], -1)
        numbers = np.where(c.signed & (numbers > 7), numbers - 16, numbers)
    with np.errstate(invalid="ignore", over="ignore"):
        shifted = numbers - spread(c, zeros[0].astype(np.int64), numbers) if zeros else numbers
        return (shifted.astype(np.float32) * spread(c, scales, numbers).astype(np.float32)).astype(np.float64)


def steps(c, low, high):
    """x in steps of its scale, with the zero points and the scales."""
    x, scales, *zeros = c.x
    scale = spread(c, scales, x)
    zero = spread(c, zeros[0].astype(np.float64), x) if zeros else 0.0
    return np.clip(np.rint(x / scale) + zero, low, high), zero, scale


def in_torch(c, low, high):
    """What PyTorch takes: the zero points, scales (its float32) and whether it does; it multiplies by 1 / scale, and
    knows neither groups nor NaN."""
    x, scales, *zeros = c.x
    zero = zeros[0].astype(np.int32) if zeros else np.zeros(scales.shape, np.int32)
    takes = not c.group and np.isfinite(x).all() and ((zero >= low) & (zero <= high)).all()
    return torch.from_numpy(np.asarray(zero)), torch.from_numpy(np.asarray(scales.astype(np.float32))), takes


@peer("quantize", "torch.quantize_per_channel and _per_tensor; of groups, 4 bits and NaN numpy")
def quantize(c):
    if c.bits == 8:
        info, kind = {"i8": (np.iinfo(np.int8), torch.qint8), "u8": (np.iinfo(np.uint8), torch.quint8)}[c.dtype]
        zero, scale, takes = in_torch(c, info.min, info.max)
        if not takes:
            return np.nan_to_num(steps(c, info.min, info.max)[0]).astype(info.dtype)
        if not scale.ndim:
            return torch.quantize_per_tensor(c.tensor(0).float(), float(scale), int(zero), kind).int_repr()
        return torch.quantize_per_channel(c.tensor(0).float(), scale, zero, c.axis % c.x[0].ndim, kind).int_repr()
    numbers = np.nan_to_num(steps(c, *((-8, 7) if c.signed else (0, 15)))[0]).astype(np.int64) & 15
    return (numbers[..., 0::2] | numbers[..., 1::2] << 4).astype(np.uint8)


@peer("fake_quantize", "torch.fake_quantize_per_channel_affine and _per_tensor_; of groups and NaN numpy")
def fake_quantize(c):
    zero, scale, takes = in_torch(c, c.quant_min, c.quant_max)
    if not takes:
        number, zero, scale = steps(c, c.quant_min, c.quant_max)
        return (number - zero) * scale
    bounds = c.quant_min, c.quant_max
    if not scale.ndim:
        return torch.fake_quantize_per_tensor_affine(c.tensor(0), float(scale), int(zero), *bounds)
    return torch.fake_quantize_per_channel_affine(c.tensor(0), scale, zero, c.axis % c.x[0].ndim, *bounds)
