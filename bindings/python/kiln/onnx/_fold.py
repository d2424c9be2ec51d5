"""The one place where values are computed when a model is read: those that sizes depend on.

Elements are numbers of their dtype, or, in i64 and i32, sizes that are expressions (`kiln.Dim`). What cannot be told for
all values of the symbols is not folded; the program computes it then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import kiln
from kiln.onnx._node import Node
from kiln.onnx._types import INTEGERS, Size, at_least, dtype_of_array, equal, numpy_type, plain, product, sizes
from kiln.onnx._values import NOBODY, Array, Tensor

MOST = 1024
"""Elements of what is folded; more is for the program to compute."""


class Undecided(Exception):
    """It depends on the values of symbols."""


_folds: dict[str, Callable[..., Array | list[Array]]] = {}
_Fold = Callable[..., Any]


def folds(*names: str) -> Callable[[_Fold], _Fold]:
    """The decorated function computes these ops: of the node, and an array (or None) for each of its inputs."""
    def register(function: _Fold) -> _Fold:
        _folds.update(dict.fromkeys(names, function))
        return function
    return register


def fold(node: Node, inputs: Sequence[Tensor | None]) -> list[Tensor] | None:
    """A node's outputs, if their elements are known and few; else None."""
    if node.domain or not inputs:
        return None
    if node.op in ("Shape", "Size") and inputs[0] is not None:
        return [Tensor.elements(_shape(node, inputs[0]))]
    function = _folds.get(node.op)
    if function is None or any(each is not None and each.known is None for each in inputs):
        return None
    known = [None if each is None else each.known for each in inputs]
    if sum(each.size for each in known if each is not None) > MOST:
        return None
    try:
        with np.errstate(all="ignore"):
            results = function(node, *known)
    except Undecided:
        return None
    results = [np.asarray(each) for each in (results if isinstance(results, list) else [results])]
    dtype = _dtype_of_sizes(node, inputs)
    return None if any(each.size > MOST for each in results) else [
        Tensor.elements(plain(each, dtype), dtype) for each in results]


def _dtype_of_sizes(node: Node, inputs: Sequence[Tensor | None]) -> str:
    """The dtype of results that are sizes: arrays of sizes do not tell."""
    if node.op == "Cast":
        return node.dtype("to")
    return next((each.dtype for each in inputs if each is not None and each.known is not None and _are_sizes(each.known)),
                "i64")


def deciders(node: Node, inputs: Sequence[Tensor | None]) -> frozenset[str] | None:
    """The inputs of the model from whose values the node's outputs could be folded."""
    if node.domain or node.op not in _folds:
        return None
    names = NOBODY
    for tensor in inputs:
        if tensor is not None:
            if tensor.deciders is None:
                return None
            names |= tensor.deciders
    return names


def _shape(node: Node, tensor: Tensor) -> Array:
    if node.op == "Size":
        return _array([product(tensor.shape)]).reshape(())
    rank = len(tensor.shape)
    start, end, _ = slice(node.integer("start", 0), node.integer("end", rank)).indices(rank)
    return _array(tensor.shape[start:end])


def _array(elements: Sequence[Size]) -> Array:
    array = np.empty(len(elements), object)
    array[:] = elements
    return plain(array)


def _elementwise(function: Callable[..., Any], *arrays: Array) -> Array:
    """Of sizes: the function at each element."""
    broadcast = np.broadcast_arrays(*arrays)
    made = np.empty(broadcast[0].shape, object)
    for index in np.ndindex(made.shape):
        elements = (array[index] for array in broadcast)
        made[index] = function(*(each if isinstance(each, kiln.Dim) else each.item() if hasattr(each, "item") else each
                                 for each in elements))
    return made


def _are_sizes(*arrays: Array) -> bool:
    return any(array.dtype == object for array in arrays)


def _divide(a: Size, b: Size) -> Size:
    magnitudes = [size if at_least(size, 0) else -size for size in (a, b)]
    if not all(at_least(size, 0) for size in magnitudes):
        raise Undecided  # ONNX rounds towards 0, sizes are rounded down; by 0 neither divides
    quotient = magnitudes[0] // magnitudes[1]
    return quotient if at_least(a, 0) == at_least(b, 0) else -quotient


def _remainder(a: Size, b: Size, of_a: bool) -> Size:
    if not at_least(b, 0) or of_a and not at_least(a, 0):
        raise Undecided  # a remainder of sizes has b's sign
    return a % b


