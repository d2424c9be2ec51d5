"""The blocks in PyTorch, of its own modules, in float64: what the graphs have to agree with.

A peer gets the weights and inputs as tensors by name, and returns the outputs by name. `loaded` insists that a module takes
each of its weights from these. Needs torch; no test reads this file.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)

PEERS = {}


def peer(function):
    PEERS[function.__name__] = function
    return function


def loaded(module, weights):
    module = module.train()  # no dropout anywhere; `eval` would take other ways in transformer layers
    module.load_state_dict(weights, strict=True)
    return module


def below(weights, prefix):
    """The weights under a prefix, without it."""
    return {name[len(prefix):]: weight for name, weight in weights.items() if name.startswith(prefix)}


def turned(x, positions, theta):
    """Rotary positions as complex numbers: element i and i + D/2 are one."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * theta ** (-torch.arange(half, dtype=x.dtype) / half)
    z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((z.real, z.imag), -1)


def rms_normed(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-5)


def grouped_attention(w, x, theta, past_key, past_value):
    """Llama's attention from its norm to its projection; the keys and values, too."""
    batch, new, width = x.shape
    past = past_key.shape[2]
    y = rms_normed(x, w["input_layernorm.weight"])
    query, key, value = ((y @ w[f"{name}_proj.weight"].T).unflatten(-1, (-1, 16)).transpose(1, 2) for name in "qkv")
    positions = torch.arange(past, past + new, dtype=x.dtype)
    key = torch.cat((past_key, turned(key, positions, theta)), 2)
    value = torch.cat((past_value, value), 2)
    visible = torch.ones(new, past + new, dtype=torch.bool).tril(past)
    attended = F.scaled_dot_product_attention(turned(query, positions, theta), key, value, visible, enable_gqa=True)
    return attended.transpose(1, 2).reshape(batch, new, width) @ w["o_proj.weight"].T, key, value


@peer
def llama(w, x, past_key, past_value):
    attended, key, value = grouped_attention(w, x, 500000.0, past_key, past_value)
    x = x + attended
    y = rms_normed(x, w["post_attention_layernorm.weight"])
    y = F.silu(F.linear(y, w["gate_proj.weight"])) * F.linear(y, w["up_proj.weight"])
    return {"y": x + F.linear(y, w["down_proj.weight"]), "key": key, "value": value}


def clear(values, chosen, margin):
    """Asserts that the `chosen` largest of the last dim are so by a margin: rounding to bf16 must not choose others."""
    ordered = values.sort(-1, descending=True).values
    gap = (ordered[..., chosen - 1] - ordered[..., chosen]).min().item()
    assert gap > margin, f"the choice of {chosen} is one by {gap} only; give the block another salt"


@peer
def mixtral(w, x):
    none = x.new_zeros(x.shape[0], 2, 0, 16)
    x = x + grouped_attention(w, x, 1e6, none, none)[0]
    y = rms_normed(x, w["post_attention_layernorm.weight"])
    logits = F.linear(y, w["gate.weight"])
    clear(logits, 2, 0.05)
    least = logits.topk(2).values[..., -1:]
    shares = logits.masked_fill(logits < least, -math.inf).softmax(-1)
    for expert in range(4):
        e = below(w, f"experts.{expert}.")
        hidden = F.silu(F.linear(y, e["w1.weight"])) * F.linear(y, e["w3.weight"])
        x = x + shares[..., expert, None] * F.linear(hidden, e["w2.weight"])
    return {"y": x}


@peer
def mixtral_grouped(w, x):
    w = dict(w)
    for expert, (both, down) in enumerate(zip(w["gate_up_proj"], w["down_proj"])):
        for name, weight in zip(("w1", "w3", "w2"), (*both.T.chunk(2), down.T)):
            w[f"experts.{expert}.{name}.weight"] = weight
    return mixtral(w, x)


class Gelu(nn.GELU):
    """A GELU that a transformer layer does not replace by its own."""


def transformer(activation):
    return nn.TransformerEncoderLayer(64, 4, 128, 0.0, activation, batch_first=True, norm_first=True)


@peer
def gpt2(w, tokens):
    length = tokens.shape[1]
    layer = loaded(transformer(Gelu("tanh")), {
        "self_attn.in_proj_weight": w["c_attn.weight"].T, "self_attn.in_proj_bias": w["c_attn.bias"],
        "self_attn.out_proj.weight": w["c_proj.weight"].T, "self_attn.out_proj.bias": w["c_proj.bias"],
        "linear1.weight": w["mlp.c_fc.weight"].T, "linear1.bias": w["mlp.c_fc.bias"],
        "linear2.weight": w["mlp.c_proj.weight"].T, "linear2.bias": w["mlp.c_proj.bias"],
        "norm1.weight": w["ln_1.weight"], "norm1.bias": w["ln_1.bias"],
        "norm2.weight": w["ln_2.weight"], "norm2.bias": w["ln_2.bias"]})
    x = F.embedding(tokens, w["wte.weight"]) + w["wpe.weight"][:length]
    mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=x.dtype)
    x = loaded(nn.LayerNorm(64), below(w, "ln_f."))(layer(x, mask))
    return {"logits": F.linear(x, w["wte.weight"])}


