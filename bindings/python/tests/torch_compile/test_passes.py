"""What passes restore, and that it is what eager gives."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch import nn

import kiln.torch
from kiln.torch import passes


def found(model, x, dynamic=None):
    """How often each pass found something, in forward and backward; both as in eager."""
    counts, real = {}, passes.run
    try:
        passes.run = lambda gm: [counts.__setitem__(k, counts.get(k, 0) + v) for k, v in real(gm).items()]
        run = torch.compile(model, backend=kiln.torch.backend, dynamic=dynamic, fullgraph=True)
        mine, theirs = (x.clone().requires_grad_() for _ in range(2))
        a, b = run(mine), model(theirs)
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        for y, at in ((a, mine), (b, theirs)):
            model.zero_grad()
            y.square().sum().backward()
            at.kept = [at.grad, *(p.grad.clone() for p in model.parameters())]
        torch.testing.assert_close(mine.kept, theirs.kept, rtol=1e-3, atol=1e-4)
        return {name: count for name, count in counts.items() if count}
    finally:
        passes.run = real


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lead", [(4,), (2, 3), (2, 3, 2)])
def test_linear_is_restored(bias, lead, dynamic):
    assert found(nn.Linear(6, 5, bias=bias), torch.randn(*lead, 6), dynamic)["linear"] >= 1


def test_a_product_of_integers_stays_one():
    x, weight = torch.arange(6).view(2, 3), torch.arange(12).view(4, 3)
    run = torch.compile(lambda x, weight: x @ weight.t(), backend=kiln.torch.backend, options={"strict": True})
    assert torch.equal(run(x, weight), x @ weight.t())


@pytest.mark.parametrize("affine", [False, True])
def test_rms_norm_is_restored(affine):
    assert found(nn.RMSNorm(6, elementwise_affine=affine), torch.randn(2, 3, 6), True)["rms_norm"] == 1


def test_a_norm_that_is_used_otherwise_stays_right():
    class Odd(nn.Module):
        def forward(self, x):
            r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return (r * 2) + x * r + r, (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * x * x

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.odd = Odd()

        def forward(self, x):
            a, b = self.odd(x)
            return a + b

    found(Sum(), torch.randn(4, 6))


def test_a_sum_of_gradients_joins_the_region_around_it():
    class Twice(nn.Module):
        def forward(self, x):
            with torch.fx.traceback.annotate({"kiln.region": "r"}):
                y = torch.sin(x)
                return torch.exp(y) * torch.cos(y)

    assert found(Twice(), torch.randn(5))["accumulations"] >= 1
