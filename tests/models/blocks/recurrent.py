"""Blocks that go along a sequence turn by turn."""

from block import Nodes, block


@block(calls=[{"batch": 3, "length": 8}, {"batch": 1, "length": 5}])
def lstm(b):
    """Two layers in both directions over sequences of several lengths, and a tag for each element."""
    x = b.floats("x", ["batch", "length", 16])
    lengths = b.indices("lengths", ["batch"], least=2, below=6)
    operands = []
    for layer, inputs in (0, 16), (1, 48):
        for direction in "", "_reverse":
            operands += [b.weight(f"rnn.weight_ih_l{layer}{direction}", [96, inputs]),
                         b.weight(f"rnn.weight_hh_l{layer}{direction}", [96, 24]),
                         b.bias(f"rnn.bias_ih_l{layer}{direction}", [96]), b.bias(f"rnn.bias_hh_l{layer}{direction}", [96])]
    states = [b.floats(name, [4, "batch", 24]) for name in ("hidden", "cell")]
    node = b.lstm(x, *operands, *states, lengths, layers=2, bidirectional=True, batch_first=True, initial_state=True,
                  lengths=True)
    b.result("tags", b.log_softmax(b.dense(f"{node}:0", "tag", 10, 48)))
    b.result("hidden", f"{node}:1")
    b.result("cell", f"{node}:2")


@block(calls=[{"batch": 2, "length": 9}, {"batch": 1, "length": 1}])
def mamba(b):
    """Channels that each carry eight states, in f32 as they are in models of bf16; what is carried goes in and out, so that
    one graph reads a prompt and writes what follows."""
    x = b.floats("x", ["batch", "length", 32])
    seen = b.floats("seen", ["batch", 64, 3])
    state = b.floats("state", ["batch", 64, 8])

    def wide(x):
        return x if b.dtype == "f32" else b.convert(x, dtype="f32")

    both = b.dense(b.rms_norm(x, b.scale("norm.weight", [32]), eps=1e-5), "in_proj", 128, 32, bias=False)
    u, gate = b.parts(both, [64, 64], -1)
    u = b.concat(seen, b.permute(u, dims=[0, 2, 1]), dim=2)
    b.result("seen", b.slice(u, dim=2, start="length", end="length + 3"))
    u = b.silu(b.conv1d(u, b.weight("conv1d.weight", [64, 1, 4]), b.bias("conv1d.bias", [64]), groups=64))
    u = b.permute(u, dims=[2, 0, 1])  # the turns come first
    rank, enter, leave = b.parts(b.dense(u, "x_proj", 20, 64, bias=False), [4, 8, 8], -1)
    step = b.softplus(b.dense(rank, "dt_proj", 64, 4))
    decay = b.neg(b.exp(wide(b.scale("A_log", [64, 8]))))

    turn = Nodes()
    h, dt, now, into, out, rate = (turn.input(name, "f32", shape) for name, shape in (
        ("h", ["batch", 64, 8]), ("dt", ["batch", 64]), ("now", ["batch", 64]), ("into", ["batch", 8]), ("out", ["batch", 8]),
        ("rate", [64, 8])))
    kept = turn.mul(turn.exp(turn.mul(turn.unsqueeze(dt, dims=[2]), rate)), h)
    added = turn.mul(turn.unsqueeze(turn.mul(dt, now), dims=[2]), turn.unsqueeze(into, dims=[1]))
    h = turn.add(kept, added)
    turn.output("h", h)
    turn.output("y", turn.sum(turn.mul(h, turn.unsqueeze(out, dims=[1])), dims=[2]))
    scanned = b.scan(wide(state), *map(wide, (step, u, enter, leave)), decay, body_graph=b.graph("turn", turn), carried=1,
                     sequences=4)
    y = b.add(f"{scanned}:1", b.mul(wide(b.scale("D", [64])), wide(u)))
    y = b.permute(y, dims=[1, 0, 2])
    y = b.mul(y if b.dtype == "f32" else b.convert(y, dtype=b.dtype), b.silu(gate))
    b.result("y", b.add(x, b.dense(y, "out_proj", 32, 64, bias=False)))
    b.output("state", f"{scanned}:0")
