"""Reductions of more than one step."""

import numpy as np
import torch

from peers import peer
from peers.reductions import dims_of


def logic(op, function):
    @peer(op, f"numpy.{op}")
    def compute(c):
        return function(c.x[0], axis=dims_of(c), keepdims=c.keepdim)


logic("any", np.any)
logic("all", np.all)


@peer("argmin", "torch.argmin; of integers numpy.argmin")
def argmin(c):
    if c.is_float:
        return torch.argmin(c.tensor(0), dim=c.dim, keepdim=c.keepdim)
    return np.argmin(c.x[0], axis=c.dim, keepdims=c.keepdim)


def variance(c):
    """Where n is not above the correction, PyTorch has an infinity or NaN, Kiln NaN."""
    x = c.x[0]
    n = np.prod([x.shape[d] for d in dims_of(c)], dtype=np.int64)
    y = torch.var(c.tensor(0), dim=dims_of(c) if x.ndim else None, correction=c.correction, keepdim=c.keepdim)
    return y if n > c.correction else torch.full_like(y, torch.nan)


@peer("var", "torch.var")
def var(c):
    return variance(c)


@peer("std", "torch.var, and torch.sqrt")
def std(c):
    return torch.sqrt(variance(c))


@peer("logsumexp", "torch.logsumexp")
def logsumexp(c):
    return torch.logsumexp(c.tensor(0), dims_of(c), c.keepdim) if c.x[0].ndim else c.x[0]


@peer("norm", "torch.linalg.vector_norm")
def norm(c):
    """Over no elements PyTorch has no value for infinite p, and 0 for p below 0."""
    if c.x[0].size == 0 and np.isinf(c.p):
        return np.max(np.abs(c.x[0]), axis=dims_of(c), keepdims=c.keepdim, initial=0.0) if c.p > 0 else np.min(
            np.abs(c.x[0]), axis=dims_of(c), keepdims=c.keepdim, initial=np.inf)
    return torch.linalg.vector_norm(c.tensor(0), c.p, dims_of(c) if c.x[0].ndim else None, c.keepdim)
