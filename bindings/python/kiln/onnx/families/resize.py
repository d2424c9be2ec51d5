"""Images at other sizes, and samples of them at places that are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kiln import Value, ops
from kiln.onnx._arithmetic import Number, absolute, ceil, clip, counted, floor, number_of, stored, where
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, Results, op
from kiln.onnx._types import FLOATS, Size, equal, sizes


@dataclass(frozen=True)
class Along:
    """How one dim is resized."""

    size: Size
    result: Size
    scale: float | None  # None: as the sizes are, which only a run tells
    begin: float = 0.0
    end: float = 1.0

    @property
    def is_literal(self) -> bool:
        """Whether its sizes are known."""
        return isinstance(self.size, int) and isinstance(self.result, int)

    @property
    def is_exact(self) -> bool:
        """Whether the result's size is that of x by the scale, without rounding."""
        if self.scale is None or isinstance(self.size, int):
            return self.scale is None or self.scale * self.size == self.result
        return self.scale.is_integer() and equal(self.result, self.size * int(self.scale)) is True

    @property
    def is_never_one(self) -> bool:
        """Whether the result's size is not 1, whatever a run tells."""
        return bool(equal(self.result, 1) is False or self.is_exact and self.scale is not None and self.scale > 1)


def _places(along: Along, mode: str) -> Number:
    """Where in x each element of the result lies."""
    o, size, result = counted(along.result), number_of(along.size), number_of(along.result)
    scale = result / size if along.scale is None else along.scale
    exact = scale * size  # the result's size before it was rounded
    if mode == "asymmetric":
        return o / scale
    if mode in ("align_corners", "tf_crop_and_resize"):
        begin, end = (0.0, 1.0) if mode == "align_corners" else (along.begin, along.end)
        steps = where(exact == 1, 1.0, exact - 1)
        alone = 0.0 if mode == "align_corners" else 0.5 * (begin + end) * (size - 1)
        return where(exact == 1, o * 0.0 + alone, begin * (size - 1) + o * (end - begin) * (size - 1) / steps)
    if mode == "tf_half_pixel_for_nn":
        return (o + 0.5) / scale
    if mode == "pytorch_half_pixel":
        return where(result > 1, (o + 0.5) / scale - 0.5, o * 0.0)
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - result / exact) + (o + 0.5) / scale - 0.5
    return (o + 0.5) / scale - 0.5


_NEAREST: dict[str, Callable[[Number], Number]] = {
    "round_prefer_floor": lambda place: ceil(place - 0.5), "round_prefer_ceil": lambda place: floor(place + 0.5),
    "floor": floor, "ceil": ceil}


def _cubic(distance: Number, a: float) -> Number:
    d = absolute(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    return where(d <= 1, near, where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, d * 0.0))


def _weights(n: Node, along: Along, places: Number, mode: str) -> tuple[Number, Number]:
    """For each element of the result, which of x's it is made of, and how much of each."""
    stretch = 1.0
    if n.flag("antialias"):
        if along.scale is None:
            raise n.refuse(f"antialias of sizes {along.size} and {along.result}, which have to be known, or a scale told")
        stretch = max(1.0, 1.0 / along.scale)
    reach = (1.0 if mode == "linear" else 2.0) * stretch
    count = int(np.ceil(2 * reach)) + (1 if stretch != 1.0 else 0)
    column = ops.unsqueeze(places, dims=[1]) if isinstance(places, Value) else places[:, None]
    indices = floor(column - reach) + 1.0 + np.arange(count, dtype=np.float64)
    distance = (indices - column) / stretch
    a = n.number("cubic_coeff_a", -0.75)
    weights = clip(1.0 - absolute(distance), 0.0, np.inf) if mode == "linear" else _cubic(distance, a)
    last = number_of(along.size) - 1.0
    if n.flag("exclude_outside"):
        weights = where((indices < 0.0) | (indices > last), weights * 0.0, weights)
    if n.flag("exclude_outside") or stretch != 1.0:
        weights = weights / (ops.sum(weights, dims=[1], keepdim=True) if isinstance(weights, Value) else
                             weights.sum(axis=1, keepdims=True))
    return clip(indices, 0.0, last), weights


