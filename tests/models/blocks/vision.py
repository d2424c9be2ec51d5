"""Blocks of models of images."""

import math

from block import block

SIDE, WINDOW, SHIFT = 8, 4, 2  # of Swin's image, its windows, and their shift
PLACES = WINDOW * WINDOW


def distances():
    """For each pair of places in a window the row of the table of biases that belongs to their distance."""
    places = [(row, column) for row in range(WINDOW) for column in range(WINDOW)]
    return [(y - v + WINDOW - 1) * (2 * WINDOW - 1) + x - u + WINDOW - 1 for y, x in places for v, u in places]


def hidden_pairs():
    """-100 for each window and pair of places that the shift put side by side, else 0."""
    def region(at):
        return 0 if at < SIDE - WINDOW else 1 if at < SIDE - SHIFT else 2

    mask = []
    for top in range(0, SIDE, WINDOW):
        for left in range(0, SIDE, WINDOW):
            regions = [(region(top + y), region(left + x)) for y in range(WINDOW) for x in range(WINDOW)]
            mask += [0.0 if a == b else -100.0 for a in regions for b in regions]
    return mask


def swin_layer(b, x, name, shift):
    """x: [batch, 8, 8, 32]; attention inside windows of 4 by 4, then the MLP."""
    y = b.layer_normed(x, f"{name}.norm1", 32)
    if shift:
        y = b.roll(y, shifts=[-SHIFT, -SHIFT], dims=[1, 2])
    y = b.permute(b.reshape(y, shape=["batch", 2, WINDOW, 2, WINDOW, 32]), dims=[0, 1, 3, 2, 4, 5])
    y = b.dense(b.reshape(y, shape=["4*batch", PLACES, 32]), f"{name}.attn.qkv", 96, 32)
    y = b.permute(b.reshape(y, shape=["4*batch", PLACES, 3, 2, 16]), dims=[2, 0, 3, 1, 4])
    query, key, value = (b.squeeze(part, dims=[0]) for part in b.parts(y, [1, 1, 1], 0))
    scores = b.matmul(b.mul(query, b.number(0.25)), b.permute(key, dims=[0, 1, 3, 2]))
    table = b.weight(f"{name}.attn.relative_position_bias_table", [(2 * WINDOW - 1) ** 2, 2])
    biases = b.reshape(b.embedding(table, b.fixed("i64", [PLACES * PLACES], distances())), shape=[PLACES, PLACES, 2])
    scores = b.add(scores, b.permute(biases, dims=[2, 0, 1]))
    if shift:
        mask = b.fixed(b.dtype, [4, 1, PLACES, PLACES], hidden_pairs())
        scores = b.add(b.reshape(scores, shape=["batch", 4, 2, PLACES, PLACES]), mask)
        scores = b.reshape(scores, shape=["4*batch", 2, PLACES, PLACES])
    y = b.merged(b.matmul(b.softmax(scores), value), ["4*batch", PLACES, 32])
    y = b.reshape(b.dense(y, f"{name}.attn.proj", 32, 32), shape=["batch", 2, 2, WINDOW, WINDOW, 32])
    y = b.reshape(b.permute(y, dims=[0, 1, 3, 2, 4, 5]), shape=["batch", SIDE, SIDE, 32])
    if shift:
        y = b.roll(y, shifts=[SHIFT, SHIFT], dims=[1, 2])
    x = b.add(x, y)
    y = b.gelu(b.dense(b.layer_normed(x, f"{name}.norm2", 32), f"{name}.mlp.fc1", 64, 32))
    return b.add(x, b.dense(y, f"{name}.mlp.fc2", 32, 64))


