"""Recurrent layers, one of them a node, in one direction or both."""

from __future__ import annotations

from collections.abc import Sequence

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import op
from kiln.onnx.families.elementwise import convert

# Where a gate of ONNX's stands among Kiln's.
_GATES = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 2, 3, 1]}


def _gates(n: Node, x: Value, dim: int) -> Value:
    """The parts of weights along a dim in Kiln's order."""
    order = _GATES[n.op]
    if len(order) == 1:
        return x
    hidden = x.shape[dim] // len(order)
    parts = ops.split(x, sizes=[hidden] * len(order), dim=dim)
    return ops.concat(*(parts[each] for each in order), dim=dim)


def _part(x: Value, index: int) -> Value:
    return ops.squeeze(ops.slice(x, dim=0, start=index, end=index + 1), dims=[0])


def _weights(n: Node, direction: int, w: Value, r: Value, b: Value | None) -> list[Value]:
    """Of one direction, as Kiln has them."""
    made = [_gates(n, _part(w, direction), 0), _gates(n, _part(r, direction), 0)]
    if b is not None:
        both = _part(b, direction)
        half = both.shape[0] // 2
        made += [_gates(n, each, 0) for each in ops.split(both, sizes=[half, half], dim=0)]
    return made


def _check(n: Node, activations: Sequence[str], allowed: Sequence[Sequence[str]]) -> list[str]:
    directions = 2 if n.text("direction", "forward") == "bidirectional" else 1
    told = [each.lower() for each in n.texts("activations", activations * directions)]
    single = told[:len(activations)]
    if told != single * directions or single not in [list(each) for each in allowed]:
        raise n.refuse(f"activations {', '.join(told)}, one of {' or '.join(', '.join(each) for each in allowed)} was "
                       "expected")
    if n.has("clip"):
        raise n.refuse("clip")
    return single


def _run(n: Node, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None, states: list[Value | None],
         **attributes: object) -> tuple[Value, ...]:
    """Kiln's layer on a sequence first; its results as ONNX has them, [T, directions, B, H], then the states."""
    direction = n.text("direction", "forward", among=("forward", "reverse", "bidirectional"))
    batch_first, both = n.flag("layout"), direction == "bidirectional"
    directions = 2 if both else 1
    if batch_first:
        x = ops.permute(x, dims=[1, 0, 2])
        states = [None if each is None else ops.permute(each, dims=[1, 0, 2]) for each in states]
    lengths = None if lengths is None else convert(lengths, "i64")
    backwards = direction == "reverse"

    def turned(sequence: Value) -> Value:
        if lengths is None:
            return ops.flip(sequence, dims=[0])
        return ops.reverse_sequence(sequence, lengths, dim=0, batch_dim=1)
    x = turned(x) if backwards else x
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[-1]
    arguments = [each for i in range(directions) for each in _weights(n, i, w, r, b)]
    given = any(each is not None for each in states)
    if given:
        arguments += [ops.full(dtype=x.dtype, shape=[directions, batch, hidden]) if each is None else each
                      for each in states]
    if lengths is not None:
        arguments.append(lengths)
    y, *last = getattr(ops, n.op.lower())(x, *arguments, bidirectional=both, bias=b is not None, initial_state=given,
                                         lengths=lengths is not None, **attributes)
    y = turned(y) if backwards else y
    y = ops.permute(ops.reshape(y, shape=[steps, batch, directions, hidden]), dims=[0, 2, 1, 3])
    if batch_first:
        y = ops.permute(y, dims=[2, 0, 1, 3])
        last = [ops.permute(each, dims=[1, 0, 2]) for each in last]
    return (y, *last)


@op("RNN")
def rnn(n: Node, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
        h: Value | None = None) -> tuple[Value, ...]:
    """h = activation(W x + R h + biases)."""
    activation = _check(n, ["Tanh"], [["tanh"], ["relu"]])[0]
    return _run(n, x, w, r, b, lengths, [h], activation=activation)


@op("GRU")
def gru(n: Node, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
        h: Value | None = None) -> tuple[Value, ...]:
    """Gated recurrent units, gates in the order z, r, h."""
    _check(n, ["Sigmoid", "Tanh"], [["sigmoid", "tanh"]])
    return _run(n, x, w, r, b, lengths, [h], linear_before_reset=n.flag("linear_before_reset"))


@op("LSTM")
def lstm(n: Node, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
         h: Value | None = None, c: Value | None = None, p: Value | None = None) -> tuple[Value, ...]:
    """Long short-term memory, gates in the order i, o, f, c."""
    _check(n, ["Sigmoid", "Tanh", "Tanh"], [["sigmoid", "tanh", "tanh"]])
    if n.flag("input_forget"):
        raise n.refuse("input_forget")
    if p is not None:
        raise n.refuse("peepholes: Kiln's lstm has none")
    return _run(n, x, w, r, b, lengths, [h, c])
