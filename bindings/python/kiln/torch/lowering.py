"""Nodes of an FX graph as nodes of a graph of Kiln's: what rows are given to work with."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import torch
import torch.fx

import kiln
from kiln._kiln import add_node
from kiln.torch import _torch, marks, sizes
from kiln.torch.rows import DTYPES, SMALL_FLOATS, TORCH_DTYPES, Unsupported, find, why_none

Number = bool | int | float


@dataclass(frozen=True, eq=False)
class Fraction:
    """A number that is made of sizes, and is none: a scalar of f64 in Kiln."""

    value: kiln.Value


def number(x: Any) -> float:
    """A number that Kiln has as an attribute, which no size can be."""
    if isinstance(x, kiln.Dim):
        raise Unsupported(f"{x.text}, a size, where a number is expected")
    if isinstance(x, Fraction):
        raise Unsupported("a number made of sizes, where one that is known is expected")
    return float(x)


def element(x: Any, dtype: str) -> Number:
    """A number as torch makes an element of it: of integers without its fraction, and only finite ones."""
    if dtype == "bool":
        return bool(number(x))
    if dtype[0] in "iu" and isinstance(x, float):
        if not math.isfinite(x):
            raise Unsupported(f"{x} as {dtype}")
        return int(x)
    return x if isinstance(x, int) else number(x)


def attribute(node: torch.fx.Node) -> Any:
    """What a get_attr node gets."""
    found: Any = node.graph.owning_module
    for name in str(node.target).split("."):
        found = getattr(found, name)
    return found


def is_module(node: torch.fx.Node) -> bool:
    """Whether it is a graph that another node carries."""
    return node.op == "get_attr" and isinstance(attribute(node), torch.nn.Module)


def is_view(node: torch.fx.Node) -> bool:
    """Whether Kiln can see its value as a view of its first operand."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return isinstance(node.args[0], torch.fx.Node) and is_view(node.args[0])
    found = find(node.target)
    return found is not None and found.view


def why_not_tensor(value: Any) -> str:
    """Why Kiln cannot hold a value of torch's; "" if it can."""
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    if value.device.type != "cpu":
        return f"on device {value.device}, the CPU was expected"
    if value.layout != torch.strided:
        return f"of layout {value.layout}"
    if value.dtype not in DTYPES:
        return f"of {value.dtype}, which Kiln has not"
    if value.is_neg():
        return "one whose elements are negated when they are read; resolve_neg makes it plain"
    if type(value) not in (torch.Tensor, torch.nn.Parameter, _torch.FakeTensor):
        return f"of class {type(value).__name__}, which says itself what operations do"
    return ""


