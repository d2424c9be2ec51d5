"""How long compiles take beside inductor's and JAX's, in processes of their own: cold with empty caches, warm with full.

Both are given what Dynamo captured. Kiln's own time is partition, mapping and code, and has AOTAutograd's beside it,
which is torch's; inductor's is all that Dynamo waits for. Each process compiles a small function first, which is not
counted: imports, LLVM, checks of the C++ compiler, its precompiled headers. JAX is given what it traced.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from figure import Row, effort, error_of, figure, ratios

NAMES = ("mlp", "decoder")
COLD, WARM = 3, 5


def in_torch(backend: str, cache: str, names: Sequence[str]) -> dict[str, Any]:
    """Compiles each model; seconds, by model, and whether caches had it."""
    import torch

    from models import MODELS, results
    spent = 0.0

    def timed(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        nonlocal spent
        begin = time.perf_counter()
        made = compile(gm, inputs)
        spent += time.perf_counter() - begin
        return made

    if backend == "kiln":
        import kiln
        import kiln.torch
        compile: Any = kiln.torch.backend
        context = kiln.Context(cache=cache, threads=torch.get_num_threads())
        kiln.set_default_context(context)
    else:
        from torch._dynamo.utils import counters
        from torch._inductor.compile_fx import compile_fx as compile
    told = {}
    with torch.no_grad():
        torch.compile(lambda x: torch.sin(x) @ x, backend=timed)(torch.ones(8, 8))
        for name in names:
            module, x, exact = MODELS[name].build()
            spent = 0.0
            if backend == "kiln":
                kiln.torch.clear_reports()
            else:
                counters["inductor"].clear()
                counters["aot_autograd"].clear()
            got = torch.compile(module, backend=timed)(*x)
            if backend == "kiln":
                own = sum(report.compiled for report in kiln.torch.reports())
                hit = all(p and p["lookup"] == "HIT" for report in kiln.torch.reports() for p in report.programs)
            else:
                own, hit = spent, bool(counters["inductor"]["fxgraph_cache_hit"]
                                       or counters["aot_autograd"]["autograd_cache_hit"])
            told[name] = {"own": own, "whole": spent, "hit": hit, "error": error_of(backend, results(got), exact)}
    if backend == "kiln":
        context.close()  # which ends the writing of caches
    return told


def in_jax(names: Sequence[str]) -> dict[str, Any]:
    """The same of GPT-2 in JAX: from what it traced to a program."""
    import torch

    from jax_gpt2 import parameters, forward
    from models import MODELS
    from peers import jax, jnp
    assert list(names) == ["gpt2"]
    jax.jit(lambda x: jnp.sin(x) @ x).lower(jnp.ones((8, 8))).compile()
    module, (tokens,), exact = MODELS["gpt2"].build()
    given = parameters(module), jnp.asarray(tokens.to(torch.int32).numpy())
    traced = jax.jit(forward).trace(*given)
    begin = time.perf_counter()
    compiled = traced.lower().compile()
    spent = time.perf_counter() - begin
    return {"gpt2": {"own": spent, "whole": spent, "hit": False, "error": error_of("jax", [compiled(*given)], exact)}}


def run(backend: str, cache: str, names: Sequence[str]) -> dict[str, Any]:
    """What a process of its own tells of each model."""
    done = subprocess.run([sys.executable, __file__, backend, cache, *["--brief"] * effort.brief, *names],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache})
    if done.returncode:
        raise RuntimeError(f"{backend}: {done.stderr.strip()[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@figure
def compile_time() -> Iterator[Row]:
    """Inductor's time over Kiln's, of a model of which Dynamo's part is the same."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for turn in range(effort.rounds(COLD) - effort.brief):
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", *["warm"] * (-(-WARM // COLD) if not effort.brief else 1)):
                for backend in ("kiln", "inductor"):
                    found = run(backend, os.path.join(folder, backend), NAMES)
                    for name, each in found.items():
                        if each["hit"] != (state == "warm"):
                            raise RuntimeError(f"{backend}, {name}: {state}, and a hit of its cache: {each['hit']}")
                    runs.setdefault((backend, state), []).append(found)
    for state, target in (("cold", 50.0), ("warm", 10.0)):
        for name in NAMES:
            yield from beside_peers(name, state, {backend: [each[name] for each in runs[backend, state]]
                                                  for backend in ("kiln", "inductor")}, {"inductor": target})


@figure
def compile_gpt2() -> Iterator[Row]:
    """GPT-2 of 124M, cold; two of its twelve layers in a brief run."""
    backends = ["kiln", "inductor", *["jax"] * bool(importlib.util.find_spec("jax"))]
    runs: dict[str, list[dict[str, Any]]] = {backend: [] for backend in backends}
    for turn in range(effort.rounds(COLD) - effort.brief):
        with tempfile.TemporaryDirectory() as folder:
            for backend in backends:
                runs[backend].append(run(backend, os.path.join(folder, backend), ["gpt2"])["gpt2"])
    yield from beside_peers("gpt2", "cold", runs, {"inductor": 400.0, "jax": 50.0})


def beside_peers(name: str, state: str, runs: Mapping[str, Sequence[Mapping[str, Any]]],
                 targets: Mapping[str, float]) -> Iterator[Row]:
    """A peer's time over Kiln's own, and over that with AOTAutograd's."""
    times = {"kiln": [each["own"] for each in runs["kiln"]],
             "kiln + AOTAutograd": [each["whole"] for each in runs["kiln"]],
             **{peer: [each["whole"] for each in told] for peer, told in runs.items() if peer != "kiln"}}
    errors = {backend: told[0]["error"] for backend, told in runs.items()}
    for peer in runs:
        if peer == "kiln":
            continue
        suffix = "" if peer == "inductor" else f"_{peer}"
        for own, held_to, end in (("kiln", targets[peer], ""), ("kiln + AOTAutograd", None, "_whole")):
            yield Row(f"compile_{state}_{name}{suffix}{end}", ratios(times, peer, own), f"x {peer} / {own}", held_to,
                      higher_is_better=True, times=times, errors=errors)


def child(backend: str, cache: str, *words: str) -> dict[str, Any]:
    effort.brief = "--brief" in words
    names = [word for word in words if word != "--brief"]
    return in_jax(names) if backend == "jax" else in_torch(backend, cache, names)


if __name__ == "__main__":
    print(json.dumps(child(*sys.argv[1:])))
