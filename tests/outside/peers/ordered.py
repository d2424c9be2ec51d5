"""Scans, sorts and what is counted by them."""

import numpy as np
import torch

from peers import peer
from peers.reductions import summed


@peer("cumsum", "torch.cumsum; of integers numpy.cumsum; reversed by numpy.flip, exclusive by what is taken off again")
def cumsum(c):
    x = summed(c)
    line = np.flip(x, c.dim) if c.reverse else x
    if line.dtype == np.float64:
        y = torch.cumsum(torch.from_numpy(np.ascontiguousarray(line)), c.dim).numpy()
    else:
        y = np.cumsum(line, axis=c.dim, dtype=line.dtype)
    if c.exclusive:
        y = np.roll(y, 1, c.dim)
        np.moveaxis(y, c.dim, 0)[:1] = 0
    return np.flip(y, c.dim) if c.reverse else y


@peer("cumprod", "torch.cumprod; of integers numpy.cumprod")
def cumprod(c):
    x = summed(c)
    if x.dtype == np.float64:
        return torch.cumprod(torch.from_numpy(x), c.dim)
    return np.cumprod(x, axis=c.dim, dtype=x.dtype)


def running(op, function):
    @peer(op, f"torch.{op}")
    def compute(c):
        """Of unsigned integers, which PyTorch lacks beyond a byte, by numbers with a sign in the same order."""
        x = c.x[0]
        if x.dtype.kind == "u":
            x = (x.astype(np.uint64) ^ np.uint64(1 << 63)).view(np.int64)
        indices = function(torch.from_numpy(np.ascontiguousarray(x)), c.dim)[1].numpy()
        return np.take_along_axis(c.x[0], indices, c.dim), indices


running("cummax", torch.cummax)
running("cummin", torch.cummin)


@peer("logcumsumexp", "torch.logcumsumexp")
def logcumsumexp(c):
    return torch.logcumsumexp(c.tensor(0), c.dim)


def extreme(op, of_floats, position):
    @peer(op, f"torch.{of_floats.__name__} of a dim; of integers numpy.{position.__name__}")
    def compute(c):
        if c.is_float:
            return tuple(of_floats(c.tensor(0), c.dim, keepdim=c.keepdim))
        at = position(c.x[0], axis=c.dim, keepdims=True)
        values = np.take_along_axis(c.x[0], at, c.dim)
        return [each if c.keepdim else np.squeeze(each, c.dim) for each in (values, at)]


extreme("max_with_indices", torch.max, np.argmax)
extreme("min_with_indices", torch.min, np.argmin)


def sorted_by(c, descending):
    """torch.sort, stable; of integers of a size or sign that it lacks numpy.argsort, of the complement to descend."""
    if c.is_float or c.types[0] in ("i64", "bool"):
        return [each.numpy() for each in torch.sort(c.tensor(0), dim=c.dim, descending=descending, stable=True)]
    at = np.argsort(~c.x[0] if descending else c.x[0], axis=c.dim, kind="stable")
    return [np.take_along_axis(c.x[0], at, c.dim), at]


@peer("sort", "torch.sort(stable=True); of narrow integers numpy.argsort")
def sort(c):
    return sorted_by(c, c.descending)


@peer("argsort", "torch.sort(stable=True); of narrow integers numpy.argsort")
def argsort(c):
    return sorted_by(c, c.descending)[1]


@peer("topk", "the first of torch.sort(stable=True): torch.topk leaves open which of equal elements it takes")
def topk(c):
    first = [np.take(each, range(c.k), c.dim) for each in sorted_by(c, c.largest)]
    if c.is_float:
        assert np.array_equal(torch.topk(c.tensor(0), c.k, c.dim, c.largest)[0].numpy(), first[0], equal_nan=True)
    return first


def ranked(c, k):
    found = [np.take(each, [k - 1], c.dim) for each in sorted_by(c, False)]
    return [each if c.keepdim else np.squeeze(each, c.dim) for each in found]


@peer("kthvalue", "torch.kthvalue; the index, of which it leaves open which of equal elements', by torch.sort(stable=True)")
def kthvalue(c):
    y = ranked(c, c.k)
    if c.is_float:
        assert np.array_equal(torch.kthvalue(c.tensor(0), c.k, c.dim, c.keepdim)[0].numpy(), y[0], equal_nan=True)
    return y


@peer("median", "torch.median of a dim; the index, of which it leaves open which of equal elements', by torch.sort(stable=True)")
def median(c):
    y = ranked(c, (c.x[0].shape[c.dim] + 1) // 2)
    if not c.is_float:
        return y
    values, indices = torch.median(c.tensor(0), c.dim, c.keepdim)
    nan = torch.isnan(values).numpy()
    return values, np.where(nan, indices.numpy(), y[1])


@peer("bincount", "numpy.bincount of the elements from 0 to bins - 1; of integers as weights numpy.add.at")
def bincount(c):
    x = c.x[0].ravel()
    counted = (x >= 0) & (x < c.bins)
    if len(c.x) == 1:
        return np.bincount(x[counted], minlength=c.bins).astype(np.int64)
    weights = c.x[1].ravel()[counted]
    if weights.dtype == np.float64:
        return np.bincount(x[counted], weights, minlength=c.bins)[: c.bins]
    sums = np.zeros(c.bins, weights.dtype)
    np.add.at(sums, x[counted], weights)
    return sums


@peer("histogram", "torch.histc")
def histogram(c):
    """Over the data's own range PyTorch takes finite numbers alone."""
    x = c.tensor(0)
    return torch.histc(x[x.isfinite()] if c.min == c.max else x, c.bins, c.min, c.max).long()


@peer("unique", "torch.unique; of unsigned integers numpy.unique")
def unique(c):
    if c.is_float or c.types[0] in ("i64", "bool"):
        found = torch.unique(c.tensor(0), return_inverse=True, return_counts=True)
        found = [each.numpy() for each in found]
    else:
        found = np.unique(c.x[0], return_inverse=True, return_counts=True)
    return *found, np.int64(len(found[0]))
