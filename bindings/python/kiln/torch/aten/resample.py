"""Images at other places: grids, and resizing whose filter grows. AOTAutograd makes indexing of other resizing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, Unsupported, row

_MODES = {0: "linear", 1: "nearest", 2: "cubic"}
_PADDINGS = {0: "zeros", 1: "border", 2: "reflection"}


@row("grid_sampler_2d.default grid_sampler_3d.default", "grid_sample", FLOATS)
def _(b: Lowering, x: kiln.Value, grid: kiln.Value, mode: int, padding: int, align_corners: bool) -> kiln.Value:
    return b.op("grid_sample", x, grid, mode=_MODES[mode], padding=_PADDINGS[padding], align_corners=align_corners)


@dataclass
class _Tap:
    """Of a place along a dim: an element that it reads, by what weight, and how that changes with the place."""

    index: kiln.Value
    weight: kiln.Value
    slope: kiln.Value | None


@dataclass
class _Grid:
    b: Lowering
    mode: str
    padding: str
    align_corners: bool

    def taps(self, grid: kiln.Value, size: Any) -> list[_Tap]:
        """What places from -1 to 1 read of a dim."""
        b, n = self.b, self.b.operand(size, str(grid.dtype))
        per = b.op("mul", b.op("sub", n, 1.0) if self.align_corners else n, 0.5)
        place = b.op("mul", b.op("add", grid, 1.0), per)
        if not self.align_corners:
            place = b.op("sub", place, 0.5)
        if self.mode == "cubic":
            begin = b.op("floor", place)
            t = b.op("sub", place, begin)
            return [self._tap(self._padded(b.op("add", begin, i - 1.0), n)[0], n, *self._cubic(t, i), per)
                    for i in range(4)]
        place, slope = self._padded(place, n)
        if slope is not None:
            per = b.op("mul", per, slope)
        if self.mode == "nearest":
            return [self._tap(b.op("round", place), n, b.full(1, str(grid.dtype), []), None, per)]
        begin = b.op("floor", place)
        t, one = b.op("sub", place, begin), b.full(1, str(grid.dtype), [])
        return [self._tap(begin, n, b.op("sub", 1.0, t), b.op("neg", one), per),
                self._tap(b.op("add", begin, 1.0), n, t, one, per)]

    def _tap(self, at: kiln.Value, n: kiln.Value, weight: kiln.Value, slope: kiln.Value | None,
             per: kiln.Value) -> _Tap:
        """Elements outside are 0."""
        b, zero = self.b, self.b.full(0, str(at.dtype), [])
        inside = b.op("and", b.op("ge", at, 0.0), b.op("lt", at, n))
        index = b.cast(b.op("where", inside, at, zero), "i64")
        return _Tap(index, b.op("where", inside, weight, zero),
                    None if slope is None else b.op("where", inside, b.op("mul", slope, per), zero))

    def _padded(self, place: kiln.Value, n: kiln.Value) -> tuple[kiln.Value, kiln.Value | None]:
        """A place inside, and how it changes with that it came from."""
        b, slope = self.b, None
        if self.padding == "zeros":
            return place, None
        one, zero = (b.full(value, str(place.dtype), []) for value in (1, 0))
        if self.padding == "reflection":
            place, slope = self._reflected(place, n)
        last = b.op("sub", n, 1.0)
        inside = b.op("and", b.op("gt", place, 0.0), b.op("lt", place, last))
        clipped = b.op("minimum", b.op("maximum", place, 0.0), last)
        return clipped, b.op("where", inside, one if slope is None else slope, zero)

    def _reflected(self, place: kiln.Value, n: kiln.Value) -> tuple[kiln.Value, kiln.Value]:
        b = self.b
        first = 0.0 if self.align_corners else -0.5
        span = b.op("sub", n, 1.0) if self.align_corners else n
        one, minus = (b.full(value, str(place.dtype), []) for value in (1, -1))
        away = b.op("sub", place, first)
        sign = b.op("where", b.op("lt", away, 0.0), minus, one)
        away = b.op("abs", away)
        turns = b.op("floor", b.op("div", away, span))
        rest = b.op("sub", away, b.op("mul", turns, span))
        odd = b.op("ne", b.op("fmod", turns, 2.0), 0.0)
        back = b.op("where", odd, b.op("sub", span, rest), rest)
        flat = b.op("le", span, 0.0)  # one element: all places are its
        back = b.op("where", flat, b.full(0, str(place.dtype), []), back)
        return b.op("add", back, first), b.op("where", odd, b.op("neg", sign), sign)

    def _cubic(self, t: kiln.Value, i: int) -> tuple[kiln.Value, kiln.Value]:
        """Of Keys' kernel with a = -0.75 the weight of element i of four, and its slope: polynomials of t."""
        powers = {0: ((0, -0.75, 1.5, -0.75), (-0.75, 3, -2.25)), 1: ((1, 0, -2.25, 1.25), (0, -4.5, 3.75)),
                  2: ((0, 0.75, 1.5, -1.25), (0.75, 3, -3.75)), 3: ((0, 0, -0.75, 0.75), (0, -1.5, 2.25))}
        weight, slope = (self._polynomial(t, each) for each in powers[i])
        return weight, slope

    def _polynomial(self, t: kiln.Value, factors: Sequence[float]) -> kiln.Value:
        made = self.b.full(factors[-1], str(t.dtype), [])
        for factor in reversed(factors[:-1]):
            made = self.b.op("add", self.b.op("mul", made, t), float(factor))
        return made


