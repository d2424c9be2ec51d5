"""Products of matrices."""

from __future__ import annotations

from typing import Any

from kiln._traced import Traced, binary, call, together
from kiln.array_api.shapes import moveaxis

__all__ = ["matmul", "tensordot", "vecdot"]


def matmul(x1: Any, x2: Any, /) -> Traced:
    return call("matmul", *together("matmul", x1, x2))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Traced:
    a, b = together("vecdot", x1, x2)
    product = binary("mul", moveaxis(a, axis, -1), moveaxis(b, axis, -1))
    return call("sum", product, dims=[product.ndim - 1])


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Traced:
    a, b = together("tensordot", x1, x2)
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = [dim % a.ndim for dim in axes[0]], [dim % b.ndim for dim in axes[1]]
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    first = [next(letters) for _ in range(a.ndim)]
    second = [first[left[right.index(dim)]] if dim in right else next(letters) for dim in range(b.ndim)]
    kept = [first[i] for i in range(a.ndim) if i not in left] + [second[i] for i in range(b.ndim) if i not in right]
    return call("einsum", a, b, equation=f"{''.join(first)},{''.join(second)}->{''.join(kept)}")
