"""A model in Kiln and in eager: what is told of it, and how far they are apart."""

import collections
import copy
from dataclasses import dataclass, field

import torch
from torch.utils._pytree import tree_leaves

import kiln.torch

from .architectures import MODELS


@dataclass
class Told:
    """What the backend did with a model."""

    graphs: int = 0
    ops: int = 0  # of ATen's, in Kiln; views apart
    programs: int = 0
    kernels: int = 0
    left: collections.Counter = field(default_factory=collections.Counter)  # (op, reason) that stayed in torch
    error: float = 0.0  # the largest, beside the largest element of the same result or gradient


def make(name):
    """A model whose weights and statistics all say something: none is a constant, nothing is scaled away."""
    torch.manual_seed(0)
    model, data = MODELS[name].make(), MODELS[name].data
    norms = [each for each in model.modules() if isinstance(each, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for weight in model.parameters():
            if weight.numel() > 1 and weight.std() < 1e-3:
                weight.add_(torch.randn_like(weight) * 0.1)
        if norms and MODELS[name].kind != "detection":
            momenta = [norm.momentum for norm in norms]
            for norm in norms:
                norm.momentum = 1.0
            call(model.train(), data(8))
            for norm, momentum in zip(norms, momenta):
                norm.momentum = momentum
    return model


def call(function, data):
    result = function(**data) if isinstance(data, dict) else function(*data)
    leaves = tree_leaves(result.to_tuple() if hasattr(result, "to_tuple") else result)
    return [each for each in leaves if isinstance(each, torch.Tensor)]


def step(function, model, data):
    """Results, and gradients of a weighed sum of them."""
    results = call(function, data)
    torch.manual_seed(2)
    sum((each * torch.randn_like(each)).mean() for each in results if each.requires_grad).backward()
    return [each.detach() for each in results], [p.grad for p in model.parameters() if p.grad is not None]


def apart(mine, theirs):
    """How far, beside the largest element of each; of what is tiny beside the others, beside those."""
    assert len(mine) == len(theirs)
    floats = [(a.double(), b.double()) for a, b in zip(mine, theirs) if b.is_floating_point() and b.numel()]
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs) if not b.is_floating_point())
    assert all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(mine, theirs))
    largest = max((float(b.abs().max()) for _, b in floats), default=0.0)
    return max((float((a - b).abs().max() / (b.abs().max() + 1e-2 * largest)) for a, b in floats), default=0.0)


def trial(name, train=False):
    """Compiles and runs a model once."""
    torch._dynamo.reset()
    kiln.torch.clear_reports()
    model = make(name).train(train)
    data = MODELS[name].data(2)
    other = copy.deepcopy(model)
    with torch._dynamo.config.patch(allow_rnn=True), torch.set_grad_enabled(train):
        both = []
        for function, owner in ((torch.compile(model, backend=kiln.torch.backend), model), (other, other)):
            torch.manual_seed(1)  # of dropout
            both.append(step(function, owner, data) if train else (call(function, data), []))
    told = summary()
    numbers = [each for each in both[1][0] if each.is_floating_point() and each.numel() > 1]
    assert both[0][0] and all(float(each.double().std()) > 0 for each in numbers)
    told.error = max(apart(mine, theirs) for mine, theirs in zip(*both))
    return told


def sizes(name):
    """Compiles a model once, and runs it at three sizes."""
    torch._dynamo.reset()
    kiln.torch.clear_reports()
    model, errors = make(name).eval(), []
    run = torch.compile(model, backend=kiln.torch.backend, dynamic=True)
    with torch.no_grad():
        for n in (4, 2, 7):
            data = MODELS[name].data(n)
            errors.append(apart(call(run, data), call(model, data)))
    told = summary()
    told.error = max(errors)
    return told


def summary():
    told = Told()
    for report in kiln.torch.reports():
        told.graphs += 1
        told.ops += report.ops
        told.programs += report.parts
        told.kernels += sum((program or {}).get("kernels_distinct", 0) for program in report.programs)
        told.left.update((each.op.removesuffix(".default"), each.reason) for each in report.left)
    return told
