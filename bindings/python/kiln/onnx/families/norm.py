"""Normalisations."""

from __future__ import annotations

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import Results, op
from kiln.onnx._types import product
from kiln.onnx.families.elementwise import convert


@op("BatchNormalization", ignores=("momentum",))
def batch_norm(n: Node, x: Value, scale: Value, bias: Value, mean: Value, variance: Value) -> Value | tuple[Value, ...]:
    """With given statistics of channels; in training with the batch's, which move the running ones."""
    eps = n.number("epsilon", 1e-5)
    if not n.flag("training_mode"):
        if n.wants(1) and n.version >= 14 or not n.flag("spatial", True):
            raise n.refuse("running statistics, or those of single elements, are training's")
        scale, bias, mean, variance = (convert(each, str(x.dtype)) for each in (scale, bias, mean, variance))
        return ops.batch_norm(x, scale, bias, mean, variance, eps=eps)
    y, batch_mean, batch_variance = ops.batch_norm_training(x, scale, bias, eps=eps)
    momentum = n.number("momentum", 0.9)
    return (y, mean * momentum + convert(batch_mean, str(mean.dtype)) * (1 - momentum),
            variance * momentum + convert(batch_variance, str(variance.dtype)) * (1 - momentum))


@op("InstanceNormalization")
def instance_norm(n: Node, x: Value, scale: Value, bias: Value) -> Results:
    """With the statistics of each image's channels."""
    return ops.instance_norm(x, scale, bias, eps=n.number("epsilon", 1e-5))


@op("GroupNormalization", since=18)
def group_norm_18(n: Node, x: Value, scale: Value, bias: Value) -> Results:
    """With the statistics of groups of channels; scale and bias are of groups."""
    groups, channels = n.integer("num_groups"), x.shape[1]
    scale, bias = (ops.repeat_interleave(each, repeats=n.literal([channels // groups], "the channels of a group")[0])
                   for each in (scale, bias))
    return ops.group_norm(x, scale, bias, groups=groups, eps=n.number("epsilon", 1e-5))


@op("GroupNormalization", since=21, ignores=("stash_type",))
def group_norm(n: Node, x: Value, scale: Value, bias: Value) -> Results:
    """With the statistics of groups of channels; scale and bias are of channels."""
    return ops.group_norm(x, scale, bias, groups=n.integer("num_groups"), eps=n.number("epsilon", 1e-5))


@op("LayerNormalization", ignores=("stash_type",))
def layer_norm(n: Node, x: Value, scale: Value, bias: Value | None = None) -> Value | tuple[Value, ...]:
    """With the statistics of the dims from axis on, which are results, too."""
    axis, eps = n.axis(n.integer("axis", -1), x.ndim), n.number("epsilon", 1e-5)
    inner, statistics = x.shape[axis:], n.wants(1) or n.wants(2)
    fits = scale.shape == inner and (bias is None or bias.shape == inner)
    made = ops.layer_norm(x, *((scale, bias) if fits else ()), axes=x.ndim - axis, eps=eps, statistics=statistics)
    y, *more = made if statistics else (made,)
    if not fits:  # what broadcasts is applied afterwards
        y = y * scale if bias is None else y * scale + bias
    return (y, *more)


@op("RMSNormalization", ignores=("stash_type",))
def rms_norm(n: Node, x: Value, scale: Value) -> Results:
    """x by the root of the mean square of the dims from axis on."""
    axis, eps = n.axis(n.integer("axis", -1), x.ndim), n.number("epsilon", 1e-5)
    inner = x.shape[axis:]
    if scale.shape != inner:
        return _flat_rms(x, None, axis, eps) * scale
    return _flat_rms(x, scale, axis, eps)


def _flat_rms(x: Value, scale: Value | None, axis: int, eps: float) -> Results:
    if axis == x.ndim - 1:
        return ops.rms_norm(x, scale, eps=eps)
    inner = product(x.shape[axis:])
    flat = ops.reshape(x, shape=[*x.shape[:axis], inner])
    return ops.reshape(ops.rms_norm(flat, None if scale is None else ops.reshape(scale, shape=[inner]), eps=eps),
                       shape=x.shape)


@op("LRN")
def local_response_norm(n: Node, x: Value) -> Value:
    """By the squares of channels around each."""
    return ops.local_response_norm(x, size=n.integer("size"), alpha=n.number("alpha", 1e-4), beta=n.number("beta", 0.75),
                                   k=n.number("bias", 1.0))


@op("LpNormalization")
def lp_norm(n: Node, x: Value) -> Value:
    """x by its length along an axis; 0 where that is 0."""
    axis, p = n.axis(n.integer("axis", -1), x.ndim), n.integer("p", 2)
    if p not in (1, 2):
        raise n.refuse(f"p is {p}, 1 or 2 was expected")
    length = ops.norm(x, dims=[axis], keepdim=True, p=float(p))
    return ops.where(ops.eq(length, 0.0), ops.full(dtype=x.dtype, shape=()), x / length)