def _native(n: Node, x: Value, alongs: dict[int, Along], mode: str, places: str, nearest: str) -> Value | None:
    """One of Kiln's own ops, where it is the same: also of sizes that only a run tells."""
    space = list(range(2, x.ndim))
    if not 1 <= len(space) <= 3 or not set(alongs) <= set(space) or n.flag("antialias") or n.flag("exclude_outside"):
        return None
    told = [alongs.get(dim, Along(x.shape[dim], x.shape[dim], 1.0)) for dim in space]
    size, scale = [each.result for each in told], [each.scale for each in told if each.scale is not None]
    if len(scale) < len(size):
        scale = []  # they follow from the sizes
    if mode == "linear" and str(x.dtype) in FLOATS:
        centred = places == "half_pixel" or all(
            places == "pytorch_half_pixel" and each.is_never_one or places == "half_pixel_symmetric" and each.is_exact
            for each in alongs.values())
        if centred or places == "asymmetric":
            return ops.resize_linear(x, size=size, scale=scale, half_pixel=centred)
        return ops.resize_linear(x, size=size, scale=scale, align_corners=True) if places == "align_corners" and all(
            each.is_exact and each.is_never_one for each in alongs.values()) else None
    if mode == "nearest" and (places == "asymmetric" and nearest == "floor" or places == "half_pixel" and (
            nearest.startswith("round") and scale and all(each.is_integer() for each in scale))):
        return ops.resize_nearest(x, size=size, scale=scale, half_pixel=places == "half_pixel")
    return None


def resized(n: Node, x: Value, alongs: dict[int, Along]) -> Value:
    """x with other sizes of some of its dims, one dim after the other."""
    mode = n.text("mode", "nearest", among=("nearest", "linear", "cubic"))
    where_ = n.text("coordinate_transformation_mode", "half_pixel" if n.op == "Resize" else "asymmetric", among=(
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
        "tf_half_pixel_for_nn"))
    nearest = n.text("nearest_mode", "round_prefer_floor" if n.op == "Resize" else "floor", among=list(_NEAREST))
    native = _native(n, x, alongs, mode, where_, nearest)
    if native is not None:
        return native
    dtype = str(x.dtype)
    is_float, y = dtype in FLOATS, x
    if mode != "nearest" and not is_float:  # computed as floats, and cut to integers as ONNX's reference does
        y = ops.convert(y, dtype="f32")
    graph, outside = n.frame.graph, None
    for dim, along in alongs.items():
        places = _places(along, where_)
        if where_ == "tf_crop_and_resize":
            beyond = (places < 0.0) | (places > number_of(along.size) - 1.0)
            if isinstance(beyond, Value) or beyond.any():
                shape = [along.result if i == dim else 1 for i in range(x.ndim)]
                made = ops.reshape(beyond if isinstance(beyond, Value) else graph.constant(beyond), shape=shape)
                outside = made if outside is None else ops.or_(outside, made)
        if mode == "nearest":
            index = clip(_NEAREST[nearest](places), 0.0, number_of(along.size) - 1.0)
            if not along.is_literal or along.result != along.size or (index != np.arange(along.size)).any():
                y = ops.index_select(y, stored(index, "i64"), dim=dim)
            continue
        indices, weights = _weights(n, along, places, mode)
        y = ops.resample(y, stored(weights, str(y.dtype)), stored(indices, "i64"), dim=dim)
    if outside is not None:
        value = n.number("extrapolation_value", 0.0)
        y = ops.where(outside, ops.full(value=value, dtype=y.dtype, shape=[]), y)
    return y if str(y.dtype) == dtype else ops.convert(y, dtype=dtype)


def _scaled(n: Node, size: Size, scale: float) -> Size:
    """The result's size, rounded down."""
    if isinstance(size, int):
        return int(np.floor(size * scale))
    exact = Fraction(scale)  # which any float is
    if exact.denominator > 2**30 or exact.numerator > 2**30:
        raise n.refuse(f"size {size}, which only a run tells, times {scale}")
    return size * exact.numerator // exact.denominator


