"""A module as a graph and weights: what runs without torch."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

import kiln
import kiln.torch
from test_models import MODELS


@pytest.mark.parametrize("name", ["mlp", "cnn", "decoder", "llama"])
def test_a_graph_and_its_weights_give_what_the_module_gives(name):
    make, data = MODELS[name]
    module = make().eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    graph, weights = kiln.torch.export(module, (data(3),), dynamic_shapes=({0: batch},))
    assert set(weights) <= set(module.state_dict(keep_vars=True)) | {name for name, _ in module.named_buffers()}
    call = kiln.compile(kiln.Graph.from_json(graph.to_json())).bind(weights)
    for n in (1, 3, 5):
        x = data(n)
        with torch.no_grad():
            torch.testing.assert_close(call(x.numpy(), library="torch"), module(x), rtol=1e-4, atol=1e-5)


def test_what_kiln_lacks_is_an_error_that_names_it():
    class Spectrum(torch.nn.Module):
        def forward(self, x):
            return torch.special.i0(x)

    with pytest.raises(kiln.Unimplemented, match=r"\[aten.*i0.*\] node .*: a special function that Kiln has not"):
        kiln.torch.export(Spectrum(), (torch.randn(4),))
    norm = torch.nn.BatchNorm1d(3).train()
    with pytest.raises(kiln.Unimplemented, match="writes 'running_mean'|writes 'num_batches_tracked'"):
        kiln.torch.export(norm, (torch.randn(4, 3),))


def test_a_tensor_that_is_given_twice_has_two_names():
    class Twice(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            return y, y, x

    graph, _ = kiln.torch.export(Twice(), (torch.randn(3),))
    program = kiln.compile(graph)
    assert [each.tolist() for each in program(torch.ones(3))] == [[2] * 3, [2] * 3, [1] * 3]
    assert '"mul.2"' in graph.to_json()


def test_a_slice_that_a_size_counts_from_the_end_is_that_of_the_module():
    class Last(torch.nn.Module):
        def forward(self, x, y):
            return x[:, -y.shape[1]:] * 2

    n, m = torch.export.Dim("n", min=4, max=64), torch.export.Dim("m", min=1, max=4)
    graph, _ = kiln.torch.export(Last(), (torch.randn(2, 9), torch.randn(2, 3)), dynamic_shapes=({1: n}, {1: m}))
    program = kiln.compile(graph)
    for rows, last in ((9, 3), (5, 2)):
        x, y = torch.randn(2, rows), torch.randn(2, last)
        torch.testing.assert_close(program(x, y), Last()(x, y))
