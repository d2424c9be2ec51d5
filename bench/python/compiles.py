"""How long compiles take beside inductor's: in processes of their own, cold with empty caches, warm with filled ones.

Both are given what Dynamo captured. Kiln's own time is partition, mapping and code, and has AOTAutograd's beside it,
which is torch's; inductor's is all that Dynamo waits for. Each process compiles a small function first, which is not
counted: imports, LLVM, checks of the C++ compiler, its precompiled headers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from figure import Row, effort, error_of, figure

NAMES = ("mlp", "decoder")
COLD, WARM = 3, 5


def child(backend: str, cache: str) -> dict[str, Any]:
    """Compiles each model; seconds, by model, and whether caches had it."""
    import torch

    from models import MODELS
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
        for name in NAMES:
            module, x, exact = MODELS[name].build()
            spent = 0.0
            if backend == "kiln":
                kiln.torch.clear_reports()
            else:
                counters["inductor"].clear()
                counters["aot_autograd"].clear()
            got = torch.compile(module, backend=timed)(x)
            if backend == "kiln":
                own = sum(report.compiled for report in kiln.torch.reports())
                hit = all(p and p["lookup"] == "HIT" for report in kiln.torch.reports() for p in report.programs)
            else:
                own, hit = spent, bool(counters["inductor"]["fxgraph_cache_hit"]
                                       or counters["aot_autograd"]["autograd_cache_hit"])
            told[name] = {"own": own, "whole": spent, "hit": hit, "error": error_of(backend, [got], [exact])}
    if backend == "kiln":
        context.close()  # which ends the writing of caches
    return told


def run(backend: str, cache: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, backend, cache], capture_output=True, text=True, check=False,
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
                    found = run(backend, os.path.join(folder, backend))
                    for name, each in found.items():
                        if each["hit"] != (state == "warm"):
                            raise RuntimeError(f"{backend}, {name}: {state}, and a hit of its cache: {each['hit']}")
                    runs.setdefault((backend, state), []).append(found)
    for state, target in (("cold", 50.0), ("warm", 10.0)):
        for name in NAMES:
            ours, theirs = ([each[name] for each in runs[backend, state]] for backend in ("kiln", "inductor"))
            times = {"kiln": [each["own"] for each in ours], "kiln + AOTAutograd": [each["whole"] for each in ours],
                     "inductor": [each["whole"] for each in theirs]}
            errors = {"kiln": ours[0]["error"], "inductor": theirs[0]["error"]}
            for own, held_to, suffix in (("kiln", target, ""), ("kiln + AOTAutograd", None, "_whole")):
                yield Row(f"compile_{state}_{name}{suffix}", [b / a for a, b in zip(times[own], times["inductor"])],
                          f"x inductor / {own}", held_to, higher_is_better=True, times=times, errors=errors)


if __name__ == "__main__":
    print(json.dumps(child(*sys.argv[1:])))
