"""The head of a detector."""

from block import block

CLASSES, CANDIDATES = 3, 10


def tower(b, x, name):
    """Each head's convolution before its last one; all levels share its weights."""
    x = b.conv2d(x, f"{name}.0.weight", f"{name}.0.bias", padding=[1, 1])
    return b.relu(b.group_norm(x, f"{name}.1.weight", f"{name}.1.bias", groups=4))


def level(b, x, height, width, stride):
    """Scores [places, classes] and boxes [places, 4] of one level, in f32 whatever the block's type is."""
    def flat(x, channels):
        x = b.permute(b.reshape(x, shape=[channels, f"{height}*{width}"]), dims=[1, 0])
        return x if b.dtype == "f32" else b.convert(x, dtype="f32")

    def head(x, name, channels):
        return flat(b.conv2d(x, f"{name}.weight", f"{name}.bias", padding=[1, 1]), channels)

    seen, placed = tower(b, x, "classes"), tower(b, x, "boxes")
    chances = b.mul(b.sigmoid(head(seen, "class_logits", CLASSES)), b.sigmoid(head(placed, "centerness", 1)))
    reach = b.mul(b.exp(head(placed, "box_regression", 4)), b.fixed("f32", [], [2.0 * stride]))
    before, after = b.parts(reach, [2, 2], 1)
    rows, columns = (b.reshape(b.iota(shape=[height, width], dim=dim, dtype="f32"), shape=[f"{height}*{width}"])
                     for dim in range(2))
    centers = b.mul(b.add(b.stack(columns, rows, dim=1), b.fixed("f32", [], [0.5])), b.fixed("f32", [], [float(stride)]))
    return b.sqrt(chances), b.concat(b.sub(centers, before), b.add(centers, after), dim=1)


@block(calls=[{"height": 4, "width": 4}, {"height": 3, "width": 5}], symbols={"height": {"min": 1}, "width": {"min": 1}},
       salt=".970")
def detection(b):
    """Two levels of features, 8 and 16 pixels apart: scores, boxes by their distances to places, the best ones, and of those
    of one class that overlap the best again, however many that are."""
    fine = b.floats("fine", [1, 16, "2*height", "2*width"])
    coarse = b.floats("coarse", [1, 16, "height", "width"])
    for name in ("classes", "boxes"):
        b.weight(f"{name}.0.weight", [16, 16, 3, 3])
        b.bias(f"{name}.0.bias", [16])
        b.scale(f"{name}.1.weight", [16])
        b.bias(f"{name}.1.bias", [16])
    for name, channels, spread in ("class_logits", CLASSES, 2), ("centerness", 1, 2), ("box_regression", 4, 0.5):
        b.weight(f"{name}.weight", [channels, 16, 3, 3], spread=spread)
        b.bias(f"{name}.bias", [channels])
    scores, boxes = (b.concat(*both, dim=0) for both in zip(level(b, fine, "2*height", "2*width", 8),
                                                            level(b, coarse, "height", "width", 16)))
    ends = [b.size(value=f"16*{dim}", dtype="f32") for dim in ("width", "height")]
    boxes = b.minimum(b.maximum(boxes, b.fixed("f32", [], [0.0])), b.stack(*ends, *ends))

    best = b.topk(b.reshape(scores, shape=[-1]), k=CANDIDATES)
    classes = b.fixed("i64", [], [CLASSES])
    labels = b.remainder(f"{best}:1", classes)
    boxes = b.index_select(boxes, b.div(f"{best}:1", classes), dim=0)
    apart = b.unsqueeze(b.mul(b.convert(labels, dtype="f32"), b.fixed("f32", [], [4096.0])), dims=[1])
    kept = f"{b.nms(b.add(boxes, apart), f'{best}:0', iou_threshold=0.5, symbol='kept')}:0"
    for name, value in ("scores", f"{best}:0"), ("labels", labels), ("boxes", boxes):
        b.output(name, b.index_select(value, kept, dim=0))
