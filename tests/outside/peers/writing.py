"""Ops that write, or pick, where operands hold indices."""

import numpy as np
import torch

from peers import NoValue, peer
from peers.shapes import moved

COMBINED = {"add": (np.add, "sum"), "mul": (np.multiply, "prod"), "min": (np.minimum, "amin"),
            "max": (np.maximum, "amax"), "mean": (None, "mean")}


def checked(index, size):
    index = index.astype(np.int64)
    if index.size and (index.min() < 0 or index.max() >= size):
        raise NoValue("an index is out of range, an error of the call")
    return index


def along(index, dim):
    """Where each element of `index` points, as an index into an array."""
    places = list(np.indices(index.shape))
    places[dim] = index
    return tuple(places)


def combined(c, index, reduction, include_self=True):
    """Floats by PyTorch, integers by NumPy, which goes through them in order."""
    x, source = c.x[0], c.x[2]
    index = checked(index, x.shape[c.dim])
    if x.dtype.kind == "f":
        reduced = torch.scatter_reduce(c.tensor(0), c.dim, torch.from_numpy(index), c.tensor(2),
                                       COMBINED[reduction][1], include_self=include_self)
        return reduced
    if reduction == "mean":
        raise NoValue("a mean of integers is refused")
    y, places = x.copy(), along(index, c.dim)
    part = source[tuple(slice(0, size) for size in index.shape)]
    if not include_self:
        y[places] = {"add": 0, "mul": 1, "min": np.iinfo(y.dtype).max, "max": np.iinfo(y.dtype).min}[reduction]
    COMBINED[reduction][0].at(y, places, part)
    return y


@peer("scatter", "numpy indexing, where the last of two stays")
def scatter(c):
    x, index, source = c.x
    y, index = x.copy(), checked(index, x.shape[c.dim])
    y[along(index, c.dim)] = source[tuple(slice(0, size) for size in index.shape)]
    return y


for _reduction, (_ufunc, _) in list(COMBINED.items())[:4]:
    peer(f"scatter_{_reduction}", f"torch.scatter_reduce; of integers numpy.{_ufunc.__name__}.at")(
        lambda c, reduction=_reduction: combined(c, c.x[1], reduction))


@peer("scatter_reduce", "torch.scatter_reduce; of integers a ufunc's at, of NumPy")
def scatter_reduce(c):
    return combined(c, c.x[1], c.reduction, c.include_self)


def spread(c):
    """A vector of indices, at each element of the source."""
    shape = [1] * c.x[2].ndim
    shape[c.dim] = -1
    return np.broadcast_to(c.x[1].reshape(shape), c.x[2].shape)


@peer("index_add", "torch.index_add; of integers numpy.add.at")
def index_add(c):
    if c.x[0].dtype.kind == "f":
        index = checked(c.x[1], c.x[0].shape[c.dim])
        return torch.index_add(c.tensor(0), c.dim, torch.from_numpy(index), c.tensor(2))
    return combined(c, spread(c), "add")


@peer("index_reduce", "torch.scatter_reduce; of integers a ufunc's at, of NumPy")
def index_reduce(c):
    return combined(c, spread(c), c.reduction, c.include_self)


def picked(c, first):
    x = c.x[0]
    dim = c.dim % x.ndim
    indices = [checked(index, x.shape[dim + k]) for k, index in enumerate(c.x[first:])]
    return (slice(None),) * dim + tuple(indices)


@peer("index", "numpy indexing")
def index(c):
    return c.x[0][picked(c, 1)]


@peer("index_put", "numpy indexing, where the last of two stays")
def index_put(c):
    y = c.x[0].copy()
    y[picked(c, 2)] = c.x[1]
    return y


@peer("index_put_add", "numpy.add.at")
def index_put_add(c):
    y = c.x[0].copy()
    np.add.at(y, picked(c, 2), c.x[1])
    return y


def rows(c):
    x, indices = c.x[:2]
    return tuple(checked(indices[..., k], x.shape[k]) for k in range(indices.shape[-1]))


@peer("gather_nd", "numpy indexing")
def gather_nd(c):
    return c.x[0][rows(c)]


@peer("scatter_nd", "numpy indexing, where the last of two stays")
def scatter_nd(c):
    y = c.x[0].copy()
    y[rows(c)] = c.x[2]
    return y


@peer("scatter_nd_add", "numpy.add.at")
def scatter_nd_add(c):
    y = c.x[0].copy()
    np.add.at(y, rows(c), c.x[2])
    return y


@peer("take_along", "numpy.take_along_axis")
def take_along(c):
    x, index = c.x
    return np.take_along_axis(x, checked(index, x.shape[c.dim]), c.dim)


@moved("reverse_sequence", "torch.flip, a row at a time")
def reverse_sequence(c, at):
    at = torch.movedim(at.clone(), (c.batch_dim, c.dim), (0, 1))
    for row, length in zip(at, c.x[1].tolist()):
        if length > row.shape[0]:
            raise NoValue("a length is beyond the dim, an error of the call")
        row[:length] = torch.flip(row[:length], (0,))
    return torch.movedim(at, (0, 1), (c.batch_dim, c.dim))


@peer("embedding_bag", "torch.nn.functional.embedding_bag")
def embedding_bag(c):
    offsets = torch.from_numpy(c.x[2].astype(np.int64)) if len(c.x) > 2 else None
    index = torch.from_numpy(checked(c.x[1], c.x[0].shape[0]))
    if index.shape[-1] == 0 and offsets is None:  # which it refuses
        return np.zeros((index.shape[0], c.x[0].shape[1]))
    return torch.nn.functional.embedding_bag(index, c.tensor(0), offsets, mode=c.mode)


@peer("masked_select", "torch.masked_select, of positions")
def masked_select(c):
    x, mask = c.x
    places = torch.masked_select(torch.arange(x.size).reshape(x.shape), torch.from_numpy(np.asarray(mask, dtype=bool)))
    return x.reshape(-1)[places.numpy()], np.int64(len(places))
