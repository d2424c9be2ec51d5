"""From an ONNX graph to a Kiln graph, node after node."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

import kiln
from kiln.onnx import _fold, _functions
from kiln.onnx._node import Node, name_of
from kiln.onnx._registry import Conversion, Parameter, find
from kiln.onnx._types import Size, dtype_of, product
from kiln.onnx._values import Array, Tensor
from kiln.onnx._weights import FOLDER, Weights, is_few, kiln_names

FEW = 1024
"""An input with so many elements may decide sizes."""

DEEPEST = 64
"""Graphs and functions that are inside or called by one another."""

MOST_NODES = 2**18
"""That are converted of one model, functions and graphs inside as often as they are: a few lines can tell of any number."""


class NeedsValues(kiln.Unimplemented):
    """Sizes depend on the values of these inputs of the model: tell them, and it is converted for these values."""

    def __init__(self, message: str, names: frozenset[str]) -> None:
        super().__init__(message)
        self.names = names


@dataclass
class Frame:
    """Where names are looked up: a graph of the model, or a call of a function.

    `outer` has what is not known here. A frame of a nested Kiln graph `is_nested`; what it takes from outside becomes
    an input of its own, and `captures` tells of what.
    """

    converter: Converter
    graph: kiln.Graph
    versions: Mapping[str, int]
    outer: Frame | None = None
    is_nested: bool = False
    references: Mapping[str, ir.Attr] = field(default_factory=dict)
    tensors: dict[ir.Value, Tensor | None] = field(default_factory=dict)
    captures: list[Tensor] = field(default_factory=list)
    inside: dict[Tensor, Tensor] = field(default_factory=dict)
    sizes: list[Size] = field(default_factory=list)
    depth: int = 0

    def __post_init__(self) -> None:
        self.depth = self.outer.depth + 1 if self.outer else 0
        if self.depth > DEEPEST:
            raise kiln.Unimplemented(f"graphs and functions are more than {DEEPEST} deep, or a function calls itself")

    def find(self, value: ir.Value) -> Tensor | None:
        """What is known of a value; None of an absent input of a function."""
        if value in self.tensors:
            return self.tensors[value]
        if self.outer is None:
            raise kiln.TypeMismatch(f"nothing makes '{value.name}'")
        found = self.outer.find(value)
        return self.take(found) if self.is_nested and found else found

    def value(self, value: ir.Value) -> kiln.Value:
        """The value of an output, in the frame's graph."""
        found = self.find(value)
        if found is None:
            raise kiln.TypeMismatch(f"output '{value.name}' is absent")
        return found.in_graph(self.graph)

    def take(self, found: Tensor) -> Tensor:
        """A tensor of the outer frame's, in this frame's graph."""
        if found not in self.inside:
            assert self.outer is not None
            if found.known is not None and is_few(found):
                made = Tensor.elements(found.known, found.dtype)
                self.sizes.extend(found.known.flat)
            else:
                value = found.in_graph(self.outer.graph)
                made = self.argument(str(value.dtype), value.shape, f"outer.{len(self.captures)}")
                made.deciders = found.deciders
                self.captures.append(found)
            self.inside[found] = made
        return self.inside[found]

    def argument(self, dtype: str, shape: Sequence[Size], name: str) -> Tensor:
        """A further input of a nested graph."""
        self.sizes.extend(shape)
        return Tensor.of(self.graph.input(name, dtype, shape))

    def bind_sizes(self) -> None:
        """Makes inputs that do nothing but bind the symbols that nothing else in a nested graph binds."""
        assert self.outer is not None
        texts = [size.text for size in self.sizes if isinstance(size, kiln.Dim)]
        used = {name for text in texts for name in re.findall(r"[A-Za-z_]\w*(?!\w*\()", text)}
        for name in sorted(used - {size.text for value in self.graph.inputs for size in value.shape
                                   if isinstance(size, kiln.Dim)}):
            with self.outer.graph:
                self.captures.append(Tensor.of(kiln.ops.full(shape=[name], dtype="bool")))
            self.argument("bool", [kiln.Dim(name)], f"size.{name}")


