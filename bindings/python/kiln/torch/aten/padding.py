"""What lies around a tensor, and gradients of it."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering, element
from kiln.torch.rows import FLOATS, INTEGERS, Unsupported, row


def _ends(rank: int, padding: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Elements before and after, for each dim: torch says the last dim first."""
    if any(not isinstance(each, int) for each in padding):
        raise Unsupported("padding that is not known")
    low, high = [0] * rank, [0] * rank
    for i in range(len(padding) // 2):
        low[-1 - i], high[-1 - i] = padding[2 * i], padding[2 * i + 1]
    return low, high


@row("constant_pad_nd.default", "pad")
def _(b: Lowering, x: kiln.Value, pad: Sequence[int], value: Any = 0) -> kiln.Value:
    low, high = _ends(len(x.shape), pad)
    return b.op("pad", x, low=low, high=high, value=float(element(value, b.dtype)))


def _pad(mode: str, name: str) -> None:
    @row(" ".join(f"{name}_pad{n}d.default" for n in (1, 2, 3)), "pad", FLOATS | INTEGERS)
    def make(b: Lowering, x: kiln.Value, padding: Sequence[int]) -> kiln.Value:
        low, high = _ends(len(x.shape), padding)
        return b.op("pad", x, low=low, high=high, mode=mode)

    @row(" ".join(f"{name}_pad{n}d_backward.default" for n in (1, 2, 3)), "index_add iota maximum minimum sub abs",
         FLOATS)
    def make_gradient(b: Lowering, dy: kiln.Value, x: kiln.Value, padding: Sequence[int]) -> kiln.Value:
        low, high = _ends(len(x.shape), padding)
        dy = b.wide(dy)
        for dim, size in enumerate(x.shape):
            if low[dim] or high[dim]:
                shape = [*dy.shape[:dim], size, *dy.shape[dim + 1:]]
                places = _places(b, mode, dy.shape[dim], size, low[dim])
                dy = b.op("index_add", b.full(0, str(dy.dtype), shape), places, dy, dim=dim)
        return b.cast(dy, b.dtype)


def _places(b: Lowering, mode: str, padded: Any, size: Any, low: int) -> kiln.Value:
    """Of each element of a padded dim, which of x's it is."""
    last = b.operand(size - 1, "i64")
    at = b.op("sub", b.op("iota", shape=[padded]), low)
    if mode == "replicate":
        return b.op("minimum", b.op("maximum", at, 0), last)
    return b.op("sub", last, b.op("abs", b.op("sub", last, b.op("abs", at))))


_pad("reflect", "reflection")
_pad("replicate", "replication")
