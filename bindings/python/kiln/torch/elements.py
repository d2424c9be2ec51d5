"""Graphs that torch has of one element, which are given numbers, as graphs of all elements: score and mask functions.

A number becomes an array with a dim for each thing that is counted (batch, head, query, key), of size 1 where it does not
depend on it, and operations of numbers become those of arrays, which broadcast.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.fx

import kiln
from kiln.torch import _torch
from kiln.torch.lowering import Lowering
from kiln.torch.rows import SMALL_FLOATS, TORCH_DTYPES, Unsupported

aten = torch.ops.aten
_COUNTED = ("batch", "head", "query", "key")
# Of numbers, beside what torch marks as pointwise.
_OF_NUMBERS = {aten._to_copy.default, aten.index.Tensor, aten.clone.default, aten.alias.default, aten.detach.default,
               aten.zeros_like.default, aten.ones_like.default, aten.full_like.default, aten.new_ones.default,
               aten.new_zeros.default, aten.new_full.default}


def wide(dtype: str) -> str:
    """In which attention's graphs have an element type."""
    return "f32" if dtype in SMALL_FLOATS else dtype


def gives_what_it_is_given(module: torch.fx.GraphModule, index: int) -> bool:
    """Whether it is the function that returns an argument."""
    nodes = list(module.graph.nodes)
    return nodes[-1].args[0] is nodes[index]


def gives_true(module: torch.fx.GraphModule) -> bool:
    """Whether it is the mask that hides nothing."""
    result: Any = module.graph.output_node().args[0]
    return result.target is aten.new_ones.default or result.target is aten.full.default and result.args[1] is True


def captured_by(module: torch.fx.GraphModule, numbers: int, captured: Sequence[Any]) -> list[Any]:
    """Of what a function captures: what it uses, None in place of what not. Numbers of its own come before these."""
    places = [node for node in module.graph.nodes if node.op == "placeholder"][numbers:]
    if len(places) != len(captured):
        raise Unsupported(f"{len(captured)} captured values for {len(places)}")
    return [value if place.users else None for place, value in zip(places, captured)]


def graph_of(context: kiln.Context, module: torch.fx.GraphModule, scores: str | None, dims: Sequence[Any],
             captured: Sequence[Any], first: int) -> kiln.Graph:
    """The graph of a function: scores is their element type, None of a mask. Of the captured values that the graph is
    given, which are Kiln's or None, those from the first on are the function's."""
    try:
        return Elements(context).fill(module, scores, dims, captured, first)
    except kiln.Error as error:
        raise Unsupported(f"Kiln refuses its function: {error}") from error


class Elements(Lowering):
    """A graph of all elements that grows."""

    def __init__(self, context: kiln.Context) -> None:
        super().__init__(context, set())
        self._numbers: set[torch.fx.Node] = set()  # of the element

    def run(self, node: torch.fx.Node) -> None:
        if any(operand in self._numbers for operand in node.all_input_nodes):
            tags = getattr(node.target, "tags", ())
            if getattr(node.meta.get("val"), "shape", None) != ():
                raise Unsupported(f"{node.target} makes more than a number of an element")
            if torch.Tag.pointwise not in tags and node.target not in _OF_NUMBERS:
                raise Unsupported(f"{node.target} of an element's numbers")
            self._numbers.add(node)
        super().run(node)

    def fill(self, module: torch.fx.GraphModule, scores: str | None, dims: Sequence[Any], captured: Sequence[Any],
             first: int) -> kiln.Graph:
        shape = [dim if isinstance(dim, int) else kiln.Dim(name) for dim, name in zip(dims, _COUNTED)]
        for dim in shape:
            if isinstance(dim, kiln.Dim):
                self.graph.symbol(dim.text, min=0)
        given: list[Any] = [self.graph.input("score", scores, shape)] if scores else []
        for at, name in enumerate(_COUNTED):
            number = self.graph.input(f"{name}.number", "i64", [size if i == at else 1 for i, size in enumerate(shape)])
            given.append(self.op("convert", number, dtype="i32"))
        values = [None if value is None else self._add_captured(i, value) for i, value in enumerate(captured)]
        graph = _torch.with_wide_floats(_merge_indices(module))
        places = [node for node in graph.nodes if node.op == "placeholder"]
        self._numbers.update(places[:len(given)])
        self._values.update(zip(places, given + values[first:]))
        for node in graph.nodes:
            if node.op == "get_attr":
                raise Unsupported(f"{node.target}, a constant")
            if node.op == "call_function":
                self.run(node)
        last: Any = graph.output_node().args[0]
        result = self._values[last]
        if len(result.shape) < 4:
            result = self.reshape(result, [1] * 4)
        if scores:
            result = self.op("expand", self.cast(result, scores), shape=shape)
        self.graph.output(result, "y")
        return self.graph

    def _add_captured(self, i: int, value: kiln.Value) -> kiln.Value:
        shape: list[Any] = []
        for dim, size in enumerate(value.shape):
            name = f"captured{i}_{dim}"
            if not isinstance(size, int):
                self.graph.symbol(name, min=0)
            shape.append(size if isinstance(size, int) else kiln.Dim(name))
        return self.graph.input(f"captured{i}", wide(str(value.dtype)), shape)

    def _check(self, node: torch.fx.Node, made: Any) -> None:
        fake = node.meta["val"]
        if not isinstance(made, kiln.Value) or TORCH_DTYPES[str(made.dtype)] != fake.dtype:
            raise Unsupported(f"its row gives {made!r}, torch {fake.dtype}")


def _merge_indices(module: torch.fx.GraphModule) -> torch.fx.Graph:
    """A copy of its graph, in which x[i][j], of numbers, is x[i, j]: what lies between has more than one element."""
    graph = torch.fx.Graph(module)
    graph.output(graph.graph_copy(module.graph, {}))

    def are_numbers(indices: Any) -> bool:
        return all(isinstance(each, torch.fx.Node) and each.meta["val"].shape == () for each in indices)

    for node in graph.nodes:
        if node.target is not aten.index.Tensor:
            continue
        x, indices = node.args
        while x.target is aten.index.Tensor and are_numbers(x.args[1]) and are_numbers(indices):
            x, indices = x.args[0], [*x.args[1], *indices]
        node.args = (x, indices)
    graph.eliminate_dead_code()
    return graph
