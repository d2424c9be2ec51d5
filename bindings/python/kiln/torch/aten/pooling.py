"""Pools and windows of images, and their gradients. AOTAutograd makes indexing of what resizes images."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, INTEGERS, Unsupported, row


def _spread(values: Any, n: int) -> list[int]:
    all_ = [values] if isinstance(values, int) else list(values)
    return all_ * n if len(all_) == 1 else all_


def batched(b: Lowering, n: int, *all_: kiln.Value) -> list[kiln.Value]:
    """Images with a dim of the batch, which torch's may lack."""
    return [b.op("unsqueeze", x, dims=[0]) if len(x.shape) == n + 1 else x for x in all_]


def unbatched(b: Lowering, made: kiln.Value, rank: int) -> kiln.Value:
    return b.op("squeeze", made, dims=[0]) if len(made.shape) > rank else made


def _window(n: int, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> dict[str, Any]:
    kernel = _spread(kernel, n)
    return {"kernel": kernel, "stride": _spread(stride, n) if stride else kernel, "padding": _spread(padding, n),
            "ceil_mode": ceil_mode}


def _max_pool(n: int) -> None:
    @row(f"max_pool{n}d_with_indices.default", f"max_pool{n}d_with_indices max_pool{n}d", FLOATS | INTEGERS)
    def make(b: Lowering, x: kiln.Value, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> tuple[Any, Any]:
        (image,) = batched(b, n, x)
        attrs = {**_window(n, kernel, stride, padding, ceil_mode), "dilation": _spread(dilation, n)}
        if not b.used(1):
            return unbatched(b, b.op(f"max_pool{n}d", image, **attrs), len(x.shape)), None
        y, indices = b.several(f"max_pool{n}d_with_indices", image, **attrs)
        return unbatched(b, y, len(x.shape)), unbatched(b, indices, len(x.shape))

    @row(f"max_pool{n}d_with_indices_backward.default", f"max_pool{n}d_backward", FLOATS | {"i64"})
    def make_gradient(b: Lowering, dy: kiln.Value, x: kiln.Value, kernel: Any, stride: Any, padding: Any, dilation: Any,
                      ceil_mode: bool, indices: kiln.Value) -> kiln.Value:
        dy, indices = batched(b, n, dy, indices)
        made = b.op(f"max_pool{n}d_backward", indices, dy, size=x.shape[-n:])
        return unbatched(b, made, len(x.shape))


def _avg_pool(n: int) -> None:
    @row(f"avg_pool{n}d.default", f"avg_pool{n}d sum_pool{n}d div", FLOATS)
    def make(b: Lowering, x: kiln.Value, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: Any = None) -> kiln.Value:
        (image,) = batched(b, n, x)
        said = _window(n, kernel, stride, padding, ceil_mode)
        if divisor_override is not None:
            total = b.op(f"sum_pool{n}d", b.wide(image), **said)
            return unbatched(b, b.cast(b.op("div", total, float(divisor_override)), b.dtype), len(x.shape))
        return unbatched(b, b.op(f"avg_pool{n}d", image, count_include_pad=count_include_pad, **said), len(x.shape))

    @row(f"avg_pool{n}d_backward.default", f"avg_pool{n}d_backward", FLOATS, when="without divisor_override")
    def make_gradient(b: Lowering, dy: kiln.Value, x: kiln.Value, kernel: Any, stride: Any, padding: Any,
                      ceil_mode: bool, count_include_pad: bool, divisor_override: Any) -> kiln.Value:
        if divisor_override is not None:
            raise Unsupported("a divisor of its own")
        (image,) = batched(b, n, dy)
        said = {**_window(n, kernel, stride, padding, ceil_mode), "count_include_pad": count_include_pad}
        return unbatched(b, b.op(f"avg_pool{n}d_backward", image, size=x.shape[-n:], **said), len(x.shape))


def _max_unpool(n: int) -> None:
    @row(f"max_unpool{n}d.default", f"max_unpool{n}d")
    def make(b: Lowering, x: kiln.Value, indices: kiln.Value, size: Sequence[Any], *_: Any) -> kiln.Value:
        image, places = batched(b, n, x, indices)
        return unbatched(b, b.op(f"max_unpool{n}d", image, places, size=list(size)), len(x.shape))


def _adaptive(n: int) -> None:
    @row(f"_adaptive_avg_pool{n}d.default", f"adaptive_avg_pool{n}d", FLOATS)
    def make_avg(b: Lowering, x: kiln.Value, output_size: Sequence[int]) -> kiln.Value:
        (image,) = batched(b, n, x)
        return unbatched(b, b.op(f"adaptive_avg_pool{n}d", image, size=list(output_size)), len(x.shape))

    @row(f"_adaptive_avg_pool{n}d_backward.default", f"adaptive_avg_pool{n}d_backward", FLOATS)
    def make_avg_gradient(b: Lowering, dy: kiln.Value, x: kiln.Value) -> kiln.Value:
        (image,) = batched(b, n, dy)
        return unbatched(b, b.op(f"adaptive_avg_pool{n}d_backward", image, size=x.shape[-n:]), len(x.shape))

    @row(f"adaptive_max_pool{n}d.default", f"adaptive_max_pool{n}d_with_indices", FLOATS)
    def make_max(b: Lowering, x: kiln.Value, output_size: Sequence[int]) -> tuple[kiln.Value, kiln.Value]:
        (image,) = batched(b, n, x)
        y, indices = b.several(f"adaptive_max_pool{n}d_with_indices", image, size=list(output_size))
        return unbatched(b, y, len(x.shape)), unbatched(b, indices, len(x.shape))

    @row(f"adaptive_max_pool{n}d_backward.default", f"adaptive_max_pool{n}d_backward", FLOATS | {"i64"})
    def make_max_gradient(b: Lowering, dy: kiln.Value, x: kiln.Value, indices: kiln.Value) -> kiln.Value:
        dy, indices = batched(b, n, dy, indices)
        return unbatched(b, b.op(f"adaptive_max_pool{n}d_backward", indices, dy, size=x.shape[-n:]), len(x.shape))


for _n in (2, 3):
    _max_pool(_n)
    _avg_pool(_n)
    _max_unpool(_n)
    _adaptive(_n)


@row("im2col.default", "im2col", FLOATS)
def _(b: Lowering, x: kiln.Value, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
      stride: Sequence[int]) -> kiln.Value:
    (image,) = batched(b, 2, x)
    made = b.op("im2col", image, kernel=kernel, dilation=_spread(dilation, 2), padding=_spread(padding, 2),
                stride=_spread(stride, 2))
    return unbatched(b, made, len(b.out.shape))


@row("col2im.default", "col2im", FLOATS)
def _(b: Lowering, x: kiln.Value, size: Sequence[Any], kernel: Sequence[int], dilation: Sequence[int],
      padding: Sequence[int], stride: Sequence[int]) -> kiln.Value:
    (columns,) = batched(b, 1, x)
    made = b.op("col2im", columns, size=list(size), kernel=kernel, dilation=_spread(dilation, 2),
                padding=_spread(padding, 2), stride=_spread(stride, 2))
    return unbatched(b, made, len(b.out.shape))
