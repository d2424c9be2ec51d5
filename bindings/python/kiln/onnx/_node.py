"""One node of an ONNX model, as the functions that convert ops see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

import kiln
from kiln.onnx._types import Size, dtype_of, product
from kiln.onnx._values import Array

if TYPE_CHECKING:
    from kiln.onnx._convert import Frame


def name_of(node: ir.Node) -> str:
    """A node's name, or that of what it makes."""
    return node.name or next((str(output.name) for output in node.outputs if output.name), "")


class Node:
    """Its attributes by type, what it is called in messages, and the frame that it is converted in."""

    def __init__(self, node: ir.Node, frame: Frame, version: int, references: Mapping[str, ir.Attr]) -> None:
        self.ir, self.frame, self.version = node, frame, version
        self.op, self.domain = node.op_type, node.domain
        self.read: set[str] = set()
        self.attributes: dict[str, Any] = {}
        self.resolved: dict[str, ir.Attr] = {}
        for name, attr in node.attributes.items():
            if attr.is_ref():  # of a function: what its caller says, and nothing where it says nothing
                told = references.get(str(attr.ref_attr_name))
                if told is None:
                    continue
                attr = ir.Attr(name, told.type, told.value)
            self.attributes[name], self.resolved[name] = attr.value, attr

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return name_of(self.ir)

    def message(self, text: str) -> str:
        """What is said of it: `[Resize] node 'up1': ... (ai.onnx, opset 13)`."""
        return f"[{self.op}] node '{self.name}': {text} ({self.domain or 'ai.onnx'}, opset {self.version})"

    def refuse(self, text: str) -> kiln.Unimplemented:
        """To raise: what Kiln lacks."""
        return kiln.Unimplemented(self.message(text))

    def wrong(self, text: str) -> kiln.TypeMismatch:
        """To raise: what the model has wrong."""
        return kiln.TypeMismatch(self.message(text))

    # ---- attributes

    def has(self, name: str) -> bool:
        """Whether it is told."""
        self.read.add(name)
        return name in self.attributes

    def _get(self, name: str, default: Any) -> Any:
        self.read.add(name)
        value = self.attributes.get(name, default)
        if value is ...:
            raise self.wrong(f"attribute '{name}' is missing")
        return value

    def integer(self, name: str, default: Any = ...) -> int:
        """An attribute that is an integer."""
        return int(self._get(name, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or not."""
        return bool(self._get(name, default))

    def ints(self, name: str, default: Any = ...) -> list[int]:
        """An attribute that is a list of integers."""
        return [int(each) for each in self._get(name, default)]

    def number(self, name: str, default: Any = ...) -> float:
        """An attribute that is a number."""
        return float(self._get(name, default))

    def floats(self, name: str, default: Any = ...) -> list[float]:
        """An attribute that is a list of numbers."""
        return [float(each) for each in self._get(name, default)]

    def text(self, name: str, default: str | None = None, among: Sequence[str] = ()) -> str:
        """An attribute that is a text, one of those that are known, if any are told."""
        value = self._get(name, ... if default is None else default)
        value = value.decode() if isinstance(value, bytes) else str(value)
        if among and value not in among:
            raise self.refuse(f"{name} '{value}' is not supported, one of {', '.join(among)} was expected")
        return value

    def texts(self, name: str, default: Any = ...) -> list[str]:
        """An attribute that is a list of texts."""
        return [each.decode() if isinstance(each, bytes) else str(each) for each in self._get(name, default)]

    def graph(self, name: str) -> ir.Graph:
        """An attribute that is a graph."""
        made = self._get(name, ...)
        if not isinstance(made, ir.Graph):
            raise self.wrong(f"attribute '{name}' is no graph")
        return made

    def array(self, name: str) -> Array:
        """An attribute that is a tensor."""
        tensor = self._get(name, ...)
        if not isinstance(tensor, ir.TensorProtocol):
            raise self.wrong(f"attribute '{name}' is no tensor")
        return self.frame.converter.weights.elements(tensor)

    def dtype(self, name: str, default: Any = ...) -> str:
        """An attribute that is an element type, by Kiln's name; a default is one, too."""
        if not self.has(name) and default is not ...:
            return str(default)
        type_ = self.integer(name)
        found = dtype_of(type_)
        if found is None:
            raise self.refuse(f"{name} is {ir.DataType(type_).name}, a type that Kiln does not have")
        return found

    # ---- dims

    def axis(self, axis: int, rank: int) -> int:
        """A dim's number from 0 on."""
        if not -rank <= axis < max(rank, 1):
            raise self.wrong(f"axis {axis} of {rank} dims")
        return axis + rank if axis < 0 else axis

    def axes(self, known: Array | None, rank: int, default: Sequence[int] | None = None) -> list[int]:
        """Axes that are an input or, in older opsets, an attribute; none told: the default, else all."""
        told = [int(each) for each in known.flat] if known is not None else self.ints(
            "axes", range(rank) if default is None else default)
        return [self.axis(each, rank) for each in told]

    def literal(self, sizes: Sequence[Size], what: str) -> list[int]:
        """Sizes that have to be numbers."""
        for size in sizes:
            if not isinstance(size, int):
                raise self.refuse(f"{what} is {size}, and has to be known when the model is read")
        return [int(size) for size in sizes]

    def count(self, value: kiln.Value) -> Size:
        """How many elements it has."""
        return product(value.shape)

    def wants(self, output: int) -> bool:
        """Whether anything may use that output."""
        return output < len(self.ir.outputs) and bool(self.ir.outputs[output].name)
