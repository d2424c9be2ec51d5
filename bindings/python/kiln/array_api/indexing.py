"""Elements by their places."""

from __future__ import annotations

from typing import Any

from kiln._kiln import add_node
from kiln._traced import Traced, array_of, axes, binary, call, convert, i64, kind
from kiln.array_api.elementwise import where
from kiln.array_api.shapes import reshape

__all__ = ["take", "take_along_axis"]


def _from_start(index: Traced, size: Any, graph: Any) -> Traced:
    """Indices below 0 count from the end."""
    if isinstance(size, int):
        return where(binary("lt", index, 0), binary("add", index, size), index)
    length = Traced(add_node("size", (), {"value": size, "dtype": index.dtype}, None, graph))
    return where(binary("lt", index, 0), binary("add", index, length), index)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Traced:
    x = array_of(x)
    dim = 0 if axis is None else axes(x, axis)[0]
    index = array_of(indices)
    if kind(index.dtype) == "u" or index.dtype.itemsize < 4:
        index = convert(index, i64)
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1:])
    flat = call("index_select", x, reshape(_from_start(index, x.shape[dim], x.value.graph), [-1]), dim=dim)
    return flat if index.ndim == 1 else reshape(flat, shape)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Traced:
    x, index = array_of(x), array_of(indices)
    dim = axes(x, axis)[0]
    return call("take_along", x, _from_start(index, x.shape[dim], x.value.graph), dim=dim)