@peer
def whisper(w, mel):
    stem = loaded(nn.Sequential(nn.Conv1d(16, 64, 3, padding=1), Gelu(), nn.Conv1d(64, 64, 3, stride=2, padding=1), Gelu()),
                  {"0.weight": w["conv1.weight"], "0.bias": w["conv1.bias"],
                   "2.weight": w["conv2.weight"], "2.bias": w["conv2.bias"]})
    x = stem(mel).transpose(1, 2)
    places = [[trigonometric(place / 10000 ** (k / 31)) for trigonometric in (math.sin, math.cos) for k in range(32)]
              for place in range(x.shape[1])]
    attn = below(w, "attn.")
    layer = loaded(transformer(Gelu()), {
        "self_attn.in_proj_weight": torch.cat((attn["query.weight"], attn["key.weight"], attn["value.weight"])),
        "self_attn.in_proj_bias": torch.cat((attn["query.bias"], torch.zeros_like(attn["query.bias"]), attn["value.bias"])),
        "self_attn.out_proj.weight": attn["out.weight"], "self_attn.out_proj.bias": attn["out.bias"],
        "linear1.weight": w["mlp.0.weight"], "linear1.bias": w["mlp.0.bias"],
        "linear2.weight": w["mlp.2.weight"], "linear2.bias": w["mlp.2.bias"],
        "norm1.weight": w["attn_ln.weight"], "norm1.bias": w["attn_ln.bias"],
        "norm2.weight": w["mlp_ln.weight"], "norm2.bias": w["mlp_ln.bias"]})
    return {"y": loaded(nn.LayerNorm(64), below(w, "ln_post."))(layer(x + x.new_tensor(places)))}


def swin_layer(w, x, shift):
    """One window after the other: no reshape, no roll of the attention's own."""
    size, window = 8, 4
    y = F.layer_norm(x, (32,), w["norm1.weight"], w["norm1.bias"])
    table, attended = w["attn.relative_position_bias_table"].view(7, 7, 2), torch.empty_like(y)
    place = torch.arange(window)
    apart = place[:, None] - place + window - 1
    bias = table[apart[:, None, :, None], apart[None, :, None, :]].reshape(16, 16, 2).permute(2, 0, 1)
    for top in range(0, size, window):
        for left in range(0, size, window):
            rows, columns = top + place + shift, left + place + shift  # beyond the edge they are from the other one
            side = (rows >= size)[:, None] * 2 + (columns >= size)[None]
            mask = torch.where(side.view(-1, 1) == side.view(-1), 0.0, -100.0)
            at = ((rows % size)[:, None] * size + (columns % size)[None]).reshape(-1)
            qkv = F.linear(y.flatten(1, 2)[:, at], w["attn.qkv.weight"], w["attn.qkv.bias"])
            query, key, value = (part.unflatten(-1, (2, 16)).transpose(1, 2) for part in qkv.chunk(3, -1))
            z = F.scaled_dot_product_attention(query, key, value, bias + mask).transpose(1, 2).flatten(2)
            attended.view(-1, size * size, 32)[:, at] = F.linear(z, w["attn.proj.weight"], w["attn.proj.bias"])
    x = x + attended
    mlp = loaded(nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), Gelu(), nn.Linear(64, 32)),
                 {f"{k}.{kind}": w[f"{name}.{kind}"] for k, name in ((0, "norm2"), (1, "mlp.fc1"), (3, "mlp.fc2"))
                  for kind in ("weight", "bias")})
    return x + mlp(x)


@peer
def swin(w, x):
    x = x.view(-1, 8, 8, 32)
    x = swin_layer(below(w, "blocks.1."), swin_layer(below(w, "blocks.0."), x, 0), 2)
    merged = F.unfold(x.permute(0, 3, 1, 2), 2, stride=2).view(-1, 32, 2, 2, 16)  # channels, rows, columns, places
    merged = merged.permute(0, 4, 3, 2, 1).reshape(-1, 16, 128)
    merged = loaded(nn.LayerNorm(128), below(w, "downsample.norm."))(merged)
    return {"y": F.linear(merged, w["downsample.reduction.weight"])}


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time_emb_proj = nn.Linear(32, outputs)
        self.conv_shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time_emb_proj(F.silu(time))[:, :, None, None]
        return self.conv_shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(32, 32), nn.Linear(32, 32)
        self.conv_in, self.downsample = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.down, self.middle, self.up = Residual(16, 16), Residual(16, 32), Residual(48, 16)
        self.group_norm, self.attention = nn.GroupNorm(4, 32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.upsample = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(32, 32, 3, padding=1))
        self.norm_out, self.conv_out = nn.GroupNorm(4, 16), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x, timestep):
        angles = timestep[:, None] * torch.tensor([10000 ** (-k / 16) for k in range(16)], dtype=x.dtype)
        time = self.linear_2(F.silu(self.linear_1(torch.cat((angles.cos(), angles.sin()), 1))))
        across = self.down(self.conv_in(x), time)
        low = self.middle(self.downsample(across), time)
        places = self.group_norm(low).flatten(2).transpose(1, 2)
        low = low + self.attention(places, places, places)[0].transpose(1, 2).unflatten(2, low.shape[2:])
        high = self.up(torch.cat((self.upsample(low), across), 1), time)
        return self.conv_out(F.silu(self.norm_out(high)))


