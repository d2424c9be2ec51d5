"""`value[...]` as slices, new dims and dims taken away."""

from __future__ import annotations

from typing import Any

from kiln._kiln import Dim, Value, add_node


def _from_start(index: Any, size: Any) -> Any:
    return index + size if isinstance(index, int) and index < 0 else index


def _slice(value: Value, dim: int, part: slice) -> Value:
    """One dim by a slice; known ends beyond a known size are cut, as Python's are."""
    size, step = value.shape[dim], 1 if part.step is None else part.step
    if not isinstance(step, int) or isinstance(step, bool):
        raise TypeError(f"the step of a slice is {step!r}, an int was expected")
    if isinstance(size, int) and all(isinstance(end, int | None) for end in (part.start, part.stop)):
        start, stop, step = part.indices(size)
        if step > 0:
            stop = max(start, stop)
        elif stop < 0:  # Python says -1 for "before the first"
            stop = -size - 1
    else:
        if step < 0:
            raise ValueError("a slice of a size that is not known goes upwards")
        start = _from_start(0 if part.start is None else part.start, size)
        stop = _from_start(size if part.stop is None else part.stop, size)
    if start == 0 and step == 1 and isinstance(stop, int | Dim) and stop == size:
        return value
    sliced: Value = add_node("slice", (value,), {"dim": dim, "start": start, "end": stop, "step": step})
    return sliced


def getitem(value: Value, key: Any) -> Value:
    """Ints, slices, None and an Ellipsis; anything else is an op (gather, index_select, masked_select)."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dims = sum(part is not None and part is not Ellipsis for part in parts)
    if dims > value.ndim:
        raise IndexError(f"{dims} indices, and {value!r} has {value.ndim} dims")
    if Ellipsis not in [part for part in parts if not isinstance(part, Value)]:
        parts.append(Ellipsis)
    at = next(i for i, part in enumerate(parts) if part is Ellipsis)
    parts[at:at + 1] = [slice(None)] * (value.ndim - dims)
    dim, dropped, added = 0, [], []
    place = 0
    for part in parts:
        if part is None:
            added.append(place)
            place += 1
            continue
        if isinstance(part, slice):
            value = _slice(value, dim, part)
            place += 1
        elif isinstance(part, int | Dim) and not isinstance(part, bool):
            size = value.shape[dim]
            index = _from_start(part, size)
            if isinstance(size, int) and isinstance(index, int) and not 0 <= index < size:
                raise IndexError(f"index {part} of dim {dim}, whose size is {size}")
            value = add_node("slice", (value,), {"dim": dim, "start": index, "end": index + 1})
            dropped.append(dim)
        else:
            raise TypeError(f"index {part!r}: an int, a slice, None or ... was expected; see gather, index_select and "
                            "masked_select in kiln.ops")
        dim += 1
    if dropped:
        value = add_node("squeeze", (value,), {"dims": dropped})
    if added:
        value = add_node("unsqueeze", (value,), {"dims": added})
    return value
