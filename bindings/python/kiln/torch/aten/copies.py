"""Views that were made copies, what writes a part of a copy, and the gradient of windows."""

from __future__ import annotations

from typing import Any, Sequence

import torch

import kiln
from kiln.torch import sizes
from kiln.torch.aten import shape  # noqa: F401  (says the views)
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, Unsupported, find, row


def _copy(name: str) -> None:
    packet, _, overload = name.partition(".")
    view = getattr(getattr(torch.ops.aten, packet), overload)

    @row(f"{packet}_copy.{overload}", "clone")
    def make(b: Lowering, *args: Any, **kwargs: Any) -> Any:
        said = find(view)
        assert said is not None
        made = said.make(b, *args, **kwargs)
        return [b.op("clone", each) for each in made] if isinstance(made, list) else b.op("clone", made)


for _name in """view.default alias.default detach.default t.default permute.default transpose.int expand.default
unsqueeze.default squeeze.default squeeze.dim squeeze.dims slice.Tensor select.int split.Tensor split_with_sizes.default
unbind.int diagonal.default unfold.default as_strided.default""".split():
    _copy(_name)


@row("as_strided_scatter.default", "index_put iota permute", when="of what lies dense in memory, from its begin on")
def _(b: Lowering, x: kiln.Value, src: kiln.Value, size: Sequence[Any], stride: Sequence[Any],
      storage_offset: Any = None) -> kiln.Value:
    order = sizes.memory_order(b.fake(0))
    if order is None or sizes.known(b.fake(0).storage_offset()) != 0:
        raise Unsupported("of what does not lie dense in memory, from its begin on")
    if list(b.out.stride()) != list(b.fake(0).stride()):
        raise Unsupported("the result has other strides")
    inner = b.op("permute", x, dims=order) if order else x
    flat = b.op("reshape", inner, shape=[-1])
    places = b.operand(storage_offset or 0, "i64")
    for dim, step in enumerate(stride):
        along = b.op("iota", shape=list(src.shape), dim=dim)
        places = b.op("add", places, b.op("mul", along, b.operand(step, "i64")))
    flat = b.op("index_put", flat, b.cast(src, b.dtype), places, dim=0)
    made = b.reshape(flat, inner.shape)
    return b.op("permute", made, dims=[order.index(dim) for dim in range(len(order))]) if order else made


@row("unfold_backward.default", "index_add iota permute reshape", FLOATS)
def _(b: Lowering, dy: kiln.Value, input_sizes: Sequence[Any], dim: int, size: int, step: int) -> kiln.Value:
    rank = len(input_sizes)
    if not rank:
        return b.reshape(dy, [])
    dim = b.dim(dim, rank)
    count = dy.shape[dim]
    beside = b.op("permute", b.wide(dy), dims=[*range(dim + 1), rank, *range(dim + 1, rank)])
    flat = b.reshape(beside, [*dy.shape[:dim], count * size, *dy.shape[dim + 1:rank]])
    begins, inside = (b.op("iota", shape=[count, size], dim=i) for i in (0, 1))
    places = b.op("reshape", b.op("add", b.op("mul", begins, step), inside), shape=[-1])
    made = b.op("index_add", b.full(0, str(flat.dtype), b.sizes()), places, flat, dim=dim)
    return b.cast(made, b.dtype)
