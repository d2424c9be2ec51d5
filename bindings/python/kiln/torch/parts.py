"""Which nodes of a graph run in Kiln and which in torch, and in what order.

Parts of Kiln and stretches of torch take turns: part 0, stretch 0, part 1, ... A node of Kiln's is of the first part at
which all that it needs is there, and so is one of torch's; so nothing needs what comes later, and there is no cycle.
What writes stays behind all that stands before it, and before all that stands behind; what draws random numbers or has
an effect stays in order among its kind. One walk over the nodes: linear.

Views that Kiln can see are of no part. They are made anew wherever they are needed, in Kiln and in torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch.fx

from kiln.torch import _torch, random
from kiln.torch.lowering import is_view


@dataclass
class Turn:
    """A part of Kiln's, then what torch runs after it."""

    kiln: list[torch.fx.Node] = field(default_factory=list)
    torch: list[torch.fx.Node] = field(default_factory=list)


def is_copy(node: torch.fx.Node) -> bool:
    return node.target is torch.ops.aten.copy_.default


def is_size(node: torch.fx.Node) -> bool:
    """Whether it is arithmetic of sizes, which the code around parts does where it is needed."""
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float) and \
        not _torch.reads_data(node.target)


def plan(nodes: list[torch.fx.Node], taken: set[torch.fx.Node]) -> list[Turn]:
    """The turns of call_function nodes, in their order, of which Kiln takes some."""
    turns: dict[torch.fx.Node, int] = {}  # when a value is there: made by part t of Kiln, or after it by torch
    in_torch: set[torch.fx.Node] = set()
    result = [Turn()]
    floor_copy = floor_kiln = floor_torch = 0  # what stands behind a write comes no earlier
    last_ordered = 0
    last, last_torch = 0, -1  # the latest turn so far, and that of a node of torch's
    for node in nodes:
        is_kiln, operands = node in taken, [operand for operand in node.all_input_nodes if operand in turns]
        if is_size(node) or random.is_seed(node) or is_kiln and is_view(node):
            turns[node] = max((turns[operand] for operand in operands), default=0)
            if any(operand in in_torch and turns[operand] == turns[node] for operand in operands):
                in_torch.add(node)
            continue
        turn = max([turns[operand] + (is_kiln and operand in in_torch) for operand in operands], default=0)
        turn = max(turn, floor_kiln if is_kiln else floor_torch)
        if is_kiln and is_copy(node):  # which Kiln does when all of the part has read
            turn = max(turn, last, last_torch + 1)
            floor_copy, floor_torch = turn + 1, turn
        elif is_kiln:
            turn = max(turn, floor_copy)
        elif _torch.writes(node.target):
            turn = max(turn, last)
            floor_kiln, floor_torch = turn + 1, turn
        elif _torch.is_ordered(node.target):
            turn = last_ordered = max(turn, last_ordered)
        turns[node], last = turn, max(last, turn)
        result.extend(Turn() for _ in range(turn + 1 - len(result)))
        if is_kiln:
            result[turn].kiln.append(node)
        else:
            in_torch.add(node)
            last_torch = max(last_torch, turn)
            result[turn].torch.append(node)
    return result