@block(calls=[{"batch": 1}, {"batch": 3}])
def swin(b):
    """A stage of two layers, the second with shifted windows, and the merging of patches."""
    x = b.reshape(b.floats("x", ["batch", SIDE * SIDE, 32]), shape=["batch", SIDE, SIDE, 32])
    x = swin_layer(b, swin_layer(b, x, "blocks.0", shift=False), "blocks.1", shift=True)
    corners = [b.slice(b.slice(x, dim=1, start=row, end=SIDE, step=2), dim=2, start=column, end=SIDE, step=2)
               for column in range(2) for row in range(2)]
    merged = b.reshape(b.concat(*corners, dim=3), shape=["batch", SIDE * SIDE // 4, 128])
    merged = b.layer_normed(merged, "downsample.norm", 128)
    b.result("y", b.dense(merged, "downsample.reduction", 64, 128, bias=False))


def convolved(b, x, name, outputs, inputs, size=3, **attrs):
    weight, bias = b.weight(f"{name}.weight", [outputs, inputs, size, size]), b.bias(f"{name}.bias", [outputs])
    return b.conv2d(x, weight, bias, padding=[size // 2, size // 2], **attrs)


def group_normed(b, x, name, channels):
    return b.group_norm(x, b.scale(f"{name}.weight", [channels]), b.bias(f"{name}.bias", [channels]), groups=4)


def residual(b, x, time, name, outputs, inputs):
    """Two convolutions, the time between them, and a way around them."""
    y = convolved(b, b.silu(group_normed(b, x, f"{name}.norm1", inputs)), f"{name}.conv1", outputs, inputs)
    y = b.add(y, b.unsqueeze(b.dense(b.silu(time), f"{name}.time_emb_proj", outputs, 32), dims=[2, 3]))
    y = convolved(b, b.silu(group_normed(b, y, f"{name}.norm2", outputs)), f"{name}.conv2", outputs, outputs)
    return b.add(y, x if inputs == outputs else convolved(b, x, f"{name}.conv_shortcut", outputs, inputs, size=1))


def places_attended(b, x, name, channels, height, width):
    """Attention over all places of an image, with four heads."""
    y = b.permute(b.reshape(group_normed(b, x, f"{name}.group_norm", channels),
                            shape=["batch", channels, f"{height}*{width}"]), dims=[0, 2, 1])
    split = ["batch", f"{height}*{width}", 4, channels // 4]
    heads = [b.heads(b.dense(y, f"{name}.{part}", channels, channels), split) for part in ("to_q", "to_k", "to_v")]
    y = b.dense(b.merged(b.attention(*heads), ["batch", f"{height}*{width}", channels]), f"{name}.to_out", channels, channels)
    return b.add(x, b.reshape(b.permute(y, dims=[0, 2, 1]), shape=["batch", channels, height, width]))


@block(calls=[{"batch": 2, "height": 8, "width": 8}, {"batch": 1, "height": 6, "width": 12}],
       symbols={"height": {"min": 2, "divisor": 2}, "width": {"min": 2, "divisor": 2}})
def unet(b):
    """Down, attention, up again, and beside it the way across, of a diffusion model that is told the time."""
    x = b.floats("x", ["batch", 4, "height", "width"])
    step = b.indices("timestep", ["batch"], below=100)
    rates = b.exp(b.mul(b.iota(shape=[16], dtype="f32"), b.fixed("f32", [], [-math.log(10000.0) / 16])))
    angles = b.mul(b.unsqueeze(b.convert(step, dtype="f32"), dims=[1]), rates)
    time = b.concat(b.cos(angles), b.sin(angles), dim=1)
    time = time if b.dtype == "f32" else b.convert(time, dtype=b.dtype)
    time = b.dense(b.silu(b.dense(time, "time_embedding.linear_1", 32, 32)), "time_embedding.linear_2", 32, 32)

    across = residual(b, convolved(b, x, "conv_in", 16, 4), time, "down", 16, 16)
    low = convolved(b, across, "downsample", 16, 16, stride=[2, 2])
    low = residual(b, low, time, "middle", 32, 16)
    low = places_attended(b, low, "attention", 32, "((height - 1)//2 + 1)", "((width - 1)//2 + 1)")
    high = convolved(b, b.resize_nearest(low, size=["height", "width"]), "upsample", 32, 32)
    high = residual(b, b.concat(high, across, dim=1), time, "up", 16, 48)
    b.result("y", convolved(b, b.silu(group_normed(b, high, "norm_out", 16)), "conv_out", 4, 16))
