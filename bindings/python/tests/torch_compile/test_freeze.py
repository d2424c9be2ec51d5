"""Weights are what they are at each call, whoever wrote them: as inputs, and bound once."""

import copy
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch import nn

import kiln.torch


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(6, 6), nn.BatchNorm1d(6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


@pytest.fixture(params=[False, True], ids=["inputs", "frozen"])
def model(request):
    made = Tied().eval()
    made.run = torch.compile(made.forward, backend=kiln.torch.backend, options={"freeze": request.param})
    return made


def holds(model, x=None):
    x = torch.randn(3, 6) if x is None else x
    with torch.no_grad():
        torch.testing.assert_close(model.run(x), model(x), rtol=1e-5, atol=1e-5)


def train(model, optimizer):
    model.train()
    model(torch.randn(4, 6)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    model.eval()


@pytest.mark.parametrize("how", [{"foreach": False}, {"foreach": True}, {"fused": True}])
def test_optimizers_of_all_kinds(model, how):
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        optimizer = kind(model.parameters(), lr=0.1, **how)
        for _ in range(2):
            holds(model)
            train(model, optimizer)
    holds(model)


def test_load_state_dict_in_place_writes_and_other_tensors(model):
    other = Tied()
    holds(model)
    model.load_state_dict(copy.deepcopy(other.state_dict()))
    holds(model)
    with torch.no_grad():
        model.first.weight.mul_(2)
    holds(model)
    model.norm.running_mean += 1
    holds(model)
    model.first.bias.data = torch.ones(6)
    holds(model)
    model.second.bias = nn.Parameter(torch.ones(6))
    holds(model)


def test_an_average_of_weights(model):
    utils = torch.optim.swa_utils
    average = utils.AveragedModel(model.first, multi_avg_fn=utils.get_ema_multi_avg_fn(0.5))
    holds(model)
    for _ in range(2):
        with torch.no_grad():
            model.first.weight.add_(1)
        average.update_parameters(model.first)
        model.first.load_state_dict(average.module.state_dict())
        holds(model)


def test_what_nothing_tells_needs_refresh(model):
    holds(model)
    model.first.weight.data.mul_(3)
    model.norm.weight.detach().numpy()[:] = 2
    kiln.torch.refresh(model)
    holds(model)


def test_a_weight_may_lie_where_the_one_that_is_bound_lay():
    for size in (16, 64, 100):
        model, x, off = nn.Linear(size, size).eval(), torch.randn(2, size), []
        run = torch.compile(model.forward, backend=kiln.torch.backend, options={"freeze": True})
        with torch.no_grad():
            for i in range(1, 30):
                off.append(float((run(x) - model(x)).abs().max()))
                for value in (i, -i):  # the second in the first's memory, or in that of the weight that is bound
                    model.weight.data = torch.full((size, size), float(value))
        assert max(off) < 1e-2, off


def test_a_weight_that_does_not_tell_of_changes_is_refused():
    with torch.inference_mode():
        model = nn.Linear(3, 3).eval()
    run = torch.compile(model, backend=kiln.torch.backend, options={"freeze": True})
    with torch.inference_mode(), pytest.raises(Exception, match="made under torch.inference_mode"):
        run(torch.ones(2, 3))


@pytest.mark.parametrize("target", [lambda model: model, lambda model: model.forward, lambda model: lambda x: model(x) + 1])
@pytest.mark.parametrize("name", ["0.weight", "0.bias", "block.norm.running_mean", "block.norm.bias"])
def test_a_weight_is_refused_by_its_name_in_the_module(target, name):
    model = nn.Sequential()
    model.add_module("0", nn.Linear(3, 3))
    model.add_module("block", nn.Sequential())
    model.block.add_module("norm", nn.BatchNorm1d(3))
    path, _, own = name.rpartition(".")
    with torch.inference_mode():
        value = torch.ones_like(getattr(model.get_submodule(path), own))
        setattr(model.get_submodule(path), own, value if "running" in own else nn.Parameter(value, requires_grad=False))
    run = torch.compile(target(model.eval()), backend=kiln.torch.backend, options={"freeze": True})
    with torch.no_grad(), pytest.raises(kiln.InvalidArgument, match=f"freeze: '{name}' was made under torch.inference_mode"):
        run(torch.ones(2, 3))


def test_a_weight_that_is_of_no_module_is_refused_as_an_argument():
    with torch.inference_mode():
        weight = nn.Parameter(torch.ones(3), requires_grad=False)
    run = torch.compile(lambda x: x * weight, backend=kiln.torch.backend, options={"freeze": True})
    with torch.inference_mode(), pytest.raises(kiln.InvalidArgument, match="freeze: 'torch.arg[0-9]_1' was made under"):
        run(torch.ones(2, 3))


def test_frozen_weights_are_prepared_once_and_not_in_training():
    model = Tied().eval()
    run = torch.compile(model, backend=kiln.torch.backend, options={"freeze": True})
    with pytest.raises(Exception, match="freeze, and weights are trained"):
        run(torch.randn(3, 6))
    with torch.no_grad():
        for _ in range(3):
            run(torch.randn(3, 6))
    assert kiln.torch.reports()[-1].prepared == 1
    with torch.no_grad():
        model.first.weight.mul_(2)
        run(torch.randn(3, 6))
    assert kiln.torch.reports()[-1].prepared == 2


def test_threads_share_frozen_weights():
    model = Tied().eval()
    run, wrong = torch.compile(model, backend=kiln.torch.backend, options={"freeze": True}), []
    x = torch.randn(3, 6)
    with torch.no_grad():
        expected = run(x)

    def work():
        with torch.no_grad():
            wrong.extend(1 for _ in range(300) if not torch.equal(run(x), expected))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and kiln.torch.reports()[-1].prepared == 1


def test_a_model_of_nothing_but_frozen_weights_gives_tensors():
    class Weight(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.arange(3.0))

        def forward(self):
            return torch.exp(self.w)

    with torch.no_grad():
        got = torch.compile(Weight(), backend=kiln.torch.backend, options={"freeze": True})()
    torch.testing.assert_close(got, torch.exp(torch.arange(3.0)))
