"""Activations, and what AOTAutograd calls their gradients."""

from __future__ import annotations

from typing import Any

import kiln
from kiln.torch.lowering import Lowering, Number, number
from kiln.torch.rows import FLOATS, INTEGERS, Unsupported, row


def _plain(name: str, op: str, dtypes: frozenset[str] = FLOATS) -> None:
    @row(name, op, dtypes)
    def make(b: Lowering, x: kiln.Value) -> kiln.Value:
        return b.op(op, x)


_plain("relu.default", "relu", FLOATS | INTEGERS)
for _name in "silu mish hardswish hardsigmoid".split():
    _plain(f"{_name}.default", _name)


@row("gelu.default", "gelu", FLOATS)
def _(b: Lowering, x: kiln.Value, *, approximate: str = "none") -> kiln.Value:
    return b.op("gelu", x, approximate=approximate)


@row("hardtanh.default", "hardtanh", FLOATS)
def _(b: Lowering, x: kiln.Value, min_val: Number = -1, max_val: Number = 1) -> kiln.Value:
    return b.op("hardtanh", x, min=number(min_val), max=number(max_val))


@row("leaky_relu.default", "leaky_relu", FLOATS)
def _(b: Lowering, x: kiln.Value, negative_slope: Number = 0.01) -> kiln.Value:
    return b.op("leaky_relu", x, negative_slope=number(negative_slope))


