"""Ops that move elements, and those that make tensors of nothing. What moves is a tensor of positions, by PyTorch; the
elements, of any type, follow."""

import numpy as np
import torch

import elements
from peers import peer


def moved(op, name):
    """Enters a function of the call and of the operand's positions, which gives those of the result's elements."""
    def enter(place):
        def compute(c):
            x = c.x[0]
            return x.reshape(-1)[place(c, torch.arange(x.size).reshape(x.shape)).numpy()]
        return peer(op, name)(compute)
    return enter


@moved("permute", "torch.permute")
def permute(c, at):
    return torch.permute(at, c.dims)


@moved("expand", "torch.Tensor.expand")
def expand(c, at):
    return at.expand(c.shape)


@moved("reshape", "torch.reshape")
def reshape(c, at):
    return torch.reshape(at, c.shape)


@moved("as_strided", "torch.as_strided; of strides below 0 torch.take")
def as_strided(c, at):
    if min(c.strides, default=0) >= 0 and at.numel():
        return torch.as_strided(at.contiguous(), c.shape, c.strides, c.offset)
    place = torch.full([1] * len(c.shape), c.offset)
    for d, (size, stride) in enumerate(zip(c.shape, c.strides)):
        place = place + torch.arange(size).reshape([-1 if k == d else 1 for k in range(len(c.shape))]) * stride
    return torch.take(at, place)


@moved("squeeze", "torch.squeeze")
def squeeze(c, at):
    return torch.squeeze(at, c.dims) if c.dims else at


@moved("unsqueeze", "torch.unsqueeze")
def unsqueeze(c, at):
    for dim in sorted(d % (at.ndim + len(c.dims)) for d in c.dims):
        at = torch.unsqueeze(at, dim)
    return at


@moved("slice", "torch indexing; of steps below 0 numpy")
def slice_(c, at):
    """Kiln counts a start or end that is a literal below 0 from the end, as PyTorch does, and goes down as NumPy does."""
    if c.step < 0:
        return torch.from_numpy(at.numpy()[(slice(None),) * (c.dim % at.ndim) + (slice(c.start, c.end, c.step),)].copy())
    index = [slice(None)] * at.ndim
    index[c.dim] = slice(c.start, c.end, c.step)
    return at[tuple(index)]


@moved("clone", "torch.clone")
def clone(c, at):
    return torch.clone(at)


@peer("copy_", "torch.Tensor.copy_")
def copy_(c):
    if c.x[1].dtype.kind != "u":
        return c.tensor(0).clone().copy_(c.tensor(1))
    return c.x[1].copy()


@peer("concat", "torch.cat, of positions")
def concat(c):
    starts = np.cumsum([0] + [x.size for x in c.x])
    places = [torch.arange(start, start + x.size).reshape(x.shape) for start, x in zip(starts, c.x)]
    return np.concatenate([x.reshape(-1) for x in c.x])[torch.cat(places, c.dim).numpy()]


@peer("pad", "torch.nn.functional.pad, of positions; in other modes numpy.pad")
def pad(c):
    x, number = c.x[0], elements.named(c.value, c.types[0])
    if c.exact:
        number = np.array([int(c.exact)], elements.NUMPY[c.types[0]])
    widths = [width for low, high in reversed(list(zip(c.low, c.high))) for width in (low, high)]
    places = torch.arange(x.size).reshape(x.shape)
    if c.mode != "constant":
        mode = {"replicate": "edge", "circular": "wrap"}.get(c.mode, c.mode)
        more = np.pad(places.numpy(), [(max(low, 0), max(high, 0)) for low, high in zip(c.low, c.high)], mode)
        places = torch.from_numpy(more[tuple(slice(max(-low, 0), size + min(high, 0)) for low, high, size in zip(
            c.low, c.high, more.shape))])
    elif widths:
        places = torch.nn.functional.pad(places, widths, value=x.size)
    return np.concatenate([x.reshape(-1), number])[places.numpy()]


@moved("unfold", "torch.Tensor.unfold")
def unfold(c, at):
    return at.unfold(c.dim, c.size, c.step)


@moved("diagonal", "torch.diagonal")
def diagonal(c, at):
    return torch.diagonal(at, c.offset, c.dim1, c.dim2)


def made(numbers, dtype):
    """Integers as elements of a type."""
    return numbers.astype(np.float64 if elements.is_float(dtype) else elements.NUMPY[dtype])


@peer("full", "torch.full; of integers numpy.full")
def full(c):
    if c.exact:
        return np.full(c.shape, int(c.exact), elements.NUMPY[c.dtype])
    if elements.is_float(c.dtype):
        return torch.full(c.shape, c.value if c.dtype[:2] != "f8" else elements.named(c.value, c.dtype)[0],
                          dtype=torch.float64)
    return np.full(c.shape, elements.to_integers(np.array([c.value]), c.dtype)[0])


@peer("iota", "torch.arange, expanded")
def iota(c):
    along = [1] * len(c.shape)
    along[c.dim] = c.shape[c.dim]
    return made(torch.arange(c.shape[c.dim]).reshape(along).expand(c.shape).numpy(), c.dtype)


@peer("size", "none: the attribute's value")
def size(c):
    return made(np.array(c.value), c.dtype)
