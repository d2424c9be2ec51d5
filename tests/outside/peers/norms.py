"""Norms by the statistics of channels, and of vectors."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


def scaled(x, y, scale_and_bias):
    """PyTorch's own scale and bias ask for one another."""
    shape = [1, -1] + [1] * (x.ndim - 2)
    if scale_and_bias:
        y = y * scale_and_bias[0].reshape(shape)
    return y + scale_and_bias[1].reshape(shape) if len(scale_and_bias) > 1 else y


def norm_of_groups(c, groups):
    x, *rest = c.tensors()
    plane = x.shape[2:].numel()
    if x.shape[1] == 0:  # which native_group_norm refuses: the mean of nothing is NaN
        y, statistics = x, [x.reshape(x.shape[0], 0).mean(1, keepdim=True).expand(-1, groups)] * 2
    else:
        y, *statistics = torch.native_group_norm(x, None, None, x.shape[0], x.shape[1], plane, groups, c.eps)
    return [scaled(x, y, rest), *statistics] if c.statistics else scaled(x, y, rest)


@peer("group_norm", "torch.native_group_norm")
def group_norm(c):
    return norm_of_groups(c, c.groups)


@peer("instance_norm", "torch.native_group_norm, of a channel each")
def instance_norm(c):
    """PyTorch's instance_norm refuses planes of one element, of which this is the same."""
    return norm_of_groups(c, c.x[0].shape[1])


@peer("batch_norm_training", "torch.nn.functional.batch_norm, torch.var_mean")
def batch_norm_training(c):
    x, *rest = c.tensors()
    others = [0] + list(range(2, x.ndim))
    variance, mean = torch.var_mean(x, others, correction=0)
    return [scaled(x, F.batch_norm(x, mean, variance, eps=c.eps), rest), mean, variance]


@peer("l2_normalize", "torch.nn.functional.normalize")
def l2_normalize(c):
    return F.normalize(c.tensor(0), dim=c.dim, eps=c.eps)


@peer("local_response_norm", "none: numpy, by its definition")
def local_response_norm(c):
    """torch.nn.functional.local_response_norm puts the further channel of an even size on the same side; it takes 3 dims
    and more."""
    x = c.x[0]
    widths = [(0, 0)] * x.ndim
    widths[1] = (c.size // 2, (c.size - 1) // 2)
    squares = np.pad(x * x, widths)
    total = sum(np.take(squares, np.arange(x.shape[1]) + k, 1) for k in range(c.size))
    return x / (c.k + c.alpha / c.size * total) ** c.beta