@row("elu.default", "where expm1 mul", FLOATS)
def _(b: Lowering, x: kiln.Value, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> kiln.Value:
    if scale == 1 and input_scale == 1:
        return b.op("elu", x, alpha=number(alpha))
    wide = b.wide(x)
    below = b.op("mul", b.op("expm1", b.op("mul", wide, number(input_scale))), number(alpha) * number(scale))
    return b.cast(b.op("where", b.op("gt", wide, 0.0), b.op("mul", wide, number(scale)), below), b.dtype)


@row("softplus.default", "softplus", FLOATS)
def _(b: Lowering, x: kiln.Value, beta: Number = 1, threshold: Number = 20) -> kiln.Value:
    return b.op("softplus", x, beta=number(beta), threshold=number(threshold))


@row("log_sigmoid_forward.default", "logsigmoid exp neg abs", FLOATS)
def _(b: Lowering, x: kiln.Value) -> tuple[kiln.Value, kiln.Value]:
    buffer = b.op("exp", b.op("neg", b.op("abs", b.wide(x))))  # which torch's own gradient reads
    return b.op("logsigmoid", x), b.cast(buffer, b.dtype)


@row("glu.default", "glu", FLOATS)
def _(b: Lowering, x: kiln.Value, dim: int = -1) -> kiln.Value:
    return b.op("glu", x, dim=dim)


@row("_prelu_kernel.default", "where mul", FLOATS)
def _(b: Lowering, x: kiln.Value, weight: kiln.Value) -> kiln.Value:
    return b.op("where", b.op("gt", x, 0.0), x, b.op("mul", x, weight))


@row("softshrink.default", "softshrink", FLOATS)
def _(b: Lowering, x: kiln.Value, lambd: Number = 0.5) -> kiln.Value:
    return b.op("softshrink", x, **{"lambda": number(lambd)})


@row("hardshrink.default", "hardshrink", FLOATS)
def _(b: Lowering, x: kiln.Value, lambd: Number = 0.5) -> kiln.Value:
    return b.op("hardshrink", x, **{"lambda": number(lambd)})


@row("threshold.default", "threshold", FLOATS)
def _(b: Lowering, x: kiln.Value, threshold: Number, value: Number) -> kiln.Value:
    return b.op("threshold", x, threshold=number(threshold), value=number(value))


# Gradients. Each is computed in f32 for 16-bit floats, and rounded once, as torch does.

def _masked(b: Lowering, dy: kiln.Value, keep: kiln.Value) -> kiln.Value:
    return b.op("where", keep, dy, b.full(0, str(dy.dtype), []))


@row("threshold_backward.default", "where gt", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, threshold: Number) -> kiln.Value:
    wide = b.wide(x)
    return _masked(b, dy, b.op("not", b.op("le", wide, number(threshold))))


@row("sigmoid_backward.default", "mul sub", FLOATS)
def _(b: Lowering, dy: kiln.Value, y: kiln.Value) -> kiln.Value:
    dy, y = b.wide(dy), b.wide(y)
    return b.cast(b.op("mul", dy, b.op("mul", b.op("sub", 1.0, y), y)), b.dtype)


@row("tanh_backward.default", "mul sub square", FLOATS)
def _(b: Lowering, dy: kiln.Value, y: kiln.Value) -> kiln.Value:
    dy, y = b.wide(dy), b.wide(y)
    return b.cast(b.op("mul", dy, b.op("sub", 1.0, b.op("square", y))), b.dtype)


@row("gelu_backward.default", "erf exp tanh mul add sub", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, *, approximate: str = "none") -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    if approximate == "none":
        cdf = b.op("mul", b.op("add", b.op("erf", b.op("mul", x, 0.7071067811865476)), 1.0), 0.5)
        pdf = b.op("mul", b.op("exp", b.op("mul", b.op("square", x), -0.5)), 0.3989422804014327)
        return b.cast(b.op("mul", dy, b.op("add", cdf, b.op("mul", x, pdf))), b.dtype)
    beta, kappa = 0.7978845608028654, 0.044715
    square = b.op("square", x)
    inner = b.op("mul", b.op("mul", x, beta), b.op("add", b.op("mul", square, kappa), 1.0))
    tanh = b.op("tanh", inner)
    left = b.op("mul", b.op("add", tanh, 1.0), 0.5)
    slope = b.op("mul", b.op("add", b.op("mul", square, 3 * kappa), 1.0), beta)
    right = b.op("mul", b.op("mul", b.op("mul", x, 0.5), b.op("sub", 1.0, b.op("square", tanh))), slope)
    return b.cast(b.op("mul", dy, b.op("add", left, right)), b.dtype)


@row("silu_backward.default", "sigmoid mul add sub", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    s = b.op("sigmoid", x)
    slope = b.op("mul", s, b.op("add", b.op("mul", x, b.op("sub", 1.0, s)), 1.0))
    return b.cast(b.op("mul", dy, slope), b.dtype)


@row("hardsigmoid_backward.default", "where mul", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    inside = b.op("and", b.op("gt", x, -3.0), b.op("lt", x, 3.0))
    return b.cast(_masked(b, b.op("mul", dy, 1 / 6), inside), b.dtype)


@row("hardswish_backward.default", "where mul add", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    middle = b.op("mul", dy, b.op("add", b.op("mul", x, 1 / 3), 0.5))
    above = b.op("where", b.op("ge", x, 3.0), dy, middle)
    return b.cast(_masked(b, above, b.op("not", b.op("le", x, -3.0))), b.dtype)


@row("hardtanh_backward.default", "where", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, min_val: Number, max_val: Number) -> kiln.Value:
    wide = b.wide(x)
    return _masked(b, dy, b.op("and", b.op("gt", wide, number(min_val)), b.op("lt", wide, number(max_val))))


@row("leaky_relu_backward.default", "where mul", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, negative_slope: Number, self_is_result: bool) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    return b.cast(b.op("where", b.op("gt", x, 0.0), dy, b.op("mul", dy, number(negative_slope))), b.dtype)


@row("elu_backward.default", "where mul exp add", FLOATS)
def _(b: Lowering, dy: kiln.Value, alpha: Number, scale: Number, input_scale: Number, is_result: bool,
      x: kiln.Value) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    if is_result:
        below = b.op("mul", b.op("add", x, number(alpha) * number(scale)), number(input_scale))
    else:
        below = b.op("mul", b.op("exp", b.op("mul", x, number(input_scale))),
                     number(alpha) * number(scale) * number(input_scale))
    slope = b.op("where", b.op("gt", x, 0.0), b.full(number(scale), str(x.dtype), []), below)
    return b.cast(b.op("mul", dy, slope), b.dtype)


@row("softplus_backward.default", "where mul sigmoid", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, beta: Number, threshold: Number) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    scaled = b.op("mul", x, number(beta))
    slope = b.op("mul", dy, b.op("sigmoid", scaled))
    return b.cast(b.op("where", b.op("gt", scaled, number(threshold)), dy, slope), b.dtype)


@row("log_sigmoid_backward.default", "mul sigmoid neg", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, buffer: Any) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    return b.cast(b.op("mul", dy, b.op("sigmoid", b.op("neg", x))), b.dtype)


@row("mish_backward.default", "tanh softplus sigmoid mul add sub", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value) -> kiln.Value:
    dy, x = b.wide(dy), b.wide(x)
    tanh = b.op("tanh", b.op("softplus", x))
    rest = b.op("mul", b.op("mul", x, b.op("sigmoid", x)), b.op("sub", 1.0, b.op("square", tanh)))
    return b.cast(b.op("mul", dy, b.op("add", tanh, rest)), b.dtype)


@row("glu_backward.default", "sigmoid mul sub concat slice", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, dim: int) -> kiln.Value:
    dim = b.dim(dim, len(x.shape))
    half = dy.shape[dim]
    wide = b.wide(x)
    first = b.op("slice", wide, dim=dim, start=0, end=half)
    second = b.op("slice", wide, dim=dim, start=half, end=x.shape[dim])
    dy, s = b.wide(dy), b.op("sigmoid", second)
    left = b.op("mul", dy, s)
    right = b.op("mul", b.op("mul", left, b.op("sub", 1.0, s)), first)
    return b.cast(b.op("concat", left, right, dim=dim), b.dtype)


@row("_prelu_kernel_backward.default", "where mul", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, weight: kiln.Value) -> tuple[kiln.Value, kiln.Value]:
    above = b.op("gt", x, 0.0)
    zero = b.full(0, str(x.dtype), [])
    return (b.op("where", above, dy, b.op("mul", weight, dy)),
            b.op("where", above, zero, b.op("mul", x, dy)))


@row("softshrink_backward.default hardshrink_backward.default", "where", FLOATS)
def _(b: Lowering, dy: kiln.Value, x: kiln.Value, lambd: Number) -> kiln.Value:
    wide = b.wide(x)
    inside = b.op("and", b.op("ge", wide, -number(lambd)), b.op("le", wide, number(lambd)))
    return b.op("where", inside, b.full(0, b.dtype, []), dy)


@row("celu.default", "celu", FLOATS)
def _(b: Lowering, x: kiln.Value, alpha: Number = 1.0) -> kiln.Value:
    if number(alpha) <= 0:
        raise Unsupported("alpha is not above 0")
    return b.op("celu", x, alpha=number(alpha))


# Dropout draws in torch; what it kept is multiplied here.

@row("native_dropout_backward.default", "mul convert", FLOATS | {"bool"})
def _(b: Lowering, dy: kiln.Value, mask: kiln.Value, scale: float) -> kiln.Value:
    dy = b.wide(dy)
    return b.cast(b.op("mul", b.op("mul", dy, b.cast(mask, str(dy.dtype))), scale), b.dtype)
