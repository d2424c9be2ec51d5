"""The same elements in other shapes."""

from __future__ import annotations

from typing import Any, Sequence

from kiln._kiln import same_size
from kiln._traced import Traced, array_of, axes, call, together

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]


def reshape(x: Any, /, shape: Any, *rest: Any, copy: Any = None) -> Traced:
    sizes = [shape, *rest] if rest or not isinstance(shape, (tuple, list)) else list(shape)
    return call("reshape", array_of(x), shape=sizes)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Traced:
    return call("permute", array_of(x), dims=list(axes))


def matrix_transpose(x: Any, /) -> Traced:
    return array_of(x).mT


def moveaxis(x: Any, source: Any, destination: Any, /) -> Traced:
    x = array_of(x)
    from_, to = axes(x, source), axes(x, destination)
    order = [dim for dim in range(x.ndim) if dim not in from_]
    for place, dim in sorted(zip(to, from_)):
        order.insert(place, dim)
    return permute_dims(x, order)


def expand_dims(x: Any, /, *, axis: int = 0) -> Traced:
    x = array_of(x)
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"axis {axis}, of an array that gets {x.ndim + 1} dims")
    return call("unsqueeze", x, dims=[axis % (x.ndim + 1)])


def squeeze(x: Any, /, axis: Any) -> Traced:
    x = array_of(x)
    return call("squeeze", x, dims=axes(x, axis))


def flip(x: Any, /, *, axis: Any = None) -> Traced:
    x = array_of(x)
    return call("flip", x, dims=axes(x, axis)) if x.ndim else x


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Traced:
    x = array_of(x)
    if axis is None:
        return reshape(roll(reshape(x, [-1]), shift, axis=0), x.shape)
    dims = axes(x, axis)
    return call("roll", x, shifts=list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(dims), dims=dims)


def repeat(x: Any, repeats: int, /, *, axis: int | None = None) -> Traced:
    x = array_of(x)
    if not isinstance(repeats, int):
        raise TypeError("[repeat] repeats is an int here: sizes follow from shapes")
    return call("repeat_interleave", reshape(x, [-1]) if axis is None else x, repeats=repeats,
                dim=0 if axis is None else axes(x, axis)[0])


def tile(x: Any, repetitions: Sequence[int], /) -> Traced:
    x = array_of(x)
    repeats = [*[1] * (x.ndim - len(repetitions)), *repetitions]
    if len(repeats) > x.ndim:
        x = reshape(x, [*[1] * (len(repeats) - x.ndim), *x.shape])
    return call("tile", x, repeats=repeats) if repeats else x


def concat(arrays: Any, /, *, axis: int | None = 0) -> Traced:
    xs = together("concat", *arrays)
    return call("concat", *([reshape(x, [-1]) for x in xs] if axis is None else xs),
                dim=0 if axis is None else axes(xs[0], axis)[0])


def stack(arrays: Any, /, *, axis: int = 0) -> Traced:
    xs = together("stack", *arrays)
    return call("stack", *xs, dim=axis % (xs[0].ndim + 1))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Traced, ...]:
    x = array_of(x)
    dim = axes(x, axis)[0]
    return tuple(x[(*(slice(None),) * dim, i)] for i in range(x.shape[dim]))


def broadcast_to(x: Any, /, shape: Any) -> Traced:
    sizes = [shape] if not isinstance(shape, (tuple, list)) else list(shape)
    return call("expand", array_of(x), shape=sizes)


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    result: list[Any] = []
    for shape in shapes:
        longer, shorter = (list(shape), result) if len(shape) > len(result) else (result, list(shape))
        at = len(longer) - len(shorter)
        for i, size in enumerate(shorter):
            own = longer[at + i]
            if same_size(own, 1):
                longer[at + i] = size
            elif not same_size(size, 1) and not same_size(own, size):
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result = longer
    return tuple(result)


def broadcast_arrays(*arrays: Any) -> list[Traced]:
    xs = [array_of(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in xs))
    return [broadcast_to(x, shape) for x in xs]
