"""Losses."""

import torch

from peers import NoValue, peer

F = torch.nn.functional


def of_elements(op, call, name):
    @peer(op, f"torch.nn.functional.{name}")
    def compute(c):
        x, target = torch.broadcast_tensors(*c.tensors())
        return call(c, x, target)


of_elements("mse_loss", lambda c, x, t: F.mse_loss(x, t, reduction=c.reduction), "mse_loss")
of_elements("l1_loss", lambda c, x, t: F.l1_loss(x, t, reduction=c.reduction), "l1_loss")
of_elements("smooth_l1_loss", lambda c, x, t: F.smooth_l1_loss(x, t, reduction=c.reduction, beta=c.beta), "smooth_l1_loss")
of_elements("huber_loss", lambda c, x, t: F.huber_loss(x, t, reduction=c.reduction, delta=c.delta), "huber_loss")
of_elements("binary_cross_entropy", lambda c, x, t: F.binary_cross_entropy(x, t, reduction=c.reduction),
            "binary_cross_entropy")
of_elements("kl_div", lambda c, x, t: F.kl_div(x, t, reduction=c.reduction, log_target=c.log_target), "kl_div")


def of_classes(c, call):
    x, target, *weight = c.tensors()
    target = target.to(torch.int64)
    classes = x.shape[0 if x.ndim == 1 else 1]
    counts = target[target != c.ignore_index]
    if counts.numel() and (counts.min() < 0 or counts.max() >= classes):
        raise NoValue("an index is out of range, an error of the call")
    return call(x, target, weight[0] if weight else None)


@peer("nll_loss", "torch.nn.functional.nll_loss")
def nll_loss(c):
    return of_classes(c, lambda x, t, w: F.nll_loss(x, t, w, ignore_index=c.ignore_index, reduction=c.reduction))


@peer("cross_entropy", "torch.nn.functional.cross_entropy")
def cross_entropy(c):
    return of_classes(c, lambda x, t, w: F.cross_entropy(x, t, w, ignore_index=c.ignore_index, reduction=c.reduction,
                                                         label_smoothing=c.label_smoothing))


@peer("log_softmax", "torch.log_softmax")
def log_softmax(c):
    return torch.log_softmax(c.tensor(0), c.dim)


@peer("binary_cross_entropy_with_logits", "torch.nn.functional.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(c):
    x, target, *weights = torch.broadcast_tensors(*c.tensors())
    weight, positive_weight = (*weights, None, None)[:2]
    return F.binary_cross_entropy_with_logits(x, target, weight, reduction=c.reduction, pos_weight=positive_weight)
