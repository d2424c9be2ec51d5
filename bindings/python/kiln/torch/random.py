"""Random numbers of Kiln's: `options={"random": "kiln"}`.

A graph draws one seed a call from torch's generator, and each op that draws becomes one that is given it, and a counter
of its own: a function of its operands, which a backward pass may compute again. That is why it is done before a graph
is split into forward and backward.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

import kiln
from kiln.torch import _torch
from kiln.torch.lowering import Lowering
from kiln.torch.rows import Unsupported, find, row

ANY_COUNT = 1 << 40  # blocks of 128 bits that a node may use up: those of two nodes are never the same
_library = torch.library.Library("kiln", "FRAGMENT")  # type: ignore[no-untyped-call]


def drawn(overloads: str, ops: str, **said: Any) -> Any:
    """A row, as rows.row, of overloads of ATen's that draw: it is given a seed and a counter before what they are."""
    names = overloads.split()
    for name in names:
        packet, _, overload = name.partition(".")
        target = getattr(getattr(torch.ops.aten, packet), overload)
        if not hasattr(getattr(torch.ops.kiln, packet, None), overload):
            _library.define(_torch.schema_with(target, "Tensor seed, int counter"))  # type: ignore[no-untyped-call]
    return row(" ".join(f"kiln::{name}" for name in names), ops, **said)


def is_seed(node: torch.fx.Node) -> bool:
    """Whether it draws the seed: it runs before all else, and parts nothing."""
    return "kiln_seed" in node.meta


def draw_by_seed(gm: torch.fx.GraphModule, context: kiln.Context) -> int:
    """Puts Kiln's ops in the place of those of ATen's that draw and that Kiln takes; how many."""
    drawing = [node for node in gm.graph.nodes if node.op == "call_function" and _seeded(node.target)]
    if not drawing:
        return 0
    with gm.graph.inserting_before(next(node for node in gm.graph.nodes if node.op != "placeholder")):
        seed = gm.graph.call_function(torch.ops.aten.randint.low, (0, 2 ** 63 - 1, []),
                                      {"dtype": torch.int64, "device": torch.device("cpu")})
    seed.meta = {"val": _torch.fake_empty((), torch.int64), "kiln_seed": True, **_torch.MUST_SAVE}
    found = 0
    for node in drawing:
        with gm.graph.inserting_before(node):
            made = gm.graph.call_function(_seeded(node.target), (seed, found * ANY_COUNT, *node.args), node.kwargs)
        made.meta = dict(node.meta)
        try:
            Lowering(context, set()).run(made)
        except Unsupported as why:
            node.meta["kiln_refused"] = str(why)
            gm.graph.erase_node(made)
            continue
        node.replace_all_uses_with(made)
        gm.graph.erase_node(node)
        found += 1
    if not found:
        gm.graph.erase_node(seed)
    gm.recompile()
    return found


def partition(gm: torch.fx.GraphModule, inputs: Any, **said: Any) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """Forward and backward of a joint graph, which have one seed."""
    draw_by_seed(gm, kiln.default_context())
    forward, backward = _torch.min_cut_rematerialization_partition(gm, inputs, **said)
    return forward, backward


def _seeded(target: Any) -> Any:
    """Kiln's op for an overload of ATen's; None where there is none."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    find(None)  # says all rows
    packet, _, overload = _torch.overload_name(target).partition(".")
    return getattr(getattr(torch.ops.kiln, packet, None), overload, None)
