"""Elementary functions of floats, and what activations make of them."""

import torch

from peers import peer
from peers.pointwise import of_floats

F = torch.nn.functional

for op in ["exp2", "expm1", "log1p", "log2", "log10", "logaddexp", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh",
           "acosh", "atanh", "erfc", "erfinv", "lgamma", "digamma"]:
    of_floats(op, getattr(torch, op))
for op in ["selu", "logsigmoid", "mish"]:
    of_floats(op, getattr(F, op), f"torch.nn.functional.{op}")


@peer("elu", "torch.nn.functional.elu")
def elu(c):
    return F.elu(c.tensor(0), c.alpha)


@peer("celu", "torch.nn.functional.celu")
def celu(c):
    return F.celu(c.tensor(0), c.alpha)


@peer("softplus", "torch.nn.functional.softplus")
def softplus(c):
    return F.softplus(c.tensor(0), c.beta, c.threshold)
