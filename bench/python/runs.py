"""Run time of models on as many threads: above 1 Kiln is ahead of the quickest peer."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch

import kiln
import kiln.onnx
import kiln.torch
from figure import ASLEEP_S, Figure, Row, able, beside_best, effort, error_of, figure, interleave, timer
from models import MODELS, Model
from peers import export, in_onnxruntime, in_openvino

ROUNDS, SECONDS = 15, 0.03
BRIEF = ("mlp",)
UNFROZEN, FILES = ("eager", "inductor"), ("onnxruntime", "openvino")
FROZEN = ("eager", "inductor, frozen", *FILES)
Maker = Callable[[], Callable[[], Any]]


def by_torch(model: Model, module: torch.nn.Module, x: tuple[torch.Tensor, ...]) -> dict[str, Maker]:
    """Makers of calls of what torch runs, and compiles. Each has a module of its own, which shares the weights."""
    def compiled(**more: Any) -> Any:
        return torch.compile(copy.copy(module), **more)

    freeze = {"freeze": True}
    made = {"eager": module, "inductor, frozen": compiled(options={"freezing": True}),
            "kiln, frozen": compiled(backend=kiln.torch.backend, options=freeze)}
    if model.relaxed:
        made["kiln, relaxed"] = compiled(backend=kiln.torch.backend, options={**freeze, "rounding": "relaxed"})
    if not model.large:
        made |= {"inductor": compiled(), "kiln": compiled(backend=kiln.torch.backend)}
    return {who: (lambda each=each: lambda: each(*x)) for who, each in made.items()}


def of_file(path: str, x: tuple[torch.Tensor, ...], context: kiln.Context, large: bool) -> dict[str, Maker]:
    """The same of an ONNX file."""
    arrays = [each.numpy() for each in x]

    def in_kiln() -> Callable[[], Any]:
        graph, weights = kiln.onnx.load(path, context=context)
        call = context.compile(graph).bind(weights)
        return lambda: call(*arrays)

    made = {"onnxruntime": lambda: in_onnxruntime(path, arrays), "openvino": lambda: in_openvino(path, arrays)}
    return made if large else {**made, "kiln, of the file": in_kiln}


def beside(name: str, model: Model) -> Iterator[Row]:
    torch._dynamo.reset()
    module, x, exact = model.build()
    notes = [model.note] if model.note else []
    with (torch.no_grad(), tempfile.TemporaryDirectory() as folder,
          kiln.Context(cache="off", threads=torch.get_num_threads()) as context):
        kiln.set_default_context(context)
        makers = by_torch(model, module, x) | of_file(export(module, x, folder), x, context, model.large)
        run, errors = able(makers, exact, 1e-4, notes)
        times = interleave({who: timer(each) for who, each in run.items()}, ROUNDS, SECONDS, ASLEEP_S)
        for ours, suffix, peers, target in (
                ("kiln, frozen", "", FROZEN, model.target), ("kiln, relaxed", "_relaxed", FROZEN, model.relaxed),
                ("kiln", "_unfrozen", UNFROZEN, None), ("kiln, of the file", "_onnx", FILES, None)):
            if ours in run:
                yield beside_best(f"run_{name}{suffix}", times, ours, peers, target, errors=errors,
                                  note="; ".join(notes))
        kiln.set_default_context(None)
        run.clear()


def run_of(name: str, model: Model) -> Figure:
    """Of one input in eval, with frozen weights beside all peers, weights read at each call, and an ONNX file."""
    def rows() -> Iterator[Row]:
        if name in BRIEF or not effort.brief:
            yield from beside(name, model)

    rows.__name__ = f"run_{name}"
    return rows


for each_name, each_model in MODELS.items():  # a figure each, for one that fails must not end the others
    figure(run_of(each_name, each_model))


@figure
def train_step() -> Iterator[Row]:
    """Forward and backward of the decoder block; what is compared are the gradients."""
    torch._dynamo.reset()
    module, (x,), _ = MODELS["decoder"].build()

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
        yield beside_best("train_decoder", times, "kiln", UNFROZEN, errors=errors)
        kiln.set_default_context(None)
