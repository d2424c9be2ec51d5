"""`value[...]` as slices, new dims and dims taken away."""

from __future__ import annotations

from typing import Any

from kiln._kiln import Dim, Value, add_node, dim_max, dim_min, same_size


def _from_start(index: Any, size: Any) -> Any:
    """An index from the first element: below 0 it counts from the end. Of one that is no int, that is asked in the run."""
    if isinstance(index, int):
        return index + size if index < 0 else index
    is_below = dim_min(dim_max(-index, 0), 1)  # 0 where it cannot be
    return index + size * is_below


def _is_least(value: Value, dim: int, least: int) -> bool:
    """Whether a size is at least that, as far as its text tells: one that only grows with its symbols, of a graph that is
    traced, which has a least value of these."""
    import re

    from kiln._traced import tracing
    size, trace = value.shape[dim], tracing.get()
    if isinstance(size, int):
        return size >= least
    if trace is None or value.graph is not trace.graph or re.search(r"%|-[^+-]*[A-Za-z_(]|/\s*[^\d/\s]", size.text):
        return False
    symbols = set(re.findall(r"[A-Za-z_][\w.]*", size.text)) - {"min", "max"}
    at_least: int = size.evaluate(**dict.fromkeys(symbols, trace.least))
    return at_least >= least


def _needed(first: int, last: int | None) -> int | None:
    """The least size of which a slice's ends are in order, and none is cut. None: there is no such size."""
    if last is None:
        return abs(first)
    if (first < 0) == (last < 0):
        return max(abs(first), abs(last)) if first <= last else None
    return first - last if first >= 0 else None


def _ends(first: Any, last: Any, value: Value, dim: int) -> tuple[Any, Any]:
    """Start and end of a slice that goes upwards, cut at both ends of a size that only a run tells, as Python cuts them.

    Lengths are written alike (x[1:] and x[:-1] have max(n - 1, 0) elements), so that they are known to be equal.
    """
    size, first = value.shape[dim], 0 if first is None else first
    if isinstance(first, int) and isinstance(last, int | None):
        needed = _needed(first, last)
        if needed is not None and _is_least(value, dim, needed):
            return _from_start(first, size), size if last is None else _from_start(last, size)
    start = dim_max(dim_min(_from_start(first, size), size), 0)
    end = size if last is None else dim_min(_from_start(last, size), size)
    if last is None and isinstance(first, int) and first < 0:
        return start, start + dim_min(-first, size)
    return start, start + dim_max(end - (first if isinstance(first, int) and first >= 0 else start), 0)


def _ends_downwards(first: Any, last: Any, size: Any) -> tuple[Any, Any]:
    """The same of one that goes downwards: it ends before its last element, at -1 where that is the first."""
    start = size - 1 if first is None else dim_max(dim_min(_from_start(first, size), size - 1), -1)
    if last is None:
        return start, -1 - size  # "before the first"
    return start, dim_max(dim_min(_from_start(last, size), start), -1)


def _end(end: Any) -> Any:
    """An end of a slice, or an index, as an int or a Dim."""
    if end is None or isinstance(end, int | Dim):
        return end
    if not hasattr(end, "__index__"):
        raise TypeError(f"a slice ends at {end!r}, an int, a Dim or None was expected")
    return end.__index__()


def _slice(value: Value, dim: int, part: slice) -> Value:
    """One dim by a slice; ends beyond the size are cut, as Python's are."""
    size, step = value.shape[dim], 1 if part.step is None else part.step
    first, last = _end(part.start), _end(part.stop)
    if not isinstance(step, int) or isinstance(step, bool):
        raise TypeError(f"the step of a slice is {step!r}, an int was expected")
    if isinstance(size, int) and isinstance(first, int | None) and isinstance(last, int | None):
        start, stop, step = part.indices(size)
        if step > 0:
            stop = max(start, stop)
        elif stop < 0:  # Python says -1 for "before the first"
            stop = -size - 1
    elif step == 0:
        raise ValueError("the step of a slice is 0")
    else:
        start, stop = _ends(first, last, value, dim) if step > 0 else _ends_downwards(first, last, size)
    if same_size(start, 0) and step == 1 and isinstance(stop, int | Dim) and same_size(stop, size):
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
