"""Sums of products."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


def integers(c):
    """8-bit integers are multiplied and summed in 32 bits, wider ones in their own, where they wrap."""
    return [x.astype(np.int32) for x in c.x] if c.x[0].itemsize == 1 else c.x


@peer("matmul", "torch.matmul; of integers numpy.matmul")
def matmul(c):
    a, b = c.tensors() if c.is_float else integers(c)
    a = a.swapaxes(-1, -2) if c.transpose_a else a
    b = b.swapaxes(-1, -2) if c.transpose_b else b
    return a @ b


@peer("linear", "torch.nn.functional.linear; of integers numpy.matmul")
def linear(c):
    if c.is_float:
        return F.linear(*c.tensors())
    x, weight, *bias = integers(c)
    return x @ weight.T + (bias[0] if bias else 0)


def integer_convolution(c):
    x, weight, *bias = integers(c)
    rows, columns = c.padding
    x = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))[:, :, ::c.stride[0], ::c.stride[1]]
    groups = zip(np.split(windows, c.groups, 1), np.split(weight, c.groups))
    y = np.concatenate([np.einsum("nchwpq,ocpq->nohw", part, factors) for part, factors in groups], 1)
    return y + (bias[0][:, None, None] if bias else y.dtype.type(0))


def convolution(c):
    if not c.is_float:
        return integer_convolution(c)
    x, weight, *bias = c.tensors()
    if x.shape[1] == 0:  # which PyTorch refuses: a channel of zeros adds nothing
        x, weight = x.new_zeros(x.shape[0], 1, *x.shape[2:]), weight.new_zeros(weight.shape[0], 1, *weight.shape[2:])
    return F.conv2d(x, weight, *bias, stride=c.stride, padding=c.padding, groups=c.groups)


for op in ("correlate2d", "conv2d"):
    peer(op, "torch.nn.functional.conv2d; of integers numpy.einsum over sliding windows")(convolution)
