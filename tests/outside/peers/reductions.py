"""Reductions and searches along dims."""

import numpy as np
import torch

import elements
from peers import NoValue, peer


def dims_of(c):
    """No dims named: all."""
    rank = c.x[0].ndim
    return tuple(d % rank for d in c.dims) or tuple(range(rank))


def summed(c):
    """The operand in the type that it is summed in: the attribute `dtype`, or its own."""
    dtype = c.dtype or c.types[0]
    if c.is_float:
        return elements.converted(c.x[0], dtype)
    return c.x[0].astype(np.float64 if elements.is_float(dtype) else elements.NUMPY[dtype])


@peer("sum", "torch.sum; of integers numpy.sum")
def sum_(c):
    x = summed(c)
    if x.dtype != np.float64:
        return np.sum(x, axis=dims_of(c), keepdims=c.keepdim, dtype=x.dtype)
    return torch.sum(torch.from_numpy(x), dim=dims_of(c), keepdim=c.keepdim) if x.ndim else x


@peer("prod", "torch.prod, dim by dim; of integers numpy.prod")
def prod(c):
    x = summed(c)
    if x.dtype != np.float64:
        return np.prod(x, axis=dims_of(c), keepdims=c.keepdim, dtype=x.dtype)
    y = torch.from_numpy(x)
    for dim in sorted(dims_of(c), reverse=True):
        y = torch.prod(y, dim, keepdim=c.keepdim)
    return y


def extreme(op, of_floats, of_integers, bound_of):
    """PyTorch has no value over no elements; Kiln has the bound that every element is within."""
    @peer(op, f"torch.{of_floats.__name__}; of integers numpy.{op}; over no elements the type's bound")
    def compute(c):
        x = c.x[0]
        if c.is_float and x.size:
            return of_floats(c.tensor(0), dims_of(c), c.keepdim) if x.ndim else x
        bound = bound_of(np.finfo(x.dtype) if c.is_float else np.iinfo(x.dtype))
        return of_integers(x, axis=dims_of(c), keepdims=c.keepdim, initial=bound)


extreme("max", torch.amax, np.max, lambda info: -np.inf if info.dtype.kind == "f" else info.min)
extreme("min", torch.amin, np.min, lambda info: np.inf if info.dtype.kind == "f" else info.max)


@peer("mean", "torch.mean")
def mean(c):
    return torch.mean(c.tensor(0), dim=dims_of(c), keepdim=c.keepdim) if c.x[0].ndim else c.x[0]


@peer("argmax", "torch.argmax; of integers numpy.argmax")
def argmax(c):
    if c.is_float:
        return torch.argmax(c.tensor(0), dim=c.dim, keepdim=c.keepdim)
    return np.argmax(c.x[0], axis=c.dim, keepdims=c.keepdim)


@peer("searchsorted", "numpy.searchsorted, row by row")
def searchsorted(c):
    """NumPy puts NaN last, as Kiln does; PyTorch leaves it open."""
    rows, values = c.x
    side = "right" if c.right else "left"
    if not np.array_equal(rows, np.sort(rows), equal_nan=c.is_float):
        raise NoValue("a row is not sorted")
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side)
    found = [np.searchsorted(row, value, side) for row, value in
             zip(rows.reshape(-1, rows.shape[-1]), values.reshape(-1, values.shape[-1]))]
    return np.array(found, np.int64).reshape(values.shape)
