"""Gradients of norms and of ops of space, by PyTorch's."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional
ALL = [True, True, True]


def zeros_as(x, shapes):
    """Of nothing, which PyTorch does not take everywhere."""
    return [torch.zeros_like(x), *(x.new_zeros(shape) for shape in shapes)]


@peer("layer_norm_backward", "torch.ops.aten.native_layer_norm_backward")
def layer_norm_backward(c):
    x, mean, rstd, dy, *scale = c.tensors()
    shape = x.shape[x.ndim - c.axes:]
    if x.numel() == 0:
        return zeros_as(x, [shape, shape])
    scale = scale[0] if scale else x.new_ones(shape)
    return torch.ops.aten.native_layer_norm_backward(dy, x, shape, mean, rstd, scale, torch.zeros_like(scale), ALL)


@peer("rms_norm_backward", "torch.autograd.grad of x * rstd, where rstd changes with x")
def rms_norm_backward(c):
    x, rstd, dy, *scale = c.tensors()
    scale = scale[0] if scale else x.new_ones(x.shape[-1])
    x.requires_grad_()
    scale.requires_grad_()
    change = -rstd ** 3 * (x.detach() * x).mean(-1, keepdim=True)
    y = x * (rstd + change - change.detach()) * scale
    return torch.autograd.grad((dy * y).sum(), (x, scale))


def groups_backward(c, groups):
    x, mean, rstd, dy, *scale = c.tensors()
    scale = scale[0] if scale else x.new_ones(x.shape[1])
    return torch.ops.aten.native_group_norm_backward(dy, x, mean, rstd, scale, x.shape[0], x.shape[1],
                                                     x.shape[2:].numel(), groups, ALL)


@peer("group_norm_backward", "torch.ops.aten.native_group_norm_backward")
def group_norm_backward(c):
    return groups_backward(c, c.groups)


@peer("instance_norm_backward", "torch.ops.aten.native_group_norm_backward, of a channel each")
def instance_norm_backward(c):
    return groups_backward(c, c.x[0].shape[1])


@peer("batch_norm_backward", "torch.ops.aten.native_batch_norm_backward")
def batch_norm_backward(c):
    x, mean, variance, dy, *scale = c.tensors()
    scale = scale[0] if scale else x.new_ones(x.shape[1])
    rstd = torch.rsqrt(variance + c.eps)
    return torch.ops.aten.native_batch_norm_backward(dy, x, scale, None, None, mean, rstd, True, c.eps, ALL)


def ends(c, n):
    return np.reshape(c.padding if len(c.padding) == 2 * n else [each for each in c.padding for _ in (0, 1)], (n, 2))


def of_space(n):
    """The gradients of the ops of n dims of space."""
    convolution = getattr(F, f"conv{n}d")

    def grad_of_convolution(c, x, weight, dy, of):
        """PyTorch pads both ends alike: zeros are put around x."""
        if x.numel() == 0:
            return torch.zeros_like(of)
        of.requires_grad_()
        around = ends(c, n)[::-1].flatten().tolist()
        y = convolution(F.pad(x, around), weight, None, c.stride, 0, c.dilation, c.groups)
        return torch.autograd.grad((y * dy).sum(), of)[0]

    @peer(f"conv{n}d_backward_input", f"torch.autograd.grad of torch.nn.functional.conv{n}d")
    def conv_backward_input(c):
        weight, dy = c.tensors()
        x = dy.new_zeros(dy.shape[0], weight.shape[1] * c.groups, *c.size)
        return grad_of_convolution(c, x, weight, dy, x)

    @peer(f"conv{n}d_backward_weight", f"torch.autograd.grad of torch.nn.functional.conv{n}d")
    def conv_backward_weight(c):
        x, dy = c.tensors()
        weight = dy.new_zeros(dy.shape[1], x.shape[1] // c.groups, *c.kernel)
        return grad_of_convolution(c, x, weight, dy, weight)

    @peer(f"adaptive_max_pool{n}d_backward", "torch.autograd.grad of torch.gather")
    @peer(f"max_pool{n}d_backward", "torch.autograd.grad of torch.gather")
    def max_pool_backward(c):
        indices, dy = c.tensors()
        x = dy.new_zeros(*dy.shape[:2], int(np.prod(c.size))).requires_grad_()
        indices, dy = indices.flatten(2).long(), dy.flatten(2)
        there = indices < 2 ** 63 - 1  # else the window lay in padding
        y = torch.where(there, x.gather(2, torch.where(there, indices, 0)), 0)
        return torch.autograd.grad(y, x, dy)[0].reshape(*x.shape[:2], *c.size)

    def grad_of_means(c, name, *settings):
        dy = c.tensor(0)
        x = dy.new_zeros(*dy.shape[:2], *c.size)
        if x.numel() == 0:
            return x
        return torch.autograd.grad(getattr(F, name)(x.requires_grad_(), *settings), x, dy)[0]

    @peer(f"avg_pool{n}d_backward", f"torch.autograd.grad of torch.nn.functional.avg_pool{n}d")
    def avg_pool_backward(c):
        return grad_of_means(c, f"avg_pool{n}d", c.kernel, c.stride or None, c.padding, c.ceil_mode, c.count_include_pad)

    @peer(f"adaptive_avg_pool{n}d_backward", f"torch.autograd.grad of torch.nn.functional.adaptive_avg_pool{n}d")
    def adaptive_avg_pool_backward(c):
        return grad_of_means(c, f"adaptive_avg_pool{n}d", c.x[0].shape[2:])


for dims in (1, 2, 3):
    of_space(dims)


@peer("embedding_backward", "torch.autograd.grad of torch.nn.functional.embedding")
def embedding_backward(c):
    index, dy = c.tensors()
    weight = dy.new_zeros(c.rows, dy.shape[-1]).requires_grad_()
    y = F.embedding(index.long(), weight, None if c.padding_idx < 0 else c.padding_idx)
    return torch.autograd.grad(y, weight, dy)[0]
