"""What users get wrong: a clear exception, or the right result, and nothing lost."""

import pathlib
import subprocess
import sys
import threading
import tomllib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch import nn

import kiln.torch


def compiled(function, **keywords):
    return torch.compile(function, backend=kiln.torch.backend, **keywords)


def test_the_backend_is_found_by_its_name(tmp_path):
    said = tomllib.loads((pathlib.Path(kiln.__file__).parents[1] / "pyproject.toml").read_text())["project"]
    info = tmp_path / "kiln-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kiln\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[torch_dynamo_backends]\nkiln = "
                                           + said["entry-points"]["torch_dynamo_backends"]["kiln"])
    code = (f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport torch\n"
            "run = torch.compile(lambda x: x + 1, backend='kiln')\n"
            "print(run(torch.ones(2)).tolist(), 'kiln' in torch._dynamo.list_backends())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[2.0, 2.0] True", done.stderr[-2000:]


def test_other_dtypes_and_shapes_compile_again():
    run = compiled(lambda x: torch.exp(x) * 2)
    for x in (torch.randn(3), torch.randn(3).double(), torch.randn(2, 2), torch.randn(0, 4), torch.randn(()),
              torch.randn(5).bfloat16()):
        torch.testing.assert_close(run(x), torch.exp(x) * 2)


def test_shapes_that_do_not_fit_are_torchs_error():
    run = compiled(lambda x, y: x @ y)
    with pytest.raises(Exception, match="size|shape"):
        run(torch.randn(3, 4), torch.randn(3, 4))
    assert run(torch.ones(2, 3), torch.ones(3, 2)).tolist() == [[3, 3], [3, 3]]


def test_a_module_that_changes_after_the_compile():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    run = compiled(model)
    x = torch.randn(2, 4)
    run(x)
    model[0].weight = nn.Parameter(torch.eye(4))
    model[0].bias.data.zero_()
    torch.testing.assert_close(run(x), torch.relu(x))
    model[1] = nn.Tanh()
    torch.testing.assert_close(run(x), torch.tanh(x))
    model.double()
    torch.testing.assert_close(run(x.double()), torch.tanh(x.double()))
    del model[0].weight
    with pytest.raises(AttributeError, match="weight"):
        run(x.double())


def test_a_weight_written_between_forward_and_backward_is_refused():
    model = nn.Linear(3, 3)
    y = compiled(model)(torch.randn(2, 3, requires_grad=True)).square().sum()
    with torch.no_grad():
        model.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_two_threads_run_one_model():
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))
    run, wrong = compiled(model), []
    with torch.no_grad():
        run(torch.randn(4, 8))

    def work(seed):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            expected = model(x)
            for _ in range(200):
                if not torch.allclose(run(x), expected, atol=1e-5):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Doubled(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((3,), float(i)) * 2


def test_workers_of_a_data_loader():
    run = compiled(lambda x: x.sum(-1) + 1)
    run(torch.ones(4, 3))
    got = [run(batch) for batch in torch.utils.data.DataLoader(Doubled(), batch_size=4, num_workers=1)]
    assert torch.cat(got).tolist() == [6 * i + 1 for i in range(8)]


def test_an_index_out_of_range_is_an_index_error():
    run = compiled(nn.Embedding(5, 2))
    with pytest.raises(IndexError, match="out of range|index"):
        run(torch.tensor([1, 7]))
    assert run(torch.tensor([1, 4])).shape == (2, 2)


def test_autocast_and_double_backward_and_inference_mode():
    model = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6))
    x = torch.randn(3, 6)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(compiled(model)(x), model(x), rtol=2e-2, atol=2e-2)
    torch._dynamo.reset()
    with torch.inference_mode():
        torch.testing.assert_close(compiled(model)(x), model(x))
    torch._dynamo.reset()
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(compiled(torch.sin)(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.sum().backward()
