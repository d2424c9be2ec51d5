"""Windows that slide over dims of space: what convolutions and pools have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import kiln
from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._types import Size


@dataclass
class Windows:
    """Attributes of windows; a list for each dim of space. Padding is `low` before and `high` after."""

    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    low: list[Size]
    high: list[Size]

    @property
    def is_literal(self) -> bool:
        """Whether all padding is known: what auto_pad tells may follow from a size."""
        return all(isinstance(each, int) for each in (*self.low, *self.high))

    @property
    def padding(self) -> list[int]:
        """As Kiln's convolutions take it: before and after, dim by dim."""
        return [each for pair in zip(self.low, self.high, strict=True) for each in pair]

    @property
    def is_even(self) -> bool:
        """Whether Kiln's pools can pad: the same on both sides, and by no more than half a window."""
        return self.is_literal and self.low == self.high and all(
            2 * pad <= size for pad, size in zip(self.low, self.kernel, strict=True))

    def around(self, x: Value, value: float = 0.0, exact: str = "") -> Value:
        """x, whose last dims are those of space, with its padding as elements."""
        first = x.ndim - len(self.kernel)
        if self.is_literal:
            none = [0] * first
            return ops.pad(x, low=[*none, *self.low], high=[*none, *self.high], value=value, exact=exact)
        for i, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            def block(size: Size, dim: int = first + i) -> Value:
                shape = [size if d == dim else each for d, each in enumerate(x.shape)]
                return ops.full(shape=shape, dtype=x.dtype, value=value, exact=exact)
            x = ops.concat(block(low), x, block(high), dim=first + i)
        return x


def ceil_divide(size: Size, by: int) -> Size:
    """How many parts of so many elements there are, the last perhaps smaller."""
    return (size + (by - 1)) // by


def windows(n: Node, kernel: Sequence[int], space: Sequence[Size]) -> Windows:
    """Those of a node over dims of these sizes."""
    rank = len(kernel)
    if rank > 3 or rank < 1:
        raise n.refuse(f"{rank} dims of space, 1 to 3 were expected")
    stride, dilation = n.ints("strides", [1] * rank), n.ints("dilations", [1] * rank)
    mode = n.text("auto_pad", "NOTSET", among=("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    pads = n.ints("pads", [0] * 2 * rank) if mode == "NOTSET" else [0] * 2 * rank
    low, high = pads[:rank], pads[rank:]
    if mode.startswith("SAME"):
        for i, (size, step) in enumerate(zip(space, stride, strict=True)):
            reach = (kernel[i] - 1) * dilation[i] + 1
            total: Size = reach - 1
            if step != 1:
                total = kiln.dim_max((ceil_divide(size, step) - 1) * step + reach - size, 0)
            low[i] = total // 2 if mode == "SAME_UPPER" else total - total // 2
            high[i] = total - low[i]
    return Windows(list(kernel), stride, dilation, low, high)
