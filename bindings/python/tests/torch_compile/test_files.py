"""Compiled functions that torch puts in files: they come from Kiln's programs, in the next process, and only its own."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

import kiln
import kiln.torch
from kiln.torch import cached

SHARED = """
import sys, torch, kiln.torch
def mixed(x, w):
    return torch.special.i0(torch.sin(x)) @ w + x.exp()
x, w = torch.linspace(-1, 1, 12).view(4, 3), torch.eye(3).requires_grad_()
expected = mixed(x, w)
def check(run):
    w.grad = None
    y = run(x, w)
    y.square().sum().backward()
    (grad,) = torch.autograd.grad(expected.square().sum(), w, retain_graph=True)
    torch.testing.assert_close((y, w.grad), (expected, grad))
"""
SAVES = SHARED + """
run = torch.compile(mixed, backend=kiln.torch.backend, fullgraph=True).aot_compile(((x, w), {}))
check(run)
run.save_compiled_function(sys.argv[1])
print(len(kiln.torch.reports()))
"""
LOADS = SHARED + """
with open(sys.argv[1], "rb") as file:
    run = torch.compiler.load_compiled_function(file)
check(run)
print(len(kiln.torch.reports()))
"""
# Of torch's cache of what AOTAutograd made: another backend of the same form, kiln, aot_eager, and kiln again.
TWO_BACKENDS = SHARED + """
from kiln.torch import _torch, cached
made = []
def other(gm, inputs):
    def compile(graph, inputs):
        made.append(graph)
        return cached.code(_torch.boxed(graph.graph, graph))
    return _torch.for_files("other", dict.fromkeys(("fw_compiler", "bw_compiler"), compile))(gm, inputs)
counts = []
caching = {"bypass_autograd_cache_key": True, "bundled_autograd_cache": True, "strict_autograd_cache": True,
           "force_non_lazy_backward_lowering": True, "enable_autograd_cache": True}
relaxed = {"options": {"rounding": "relaxed"}}
for backend, said in ((other, {}), (kiln.torch.backend, {}), ("aot_eager", {}), (kiln.torch.backend, {}), (other, {}),
                      (kiln.torch.backend, relaxed)):
    torch._dynamo.reset()
    with torch._functorch.config.patch(caching):
        check(torch.compile(mixed, backend=backend, fullgraph=True, **said))
    counts.append((len(made), len(kiln.torch.reports())))
print(counts)
"""


def process(script, folder, *args):
    environment = {**os.environ, "KILN_CACHE": str(folder / "kiln"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch")}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script, *args], env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_next_process_runs_what_was_saved(tmp_path):
    file = str(tmp_path / "mixed")
    assert process(SAVES, tmp_path, file) == "2"
    assert process(LOADS, tmp_path, file) == "0"  # neither graph was compiled


def test_no_backend_gets_anothers_code_from_torchs_cache(tmp_path):
    told = process(TWO_BACKENDS, tmp_path)
    assert told == "[(2, 0), (2, 2), (2, 2), (2, 2), (2, 2), (2, 4)]"


def test_outside_of_files_torch_is_given_plain_functions(monkeypatch):
    made, real = [], cached.code
    monkeypatch.setattr(cached, "code", lambda run: made.append(run) or real(run))
    x = torch.ones(2)
    torch.compile(torch.exp, backend=kiln.torch.backend)(x)
    assert not made
    torch.compile(lambda x: torch.exp(x), backend=kiln.torch.backend, fullgraph=True).aot_compile(((x,), {}))
    assert len(made) == 1


def saved(function, path, *given, **options):
    run = torch.compile(function, backend=kiln.torch.backend, fullgraph=True, options=options or None)
    run.aot_compile((given, {})).save_compiled_function(path)


def load(path):
    with open(path, "rb") as file:
        return torch.compiler.load_compiled_function(file)


def test_a_file_of_another_build_is_refused(tmp_path, monkeypatch):
    path, x = str(tmp_path / "file"), torch.ones(3)
    saved(lambda x: torch.exp(x) * 2, path, x)
    assert torch.equal(load(path)(x), torch.exp(x) * 2)
    monkeypatch.setattr(cached, "build", lambda: "0123")
    with pytest.raises(kiln.Incompatible, match="another build of Kiln: [0-9a-f]+, this one is 0123; compile it anew"):
        load(path)


def test_what_draws_is_saved_with_its_seed(tmp_path):
    path, x = str(tmp_path / "file"), torch.ones(300)
    saved(lambda x: torch.nn.functional.dropout(x, 0.5), path, x, random="kiln")
    run = load(path)
    torch.manual_seed(1)
    first, second = run(x), run(x)
    torch.manual_seed(1)
    assert torch.equal(run(x), first) and not torch.equal(first, second) and 50 < (first == 0).sum() < 250
