"""Fourier transforms and what belongs to them. A complex number is a pair in the last dim, the real part first."""

from __future__ import annotations

import numpy as np

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, op
from kiln.onnx._types import Size, numpy_type
from kiln.onnx._values import Array


def _last(x: Value, start: int) -> Value:
    dim = x.ndim - 1
    return ops.squeeze(ops.slice(x, dim=dim, start=start, end=start + 1), dims=[dim])


def _whole(x: Value) -> tuple[Value, Value]:
    """All bins of the transform of the last dim's real numbers, real and imaginary parts."""
    size = x.shape[-1]
    half = ops.rfft(x, direct=not isinstance(size, int))
    dim = half.ndim - 2
    rest = size - half.shape[dim]  # bins that are conjugates of 1, 2, ..., from the last to the first
    mirrored = ops.flip(ops.slice(half, dim=dim, start=1, end=1 + rest), dims=[dim])
    return (ops.concat(_last(half, 0), _last(mirrored, 0), dim=dim),
            ops.concat(_last(half, 1), ops.neg(_last(mirrored, 1)), dim=dim))


def _transform(x: Value, inverse: bool) -> tuple[Value, Value]:
    """Of the last dim but one of pairs."""
    a, b = _last(x, 0), _last(x, 1)
    if inverse:
        b = ops.neg(b)  # the inverse of x is the conjugate of its conjugate's transform, by the size
    (ar, ai), (br, bi) = _whole(a), _whole(b)
    real, imaginary = ar - bi, ai + br
    if inverse:
        size = ops.size(value=x.shape[-2], dtype=x.dtype)
        return real / size, ops.neg(imaginary) / size
    return real, imaginary


def _fitted(x: Value, dim: int, length: Size | None) -> Value:
    """Cut, or with zeros behind, to a length."""
    if length is None or x.shape[dim] == length:
        return x
    return ops.pad(x, low=[0] * x.ndim, high=[length - x.shape[dim] if i == dim else 0 for i in range(x.ndim)])


def _dft(n: Node, x: Value, length: Known | None, axis: int) -> Value:
    """The transform along one dim of [..., 1] or [..., 2]."""
    axis = n.axis(axis, x.ndim)
    inverse, onesided = n.flag("inverse"), n.flag("onesided")
    wanted = None if length is None else int(length.item())
    dims = [*(i for i in range(x.ndim - 1) if i != axis), axis, x.ndim - 1]
    back = [dims.index(i) for i in range(x.ndim)]
    moved = ops.permute(x, dims=dims)
    is_real = x.shape[-1] == 1
    if inverse and onesided:  # of half of the bins, whose others are their conjugates: real numbers
        size = wanted if wanted is not None else 2 * (moved.shape[-2] - 1)
        made = ops.unsqueeze(ops.irfft(_fitted(moved, moved.ndim - 2, size // 2 + 1), n=size,
                                       direct=not isinstance(size, int)), dims=[x.ndim - 1])
        return ops.permute(made, dims=back)
    moved = _fitted(moved, moved.ndim - 2, wanted)
    if is_real and not inverse:
        real = _last(moved, 0)
        if onesided:
            return ops.permute(ops.rfft(real, direct=not isinstance(real.shape[-1], int)), dims=back)
        parts = _whole(real)
    else:
        if is_real:
            moved = ops.pad(moved, low=[0] * x.ndim, high=[*[0] * (x.ndim - 1), 1])
        parts = _transform(moved, inverse)
    made = ops.stack(*parts, dim=x.ndim - 1)
    if onesided:
        made = ops.slice(made, dim=x.ndim - 2, end=made.shape[-2] // 2 + 1)
    return ops.permute(made, dims=back)


@op("DFT", since=17)
def dft_17(n: Node, x: Value, length: Known | None = None) -> Value:
    """The discrete Fourier transform along an axis that is an attribute."""
    return _dft(n, x, length, n.integer("axis", 1))


@op("DFT", since=20)
def dft(n: Node, x: Value, length: Known | None = None, axis: Known | None = None) -> Value:
    """The discrete Fourier transform along an axis that is an input."""
    return _dft(n, x, length, -2 if axis is None else int(axis.item()))


@op("STFT")
def stft(n: Node, x: Value, step: Known, window: Value | None = None, length: Known | None = None) -> Value:
    """Transforms of windows, step apart: [N, windows, bins, 2]."""
    if x.ndim == 3:
        if x.shape[2] != 1:
            raise n.refuse("of complex numbers")
        x = ops.squeeze(x, dims=[2])
    if length is not None:
        size = int(length.item())
    elif window is not None:
        size = n.literal([window.shape[0]], "the window's size")[0]
    else:
        raise n.wrong("neither a window nor frame_length is told")
    made = ops.stft(x, window, n_fft=size, hop=int(step.item()), center=False, onesided=n.flag("onesided", True))
    return ops.permute(made, dims=[0, 2, 1, 3])


@op("MelWeightMatrix")
def mel_weights(n: Node, bins: Known, length: Known, rate: Known, low: Known, high: Known) -> Array:
    """The weights that make mel bins of a spectrum's; known when the model is read."""
    count, size, sampled = int(bins.item()), int(length.item()), int(rate.item())
    spectrum = size // 2 + 1
    edges = np.arange(count + 2, dtype=np.float64)
    lowest, highest = (2595 * np.log10(1 + float(each.item()) / 700) for each in (low, high))
    edges = edges * (highest - lowest) / (count + 2) + lowest
    places = ((size + 1) * (700 * (10 ** (edges / 2595) - 1)) // sampled).astype(np.int64)
    made = np.zeros((spectrum, count))
    for i in range(count):
        first, middle, last = places[i:i + 3]
        if middle == first:
            made[middle, i] = 1
        else:
            made[first:middle + 1, i] = (np.arange(first, middle + 1) - first) / (middle - first)
        if last > middle:
            made[middle:last, i] = (last - np.arange(middle, last)) / (last - middle)
    return made.astype(numpy_type(n.dtype("output_datatype", "f32")))
