"""torch.compile: what a call costs beside the work, and how a large graph is divided."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx
from torch._dynamo.backends.common import aot_autograd

import kiln
import kiln.torch
from figure import Row, differences, error_of, figure, interleave, timer
from kiln.torch import parts


def ready(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """A compiler whose programs give tensors that are there: what is left is torch's own."""
    made = [torch.empty(16) for _ in next(iter(reversed(gm.graph.nodes))).args[0]]

    def run(args: list[Any]) -> list[torch.Tensor]:
        args.clear()
        return list(made)
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class Sum(torch.nn.Module):
    """Inputs and parameters of 16 elements, added up; results that are multiples of it."""

    def __init__(self, parameters: int, outputs: int) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.rand(16) for _ in range(parameters))
        self.outputs = outputs

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tensors = [*inputs, *self.weights]
        total = tensors[0]
        for x in tensors[1:]:
            total = total + x
        return tuple(total * (i + 1) for i in range(self.outputs))


def overhead(name: str, inputs: int, parameters: int, outputs: int) -> Row:
    torch._dynamo.reset()
    module, arrays = Sum(parameters, outputs), [torch.rand(16) for _ in range(inputs)]
    backends: dict[str, Callable[..., Any]] = {"kiln": kiln.torch.backend, "ready": aot_autograd(fw_compiler=ready)}
    with torch.no_grad(), kiln.Context(cache="off", threads=torch.get_num_threads()) as context:
        kiln.set_default_context(context)
        run = {backend: torch.compile(module, backend=of) for backend, of in backends.items()}
        exact = copy.deepcopy(module).double()(*(x.double() for x in arrays))
        errors = {"kiln": error_of("kiln", run["kiln"](*arrays), exact, 1e-6)}
        times = interleave({backend: timer("run(*arrays)", run=each, arrays=arrays) for backend, each in run.items()},
                           201, 0.001)
        kiln.set_default_context(None)
    tensors = inputs + parameters
    return Row(name, differences(times, "kiln", "ready", 1e6), "us beyond a ready backend",
               2 + 0.15 * tensors + 0.8 * outputs, times=times, errors=errors,
               note=f"{inputs} inputs, {parameters} parameters, {outputs} outputs")


@figure
def torch_compile_call() -> Iterator[Row]:
    """Beyond a backend that computes nothing, of tensors of 16 elements."""
    yield overhead("torch_compile_call_1_1", 1, 0, 1)
    yield overhead("torch_compile_call_3_2", 3, 0, 2)
    yield overhead("torch_compile_call_parameters", 1, 20, 1)


@figure
def parts_4000() -> Iterator[Row]:
    """Parts of a graph of 4,000 nodes of which 400 stay in torch: a chain."""
    graph, aten = torch.fx.Graph(), torch.ops.aten
    last = graph.placeholder("x")
    for i in range(4000):
        last = graph.call_function((aten.special_i0 if i % 10 == 9 else aten.sin).default, (last,))
        last.meta["val"] = torch.empty(2)
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    taken = {node for node in nodes if node.target is aten.sin.default}
    turns = parts.plan(nodes, taken)
    assert len(turns) == 400 and sum(len(turn.kiln) for turn in turns) == 3600, len(turns)
    times = interleave({"kiln": timer(lambda: parts.plan(nodes, taken))}, 21, 0.0)
    yield Row("parts_4000", [1e3 * each for each in times["kiln"]], "ms", 50, times=times)
