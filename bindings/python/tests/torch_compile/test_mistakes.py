"""What users get wrong: a clear exception, or the right result, and nothing lost."""

import pathlib
import subprocess
import sys
import threading
import tomllib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

from torch import nn

import interrupts
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


def test_dtypes_that_do_not_fit_are_torchs_error():
    run = compiled(lambda x, y: x @ y)
    with pytest.raises(Exception, match="dtype|scalar type"):
        run(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))
    assert run(torch.ones(2, 2), torch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]
    lookup = compiled(nn.Embedding(5, 2))
    with pytest.raises(Exception, match="indices|scalar type"):
        lookup(torch.ones(3))
    assert lookup(torch.tensor([1, 4])).shape == (2, 2)


def test_another_device_stays_in_torch_and_two_devices_are_torchs_error():
    model = nn.Linear(3, 2)
    run = compiled(model)
    x = torch.randn(4, 3)
    with torch.no_grad():
        torch.testing.assert_close(run(x), model(x))
        model.to("meta")
        assert run(x.to("meta")).device.type == "meta"
        assert "on device meta, the CPU was expected" in str(kiln.torch.reports()[-1])
        with pytest.raises(Exception, match="device"):
            run(x)


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


@pytest.mark.parametrize("freeze", [False, True])
def test_a_weight_that_is_deleted_or_taken_away_is_told(freeze):
    model = nn.Linear(3, 2).eval()
    run, x = compiled(model, options={"freeze": freeze}), torch.randn(4, 3)
    with torch.no_grad():
        run(x)
        kept = model.weight
        del model.weight
        with pytest.raises(AttributeError, match="weight"):
            run(x)
        model.weight = nn.Parameter(kept * 2)
        torch.testing.assert_close(run(x), model(x))
        model.bias = None
        torch.testing.assert_close(run(x), x @ model.weight.t())


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


def test_two_threads_compile_at_once():
    models = [nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, i + 1)) for i in range(4)]
    x, got = torch.randn(3, 4), {}

    def work(i):
        with torch.no_grad():
            got[i] = compiled(models[i])(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, model in enumerate(models):
        torch.testing.assert_close(got[i], model(x))


class Doubled(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((3,), float(i)) * 2


class Compiled(Doubled):
    """Runs a compiled function in the worker, which is a fork of a process that has compiled it."""

    def __init__(self, run):
        self.run = run

    def __getitem__(self, i):
        return self.run(torch.full((1, 3), float(i)))[0]


def test_workers_that_run_what_was_compiled():
    run = compiled(lambda x: x.sum(-1) + 1)
    with torch.no_grad():
        run(torch.ones(1, 3))
        loader = torch.utils.data.DataLoader(Compiled(run), batch_size=4, num_workers=2, timeout=60)
        assert torch.cat(list(loader)).tolist() == [3 * i + 1 for i in range(8)]


def test_workers_of_a_data_loader():
    run = compiled(lambda x: x.sum(-1) + 1)
    run(torch.ones(4, 3))
    got = [run(batch) for batch in torch.utils.data.DataLoader(Doubled(), batch_size=4, num_workers=1)]
    assert torch.cat(got).tolist() == [6 * i + 1 for i in range(8)]


PRELUDE = """
import torch, kiln, kiln.torch
kiln.set_default_context(kiln.Context(cache="off"))
def compiled(function, **options):
    return torch.compile(function, backend=kiln.torch.backend, options=options or None)
add = compiled(lambda x: x + 1)
assert add(torch.ones(2)).tolist() == [2, 2]
def many(x, n):
    for i in range(n):
        x = torch.sin(x @ x + i)
    return x
"""
AFTER = """
assert add(torch.ones(2)).tolist() == [2, 2]
"""


def test_ctrl_c_ends_a_run():
    assert interrupts.ends(PRELUDE, """
run, x = compiled(lambda x: many(x, 40)), torch.zeros(1500, 1500)
expected = run(x)
ended(lambda: [run(x) for _ in range(1000)])
torch.testing.assert_close(run(x), expected)""", AFTER)


def test_ctrl_c_ends_kilns_part_of_a_compile_and_the_next_call_compiles():
    assert interrupts.ends(PRELUDE, """
import kiln.torch.compiler as compiler
plan, run, x = compiler.plan, compiled(lambda x: many(x, 600), mode="none"), torch.ones(8, 8)
ready, compiler.plan = plan, lambda *args: (go(), ready(*args))[1]
def go():
    compiler.plan = ready
    print("go", flush=True)
try:
    run(x)
except KeyboardInterrupt:
    print("interrupted", flush=True)
short = compiled(lambda x: many(x, 3))
torch.testing.assert_close(short(x), many(x, 3))""", AFTER)


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


def test_a_tangent_is_computed_or_refused_and_never_lost():
    import torch.autograd.forward_ad as forward_ad
    x, tangent = torch.randn(3), torch.full((3,), 2.0)
    function = lambda x: torch.sin(x) * 2
    wanted = 4 * torch.cos(x)
    run = compiled(function)
    run(x)
    torch.testing.assert_close(torch.func.jvp(run, (x,), (tangent,))[1], wanted)
    inside = compiled(lambda x: torch.func.jvp(function, (x,), (tangent,))[1])
    torch.testing.assert_close(inside(x), wanted)
    scale = [torch.ones(3)]
    captured = compiled(lambda x: x * scale[0])
    captured(x)
    with forward_ad.dual_level():
        for dual_of in (lambda: run(forward_ad.make_dual(x, tangent)), lambda: captured(x)):
            scale[0] = forward_ad.make_dual(torch.ones(3), tangent)
            try:
                made = forward_ad.unpack_dual(dual_of()).tangent
            except TypeError as error:
                assert "a tangent of forward-mode differentiation" in str(error)
            else:
                assert made is not None


def test_threads_are_those_that_torch_had_when_the_context_was_made():
    before = torch.get_num_threads()
    run = torch.compile(lambda x: x * 2, backend=kiln.torch.backend)

    def threads_of_a_call():
        assert run(torch.ones(2)).tolist() == [2, 2]
        return kiln.default_context().report()["threads"]
    try:
        kiln.set_default_context(None)
        torch.set_num_threads(3)
        assert threads_of_a_call() == 3
        torch.set_num_threads(2)
        assert threads_of_a_call() == 3
        kiln.set_default_context(None)
        torch.compiler.reset()
        assert threads_of_a_call() == 2
    finally:
        torch.set_num_threads(before)
        kiln.set_default_context(None)


@pytest.mark.parametrize("function, x, why", [
    (lambda x: x.max(), torch.ones(0), "numel"), (lambda x: x.min(), torch.ones(0, dtype=torch.int64), "numel"),
    (lambda x: x[x > 0].max(), -torch.ones(3), "numel"), (lambda x: x[x > 0].amax(0), -torch.ones(3), "non-zero size"),
    (lambda x: x ** -1, torch.tensor([1, 2]), "negative integer powers")])
def test_what_eager_refuses_is_no_number(function, x, why):
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        with pytest.raises((RuntimeError, IndexError), match=why):
            function(x)
        with pytest.raises((RuntimeError, IndexError), match=f"{why}|Runtime assertion"):
            torch.compile(function, backend=kiln.torch.backend)(x)


def test_the_median_of_nothing_is_eagers():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run = torch.compile(lambda x: x[x > 0].median(), backend=kiln.torch.backend)
        assert run(-torch.ones(3)).isnan() and run(torch.ones(4)) == 1