@row("grid_sampler_2d_backward.default grid_sampler_3d_backward.default",
     "index_put_add index sum mul add floor where permute stack", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, grid: kiln.Value, mode: int, padding: int, align_corners: bool,
      output_mask: Sequence[bool]) -> tuple[kiln.Value | None, kiln.Value | None]:
    n, wide = len(x.shape) - 2, b.wide(grid)
    last = [0, *range(2, n + 2), 1]  # channels
    pixels, dy = (b.op("permute", b.wide(each), dims=last) for each in (x, dy))
    said = _Grid(b, _MODES[mode], _PADDINGS[padding], align_corners)
    taps = []
    for dim in range(n):  # of a grid the last dim's place comes first
        along = b.op("squeeze", b.op("slice", wide, dim=n + 1, start=n - 1 - dim, end=n - dim), dims=[n + 1])
        taps.append(said.taps(along, x.shape[dim + 2]))
    image = b.op("iota", shape=[x.shape[0], *[1] * n], dim=0)
    dx = b.full(0, str(pixels.dtype), list(pixels.shape)) if output_mask[0] else None
    slopes: list[kiln.Value | None] = [None] * n
    for chosen in itertools.product(*taps):
        places = [image, *(tap.index for tap in chosen)]
        if dx is not None:
            weight = _product(b, [tap.weight for tap in chosen])
            share = b.op("mul", dy, b.op("unsqueeze", b.op("expand", weight, shape=dy.shape[:-1]), dims=[n + 1]))
            dx = b.op("index_put_add", dx, share, *places, dim=0)
        if output_mask[1] and chosen[0].slope is not None:
            heard = b.op("sum", b.op("mul", dy, b.op("index", pixels, *places, dim=0)), dims=[n + 1])
            for dim, tap in enumerate(chosen):
                assert tap.slope is not None
                others = [other.weight for i, other in enumerate(chosen) if i != dim]
                part = _product(b, [heard, tap.slope, *others])
                before = slopes[dim]
                slopes[dim] = part if before is None else b.op("add", before, part)
    first = [0, n + 1, *range(1, n + 1)]
    return (None if dx is None else b.cast(b.op("permute", dx, dims=first), b.dtype),
            _grid_gradient(b, grid, slopes) if output_mask[1] else None)


def _product(b: Lowering, factors: Sequence[kiln.Value]) -> kiln.Value:
    made = factors[0]
    for factor in factors[1:]:
        made = b.op("mul", made, factor)
    return made


def _grid_gradient(b: Lowering, grid: kiln.Value, slopes: Sequence[kiln.Value | None]) -> kiln.Value:
    """That of the places: nearest elements do not change with them."""
    dtype = str(grid.dtype)
    found = [slope for slope in reversed(slopes) if slope is not None]
    if not found:
        return b.full(0, dtype, list(grid.shape))
    return b.cast(b.op("stack", *found, dim=len(grid.shape) - 1), dtype)


def _resized(b: Lowering, op: str, x: kiln.Value, size: Sequence[Any], align_corners: bool,
             scales: Sequence[float | None]) -> kiln.Value:
    if align_corners:
        raise Unsupported("align_corners, with a filter that grows")
    said = [each for each in scales if each is not None]
    if said and len(said) < len(scales):
        raise Unsupported("the scale of one dim alone")
    return b.cast(b.op(op, b.wide(x), size=list(size), scale=said, antialias=True), b.dtype)


def _filtered(kind: str, op: str) -> None:
    @row(f"_upsample_{kind}2d_aa.default", op, FLOATS, when="without align_corners")
    def make(b: Lowering, x: kiln.Value, output_size: Sequence[Any], align_corners: bool,
             scales_h: float | None = None, scales_w: float | None = None) -> kiln.Value:
        return _resized(b, op, x, output_size, align_corners, (scales_h, scales_w))

    @row(f"_upsample_{kind}2d_aa_backward.default", f"{op}_backward", FLOATS, when="without align_corners")
    def make_gradient(b: Lowering, dy: kiln.Value, output_size: Sequence[Any], input_size: Sequence[Any],
                      align_corners: bool, scales_h: float | None = None, scales_w: float | None = None) -> kiln.Value:
        return _resized(b, f"{op}_backward", dy, input_size[2:], align_corners, (scales_h, scales_w))


_filtered("bilinear", "resize_linear")
_filtered("bicubic", "resize_cubic")