def _is_equal(a: Size, b: Size) -> bool:
    decided = equal(a, b)
    if decided is None:
        raise Undecided
    return decided


def _is_less(a: Size, b: Size) -> bool:
    if at_least(b - a, 1):
        return True
    if at_least(a, b):
        return False
    raise Undecided


_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # of numbers, and of sizes
    "Add": (np.add, lambda a, b: a + b), "Sub": (np.subtract, lambda a, b: a - b),
    "Mul": (np.multiply, lambda a, b: a * b), "Min": (np.minimum, kiln.dim_min), "Max": (np.maximum, kiln.dim_max),
    "Equal": (np.equal, _is_equal), "Less": (np.less, _is_less), "Greater": (np.greater, lambda a, b: _is_less(b, a)),
    "LessOrEqual": (np.less_equal, lambda a, b: not _is_less(b, a)),
    "GreaterOrEqual": (np.greater_equal, lambda a, b: not _is_less(a, b))}
_COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")


@folds(*_BINARY)
def _binary(node: Node, a: Array, *others: Array) -> Array:
    numbers, on_sizes = _BINARY[node.op]
    for b in others:
        a = _elementwise(on_sizes, a, b) if _are_sizes(a, b) else numbers(a, b)
    return a.astype(bool) if node.op in _COMPARISONS else a


@folds("Div")
def _div(node: Node, a: Array, b: Array) -> Array:
    if _are_sizes(a, b):
        return _elementwise(_divide, a, b)
    if dtype_of_array(a).startswith(("f", "bf")):
        return np.asarray(a / b)
    if not np.all(b):
        raise Undecided  # the program tells of it
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)


@folds("Mod")
def _mod(node: Node, a: Array, b: Array) -> Array:
    of_a = node.flag("fmod")
    if _are_sizes(a, b):
        return _elementwise(lambda a, b: _remainder(a, b, of_a), a, b)
    if not np.all(b):
        raise Undecided
    return np.fmod(a, b) if of_a else np.mod(a, b)


_UNARY: dict[str, Callable[..., Any]] = {
    "Neg": np.negative, "Abs": np.abs, "Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt, "Not": np.logical_not,
    "Round": np.round, "Relu": lambda x: np.maximum(x, 0)}


@folds(*_UNARY)
def _unary(node: Node, x: Array) -> Array:
    if not _are_sizes(x):
        return np.asarray(_UNARY[node.op](x))
    if node.op == "Neg":
        return _elementwise(lambda size: -size, x)
    if node.op in ("Abs", "Relu") and all(at_least(size, 0) for size in x.flat):
        return x
    raise Undecided


@folds("Identity")
def _identity(node: Node, x: Array) -> Array:
    return x


@folds("Cast", "CastLike")
def _cast(node: Node, x: Array, like: Array | None = None) -> Array:
    if like is not None and _are_sizes(like):
        raise Undecided  # sizes do not tell of which type they are
    to = dtype_of_array(like) if like is not None else node.dtype("to")
    if to.startswith("f8"):
        raise Undecided  # what saturates is told in one place, and not here
    if not _are_sizes(x):
        if x.dtype.kind not in "biu" and to in INTEGERS:
            limits, wide = np.iinfo(numpy_type(to)), x.astype(np.float64)
            if not np.all((wide >= limits.min) & (wide < float(limits.max) + 1)):
                raise Undecided  # nor what no such integer is
        return x.astype(numpy_type(to))
    if to in ("i64", "i32"):
        return x
    if to == "bool" and all(at_least(size, 1) for size in sizes(x)):
        return np.ones(x.shape, bool)
    raise Undecided


