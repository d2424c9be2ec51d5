"""Which nodes of a graph run in Kiln and which in torch, and in what order.

Parts of Kiln and stretches of torch take turns: part 0, stretch 0, part 1, ... Kiln's planner of regions makes as few
parts as can be of what comes after what: what a node reads; and where torch keeps an order, that. What writes stays
behind all that stands before it, and before all that stands behind; what draws random numbers or has an effect stays in
order among its kind. Linear in nodes and operands.

Views that Kiln can see are of no part. They are made anew wherever they are needed, in Kiln and in torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable

import torch.fx

import kiln
from kiln.torch import _torch, random
from kiln.torch.lowering import is_view


_NUMBERS = (*_torch.SYMBOLIC, int, float)


@dataclass
class Turn:
    """A part of Kiln's, then what torch runs after it."""

    kiln: list[torch.fx.Node] = field(default_factory=list)
    torch: list[torch.fx.Node] = field(default_factory=list)


def is_copy(node: torch.fx.Node) -> bool:
    return node.target is torch.ops.aten.copy_.default


def is_size(node: torch.fx.Node) -> bool:
    """Whether it is arithmetic of sizes, which the code around parts does where it is needed."""
    return isinstance(node.meta.get("val"), _NUMBERS) and not _torch.reads_data(node.target)


class _Orders:
    """What each node that is planned comes after. Numbers stand for nodes, and for borders that only keep an order."""

    def __init__(self) -> None:
        self.colors: list[int] = []
        self.uses: list[list[int]] = []
        self._values: dict[torch.fx.Node, frozenset[int]] = {}  # what makes a value: of a view, what it is a view of
        self._since: list[int] = []  # all since what wrote last
        self._border: list[int] = []  # what wrote last
        self._copies: list[int] = []  # of Kiln's, which copy when all of their part has read
        self._drawn: list[int] = []

    def passes(self, node: torch.fx.Node) -> None:
        """Of one that is made wherever it is needed."""
        self._values[node] = frozenset().union(*(self._values.get(each, ()) for each in node.all_input_nodes))

    def add(self, node: torch.fx.Node, in_kiln: bool) -> int:
        copies = in_kiln and is_copy(node)
        if self._copies and not copies:  # their part ends with them
            self._border = [self._add(0, self._copies)]
            self._copies, self._since = [], []
        uses = {*self._border, *(use for each in node.all_input_nodes for use in self._values.get(each, ()))}
        writes = copies or not in_kiln and _torch.writes(node.target)
        if writes:
            uses.update(self._since)
        if not in_kiln and _torch.is_ordered(node.target):
            uses.update(self._drawn)
        number = self._add(1 if in_kiln else 0, uses)
        self._values[node] = frozenset([number])
        if copies:
            self._copies.append(number)
            self._border, self._since = [number], []
        elif writes:
            self._border, self._since = [number], []
        else:
            self._since.append(number)
        if not in_kiln and _torch.is_ordered(node.target):
            self._drawn = [number]
        return number

    def _add(self, color: int, uses: Iterable[int]) -> int:
        self.colors.append(color)
        self.uses.append(sorted(uses))
        return len(self.colors) - 1


def plan(nodes: list[torch.fx.Node], taken: set[torch.fx.Node]) -> list[Turn]:
    """The turns of call_function nodes, in their order, of which Kiln takes some."""
    orders = _Orders()
    planned: dict[int, torch.fx.Node] = {}
    for node in nodes:
        if is_size(node) or random.is_seed(node) or node in taken and is_view(node):
            orders.passes(node)
        else:
            planned[orders.add(node, node in taken)] = node
    members: dict[int, list[torch.fx.Node]] = {}
    parts = kiln.plan_parts(orders.colors, orders.uses)
    for number, node in planned.items():
        members.setdefault(parts[number], []).append(node)
    result = [Turn()]
    for _, part in sorted(members.items()):
        if part[0] not in taken:
            result[-1].torch.extend(part)
        elif result == [Turn()]:
            result = [Turn(part)]
        else:
            result.append(Turn(part))
    return result
