"""Boxes."""

from __future__ import annotations

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, op


@op("RoiAlign")
def roi_align(n: Node, x: Value, boxes: Value, images: Value) -> Value:
    """The means of parts of boxes."""
    n.text("mode", "avg", among=("avg",))
    default = "half_pixel" if n.version >= 16 else "output_half_pixel"
    aligned = n.text("coordinate_transformation_mode", default, among=("half_pixel", "output_half_pixel")) == "half_pixel"
    ratio = n.integer("sampling_ratio", 0)
    if ratio < 1:
        raise n.refuse(f"sampling_ratio is {ratio}: how many samples a part has would follow from the boxes' values")
    return ops.roi_align(x, boxes, images, size=[n.integer("output_height", 1), n.integer("output_width", 1)],
                         spatial_scale=n.number("spatial_scale", 1.0), sampling_ratio=ratio, aligned=aligned)


@op("NonMaxSuppression")
def nms(n: Node, boxes: Value, scores: Value, most: Known | None = None, overlap: Known | None = None,
        least: Value | None = None) -> Value:
    """Which boxes stay, of each image and class: [how many, 3], image, class and box."""
    count = 0 if most is None else int(most.reshape(-1)[0])
    threshold = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    images, classes = n.literal(scores.shape[:2], "how many images and classes there are")
    if count == 0:
        return ops.full(dtype="i64", shape=[0, 3])
    found = []
    for image in range(images):
        own = _corners(n, ops.squeeze(ops.slice(boxes, dim=0, start=image, end=image + 1), dims=[0]))
        for class_ in range(classes):
            score = ops.slice(ops.slice(scores, dim=0, start=image, end=image + 1), dim=1, start=class_, end=class_ + 1)
            found.append(_selected(own, ops.reshape(score, shape=[-1]), least, threshold, count, image, class_))
    return found[0] if len(found) == 1 else ops.concat(*found, dim=0)


def _corners(n: Node, boxes: Value) -> Value:
    """[N, 4] with the lesser corner first."""
    a, b, c, d = (ops.slice(boxes, dim=1, start=i, end=i + 1) for i in range(4))
    if n.integer("center_point_box", 0):  # x, y, width, height
        c, d = c * 0.5, d * 0.5
        return ops.concat(a - c, b - d, a + c, b + d, dim=1)
    return ops.concat(ops.minimum(a, c), ops.minimum(b, d), ops.maximum(a, c), ops.maximum(b, d), dim=1)


def _selected(boxes: Value, scores: Value, least: Value | None, threshold: float, most: int, image: int,
              class_: int) -> Value:
    """Of one image and class."""
    places = None
    if least is not None:  # those of too low a score are left out first
        places, _ = ops.nonzero(ops.gt(scores, ops.reshape(least, shape=[])))
        places = ops.squeeze(places, dims=[1])
        boxes, scores = ops.index_select(boxes, places, dim=0), ops.index_select(scores, places, dim=0)
    kept, _ = ops.nms(boxes, scores, iou_threshold=threshold, max=min(most, 2**31 - 1))
    if places is not None:
        kept = ops.index_select(places, kept, dim=0)
    row = ops.unsqueeze(kept, dims=[1])
    where = [ops.full(exact=str(each), dtype="i64", shape=row.shape) for each in (image, class_)]
    return ops.concat(*where, row, dim=1)
