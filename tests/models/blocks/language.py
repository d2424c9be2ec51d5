"""Blocks of language models."""

from block import block


def grouped_attention(b, x, length, theta, past=None):
    """A layer's first half: norm, rotary positions, four heads that share two of keys and values, and x. `past` are the keys
    and values of a cache, of length "past". Also returns all keys and values."""
    y = b.rms_norm(x, b.scale("input_layernorm.weight", [64]), eps=1e-5)
    query = b.heads(b.dense(y, "q_proj", 64, 64, bias=False), ["batch", length, 4, 16])
    key = b.heads(b.dense(y, "k_proj", 32, 64, bias=False), ["batch", length, 2, 16])
    value = b.heads(b.dense(y, "v_proj", 32, 64, bias=False), ["batch", length, 2, 16])
    positions = b.iota(shape=[length])
    if past:
        positions = b.add(positions, b.size(value="past"))
    query, key = b.rope(query, positions, theta=theta), b.rope(key, positions, theta=theta)
    if past:
        key, value = b.concat(past[0], key, dim=2), b.concat(past[1], value, dim=2)
    attended = b.merged(b.attention(query, key, value, causal=True), ["batch", length, 64])
    return b.add(x, b.dense(attended, "o_proj", 64, 64, bias=False)), key, value


@block(calls=[{"batch": 2, "new": 8, "past": 0}, {"batch": 1, "new": 1, "past": 13}, {"batch": 1, "new": 5, "past": 6}])
def llama(b):
    """A layer with grouped queries and a cache of keys and values, which a prompt finds empty: one graph for all calls."""
    x = b.floats("x", ["batch", "new", 64])
    past = [b.floats(name, ["batch", 2, "past", 16]) for name in ("past_key", "past_value")]
    x, key, value = grouped_attention(b, x, "new", 500000.0, past)
    y = b.rms_norm(x, b.scale("post_attention_layernorm.weight", [64]), eps=1e-5)
    gate = b.silu(b.dense(y, "gate_proj", 96, 64, bias=False))
    up = b.dense(y, "up_proj", 96, 64, bias=False)
    b.result("y", b.add(x, b.dense(b.mul(gate, up), "down_proj", 64, 96, bias=False)))
    b.result("key", key)
    b.result("value", value)


@block(calls=[{"batch": 2, "length": 8}, {"batch": 1, "length": 13}])
def gpt2(b):
    """From tokens to logits by one layer: products with weights [in, out], one of query, key and value; attention op by op."""
    tokens = b.indices("tokens", ["batch", "length"], below=50)
    table = b.weight("wte.weight", [50, 64], spread=2)
    places = b.slice(b.weight("wpe.weight", [32, 64], spread=2), dim=0, end="length")
    x = b.add(b.embedding(table, tokens), places)

    def conv1d(x, name, inputs, outputs):
        return b.add(b.matmul(x, b.weight(f"{name}.weight", [inputs, outputs])), b.bias(f"{name}.bias", [outputs]))

    fused = conv1d(b.layer_normed(x, "ln_1", 64), "c_attn", 64, 192)
    query, key, value = (b.heads(part, ["batch", "length", 4, 16]) for part in b.parts(fused, [64, 64, 64], -1))
    scores = b.div(b.matmul(query, key, transpose_b=True), b.number(4.0))
    rows = b.iota(shape=["length", "length"], dim=0)
    hidden = b.gt(b.iota(shape=["length", "length"], dim=1), rows)
    weights = b.softmax(b.masked_fill(scores, hidden, b.number("-inf")))
    x = b.add(x, conv1d(b.merged(b.matmul(weights, value), ["batch", "length", 64]), "c_proj", 64, 64))
    y = b.gelu(conv1d(b.layer_normed(x, "ln_2", 64), "mlp.c_fc", 64, 128), approximate="tanh")
    x = b.layer_normed(b.add(x, conv1d(y, "mlp.c_proj", 128, 64)), "ln_f", 64)
    b.result("logits", b.matmul(x, table, transpose_b=True))


def routed(b):
    """Mixtral's layer up to its experts: x, the rows that they get, what topk finds of their chances, and the best ones'
    shares."""
    x, _, _ = grouped_attention(b, b.floats("x", ["batch", "length", 64]), "length", 1e6)
    y = b.rms_norm(x, b.scale("post_attention_layernorm.weight", [64]), eps=1e-5)
    rows = b.reshape(y, shape=["batch*length", 64])
    best = b.topk(b.softmax(b.dense(rows, "gate", 4, 64, bias=False)), k=2)
    return x, rows, best, b.div(f"{best}:0", b.sum(f"{best}:0", dims=[-1], keepdim=True))


@block(calls=[{"batch": 2, "length": 8}, {"batch": 1, "length": 13}])
def mixtral(b):
    """A layer whose two best experts of four are found as the run goes: each gets its tokens' rows, however many."""
    x, rows, best, share = routed(b)
    mixed = b.full(shape=["batch*length", 64], dtype=b.dtype)
    for expert in range(4):
        chosen = b.eq(f"{best}:1", b.fixed("i64", [], [expert]))
        count = f"count_{expert}"
        token, rank = (b.reshape(part, shape=[count])
                       for part in b.parts(f"{b.nonzero(chosen, symbol=count)}:0", [1, 1], 1))
        of_expert = b.embedding(rows, token)
        both = [b.weight(f"experts.{expert}.{name}.weight", [96, 64]) for name in ("w1", "w3")]
        hidden = b.swiglu(b.linear(of_expert, b.concat(*both, dim=0)))
        part = b.dense(hidden, f"experts.{expert}.w2", 64, 96, bias=False)
        part = b.mul(part, b.unsqueeze(b.index(share, token, rank), dims=[1]))
        mixed = b.index_add(mixed, token, part, dim=0)
    b.result("y", b.add(x, b.reshape(mixed, shape=["batch", "length", 64])))


@block(calls=[{"batch": 2, "length": 8}, {"batch": 1, "length": 13}], salt=".11")
def mixtral_grouped(b):
    """The same with all experts' weights in one tensor: rows sorted by expert, and products that tell them by their ends."""
    x, rows, best, share = routed(b)
    pairs = b.reshape(f"{best}:1", shape=["2*batch*length"])
    order = b.argsort(pairs, dim=0)
    token = b.div(order, b.fixed("i64", [], [2]))
    ends = b.cumsum(b.bincount(pairs, bins=4), dim=0)
    hidden = b.grouped_matmul(b.embedding(rows, token), b.weight("gate_up_proj", [4, 64, 192], spread=14), ends)
    part = b.grouped_matmul(b.swiglu(hidden), b.weight("down_proj", [4, 96, 64], spread=8), ends)
    part = b.mul(part, b.unsqueeze(b.index_select(b.reshape(share, shape=["2*batch*length"]), order, dim=0), dims=[1]))
    mixed = b.index_add(b.full(shape=["batch*length", 64], dtype=b.dtype), token, part, dim=0)
    b.result("y", b.add(x, b.reshape(mixed, shape=["batch", "length", 64])))
