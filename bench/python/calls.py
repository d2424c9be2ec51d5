"""What a call of a small program costs: three arrays of 16 elements, beside the function that does the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

import kiln
from figure import Row, error_of, figure, interleave, ratios, timer

SIZE, ROUNDS, SECONDS = 16, 201, 0.001  # short rounds, in few of which others take the core


def added() -> kiln.Executable:
    graph = kiln.Graph(kiln.Context(cache="off"))
    graph.output(graph.input("a", "f32", [SIZE]) + graph.input("b", "f32", [SIZE]), "c")
    return kiln.compile(graph)


@figure
def call_numpy() -> Iterator[Row]:
    """A call, and one with all bound, beside numpy.add(out=)."""
    program = added()
    a, b, c = np.random.default_rng(0).random((3, SIZE), np.float32)
    d, e = np.empty((2, SIZE), np.float32)
    bound = program.bind(a=a, b=b, c=d)
    times = interleave({"kiln": timer("program(a, b, out=c)", program=program, a=a, b=b, c=c),
                        "bound": timer("bound()", bound=bound),
                        "numpy": timer("add(a, b, out=e)", add=np.add, a=a, b=b, e=e)}, ROUNDS, SECONDS)
    exact = a.astype(np.float64) + b
    errors = {name: error_of(name, [x], [exact], 1e-7) for name, x in (("kiln", c), ("bound", d), ("numpy", e))}
    yield Row("call_numpy", ratios(times, "kiln", "numpy"), "x kiln / numpy.add(out=)", 0.8, times=times, errors=errors)
    yield Row("call_bound", ratios(times, "bound", "numpy"), "x kiln, all bound / numpy.add(out=)", 0.5, times=times,
              errors=errors)


@figure
def call_torch() -> Iterator[Row]:
    """A call with torch's tensors: results written where they lie, and new ones."""
    program = added()
    a, b, c, d = torch.rand(4, SIZE).unbind()
    names = {"program": program, "add": torch.add, "a": a, "b": b, "c": c, "d": d}
    times = interleave({"kiln": timer("program(a, b, out=c)", **names), "torch": timer("add(a, b, out=d)", **names),
                        "kiln, new": timer("program(a, b)", **names), "torch, new": timer("add(a, b)", **names)},
                       ROUNDS, SECONDS)
    exact = a.double() + b.double()
    errors = {name: error_of(name, [x], [exact], 1e-7)
              for name, x in (("kiln", c), ("torch", d), ("kiln, new", program(a, b)))}
    yield Row("call_torch", ratios(times, "kiln", "torch"), "x kiln / torch.add(out=)", 0.5, times=times, errors=errors)
    yield Row("call_torch_new", ratios(times, "kiln, new", "torch, new"), "x kiln / torch.add", times=times,
              errors=errors)
