"""Boxes in images, by the definitions of torchvision.ops."""

import numpy as np
import torch

from peers import peer


def between(plane, y, x):
    """plane between its elements, 0 further than one element outside."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    row, column = int(y), int(x)
    below, behind = min(row + 1, height - 1), min(column + 1, width - 1)
    above = plane[row, column] * (1 - (x - column)) + plane[row, behind] * (x - column)
    under = plane[below, column] * (1 - (x - column)) + plane[below, behind] * (x - column)
    return above * (1 - (y - row)) + under * (y - row)


@peer("roi_align", "none: numpy, by the definition of torchvision.ops.roi_align")
def roi_align(c):
    x, boxes, *images = c.x
    numbers = images[0] if images else boxes[:, 0].astype(np.int64)
    y = np.zeros((len(boxes), x.shape[1], *c.size))
    parts = (np.arange(c.sampling_ratio) + 0.5) / c.sampling_ratio
    for k, box in enumerate(boxes if images else boxes[:, 1:]):
        x0, y0, x1, y1 = box * c.spatial_scale - (0.5 if c.aligned else 0.0)
        width, height = (x1 - x0, y1 - y0) if c.aligned else (np.maximum(x1 - x0, 1.0), np.maximum(y1 - y0, 1.0))
        for channel, i, j in np.ndindex(y.shape[1:]):
            places = [(y0 + (i + p) * height / c.size[0], x0 + (j + q) * width / c.size[1])
                      for p in parts for q in parts]
            y[k, channel, i, j] = np.mean([between(x[numbers[k], channel], *place) for place in places])
    return y


@peer("nms", "none: numpy, by the definition of torchvision.ops.nms")
def nms(c):
    boxes, scores = c.x
    kept = []
    for k in torch.sort(torch.from_numpy(scores), descending=True, stable=True).indices.tolist():
        sides = np.minimum(boxes[kept, 2:], boxes[k, 2:]) - np.maximum(boxes[kept, :2], boxes[k, :2])
        shared = np.maximum(sides, 0).prod(1)
        both = (boxes[kept, 2:] - boxes[kept, :2]).prod(1) + (boxes[k, 2:] - boxes[k, :2]).prod()
        with np.errstate(invalid="ignore"):
            if not (shared / (both - shared) > c.iou_threshold).any():
                kept.append(k)
    kept = kept[:c.max] if c.max >= 0 else kept
    return np.array(kept, np.int64), np.int64(len(kept))
