"""What is known of a value of an ONNX graph while the graph is converted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import kiln
from kiln.onnx._types import Size, dtype_of_array, is_literal, sizes

Array = np.ndarray[Any, Any]

NOBODY: frozenset[str] = frozenset()


@dataclass(eq=False)
class Tensor:
    """A value: in the Kiln graph (`value`), or as elements that are `known` when the model is read, or both.

    `deciders` are the graph's inputs from whose values its elements could be computed when the model is read; None
    where that is not to be had (it is no small integer arithmetic). `make` puts it into the graph when it is first used
    there; without it, its elements are a constant. `counts` are the sizes that floats are which were made of sizes.
    """

    dtype: str
    shape: tuple[Size, ...]
    value: kiln.Value | None = None
    known: Array | None = None
    deciders: frozenset[str] | None = None
    make: Callable[[], kiln.Value] | None = None
    counts: Array | None = None

    @classmethod
    def of(cls, value: kiln.Value, deciders: frozenset[str] | None = None) -> Tensor:
        """One that is in the graph."""
        return cls(str(value.dtype), value.shape, value, deciders=deciders)

    @classmethod
    def elements(cls, array: Array, dtype: str = "i64") -> Tensor:
        """One that is known; `dtype` is that of sizes, which have none of their own."""
        return cls(dtype if array.dtype == object else dtype_of_array(array), array.shape, known=array, deciders=NOBODY)

    def in_graph(self, graph: kiln.Graph) -> kiln.Value:
        """It as a value of the graph that is being converted to."""
        if self.value is None:
            assert self.known is not None
            self.value = self.make() if self.make else put(graph, self.known, self.dtype)
        return self.value


def put(graph: kiln.Graph, known: Array, dtype: str) -> kiln.Value:
    """Known elements as a constant; sizes as what computes them, in a dtype."""
    if is_literal(known):
        return graph.constant(np.ascontiguousarray(known).reshape(known.shape))
    scalars = [kiln.ops.size(value=size, dtype=dtype) for size in sizes(known)]
    return scalars[0] if known.ndim == 0 else kiln.ops.reshape(kiln.ops.stack(*scalars), shape=known.shape)
