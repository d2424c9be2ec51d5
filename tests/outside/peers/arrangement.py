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