@folds("And", "Or", "Xor")
def _logic(node: Node, a: Array, b: Array) -> Array:
    return np.asarray({"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[node.op](a, b))


@folds("Where")
def _where(node: Node, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


@folds("Concat")
def _concat(node: Node, *parts: Array) -> Array:
    return np.concatenate(parts, node.integer("axis"))


@folds("Gather")
def _gather(node: Node, x: Array, indices: Array) -> Array:
    return np.asarray(np.take(x, indices.astype(np.int64), node.integer("axis", 0)), x.dtype)  # one of sizes is a number


@folds("Slice")
def _slice(node: Node, x: Array, starts: Array | None = None, ends: Array | None = None, axes: Array | None = None,
           steps: Array | None = None) -> Array:
    def told(name: str, given: Array | None) -> list[int]:
        if given is not None and given.dtype == object:
            raise Undecided
        return [int(each) for each in given] if given is not None else node.ints(name)
    first, last = told("starts", starts), told("ends", ends)
    along = told("axes", axes) if axes is not None or node.has("axes") else list(range(len(first)))
    step = told("steps", steps) if steps is not None else [1] * len(first)
    index: list[slice] = [slice(None)] * x.ndim
    for axis, a, b, c in zip(along, first, last, step, strict=True):
        index[axis] = slice(a, None if c < 0 and b < -x.shape[axis] else b, c)
    return x[tuple(index)]


@folds("Squeeze")
def _squeeze(node: Node, x: Array, axes: Array | None = None) -> Array:
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    return np.squeeze(x, tuple(node.axes(axes, x.ndim, ones)))


@folds("Unsqueeze")
def _unsqueeze(node: Node, x: Array, axes: Array | None = None) -> Array:
    count = len(axes) if axes is not None else len(node.ints("axes"))
    return np.expand_dims(x, tuple(node.axes(axes, x.ndim + count)))


@folds("Reshape")
def _reshape(node: Node, x: Array, shape: Array) -> Array:
    if _are_sizes(shape):
        raise Undecided
    keep_zero = node.flag("allowzero")
    return x.reshape([x.shape[i] if each == 0 and not keep_zero else int(each) for i, each in enumerate(shape)])


@folds("Flatten")
def _flatten(node: Node, x: Array) -> Array:
    axis = node.integer("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)


@folds("Transpose")
def _transpose(node: Node, x: Array) -> Array:
    return np.transpose(x, node.ints("perm", range(x.ndim)[::-1]))


@folds("Split")
def _split(node: Node, x: Array, split: Array | None = None) -> list[Array]:
    axis, count = node.axis(node.integer("axis", 0), x.ndim), len(node.ir.outputs)
    if split is None and not node.has("split"):
        return np.array_split(x, range(-(-x.shape[axis] // count), x.shape[axis], -(-x.shape[axis] // count)), axis)
    told = sizes(split) if split is not None else node.ints("split")
    return np.split(x, np.cumsum(told)[:-1].astype(np.int64), axis)


def range_count(start: float, limit: float, delta: float) -> int:
    """How many numbers there are from start to before limit, delta apart; not of NumPy's, which overflow."""
    return max(math.ceil((limit - start) / delta), 0)


@folds("Range")
def _range(node: Node, start: Array, limit: Array, delta: Array) -> Array:
    if _are_sizes(start, limit, delta):
        raise Undecided
    count = range_count(start.item(), limit.item(), delta.item())
    if count > MOST:
        raise Undecided
    return np.asarray(start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype)


@folds("ConstantOfShape")
def _constant_of_shape(node: Node, shape: Array) -> Array:
    if _are_sizes(shape) or np.prod(shape, dtype=float) > MOST:
        raise Undecided
    value = node.array("value").reshape(-1)[0] if node.has("value") else np.float32(0)
    return np.full([int(each) for each in shape.flat], value)


@folds("Expand")
def _expand(node: Node, x: Array, shape: Array) -> Array:
    if _are_sizes(shape):
        raise Undecided
    target = np.broadcast_shapes(x.shape, tuple(int(each) for each in shape))
    if np.prod(target, dtype=float) > MOST:
        raise Undecided
    return np.broadcast_to(x, target)


@folds("Tile")
def _tile(node: Node, x: Array, repeats: Array) -> Array:
    if _are_sizes(repeats) or np.prod(repeats, dtype=float) * x.size > MOST:
        raise Undecided
    return np.tile(x, [int(each) for each in repeats])


@folds("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")
def _reduce(node: Node, x: Array, axes: Array | None = None) -> Array:
    if node.flag("noop_with_empty_axes") and (axes is None or not axes.size):
        return x
    along = tuple(node.axes(axes if axes is not None and axes.size else None, x.ndim, range(x.ndim)))
    keep = node.flag("keepdims", True)
    if _are_sizes(x):
        name = {"ReduceSum": "Add", "ReduceProd": "Mul", "ReduceMax": "Max", "ReduceMin": "Min"}[node.op]
        if x.ndim != 1 or not along:
            raise Undecided
        total = x[0]
        for each in x[1:]:
            total = _BINARY[name][1](total, each)
        return _array([total]).reshape((1,) if keep else ())
    function: Any = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min}[node.op]
    return np.asarray(function(x, axis=along, keepdims=keep)).astype(x.dtype)


@folds("OptionalGetElement")
def _get_element(node: Node, x: Array) -> Array:
    return x
