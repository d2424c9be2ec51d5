"""What runs in place of an FX graph: calls of Kiln's programs, what torch does between them, and views.

It is an FX graph again, of which torch makes Python code. Placeholders, None, sizes, inputs among outputs and values
that are given twice pass through it as they are.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Sequence

import torch
import torch.fx

import kiln
from kiln.torch import _torch, random, sizes
from kiln.torch.lowering import Lowering, attribute, is_module, is_view
from kiln.torch.parts import Turn, is_copy, is_size

Compile = Callable[[kiln.Graph, Lowering], Callable[..., Any]]
_ONE = torch.ones(1, dtype=torch.bool)


def nothing_of_size(size: int) -> torch.Tensor:
    """An array whose only content is its size: how a program learns of a size that no array of its own tells."""
    return _ONE.expand(size)


class Assembly:
    """Makes the graph that runs, turn by turn."""

    def __init__(self, graph: torch.fx.Graph, turns: Sequence[Turn], taken: set[torch.fx.Node]) -> None:
        self._source, self._turns, self._taken = graph, turns, taken
        self._made = torch.fx.Graph()
        self._root: dict[str, Any] = {}
        self._env: dict[torch.fx.Node, torch.fx.Node] = {}
        self._owner = {node: number for number, turn in enumerate(turns) for node in turn.kiln}
        self._wanted = self._find_wanted()

    def build(self, lowerings: Sequence[Lowering], compile: Compile) -> Callable[[list[Any]], Any]:
        for node in self._source.nodes:
            if node.op == "placeholder":
                self._env[node] = self._made.placeholder(node.name)
            elif node.op == "get_attr":
                self._root[str(node.target)] = attribute(node)
                self._env[node] = self._made.get_attr(str(node.target))
            elif random.is_seed(node):
                self._env[node] = self._made.node_copy(node)
        for number, turn in enumerate(self._turns):
            if turn.kiln:
                self._call(number, turn, lowerings[number], compile)
            for node in turn.torch:
                self._env[node] = self._made.node_copy(node, self._host)
        output = next(iter(reversed(self._source.nodes)))
        self._made.output(torch.fx.node.map_arg(output.args[0], self._host))
        _torch.drop_unused(self._made, lambda node: "kiln" in node.meta or _torch.is_kept(node))
        return _torch.boxed(self._made, self._root, _direct(self._made, self._root))

    def outputs_of(self, number: int) -> list[torch.fx.Node]:
        """The values of a part that others need."""
        return [node for node in self._wanted if self._part(node) == number]

    def inputs_of(self, number: int) -> set[torch.fx.Node]:
        """The arrays that a part reads."""
        roots = {self._root_of(operand) for node in self._turns[number].kiln for operand in self._reads(node)}
        return {root for root in roots if self._owner.get(root) != number}

    def _find_wanted(self) -> list[torch.fx.Node]:
        """Values of Kiln's that torch or another part needs.

        A view is not one of them but what it is a view of, so that memory is shared as in torch. The exception is a
        view of all elements that nothing else shares: that is made at once as torch has it.
        """
        wanted: dict[torch.fx.Node, dict[torch.fx.Node, None]] = {}

        def want(node: torch.fx.Node, by: int | None) -> None:
            if is_size(node):
                for operand in node.all_input_nodes:
                    want(operand, by)
                return
            root = self._root_of(node)
            if root in self._owner and self._owner[root] != by:
                wanted.setdefault(root, {})[node if by is None else root] = None

        for number, turn in enumerate(self._turns):
            for node in turn.kiln:
                for operand in self._reads(node):
                    want(operand, number)
            for node in turn.torch:
                for operand in node.all_input_nodes:
                    want(operand, None)
        for operand in next(iter(reversed(self._source.nodes))).all_input_nodes:
            want(operand, None)
        found = []
        for root, users in wanted.items():
            only = next(iter(users))
            alone = len(users) == 1 and _has_all_elements(only, root)
            found.append(only if alone else root)
        return found

    def _reads(self, node: torch.fx.Node) -> list[torch.fx.Node]:
        return [operand for operand in node.all_input_nodes if not is_size(operand) and not is_module(operand)]

    def _part(self, node: torch.fx.Node) -> int | None:
        return self._owner.get(self._root_of(node))

    def _root_of(self, node: torch.fx.Node) -> torch.fx.Node:
        while node in self._taken and is_view(node):
            source = node.args[0]
            assert isinstance(source, torch.fx.Node)
            node = source
        return node

    def _call(self, number: int, turn: Turn, lowering: Lowering, compile: Compile) -> None:
        outputs = self.outputs_of(number)
        run = compile(lowering.graph, lowering)
        name = f"kiln_{number}"
        self._root[name] = run
        args = [self._host(node) for node in lowering.inputs]
        args += [self._made.call_function(nothing_of_size, (self._size(symbol),)) for symbol in lowering.size_inputs]
        told: dict[str, Any] = {} if lowering.is_given_arrays else {"library": "torch"}  # no array tells whose results are
        called = self._made.call_function(operator.call, (self._made.get_attr(name), *args), told)
        called.meta["kiln"] = True
        for index, node in enumerate(outputs):
            self._env[node] = called if len(outputs) == 1 else \
                self._made.call_function(operator.getitem, (called, index))
        for node in turn.kiln:
            if is_copy(node):
                assert isinstance(node.args[0], torch.fx.Node)
                self._env[node] = self._host(node.args[0])

    def _host(self, node: torch.fx.Node) -> torch.fx.Node:
        """A value in torch: views and sizes are made where they are needed."""
        if node not in self._env:
            self._env[node] = self._made.node_copy(node, self._host)
        return self._env[node]

    def _size(self, symbol: Any) -> torch.fx.Node:
        """What tells a symbol: an argument that is it, or an array's dim."""
        for node in self._source.nodes:
            if node not in self._env:
                continue
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and _torch.expr(value) == symbol:
                return self._env[node]
            if isinstance(value, torch.Tensor) and str(symbol) in sizes.bare_symbols(value):
                dim = sizes.bare_symbols(value)[str(symbol)]
                return self._made.call_function(torch.ops.aten.sym_size.int, (self._env[node], dim))
        raise kiln.Internal(f"nothing tells size {symbol}")