class Converter:
    """Converts one model, for given values of some of its inputs; of those that have a default `inputs` stay inputs."""

    def __init__(self, model: ir.Model, context: kiln.Context | None, values: Mapping[str, Array],
                 inputs: Collection[str] = (), declare: bool = False) -> None:
        self.model, self.values, self.inputs = model, values, frozenset(inputs)
        self.graph = kiln.Graph(context)
        self.names = kiln_names([str(value.name) for value in model.graph.inputs
                                 if value.name not in model.graph.initializers or value.name in self.inputs])
        self.weights = Weights(self.graph, self.names.values(), model.meta.get(FOLDER), declare)
        self.root = Frame(self, self.graph, dict(model.opset_imports))
        self._symbols = self._nodes = 0

    def run(self) -> None:
        """Converts the model's graph."""
        graph = self.model.graph
        with self.graph:
            self.initialisers(graph)
            for value in graph.inputs:
                if value not in self.root.tensors:
                    self.root.tensors[value] = self.input(value)
            self.nodes(graph, self.root)
            outputs = kiln_names([str(value.name) for value in graph.outputs])
            for value in graph.outputs:
                made = self.root.value(value)
                if made.node.kind != "op" and made.node.kind != "constant":
                    made = kiln.ops.clone(made)  # an output has memory of its own
                self.graph.output(made, outputs[str(value.name)])

    def input(self, value: ir.Value) -> Tensor:
        """An input of the model."""
        name = str(value.name)
        if name in self.values:
            return Tensor.elements(np.asarray(self.values[name]))
        type_ = value.type
        if isinstance(type_, ir.OptionalType):
            type_ = type_.elem_type
        if not isinstance(type_, ir.TensorType):
            raise kiln.Unimplemented(f"input '{name}' is a {type_}, and Kiln has tensors alone")
        dtype = dtype_of(type_.dtype)
        if dtype is None:
            raise kiln.Unimplemented(f"input '{name}' is of {type_.dtype.name}, a type that Kiln does not have")
        if value.shape is None:
            raise kiln.Unimplemented(f"input '{name}' has no shape, and Kiln has to know how many dims there are")
        shape = [size if isinstance(size, int) else kiln.Dim(symbol(size.value or f"{name}_{i}"))
                 for i, size in enumerate(value.shape.dims)]
        made = Tensor.of(self.graph.input(self.names[name], dtype, shape))
        count = product(shape)
        is_small = isinstance(count, int) and count <= FEW
        made.deciders = frozenset([name]) if is_small else None
        return made

    def fresh_symbol(self, of: str) -> str:
        """The name of a size that a run tells, which nothing else has."""
        self._symbols += 1
        return f"_{of}_{self._symbols}"

    # ---- weights

    def initialisers(self, graph: ir.Graph) -> None:
        """Weights of the model, those of nested graphs too: all belong to the outermost graph."""
        for value in graph.initializers.values():
            if value in self.root.tensors:
                continue  # of a graph that is converted once more
            if graph is self.model.graph and (value.name in self.inputs or value.name in self.values):
                continue  # a default that is not taken
            assert value.const_value is not None
            self.root.tensors[value] = self.weights.tensor(self.weights.elements(value.const_value), str(value.name))

    # ---- nodes

    def nodes(self, graph: ir.Graph | ir.Function, frame: Frame) -> None:
        """All nodes of a graph, in its frame."""
        for node in graph:
            version = frame.versions.get("" if node.domain == "ai.onnx" else node.domain)
            if version is None:
                raise kiln.TypeMismatch(f"[{node.op_type}] node '{name_of(node)}': the model imports no opset of its domain "
                                        f"'{node.domain}'")
            told = Node(node, frame, version, frame.references)
            self._nodes += 1
            if self._nodes > MOST_NODES:
                raise told.refuse(f"it is after {MOST_NODES} others, which are the most that a model may have")
            results = self.node(told)
            for output, result in zip(node.outputs, results, strict=False):
                if output.name and result is not None:
                    frame.tensors[output] = result

    def node(self, node: Node) -> Sequence[Tensor | None]:
        """Converts one node."""
        inputs = [None if value is None or not value.name else node.frame.find(value) for value in node.ir.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        if node.op == "Constant" and not node.domain:
            output = node.ir.outputs[0]
            if output not in self.root.tensors or any(each.is_ref() for each in node.ir.attributes.values()):
                self.root.tensors[output] = self.constant(node)  # weights belong to the outermost graph
            return []
        try:
            return self._made(node, inputs)
        except kiln.Error:
            raise
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            # An attribute of another kind, lists of other lengths, an index that is none: no function checks for all.
            raise node.wrong(str(error)) from error

    def _made(self, node: Node, inputs: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        folded = _fold.fold(node, inputs)
        if folded is not None:
            return folded
        with node.frame.graph, node.frame.graph.scope({"debug.onnx": f"{node.op} {node.name}"}):
            function = self.model.functions.get(node.ir.op_identifier())
            if function is not None:
                return self.call(function, node, inputs)
            conversion = find(node.domain, node.op, node.version)
            if conversion is not None:
                return self.convert(conversion, node, inputs)
            function = _functions.body(node, inputs)
            if function is not None:
                return self.call(function, node, inputs)
        raise node.refuse("there is no such op, or none that Kiln could make of it")

    def constant(self, node: Node) -> Tensor:
        """The op Constant, whose elements are an attribute."""
        attributes = node.attributes
        if "value" in attributes:
            return self.weights.tensor(node.array("value"), str(node.ir.outputs[0].name))
        for name, dtype in (("value_int", np.int64), ("value_ints", np.int64), ("value_float", np.float32),
                            ("value_floats", np.float32)):
            if name in attributes:
                return self.weights.tensor(np.asarray(attributes[name], dtype), str(node.ir.outputs[0].name))
        raise node.refuse(f"a constant of {', '.join(attributes) or 'nothing'} is not supported")

    def convert(self, conversion: Conversion, node: Node, inputs: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Converts one node by its function."""
        arguments: list[Any] = []
        given = list(inputs)
        for parameter in conversion.parameters:
            if parameter.variadic:
                arguments.extend(self.argument(node, parameter, each) for each in given)
                given = []
                break
            tensor = given.pop(0) if given else None
            if tensor is None and not parameter.optional:
                raise node.wrong(f"its input '{parameter.name}' is missing")
            arguments.append(self.argument(node, parameter, tensor))
        if any(each is not None for each in given):
            raise node.wrong(f"{len(inputs)} inputs, at most {len(conversion.parameters)} were expected")
        try:
            results = conversion.function(node, *arguments)
        except NeedsValues:
            raise
        except kiln.Error as error:
            if str(error).startswith(f"[{node.op}] node "):
                raise
            raise type(error)(node.message(str(error))) from error
        unread = node.resolved.keys() - node.read - conversion.ignores
        if unread:
            raise node.refuse(f"attribute '{min(unread)}' is not supported here")
        if not isinstance(results, tuple | list):
            results = [results]
        deciders = _fold.deciders(node, inputs)
        return [each if each is None or isinstance(each, Tensor) else
                Tensor.elements(each) if isinstance(each, np.ndarray) else Tensor.of(each, deciders)
                for each in results]

    def argument(self, node: Node, wanted: Parameter, tensor: Tensor | None) -> kiln.Value | Array | Tensor | None:
        """An input of a node's, as its function wants it."""
        if tensor is None or wanted.kind == "Tensor":
            return tensor
        return self.known(node, wanted.name, tensor) if wanted.kind == "Known" else tensor.in_graph(node.frame.graph)

    def known(self, node: Node, name: str, tensor: Tensor) -> Array:
        """The elements of an input of a node's."""
        if tensor.known is not None:
            return tensor.known
        names = (tensor.deciders or frozenset()) - set(self.values)
        if names:
            many = ", ".join(f"'{each}'" for each in sorted(names))
            raise NeedsValues(node.message(f"its input '{name}' follows from the values of {many}, which have to be told "
                                           "when the model is read"), names)
        raise node.refuse(f"its input '{name}' has to be known when the model is read, and is computed")

    def call(self, function: ir.Function, node: Node, inputs: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """A function of the model's, or the body of an op: its nodes take the node's place."""
        references = {**{name: attr for name, attr in function.attributes.items() if attr.value is not None},
                      **node.resolved}
        versions = {**node.frame.versions, **function.opset_imports}
        frame = Frame(self, node.frame.graph, versions, node.frame, references=references)
        if len(inputs) > len(function.inputs):
            raise node.wrong(f"{len(inputs)} inputs, at most {len(function.inputs)} were expected")
        frame.tensors.update(itertools.zip_longest(function.inputs, inputs))
        self.nodes(function, frame)
        return [frame.find(value) if node.wants(i) else None for i, value in enumerate(function.outputs)]


def symbol(name: str) -> str:
    """The name of a size, of letters and digits."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    return made if re.match(r"[A-Za-z_]", made) else f"_{made}"


def frame_of(outer: Frame, graph: ir.Graph, nested: kiln.Graph | None = None) -> Frame:
    """The frame of a graph inside another; in a Kiln graph of its own, if that is told."""
    outer.converter.initialisers(graph)
    return Frame(outer.converter, nested or outer.graph, outer.versions, outer, nested is not None, outer.references)
