"""Ops of other libraries, by name: whoever calls them has imported what defines them."""

from __future__ import annotations

from typing import Any

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, Unsupported, row


@row("transformers::grouped_mm_fallback.default", "grouped_matmul", FLOATS | {"i32", "i64"})
def _(b: Lowering, x: kiln.Value, weight: kiln.Value, offsets: kiln.Value) -> kiln.Value:
    return b.op("grouped_matmul", x, weight, offsets)


@row("torchvision::roi_align.default", "roi_align", FLOATS, when="sampling_ratio is known")
def _(b: Lowering, x: kiln.Value, boxes: kiln.Value, spatial_scale: float, pooled_height: Any, pooled_width: Any,
      sampling_ratio: int, aligned: bool) -> kiln.Value:
    if sampling_ratio <= 0:
        raise Unsupported("a sampling ratio that follows from each box")
    return b.op("roi_align", x, boxes, size=[pooled_height, pooled_width], spatial_scale=spatial_scale,
                sampling_ratio=sampling_ratio, aligned=aligned)
