"""Run time of models: beside eager and inductor, and of ONNX files beside ONNX Runtime. All have as many threads."""

from __future__ import annotations

import copy
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import kiln
import kiln.torch
from figure import ASLEEP_S, Row, effort, error_of, figure, interleave, ratios, timer
from models import MODELS

ROUNDS, SECONDS = 21, 0.03
BRIEF = ("mlp",)


def chosen(all_: list[str]) -> list[str]:
    return [name for name in all_ if name in BRIEF or not effort.brief]


def compare(name: str, run: dict[str, Callable[[], Any]], exact: Any, peers: list[str]) -> Iterator[Row]:
    errors = {who: error_of(who, [each()], [exact]) for who, each in run.items()}
    times = interleave({who: timer(each) for who, each in run.items()}, ROUNDS, SECONDS, ASLEEP_S)
    for ours in ("kiln", "kiln, frozen"):
        for peer in peers:
            if ours in run:
                frozen = "_frozen" if "frozen" in ours else ""
                yield Row(f"{name}{frozen}_{peer.replace(' ', '_')}", ratios(times, ours, peer), f"x {ours} / {peer}",
                          times=times, errors=errors)


@figure
def run_time() -> Iterator[Row]:
    """Of one input in eval: weights read at each call, and frozen."""
    for name in chosen(list(MODELS)):
        torch._dynamo.reset()
        module, x, exact = MODELS[name].build()
        with torch.no_grad(), kiln.Context(cache="off", threads=torch.get_num_threads()) as context:
            kiln.set_default_context(context)
            models = {"eager": module, "inductor": torch.compile(copy.deepcopy(module)),
                      "kiln": torch.compile(copy.deepcopy(module), backend=kiln.torch.backend),
                      "kiln, frozen": torch.compile(copy.deepcopy(module), backend=kiln.torch.backend,
                                                    options={"freeze": True})}
            run = {who: (lambda each=each: each(x)) for who, each in models.items()}
            yield from compare(f"run_{name}", run, exact, ["eager", "inductor"])
            kiln.set_default_context(None)
            del models, run


@figure
def train_step() -> Iterator[Row]:
    """Forward and backward of the decoder block; what is compared are the gradients."""
    torch._dynamo.reset()
    module, x, _ = MODELS["decoder"].build()

    def step(model: Any, x: torch.Tensor) -> list[torch.Tensor]:
        model.zero_grad()
        model(x).square().mean().backward()
        return [p.grad for p in model.parameters()]

    exact = step(copy.deepcopy(module).double(), x.double())
    with kiln.Context(cache="off", threads=torch.get_num_threads()) as context:
        kiln.set_default_context(context)
        models = {"eager": module, "kiln": torch.compile(copy.deepcopy(module), backend=kiln.torch.backend),
                  "inductor": torch.compile(copy.deepcopy(module))}
        errors = {who: error_of(who, step(each, x), exact) for who, each in models.items()}
        times = interleave({who: timer(lambda each=each: step(each, x)) for who, each in models.items()}, ROUNDS,
                           SECONDS, ASLEEP_S)
        for peer in ("eager", "inductor"):
            yield Row(f"train_decoder_{peer}", ratios(times, "kiln", peer), f"x kiln / {peer}", times=times,
                      errors=errors)
        kiln.set_default_context(None)


@figure
def onnx_run_time() -> Iterator[Row]:
    """Files that torch exports, beside ONNX Runtime with its defaults."""
    import onnxruntime

    import kiln.onnx
    for name in chosen([name for name, model in MODELS.items() if model.exported]):
        module, x, exact = MODELS[name].build()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = os.path.join(folder, "model.onnx")
            torch.onnx.export(module, (x,), path, dynamo=False, input_names=["x"], opset_version=20)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            theirs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            with kiln.Context(cache="off", threads=torch.get_num_threads()) as context:
                graph, weights = kiln.onnx.load(path, context=context)
                call, array = context.compile(graph).bind(weights), x.numpy()
                run = {"kiln": lambda: call(array), "onnxruntime": lambda: theirs.run(None, {"x": array})[0]}
                yield from compare(f"onnx_{name}", run, exact, ["onnxruntime"])
                del call, run