@peer
def unet(w, x, timestep):
    w = {name.removeprefix("time_embedding.").replace("attention.group_norm", "group_norm")
         .replace("upsample.", "upsample.1.").replace("to_out", "out_proj"): weight for name, weight in w.items()}
    for kind in ("weight", "bias"):
        w[f"attention.in_proj_{kind}"] = torch.cat([w.pop(f"attention.to_{part}.{kind}") for part in "qkv"])
    return {"y": loaded(UNet(), w)(x, timestep)}


@peer
def lstm(w, x, lengths, hidden, cell):
    rnn = loaded(nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True), below(w, "rnn."))
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, (hidden, cell) = rnn(packed, (hidden, cell))
    y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
    return {"tags": loaded(nn.Linear(48, 10), below(w, "tag."))(y).log_softmax(-1), "hidden": hidden, "cell": cell}


@peer
def mamba(w, x, seen, state):
    """No turns: each element's share in each later state, by the sum of steps between them."""
    y = rms_normed(x, w["norm.weight"])
    u, gate = (y @ w["in_proj.weight"].T).chunk(2, -1)
    u = torch.cat((seen, u.mT), 2)
    seen = u[..., -3:]
    u = F.silu(F.conv1d(u, w["conv1d.weight"], w["conv1d.bias"], groups=64)).mT
    rank, enter, leave = (u @ w["x_proj.weight"].T).split((4, 8, 8), -1)
    step = F.softplus(F.linear(rank, w["dt_proj.weight"], w["dt_proj.bias"]))
    rates, passed = -w["A_log"].exp(), step.cumsum(1)
    since = passed[:, :, None] - passed[:, None]  # [batch, t, s, channels]
    shares = torch.exp(since[..., None] * rates) * torch.ones(x.shape[1], x.shape[1]).tril()[..., None, None]
    states = torch.einsum("btsdn,bsd,bsd,bsn->btdn", shares, step, u, enter)
    states = states + torch.exp(passed[..., None] * rates) * state[:, None]
    y = torch.einsum("btdn,btn->btd", states, leave) + w["D"] * u
    return {"y": x + (y * F.silu(gate)) @ w["out_proj.weight"].T, "state": states[:, -1], "seen": seen}


def overlap(a, b):
    """The common area of two boxes over that of both."""
    across, down = (max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]), 0) for k in range(2))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return across * down / (sum(areas) - across * down)


@peer
def detection(w, fine, coarse):
    def tower(name):
        return loaded(nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU()), below(w, f"{name}."))

    def head(name, channels):
        return loaded(nn.Conv2d(16, channels, 3, padding=1), below(w, f"{name}."))

    found = []  # (score, label, box), of each place of each level
    for x, stride in (fine, 8), (coarse, 16):
        seen, placed = tower("classes")(x), tower("boxes")(x)
        scores = (head("class_logits", 3)(seen).sigmoid() * head("centerness", 1)(placed).sigmoid()).sqrt()[0]
        reach = head("box_regression", 4)(placed)[0].exp() * 2 * stride
        low, right = (size * stride for size in x.shape[2:])
        for row in range(x.shape[2]):
            for column in range(x.shape[3]):
                across, down = (column + 0.5) * stride, (row + 0.5) * stride
                before, above, after, below_it = reach[:, row, column].tolist()
                box = [max(across - before, 0), max(down - above, 0), min(across + after, right), min(down + below_it, low)]
                found += [(scores[label, row, column].item(), label, box) for label in range(3)]
    found.sort(key=lambda one: -one[0])
    kept = []
    for k, (score, label, box) in enumerate(found[:10]):
        clear(torch.tensor([one[0] for one in found]), k + 1, 0.0035)
        overlaps = [overlap(box, other) for _, same, other in kept if same == label]
        for each in overlaps:
            clear(torch.tensor([each, 0.5]), 1, 0.02)
        if all(each <= 0.5 for each in overlaps):
            kept.append((score, label, box))
    scores, labels, boxes = (torch.tensor(column) for column in zip(*kept))
    return {"scores": scores, "labels": labels, "boxes": boxes}
