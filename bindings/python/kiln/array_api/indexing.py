"""Elements by their places."""

from __future__ import annotations

from typing import Any

from kiln._kiln import add_node
from kiln._traced import Traced, array_of, axes, binary, bool_, call, constant, convert, i64, kind
from kiln.array_api.elementwise import where
from kiln.array_api.shapes import permute_dims

__all__ = ["take", "take_along_axis"]


def _from_start(index: Traced, size: Any, graph: Any) -> Traced:
    """Indices below 0 count from the end."""
    if isinstance(size, int):
        return where(binary("lt", index, 0), binary("add", index, size), index)
    length = Traced(add_node("size", (), {"value": size, "dtype": index.dtype}, None, graph))
    return where(binary("lt", index, 0), binary("add", index, length), index)


def _as_index(index: Traced) -> Traced:
    """In a dtype of which Kiln takes indices."""
    if kind(index.dtype) not in "iu":
        raise IndexError(f"an index is an array of {index.dtype}: integers were expected")
    return convert(index, i64) if kind(index.dtype) == "u" or index.dtype.itemsize < 4 else index


def _is_array(part: Any) -> bool:
    return isinstance(part, Traced) or hasattr(part, "dtype") and hasattr(part, "shape") and tuple(part.shape) != ()


def _index(part: Any, size: Any, graph: Any) -> Traced:
    """An index of a dim, counted from its start; of an int that of all places alike."""
    if isinstance(part, Traced):
        return convert(_from_start(part, size, graph), i64)
    if isinstance(size, int) and not -size <= part < size:
        raise IndexError(f"index {part} of a dim of {size} elements")
    return _from_start(constant(part, i64, graph), size, graph) if part < 0 else constant(part, i64, graph)


def getitem(x: Traced, key: Any) -> Traced:
    """`x[key]`: ints, slices, None and an Ellipsis; and arrays of integers, with ints beside them as arrays of one, which
    are broadcast together. Their dims take the place of those that they index, or where these are apart come first."""
    def plain(part: Any) -> Any:
        if isinstance(part, slice):
            return slice(plain(part.start), plain(part.stop), part.step)
        return part.__index__() if hasattr(part, "__index__") and not isinstance(part, int) else part

    parts = list(key) if isinstance(key, tuple) else [key]
    if not any(_is_array(part) for part in parts):
        return Traced(x.value[tuple(map(plain, parts))])
    parts = [array_of(part) if _is_array(part) else plain(part) for part in parts]
    arrays = [part for part in parts if isinstance(part, Traced)]
    if any(part.dtype is bool_ for part in arrays):
        raise TypeError("an index by a mask has a size that no trace knows; see where, or kiln.ops.masked_select")
    if any(isinstance(part, bool) for part in parts):
        raise TypeError(f"an index is {next(part for part in parts if isinstance(part, bool))}: integers were expected")
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if taken > x.ndim:
        raise IndexError(f"{taken} indices, of an array of {x.ndim} dims")
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[at:at + 1] = [slice(None)] * (x.ndim - taken)
    picks = {dim: part for dim, part in enumerate(parts) if isinstance(part, int | Traced)}
    x = Traced(x.value[tuple(slice(None) if dim in picks else part for dim, part in enumerate(parts))])
    first, dims = min(picks), list(picks)
    if len(picks) == 1:
        return take(x, arrays[0], axis=first)
    indices = [_index(_as_index(part) if isinstance(part, Traced) else part, x.shape[dim], x.value.graph)
               for dim, part in picks.items()]
    if dims != list(range(first, first + len(dims))):
        x, first = permute_dims(x, [*dims, *(dim for dim in range(x.ndim) if dim not in picks)]), 0
    return call("index", x, *indices, dim=first)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Traced:
    x = array_of(x)
    dim = 0 if axis is None else axes(x, axis)[0]
    index = _as_index(array_of(indices))
    index = _from_start(index, x.shape[dim], x.value.graph)
    return call("index_select", x, index, dim=dim) if index.ndim == 1 else call("index", x, index, dim=dim)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Traced:
    x, index = array_of(x), array_of(indices)
    dim = axes(x, axis)[0]
    return call("take_along", x, _from_start(index, x.shape[dim], x.value.graph), dim=dim)
