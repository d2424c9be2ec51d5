"""Sums of products."""

import math

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


def ends(c, n):
    """Before and after each dim of space."""
    return c.padding if len(c.padding) == 2 * n else [each for each in c.padding for _ in (0, 1)]


def integer_convolution(c, n):
    x, weight, *bias = integers(c)
    x = np.pad(x, [(0, 0), (0, 0), *np.reshape(ends(c, n), (n, 2))])
    extents = [(size - 1) * step + 1 for size, step in zip(weight.shape[2:], c.dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(x, extents, range(2, 2 + n))
    windows = windows[(..., *(slice(None, None, step) for step in (*c.stride, *c.dilation)))]
    windows = windows.reshape(*windows.shape[:2 + n], math.prod(weight.shape[2:]))
    weight = weight.reshape(*weight.shape[:2], math.prod(weight.shape[2:]))
    groups = zip(np.split(windows, c.groups, 1), np.split(weight, c.groups))
    y = np.concatenate([np.einsum("nc...k,ock->no...", part, factors) for part, factors in groups], 1)
    return y + (np.expand_dims(bias[0], tuple(range(1, 1 + n))) if bias else y.dtype.type(0))


def tile_matrices(tile):
    """B^T, G and A^T of tiles of so many results by windows of 3, of Cook's and Toom's points."""
    points = {2: [0, 1, -1], 4: [0, 0.75, -0.75, 1.5, -1.5]}[tile]
    others = [[q for q in points if q != p] for p in points]
    rows = [np.poly(at)[::-1] for at in others] + [np.poly(points)[::-1]]
    inputs = np.array([np.pad(row, (0, tile + 2 - len(row))) for row in rows])
    weights = [[p**i / np.prod([p - q for q in at]) for i in range(3)] for p, at in zip(points, others)] + [[0, 0, 1]]
    outputs = [[p**i for p in points] + [i == tile - 1] for i in range(tile)]
    return inputs, np.array(weights), np.array(outputs, dtype=float)


@peer("winograd_input", "none: numpy, by its definition")
def winograd_input(c):
    x, tile = c.x[0], c.tile
    space = [(size, low, high) for size, low, high in zip(x.shape[1:3], ends(c, 2)[0::2], ends(c, 2)[1::2])]
    tiles = [-(-(size + low + high - 2) // tile) for size, low, high in space]
    around = [(low, tile * count + 2 - size - low) for count, (size, low, high) in zip(tiles, space)]
    x = np.pad(x, [(0, 0), *around, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (tile + 2, tile + 2), (1, 2))[:, ::tile, ::tile]
    matrix = tile_matrices(tile)[0]
    y = np.einsum("ia,nhwcab,jb->ijnhwc", matrix, windows, matrix)
    return y.reshape(matrix.shape[0]**2, *y.shape[2:])


@peer("winograd_weight", "none: numpy, by its definition")
def winograd_weight(c):
    matrix = tile_matrices(c.tile)[1]
    y = np.einsum("ia,ocab,jb->ijco", matrix, c.x[0], matrix)
    return y.reshape(matrix.shape[0]**2, *y.shape[2:])


@peer("winograd_output", "none: numpy, by its definition")
def winograd_output(c):
    matrix, side = tile_matrices(c.tile)[2], c.tile + 2
    return np.einsum("ia,abnhwo,jb->nhiwjo", matrix, c.x[0].reshape(side, side, *c.x[0].shape[1:]), matrix)


def convolutions(n):
    """The convolutions of n dims."""
    forward, transposed = getattr(F, f"conv{n}d"), getattr(F, f"conv_transpose{n}d")

    @peer(f"correlate{n}d", f"torch.nn.functional.conv{n}d; of integers numpy.einsum over sliding windows")
    @peer(f"conv{n}d", f"torch.nn.functional.conv{n}d; of integers numpy.einsum over sliding windows")
    def convolution(c):
        """PyTorch pads both ends alike, and refuses to have no channels: one of zeros adds nothing."""
        if not c.is_float:
            return integer_convolution(c, n)
        x, weight, *bias = c.tensors()
        if x.shape[1] == 0:
            x, weight = x.new_zeros(x.shape[0], 1, *x.shape[2:]), weight.new_zeros(weight.shape[0], 1, *weight.shape[2:])
        around = np.reshape(ends(c, n), (n, 2))[::-1].flatten().tolist()
        return forward(F.pad(x, around), weight, *bias, stride=c.stride, dilation=c.dilation, groups=c.groups)

    @peer(f"conv_transpose{n}d", f"torch.nn.functional.conv_transpose{n}d")
    def conv_transpose(c):
        """PyTorch cuts both ends alike, and takes no empty batch: that of one image is cut down. Float64 holds the sums
        of integers."""
        x, weight, *bias = [torch.from_numpy(each.astype(np.float64)) for each in c.x]
        images = F.pad(x, (0, 0) * (n + 1) + (0, 1)) if x.shape[0] == 0 else x
        y = transposed(images, weight, *(bias or [None]), c.stride, 0, c.output_padding, c.groups, c.dilation)
        y = y[:x.shape[0]]
        for d, (before, after) in enumerate(np.reshape(ends(c, n), (n, 2)).tolist()):
            y = y.narrow(2 + d, before, y.shape[2 + d] - before - after)
        return y if c.is_float else y.numpy().astype(np.int64).astype(integers(c)[0].dtype)


for dims in (1, 2, 3):
    convolutions(dims)


@peer("einsum", "torch.einsum; of integers numpy.einsum")
def einsum(c):
    if c.is_float:
        return torch.einsum(c.equation, *c.tensors())
    return np.einsum(c.equation, *integers(c))


@peer("outer", "numpy.outer")
def outer(c):
    return np.outer(*c.x)


@peer("det", "torch.linalg.det")
def det(c):
    return torch.linalg.det(c.tensor(0))


@peer("grouped_matmul", "torch.matmul, of each group's rows, as torch._grouped_mm groups them")
def grouped_matmul(c):
    x, weights = c.tensor(0), c.tensor(1)
    y, begin = x.new_zeros(x.shape[0], weights.shape[2]), 0
    for weight, end in zip(weights, c.x[2].tolist()):
        end = max(begin, end)
        y[begin:end] = x[begin:end] @ weight
        begin = end
    return y


@peer("indexed_matmul", "torch.matmul")
def indexed_matmul(c):
    x, weights = c.tensor(0), c.tensor(1)
    y = x.new_zeros(*x.shape[:2], weights.shape[2])
    for k, index in enumerate(c.x[2].tolist()):
        if 0 <= index < len(weights):
            y[k] = x[k] @ weights[index]
    return y
