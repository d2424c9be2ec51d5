"""Random numbers of Kiln's, by options={"random": "kiln"}: repeatable, distributed as they should be, one mask a call."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import calls
import kiln
import kiln.torch
from kiln.torch import random
from kiln.torch.compiler import compile_graph
from kiln.torch.options import read
from kiln.torch.rows import rows

N = 40000
aten = torch.ops.aten


def compiled(function, dynamic=None, **options):
    return torch.compile(function, backend=kiln.torch.backend, dynamic=dynamic, fullgraph=True,
                         options={"random": "kiln", "strict": True, **options})


def uniform(low=0.0, high=1.0):
    return {low + (high - low) * p: p for p in (0.1, 0.25, 0.5, 0.75, 0.95)}


def normal(mean=0.0, std=1.0, of=lambda x: x):
    return {of(mean + std * x): 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in (-3, -2, -1, 0, 0.5, 1, 2, 3)}


def coin(p):
    return {0: 1 - p, 1: 1.0}


def dice(low, high):
    return {each: (each + 1 - low) / (high - low) for each in range(low, high)}


def empty(d):
    return torch.empty(N, dtype=d)


def like(x, d):
    return torch.full((N,), x, dtype=d)


# By overload: its arguments, and the probability that a number is not above some values.
DRAWS = {
    "native_dropout.default": lambda d: ((like(0.75, d), 0.25, True), coin(0.75)),
    "bernoulli.default": lambda d: ((like(0.25, d),), coin(0.25)),
    "bernoulli.p": lambda d: ((empty(d), 0.3), coin(0.3)),
    "bernoulli.Tensor": lambda d: ((empty(d), torch.tensor(0.625)), coin(0.625)),
    "rand.default": lambda d: (([N],), uniform(), {"dtype": d}),
    "rand_like.default": lambda d: ((empty(d),), uniform()),
    "uniform.default": lambda d: ((empty(d), -2.0, 3.0), uniform(-2.0, 3.0)),
    "randn.default": lambda d: (([N],), normal(), {"dtype": d}),
    "randn_like.default": lambda d: ((empty(d),), normal()),
    "normal_functional.default": lambda d: ((empty(d), 1.0, 2.0), normal(1.0, 2.0)),
    "normal.float_float": lambda d: ((-1.0, 0.5, [N]), normal(-1.0, 0.5), {"dtype": d}),
    "normal.Tensor_float": lambda d: ((like(2.0, d), 3.0), normal(2.0, 3.0)),
    "normal.float_Tensor": lambda d: ((2.0, like(0.5, d)), normal(2.0, 0.5)),
    "normal.Tensor_Tensor": lambda d: ((like(-2.0, d), like(0.5, d)), normal(-2.0, 0.5)),
    "log_normal.default": lambda d: ((empty(d), 0.5, 0.25), normal(0.5, 0.25, math.exp)),
    "exponential.default": lambda d: ((empty(d), 2.0), {x: 1 - math.exp(-2 * x) for x in (0, 0.1, 0.3, 1, 2)}),
    "geometric.default": lambda d: ((empty(d), 0.3), {x: 1 - 0.7 ** x for x in (0, 1, 2, 3, 8)}),
    "cauchy.default": lambda d: ((empty(d), 1.0, 2.0), {1 + 2 * math.tan(math.pi * (p - 0.5)): p
                                                      for p in (0.01, 0.25, 0.5, 0.75, 0.99)}),
    "randint.default": lambda d: ((5, [N]), dice(0, 5), {"dtype": d}),
    "randint.low": lambda d: ((-2, 3, [N]), dice(-2, 3), {"dtype": torch.int32}),
    "randint_like.default": lambda d: ((empty(d), 4), dice(0, 4)),
    "randint_like.low_dtype": lambda d: ((empty(d), 2, 9), dice(2, 9)),
    "randperm.default": lambda d: ((N,), {x: (x + 1) / N for x in (0, 1, N // 3, N - 2, N - 1)}),
    "multinomial.default": lambda d: ((torch.tensor([1.0, 3.0, 0.0, 4.0], dtype=d), N, True),
                                      {0: 1 / 8, 1: 1 / 2, 2: 1 / 2, 3: 1.0}),
}


def draw(overload, args, kwargs):
    """What a graph of the one call gives at two seeds; None if torch keeps it."""
    packet, _, name = overload.partition(".")
    gm, tensors = calls.graph_of(getattr(getattr(aten, packet), name), args, kwargs)
    if not random.draw_by_seed(gm, kiln.default_context()):
        return None
    run = compile_graph(gm, read(None, {"strict": True}), "call")
    return [[result.clone() for result in run(list(tensors))] for _ in range(2)]


def test_every_row_is_drawn_from():
    assert {row.overload for row in rows() if row.overload.startswith("kiln::")} == {f"kiln::{name}" for name in DRAWS}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("overload", DRAWS)
def test_numbers_are_distributed_as_they_should_be(overload, dtype):
    """How many are not above a value is off by at most 5 standard deviations; of 16 bits, what rounding moves more."""
    args, expected, kwargs = (*DRAWS[overload](dtype), {})[:3]
    (first, *_), (second, *_) = draw(overload, args, kwargs)
    for got in (first, second):
        got = got.double()
        for value, p in expected.items():
            spread = math.sqrt(max(p * (1 - p), 0) / N)
            slack = 2 ** -7 if first.dtype == torch.bfloat16 and value != int(value) else 0
            assert abs((got <= value + 1e-9 * abs(value)).double().mean() - p) <= 5 * spread + slack + 1e-12, (value, p)
    if overload != "randperm.default":
        assert not torch.equal(first, second)
        ranks = [each.double().argsort().argsort().double() for each in (first, second, first.roll(1), second.roll(2))]
        between = torch.corrcoef(torch.stack(ranks[:2] + ranks[2:]))
        assert len(set(expected)) < 5 or (between - torch.eye(4)).abs().max() < 5 / math.sqrt(N)


def test_multinomial_without_replacement_takes_each_once():
    weights = torch.tensor([[0.5, 0.25, 0.25, 0.0]]).expand(N, 4).contiguous()
    (got,), _ = draw("multinomial.default", (weights, 3), {})
    assert torch.equal(got.sort(1).values, torch.arange(3).expand(N, 3))
    assert abs((got[:, 0] == 0).double().mean() - 0.5) < 5 * math.sqrt(0.25 / N)
    assert abs((got[:, 1] == 0).double().mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / N)  # 1/4 of each, then 2 of 3


def test_a_permutation_has_each_number_once():
    (got,), (other,) = draw("randperm.default", (N,), {})
    assert torch.equal(got.sort().values, torch.arange(N)) and not torch.equal(got, other)


def test_exponential_numbers_are_never_zero():
    (got,), _ = draw("exponential.default", (torch.empty(2 ** 22),), {})
    assert got.min() > 0 and got.log().isfinite().all()


def noisy(x):
    return F.dropout(torch.sin(x), 0.25) + torch.rand_like(x), torch.bernoulli(torch.full_like(x, 0.5)), torch.randn(7)


def test_torchs_seed_makes_them_repeatable():
    run, x = compiled(noisy), torch.randn(200)

    def at(seed):
        torch.manual_seed(seed)
        return [*run(x), *run(x)]

    first, again, other = at(1), at(1), at(2)
    for i, (a, b, c) in enumerate(zip(first, again, other)):
        assert torch.equal(a, b) and not torch.equal(a, c) and not torch.equal(a, first[(i + 3) % 6])


def test_two_draws_of_a_graph_are_not_the_same():
    masks = compiled(lambda x: [F.dropout(x, 0.5) for _ in range(3)])(torch.ones(100))
    assert not torch.equal(masks[0], masks[1]) and not torch.equal(masks[1], masks[2])


def kept(y, grad, factor, p):
    """A gradient is 0 where its element was dropped, and as that of what was kept elsewhere."""
    mask = y != 0
    torch.testing.assert_close(grad, mask * factor / (1 - p))
    assert 0.5 < mask.double().mean() < 0.9
    return mask


@pytest.mark.parametrize("recompute", [False, True])
def test_gradients_of_dropout_are_of_the_same_mask(recompute):
    def step(x):
        if recompute:
            return checkpoint(lambda x: F.dropout(torch.sin(x), 0.3), x, use_reentrant=False)
        return F.dropout(torch.sin(x), 0.3)

    run, masks = compiled(step), []
    for _ in range(2):
        x = torch.randn(1000, requires_grad=True)
        y = run(x)
        y.sum().backward()
        masks.append(kept(y.detach(), x.grad, torch.cos(x.detach()), 0.3))
    assert not torch.equal(*masks)
    forward, backward = kiln.torch.reports()
    assert forward.parts == backward.parts == 1


def test_a_seed_is_never_drawn_again_in_the_backward_pass():
    with torch._functorch.config.patch(aggressive_recomputation=True):
        x = torch.randn(1000, requires_grad=True)
        y = compiled(lambda x: torch.exp(F.dropout(torch.sin(x), 0.3)) - 1)(x)
        y.sum().backward()
    kept(y.detach(), x.grad, torch.cos(x.detach()) * (y.detach() + 1), 0.3)


def test_dropout_of_attention_has_the_same_mask_in_both_passes():
    q, k = (torch.randn(1, 2, 30, 8, requires_grad=True) for _ in range(2))
    v = torch.eye(30).expand(1, 2, 30, 30).clone().requires_grad_()  # the result is what is left of the weights
    y = compiled(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.4))(q, k, v)
    y.square().sum().backward()
    weights = torch.softmax((q @ k.transpose(-1, -2)).double() / math.sqrt(8), -1)
    mask = (y.detach() != 0) / 0.6
    torch.testing.assert_close(y.double(), weights * mask, rtol=1e-4, atol=1e-6)
    expected = torch.autograd.grad(((weights * mask) @ v.double()).square().sum(), (q, k, v))
    torch.testing.assert_close((q.grad, k.grad, v.grad), expected, rtol=1e-4, atol=1e-5)


def test_one_compile_serves_all_sizes():
    run = compiled(lambda x: F.dropout(x, 0.25) + 2 * torch.randint(0, 2, x.shape), dynamic=True)
    for n in (300, 500, 1100):
        x = torch.ones(n, 3, requires_grad=True)
        torch.manual_seed(n)
        y = run(x)
        torch.manual_seed(n)
        assert torch.equal(y, run(x))
        y.sum().backward()
        left = y.detach() % 2
        left = torch.where(left > 1, left, 0)  # 4 / 3, or 0
        torch.testing.assert_close(x.grad, left)
        assert abs((left > 0).double().mean() - 0.75) < 5 * math.sqrt(0.1875 / left.numel())
    assert len(kiln.torch.reports()) == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_small_float_that_is_drawn_is_below_one(dtype):
    drawn = compiled(lambda: torch.rand(100000, dtype=dtype))()
    assert drawn.max() < 1 and drawn.min() == 0 and abs(drawn.double().mean() - 0.5) < 0.005


def test_what_kiln_does_not_draw_stays_in_torch():
    def mixed(x):
        return F.dropout(torch.poisson(x.abs()), 0.5), torch.randn(3)

    torch.manual_seed(1)
    run = compiled(mixed, strict=False)
    a = run(torch.ones(50))
    torch.manual_seed(1)
    assert torch.equal(a[0], run(torch.ones(50))[0])
    assert [each.op for each in kiln.torch.reports()[0].left] == ["aten.poisson.default"]


def test_a_draw_of_the_backward_pass():
    class Noise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, dy):
            return dy * torch.rand_like(dy)

    run, grads = compiled(Noise.apply), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        x = torch.ones(100, requires_grad=True)
        run(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(grads[0], grads[1]) and not torch.equal(grads[0], grads[2]) and 0 <= grads[0].min() < 0.1


def test_the_option_is_checked():
    with pytest.raises(Exception, match="option 'random' is 'numpy', 'torch' or 'kiln' was expected"):
        torch.compile(noisy, backend=kiln.torch.backend, options={"random": "numpy"})(torch.ones(2))


def test_torchs_numbers_are_the_default():
    with pytest.raises(Exception, match="strict, and 4 nodes stay in torch: .*rand_like"):
        compiled(noisy, random="torch")(torch.ones(2))
