"""What happens once: the import, and the trace of a function."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import kiln
from figure import Row, differences, error_of, figure, interleave, timer


@figure
def import_kiln() -> Iterator[Row]:
    """Of a fresh process, beyond Python's own start."""
    def start(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    times = interleave({"kiln": timer(lambda: start("import kiln")), "python": timer(lambda: start("pass"))}, 21)
    yield Row("import_kiln", differences(times, "kiln", "python", 1e3), "ms beyond Python's start", 30, times=times)


@figure
def trace() -> Iterator[Row]:
    """From a Python function to a graph of 1,000 nodes."""
    def function(x: Any, y: Any) -> Any:
        for _ in range(500):
            x = x * y + y
        return x

    traced = kiln.jit(function, context=kiln.Context(cache="off"))
    x, y = np.linspace(-1, 1, 16, dtype=np.float32), np.linspace(0, 0.9, 16, dtype=np.float32)
    nodes = sum(node.op is not None for node in traced.graph(x, y).nodes)
    assert nodes == 1000, nodes
    times = interleave({"kiln": timer(lambda: traced.graph(x, y))}, 21, 0.0)
    errors = {"kiln": error_of("kiln", [traced(x, y)], [function(x.astype(np.float64), y.astype(np.float64))], 1e-6)}
    yield Row("trace_1000", [1e3 * each for each in times["kiln"]], "ms", 10, times=times, errors=errors)
