"""Named passes on ATen's graph: they restore what AOTAutograd took apart and Kiln has whole."""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterator

import torch
import torch.fx

from kiln.torch import _torch

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten._unsafe_view.default)


def run(gm: torch.fx.GraphModule) -> dict[str, int]:
    """Runs all, in order; how often each found something."""
    found = {name: pass_(gm.graph) for name, pass_ in PASSES.items()}
    if any(found.values()):
        _torch.drop_unused(gm.graph, _torch.is_kept)
    return found


def _calls(graph: torch.fx.Graph, *targets: Any) -> Iterator[torch.fx.Node]:
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in targets:
            yield node


def _is(node: Any, *targets: Any) -> bool:
    return isinstance(node, torch.fx.Node) and node.op == "call_function" and node.target in targets


def _sizes(node: torch.fx.Node) -> list[Any]:
    return [_torch.expr(size) for size in node.meta["val"].shape]


def _add(graph: torch.fx.Graph, like: torch.fx.Node, target: Any, args: tuple[Any, ...], value: Any) -> torch.fx.Node:
    """A node in another's place, which inherits what is known of it."""
    with graph.inserting_before(like):
        made = graph.call_function(target, args)
    made.meta = {**like.meta, "val": value}
    return made


def linear(graph: torch.fx.Graph) -> int:
    """view(addmm(bias, view(x), t(weight))) and its like: linear(x, weight, bias)."""
    found = 0
    for node in _calls(graph, aten.addmm.default, aten.mm.default):
        args: tuple[Any, ...] = node.args if node.target is aten.addmm.default else (None, *node.args)
        bias, x, weight = args
        if not node.meta["val"].dtype.is_floating_point:  # which Kiln's linear is of
            continue
        if node.kwargs or not _is(weight, aten.t.default) or bias is not None and len(_sizes(bias)) != 1:
            continue
        if bias is not None and _sizes(bias) != _sizes(node)[1:]:
            continue
        whole = x.args[0] if _is(x, *_VIEWS) else x
        wide = [*_sizes(whole)[:-1], _sizes(node)[1]]
        ends = [user for user in node.users if _is(user, *_VIEWS) and _sizes(user) == wide]
        if whole is x or len(ends) < len(node.users) or _sizes(whole)[-1:] != _sizes(x)[-1:]:
            whole, ends = x, [node]
        made = _add(graph, node, aten.linear.default, (whole, weight.args[0], bias), ends[0].meta["val"])
        for end in ends:
            end.replace_all_uses_with(made)
        found += 1
    return found


def rms_norm(graph: torch.fx.Graph) -> int:
    """x * rsqrt(mean(x^2, last) + eps), and the weight behind it: _fused_rms_norm."""
    found = 0
    for root in _calls(graph, aten.rsqrt.default):
        total: Any = root.args[0]
        mean: Any = total.args[0] if _is(total, aten.add.Scalar, aten.add.Tensor) and not total.kwargs else None
        power: Any = mean.args[0] if _is(mean, aten.mean.dim) else None
        if not _is(power, aten.pow.Tensor_Scalar) or power.args[1] != 2 or not isinstance(total.args[1], float):
            continue
        x, sizes = power.args[0], _sizes(power.args[0])
        last = len(sizes) - 1
        if list(mean.args[1]) not in ([last], [-1]) or list(mean.args[2:]) != [True] or not isinstance(sizes[-1], int):
            continue
        if mean.kwargs:
            continue
        scaled = [user for user in root.users if _is(user, aten.mul.Tensor) and x in user.args and root in user.args]
        if len(scaled) != 1:
            continue
        (y,) = scaled
        weight, end = _weight(y)
        made = _add(graph, root, aten._fused_rms_norm.default, (x, [sizes[-1]], weight, total.args[1]),
                    (end.meta["val"], root.meta["val"]))  # before all that reads the root
        with graph.inserting_after(made):
            results = [graph.call_function(operator.getitem, (made, i)) for i in (0, 1)]
        for result, old in zip(results, (end, root)):
            result.meta = {**old.meta}
            old.replace_all_uses_with(result)
        found += 1
    return found


def _weight(y: torch.fx.Node) -> tuple[torch.fx.Node | None, torch.fx.Node]:
    """What alone multiplies a normalised value by a row, an input of the graph: the row, and the product."""
    user = next(iter(y.users))
    if len(y.users) == 1 and _is(user, aten.mul.Tensor):
        others = [arg for arg in user.args if arg is not y]
        weight = others[0] if others else None
        if isinstance(weight, torch.fx.Node) and weight.op == "placeholder" and _sizes(weight) == _sizes(y)[-1:] \
                and weight.meta["val"].dtype == y.meta["val"].dtype:
            return weight, user
    return None, y


def accumulations(graph: torch.fx.Graph) -> int:
    """A sum of gradients, which autograd made and no user marked, is of the region that all around it are of."""
    found = 0
    for node in _calls(graph, aten.add.Tensor):
        around = {_torch.annotations_of(each).get("kiln.region") for each in (*node.all_input_nodes, *node.users)}
        (region, *others) = around or {None}
        if region is not None and not others and "kiln.region" not in _torch.annotations_of(node):
            node.meta["custom"] = {**_torch.annotations_of(node), "kiln.region": region}
            found += 1
    return found


def assertions(graph: torch.fx.Graph) -> int:
    """What asserts a type that the tracing has fixed says nothing to a compiled graph."""
    found = list(_calls(graph, aten._assert_tensor_metadata.default))
    for node in found:
        graph.erase_node(node)
    return len(found)


def block_masks(graph: torch.fx.Graph) -> int:
    """flex_attention's mask function says all that its blocks do, which nothing but this reads."""
    found = 0
    for node in _calls(graph, torch.ops.higher_order.flex_attention):
        args: tuple[Any, ...] = node.args
        *blocks, function = args[4]
        node.args = (*args[:4], (*(None if isinstance(each, torch.fx.Node) else each for each in blocks), function),
                     *args[5:])
        found += 1
    return found


PASSES: dict[str, Callable[[torch.fx.Graph], int]] = {
    "linear": linear, "rms_norm": rms_norm, "accumulations": accumulations, "assertions": assertions,
    "block_masks": block_masks}
