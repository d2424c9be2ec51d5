"""Attention, and its gradients by PyTorch's."""

import numpy as np
import torch

from peers import peer

F = torch.nn.functional


def visible_by_place(c, rows, keys):
    """What "causal" and "window" let each query see, or None. PyTorch's own causal mask lets query i see keys up to i,
    Kiln's those up to i + (S - T)."""
    left, right = c.window
    right = 0 if c.causal else right
    if left < 0 and right < 0:
        return None
    ahead = torch.arange(keys) - torch.arange(rows)[:, None] - (keys - rows)
    return (ahead <= (right if right >= 0 else keys + rows)) & (-ahead <= (left if left >= 0 else keys + rows))


def mask_of(c, q, k, mask):
    """All masks in one that broadcasts, or None."""
    place = visible_by_place(c, q.shape[2], k.shape[2])
    if place is None:
        return mask
    if mask is None or mask.dtype == torch.bool:
        return place if mask is None else mask & place
    return mask.masked_fill(~place, -torch.inf)


def scores_of(c, q, k):
    """Before masks."""
    repeats = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(repeats, 1).transpose(2, 3) * (c.scale or q.shape[3] ** -0.5)
    return c.softcap * torch.tanh(scores / c.softcap) if c.softcap else scores


def masked(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask


def numbers(shape):
    return [np.arange(size).reshape([-1 if d == at else 1 for at in range(4)]) for d, size in enumerate(shape)]


@peer("attention", "torch.nn.functional.scaled_dot_product_attention; with softcap or graphs torch.softmax")
def attention(c):
    q, k, v = c.tensors()[:3]
    mask = mask_of(c, q, k, c.tensor(3) if len(c.x) > 3 else None)
    if c.softcap or c.score_graph or c.mask_graph or c.logsumexp:
        scores = scores_of(c, q, k)
        places = numbers(scores.shape)
        if c.score_graph:
            scores = torch.from_numpy(c.run(c.score_graph, [scores.numpy(), *places, *c.x[4:]])[0])
        if c.mask_graph:
            scores = masked(scores, torch.from_numpy(c.run(c.mask_graph, [*places, *c.x[4:]])[0]))
        scores = masked(scores, mask)
        weights = torch.nan_to_num(torch.softmax(scores, -1))
        y = weights @ v.repeat_interleave(q.shape[1] // k.shape[1], 1)
        return [y, torch.logsumexp(scores, -1)] if c.logsumexp else y
    if mask is not None:
        mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, mask, scale=c.scale or None, enable_gqa=True)


@peer("attention_backward", "torch.autograd.grad of softmax; where y is not attention's, of exp(scores - logsumexp)")
def attention_backward(c):
    """Of operands y and logsumexp that are not what q, k and v give, there is the derivative of what they stand for."""
    q, k, v, given_y, lse, dy = c.tensors()[:6]
    for x in (q, k, v):
        x.requires_grad_()
    mask = mask_of(c, q, k, c.tensor(6) if len(c.x) > 6 else None)
    scores = scores_of(c, q, k)
    values = v.repeat_interleave(q.shape[1] // k.shape[1], 1)
    hidden = masked(scores, mask)
    sees_none = (hidden == -torch.inf).all(-1, keepdim=True) if hidden.numel() else torch.zeros(())
    y = torch.softmax(torch.where(sees_none == 1, 0, hidden), -1) * (sees_none != 1) @ values
    if given_y.shape == y.shape and torch.allclose(given_y, y, 1e-12, 1e-12) and y.numel():
        whole = (dy * y).sum()
    else:
        weights = torch.exp(hidden - lse[..., None])
        by_normaliser = (weights.detach() * torch.where(weights == 0, 0, scores)).sum(-1)
        whole = (dy * (weights @ values)).sum() - ((dy * given_y).sum(-1) * by_normaliser).sum()
    return torch.autograd.grad(whole, (q, k, v), allow_unused=True, materialize_grads=True)