def _ratio(size: Size, result: Size) -> float | None:
    """By how much a dim grows; None where only a run tells."""
    if isinstance(size, int) and isinstance(result, int):
        return result / size
    return 1.0 if equal(size, result) else None


@op("Resize", since=11, ignores=("cubic_coeff_a", "extrapolation_value", "keep_aspect_ratio_policy", "antialias",
                                 "exclude_outside"))
def resize(n: Node, x: Value, roi: Known | None = None, scales: Known | None = None, size: Known | None = None) -> Value:
    """To sizes, or by scales; of the dims that axes name, which may keep their aspect ratio."""
    axes = [n.axis(axis, x.ndim) for axis in n.ints("axes", range(x.ndim))]
    shape = [x.shape[axis] for axis in axes]
    results: list[Size]
    factors: list[float | None]
    if size is not None and size.size:
        results = sizes(size)
        factors = [_ratio(old, result) for old, result in zip(shape, results, strict=True)]
        policy = n.text("keep_aspect_ratio_policy", "stretch", among=("stretch", "not_larger", "not_smaller"))
        if policy != "stretch":
            literal = [result / old for result, old in zip(n.literal(results, f"a size, with policy '{policy}',"), n.literal(
                shape, f"x's size, with policy '{policy}',"), strict=True)]
            factor = min(literal) if policy == "not_larger" else max(literal)
            factors = [factor] * len(literal)
            results = [int(np.floor(factor * old + 0.5)) for old in shape]
    elif scales is not None and scales.size:
        factors = [float(each) for each in scales.flat]
        results = [_scaled(n, old, float(each)) for old, each in zip(shape, scales.flat, strict=True)]
    else:
        raise n.wrong("neither scales nor sizes are told")
    boxes = [float(each) for each in roi.flat] if roi is not None and roi.size else [0.0] * len(axes) + [1.0] * len(axes)
    crops = n.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    alongs = {axis: Along(old, result, factor, boxes[i], boxes[len(axes) + i])
              for i, (axis, old, result, factor) in enumerate(zip(axes, shape, results, factors, strict=True))
              if factor != 1.0 or crops}
    return resized(n, x, alongs) if alongs else ops.clone(x)


@op("Resize", since=10)
def resize_10(n: Node, x: Value, scales: Known) -> Results:
    """By scales; elements are at the begin of their share."""
    return upsample(n, x, scales)


@op("Upsample", since=7)
def upsample(n: Node, x: Value, scales: Known | None = None) -> Value:
    """By scales, an attribute or an input; elements are at the begin of their share."""
    factors = [float(each) for each in scales.flat] if scales is not None else n.floats("scales")
    alongs = {i: Along(old, _scaled(n, old, factor), factor)
              for i, (old, factor) in enumerate(zip(x.shape, factors, strict=True)) if factor != 1.0}
    n.attributes.setdefault("coordinate_transformation_mode", "asymmetric")
    n.attributes.setdefault("nearest_mode", "floor")
    return resized(n, x, alongs) if alongs else ops.clone(x)


@op("GridSample")
def grid_sample(n: Node, x: Value, grid: Value) -> Value:
    """x at the places that a grid tells."""
    mode = n.text("mode", "linear", among=("linear", "nearest", "cubic", "bilinear", "bicubic"))
    padding = n.text("padding_mode", "zeros", among=("zeros", "border", "reflection"))
    if str(grid.dtype) != str(x.dtype):
        grid = ops.convert(grid, dtype=x.dtype)
    return ops.grid_sample(x, grid, mode=mode.removeprefix("bi"), padding=padding, align_corners=n.flag("align_corners"))


@op("AffineGrid")
def affine_grid(n: Node, theta: Value, size: Known) -> Value:
    """The places in x that theta makes of those in the result."""
    return ops.affine_grid(theta, size=sizes(size)[2:], align_corners=n.flag("align_corners"))
