"""Weights of a model: parameters of the Kiln graph where they are many or floats, else constants."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import numpy as np
import onnx_ir as ir

import kiln
from kiln.onnx._types import is_literal, of_four_bits
from kiln.onnx._values import Array, Tensor

SMALL = 64
"""Known elements up to here are constants (and part of a cache key), more are parameters."""


def kiln_name(name: str) -> str:
    """A name of ONNX's as Kiln has names: without colons and control characters."""
    return re.sub(r"[:\x00-\x1f\x7f]", ".", name)


class NameTaken(Exception):
    """A node that Kiln named has a weight's name: weights have to come first."""


class Weights:
    """Those of one graph, by name; `taken` are names that others have.

    They are declared when something uses them, since many only tell sizes; or all of them at once (`declare`).
    """

    def __init__(self, graph: kiln.Graph, taken: Iterable[str], declare: bool = False) -> None:
        self.graph, self.arrays = graph, dict[str, Array]()
        self._taken, self._declare = set(taken), declare

    def tensor(self, array: Array, name: str) -> Tensor:
        """Elements that the model holds, which are put into the graph when something uses them there."""
        if of_four_bits(array):  # as bytes; dequantize has a way for halves of them
            made = Tensor("i4" if array.min(initial=0) < 0 or array.dtype.name == "int4" else "u4", array.shape,
                          known=array, deciders=frozenset())
            made.make = lambda: self._stored(array.astype(np.int8 if made.dtype == "i4" else np.uint8), name)
            return made
        try:
            made = Tensor.elements(array)
        except KeyError:
            raise kiln.Unimplemented(f"'{name}' is of {array.dtype}, a type that Kiln does not have") from None
        if not is_few(made) or (array.ndim and made.dtype.startswith(("f", "bf"))):
            made.make = lambda: self._stored(array, name)
            if self._declare:
                made.in_graph(self.graph)
        return made

    def packed(self, tensor: Tensor, name: str) -> kiln.Value | None:
        """Numbers of 4 bits as Kiln has them, two a byte along the last dim; None where that is of odd size."""
        known = tensor.known
        if known is None or tensor.dtype not in ("i4", "u4") or not known.ndim or known.shape[-1] % 2:
            return None
        low, high = (known[..., i::2].astype(np.uint8) & 15 for i in range(2))
        return self._stored(low | high << 4, name)

    def _stored(self, array: Array, name: str) -> kiln.Value:
        base, number = kiln_name(name), 1
        while True:
            called = base if number == 1 else f"{base}.{number}"
            number += 1
            if called in self._taken:
                continue  # names of nested graphs may be those of others
            self._taken.add(called)
            try:
                value = self.graph.parameter(called, Tensor.elements(array).dtype, array.shape)
            except kiln.InvalidArgument as error:
                if "is taken" not in str(error):
                    raise
                if not self._declare:
                    raise NameTaken(called) from None
            else:
                self.arrays[called] = array
                return value


def is_few(tensor: Tensor) -> bool:
    """Whether it is known, and as good as a constant anywhere."""
    known = tensor.known
    return known is not None and (known.size <= SMALL or not is_literal(known)) and not of_four_bits(known)


def _external(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                yield value.const_value
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for each in graphs:
        for node in each.all_nodes():
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.TENSOR and isinstance(attribute.value, ir.ExternalTensor):
                    yield attribute.value


def check_external(model: ir.Model, folder: str | None) -> None:
    """Refuses weights in files outside of the model's folder; without one all that are in files."""
    root = None if folder is None else os.path.realpath(folder)
    for tensor in _external(model):
        location = os.fspath(tensor.location)
        if root is None:
            raise kiln.InvalidArgument(f"the weights of '{tensor.name}' lie in '{location}': read the model from its file")
        path = os.path.realpath(os.path.join(root, location))
        if os.path.isabs(location) or os.path.commonpath([root, path]) != root:
            raise kiln.InvalidArgument(f"the weights of '{tensor.name}' lie in '{location}', which is not in the model's "
                                       "folder")