class Lowering:
    """A graph of Kiln's that grows. What it has no value of becomes an input when it is needed; views are made anew."""

    def __init__(self, context: kiln.Context, taken: set[torch.fx.Node],
                 parameters: frozenset[torch.fx.Node] = frozenset(),
                 names: Mapping[torch.fx.Node, str] | None = None, ranges: Mapping[Any, Any] | None = None) -> None:
        self._context = context
        self.graph = kiln.Graph(context)
        self.inputs: list[torch.fx.Node] = []
        self.size_inputs: list[Any] = []  # sympy's symbols that no input's dims bind
        self._symbols: dict[Any, torch.SymInt | torch.SymFloat] = {}
        self._bound: set[str] = set()
        self._values: dict[torch.fx.Node, Any] = {}
        self._taken = taken
        self._node: torch.fx.Node | None = None
        self._parameters, self._names, self._ranges = parameters, names or {}, ranges or {}

    # What rows use.

    @property
    def context(self) -> kiln.Context:
        return self._context

    @property
    def out(self) -> torch.Tensor:
        """The node's fake result, or the first that there is of several."""
        return next(each for each in self.outs if each is not None)

    @property
    def outs(self) -> Sequence[torch.Tensor | None]:
        """The node's fake results."""
        assert self._node is not None
        value = self._node.meta["val"]
        return list(value) if isinstance(value, tuple | list) else [value]

    @property
    def target(self) -> Any:
        """The node's overload."""
        assert self._node is not None
        return self._node.target

    @property
    def dtype(self) -> str:
        """Kiln's name of the result's element type."""
        return DTYPES[self.out.dtype]

    def fake(self, index: int) -> Any:
        """Torch's fake value of an argument."""
        assert self._node is not None
        arg = self._node.args[index] if index < len(self._node.args) else None
        return arg.meta["val"] if isinstance(arg, torch.fx.Node) else arg

    def used(self, index: int) -> bool:
        """Whether something reads a result of the node's."""
        assert self._node is not None
        return any(user.target is operator.getitem and user.args[1] == index for user in self._node.users)

    def op(self, name: str, *operands: Any, **attrs: Any) -> kiln.Value:
        """Adds a node of Kiln's that gives one value."""
        made: kiln.Value = add_node(name, operands, attrs or None, None, self.graph)
        return made

    def several(self, name: str, *operands: Any, **attrs: Any) -> tuple[kiln.Value, ...]:
        """Adds a node that gives several."""
        made = add_node(name, operands, attrs or None, None, self.graph)
        return (made,) if isinstance(made, kiln.Value) else made

    def cast(self, x: kiln.Value, dtype: str) -> kiln.Value:
        """x in another element type."""
        return x if str(x.dtype) == dtype else self.op("convert", x, dtype=dtype)

    def wide(self, x: kiln.Value) -> kiln.Value:
        """x with 16-bit floats in f32, in which torch computes with them before it rounds once."""
        return self.cast(x, "f32") if str(x.dtype) in SMALL_FLOATS else x

    def operand(self, x: Any, dtype: str) -> kiln.Value:
        """A value, a number or a size as an operand of an element type."""
        if isinstance(x, kiln.Value | Fraction):
            return self.cast(x if isinstance(x, kiln.Value) else x.value, dtype)
        if isinstance(x, kiln.Dim):
            return self.op("size", value=x, dtype=dtype)
        return self.full(x, dtype, [])

    def full(self, value: Number, dtype: str, shape: Sequence[Any]) -> kiln.Value:
        """A tensor of one number."""
        value = element(value, dtype)
        if isinstance(value, int) and abs(value) >= 2 ** 53:
            return self.op("full", exact=str(value), dtype=dtype, shape=shape)
        return self.op("full", value=float(value), dtype=dtype, shape=shape)

    def dim(self, dim: int, rank: int) -> int:
        """A dim from the start."""
        return dim + max(rank, 1) if dim < 0 else dim

    def sizes(self, value: torch.Tensor | None = None) -> list[int | kiln.Dim]:
        """The sizes of the result, or of a fake value."""
        return self.dims(self.out.shape if value is None else value.shape)

    def dims(self, all_: Sequence[Any]) -> list[int | kiln.Dim]:
        """Sizes of torch's as Kiln's."""
        return [self.size(each) for each in all_]

    def size(self, size: Any) -> int | kiln.Dim:
        """A size of torch's as Kiln's; its symbols are known from here on."""
        if isinstance(size, int | kiln.Dim):
            return size
        self._say_symbols(size)
        return sizes.to_dim(size)

    def need_elements(self, dims: Sequence[int]) -> None:
        """Leaves to torch what it refuses of no elements: where the first operand has none along a dim, or may have."""
        for size in (self.fake(0).shape[dim] for dim in dims):
            if _torch.may_be_nothing(size):
                raise Unsupported(f"of {size} elements, and torch refuses what has none")

    def reshape(self, x: kiln.Value, shape: Sequence[Any]) -> kiln.Value:
        return self.op("reshape", x, shape=list(shape))

    # How nodes are made.

    def run(self, node: torch.fx.Node) -> None:
        """Adds what the node is made of; raises Unsupported, with the reason, where it has to stay in torch."""
        if node in self._values:
            return
        if node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, torch.fx.Node) and isinstance(index, int)
            if source not in self._values:
                raise Unsupported(f"{source.target} stays in torch")
            made = self._values[source][index]
            if made is None:
                raise Unsupported(f"result {index} of {source.target}, which Kiln does not give")
            self._values[node] = made
            return
        found = find(node.target)
        if found is None:
            raise Unsupported(node.meta.get("kiln_refused") or why_none(node.target))
        made = node.meta.get("val")
        for fake in made if isinstance(made, tuple | list) else [made]:
            if isinstance(fake, torch.Tensor) and fake.dtype not in DTYPES:
                raise Unsupported(f"its result is {why_not_tensor(fake)}")
        args = [self._argument(arg) for arg in node.args]
        kwargs = {name: self._argument(arg) for name, arg in node.kwargs.items()}
        for arg in node.all_input_nodes:
            value = arg.meta.get("val")
            if isinstance(value, torch.Tensor) and DTYPES[value.dtype] not in found.dtypes:
                raise Unsupported(f"operand {arg.name} is of {value.dtype}")
        before, self._node = self._node, node
        self.graph.push_scope(marks.of(node))
        try:
            made = found.make(self, *args, **kwargs)
        except kiln.Error as error:
            raise Unsupported(f"Kiln refuses it: {error}") from error
        finally:
            self.graph.pop_scope()
            self._node = before
        self._check(node, made)
        self._values[node] = made

    @property
    def is_given_arrays(self) -> bool:
        """Whether a call is given any: not by parameters alone, which are bound before."""
        return bool(self.size_inputs) or any(node not in self._parameters for node in self.inputs)

    def value(self, node: torch.fx.Node) -> Any:
        """Kiln's value of a node: made in this graph, or a view of what is, or an input."""
        if node not in self._values:
            if node in self._taken and is_view(node):
                self._run_views(node)
            else:
                self._add_input(node)
        return self._values[node]

    def output(self, node: torch.fx.Node, row_major: bool = False, name: str | None = None) -> None:
        """Makes a value an output, with the strides that torch knows of it."""
        fake = node.meta["val"]
        strides = None if row_major or sizes.overlaps(fake) else sizes.strides_of_result(fake)
        for stride in fake.stride() if strides else ():
            self.size(stride)
        self.graph.output(self._values[node], name or node.name, strides=strides)

    def finish(self) -> kiln.Graph:
        """The graph, in which every symbol has what binds it."""
        for symbol, size in self._symbols.items():
            if str(symbol) not in self._bound:
                self.size_inputs.append(symbol)
                self.graph.input(f"size.{symbol}", "bool", [kiln.Dim(str(symbol))], strides=[0])
        return self.graph

    def _run_views(self, node: torch.fx.Node) -> None:
        source = node.args[0]
        assert isinstance(source, torch.fx.Node)
        self.value(source)
        self.run(node)

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, torch.fx.Node):
            if is_module(arg):
                return attribute(arg)
            value = arg.meta.get("val")
            if isinstance(value, torch.SymInt):
                return self.size(value)
            if isinstance(value, torch.SymFloat):
                self._say_symbols(value)
                return Fraction(sizes.fraction(_torch.expr(value), self.op))
            if isinstance(value, int | float | bool):
                return value
            return self.value(arg)
        if isinstance(arg, list | tuple):
            return [self._argument(each) for each in arg]
        return arg

    def _add_input(self, node: torch.fx.Node) -> None:
        fake: Any = node.meta.get("val")
        reason = why_not_tensor(fake)
        if reason:
            raise Unsupported(f"operand {node.name} is {reason}")
        shape = self.dims(fake.shape)
        strides = sizes.strides_of(fake)
        for stride in fake.stride() if strides else ():
            self.size(stride)
        add = self.graph.parameter if node in self._parameters else self.graph.input
        # Kiln names nodes by their ops: a name of its own cannot be one of these.
        name = self._names.get(node, f"torch.{node.name}")
        self._values[node] = add(name, DTYPES[fake.dtype], shape, strides=strides)
        if node not in self._parameters:
            self._bound.update(sizes.bare_symbols(fake))
        self.inputs.append(node)

    def _say_symbols(self, size: torch.SymInt | torch.SymFloat) -> None:
        for symbol in sorted(getattr(_torch.expr(size), "free_symbols", ()), key=str):
            if symbol not in self._symbols:
                low, high = _torch.range_of(size, symbol, self._ranges)
                if low is None or low < 0:
                    raise Unsupported(f"{symbol}, an int that may be below 0, which no size of Kiln's is")
                self._symbols[symbol] = size
                self.graph.symbol(str(symbol), min=low, max=high)

    def _check(self, node: torch.fx.Node, made: Any) -> None:
        """A row that gives another type than torch is a bug of ours: the node stays in torch, with the reason."""
        fakes = node.meta.get("val")
        both = zip(fakes, made) if isinstance(fakes, tuple | list) else [(fakes, made)]
        for fake, value in both:
            if fake is None or value is None:
                continue
            shape, ours = fake.shape, value.shape
            same = len(shape) == len(ours) and all(
                a == b for a, b in zip(map(sizes.known, shape), ours) if a is not None and type(b) is int)
            if TORCH_DTYPES[str(value.dtype)] != fake.dtype or not same:
                raise Unsupported(f"its row gives {value!r}, torch {fake.dtype} {list(fake.shape)}")