def _direct(graph: torch.fx.Graph, root: dict[str, Any]) -> Callable[[list[Any]], Any] | None:
    """What does the same as a graph that is nothing but one call, of arguments and for all that it gives, in less time than
    the code that torch makes of it; None where there is more to it."""
    nodes = list(graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if node.op == "call_function" and node.target is not operator.getitem]
    if len(calls) != 1 or calls[0].target is not operator.call or calls[0].kwargs:
        return None
    called, (program, *args) = calls[0], calls[0].args
    picks = [node for node in nodes if node.target is operator.getitem]
    results = list(nodes[-1].args[0])
    order = [placeholders.index(node) if node in placeholders else -1 for node in args]
    is_all = [node.args for node in picks] == [(called, index) for index in range(len(picks))]
    is_alone = len(nodes) == len(placeholders) + len(picks) + 3  # with the program, its call and the output
    if not order or -1 in order or not is_alone or results != (picks or [called]) or not is_all:
        return None
    call = root[str(program.target)]
    given = None if order == list(range(len(placeholders))) else operator.itemgetter(*order, *order[:1])

    def one(args: list[Any]) -> Any:
        made = call(*args) if given is None else call(*given(args)[:-1])
        args.clear()
        return (made,)

    def several(args: list[Any]) -> Any:
        made = call(*args) if given is None else call(*given(args)[:-1])
        args.clear()
        return made
    return several if picks else one


def _has_all_elements(view: torch.fx.Node, root: torch.fx.Node) -> bool:
    return view is root or (not sizes.overlaps(view.meta["val"])
                            and sizes.numel(view.meta["val"]) == sizes.numel(root.meta["val"]))
