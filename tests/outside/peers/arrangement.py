"""Ops that move elements in an order that no strides tell, keep some, or mark places."""

import numpy as np
import torch

from peers import NoValue, peer
from peers.shapes import made, moved


@moved("flip", "torch.flip")
def flip(c, at):
    return torch.flip(at, c.dims)


@moved("roll", "torch.roll")
def roll(c, at):
    return torch.roll(at, c.shifts, c.dims) if c.dims else at


@moved("tile", "torch.tile")
def tile(c, at):
    return torch.tile(at, c.repeats)


@moved("repeat_interleave", "torch.repeat_interleave")
def repeat_interleave(c, at):
    return torch.repeat_interleave(at, c.repeats, c.dim)


def triangle(op, function):
    @peer(op, f"torch.{op}, of what is kept")
    def compute(c):
        x = c.x[0]
        return np.where(function(torch.ones(x.shape, dtype=torch.bool), c.diagonal).numpy(), x, x.dtype.type(0))


triangle("tril", torch.tril)
triangle("triu", torch.triu)


@peer("one_hot", "torch.nn.functional.one_hot")
def one_hot(c):
    x = torch.from_numpy(c.x[0].astype(np.int64))
    if x.numel() and (x.min() < 0 or x.max() >= c.classes):
        raise NoValue("an index is out of range, an error of the call")
    hot = torch.nn.functional.one_hot(x, c.classes) if x.numel() else torch.zeros(*x.shape, c.classes, dtype=torch.int64)
    return made(hot.numpy(), c.dtype)


@peer("split", "torch.split, of positions")
def split(c):
    x = c.x[0]
    parts = torch.split(torch.arange(x.size).reshape(x.shape), c.sizes, c.dim)
    return [x.reshape(-1)[part.numpy()] for part in parts]


@peer("stack", "numpy.stack")
def stack(c):
    return np.stack(c.x, c.dim)


@moved("pixel_shuffle", "torch.pixel_shuffle")
def pixel_shuffle(c, at):
    return torch.pixel_shuffle(at, c.factor)


@moved("pixel_unshuffle", "torch.pixel_unshuffle")
def pixel_unshuffle(c, at):
    return torch.pixel_unshuffle(at, c.factor)


@peer("index_select", "numpy.take")
def index_select(c):
    x, index = c.x
    if index.size and (index.min() < 0 or index.max() >= x.shape[c.dim]):
        raise NoValue("an index is out of range, an error of the call")
    return np.take(x, index, c.dim)


@peer("masked_fill", "numpy.where")
def masked_fill(c):
    x, mask, value = c.x
    return np.where(mask, value, x)


@peer("slice_scatter", "numpy indexing")
def slice_scatter(c):
    x, part = c.x
    y, index = x.copy(), [slice(None)] * x.ndim
    index[c.dim] = slice(c.start, c.end, c.step)
    y[tuple(index)] = part
    return y


@peer("select_scatter", "numpy indexing")
def select_scatter(c):
    x, part = c.x
    y, index = x.copy(), [slice(None)] * x.ndim
    index[c.dim] = c.index
    y[tuple(index)] = part
    return y
