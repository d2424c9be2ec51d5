"""Recurrent layers, one of them a node, in one direction or both."""

from __future__ import annotations

from collections.abc import Sequence

import kiln
from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import kiln_op, op
from kiln.onnx._types import Size
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
    told = [each.lower() for each in n.texts("activations", [*activations] * directions)]
    single = told[:len(activations)]
    if told != single * directions or single not in [list(each) for each in allowed]:
        raise n.refuse(f"activations {', '.join(told)}, one of {' or '.join(', '.join(each) for each in allowed)} was "
                       "expected")
    if n.has("clip"):
        raise n.refuse("clip")
    return single


def _turned(sequence: Value, lengths: Value | None) -> Value:
    """From the end of each row to its begin."""
    if lengths is None:
        return ops.flip(sequence, dims=[0])
    return ops.reverse_sequence(sequence, lengths, dim=0, batch_dim=1)


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
    x = _turned(x, lengths) if backwards else x
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[-1]
    arguments = [each for i in range(directions) for each in _weights(n, i, w, r, b)]
    given = any(each is not None for each in states)
    if given:
        arguments += [ops.full(dtype=x.dtype, shape=[directions, batch, hidden]) if each is None else each
                      for each in states]
    if lengths is not None:
        arguments.append(lengths)
    y, *last = kiln_op(n.op.lower())(x, *arguments, bidirectional=both, bias=b is not None, initial_state=given,
                                         lengths=lengths is not None, **attributes)
    y = _turned(y, lengths) if backwards else y
    y = ops.permute(ops.reshape(y, shape=[steps, batch, directions, hidden]), dims=[0, 2, 1, 3])
    if batch_first:
        y = ops.permute(y, dims=[2, 0, 1, 3])
        last = [ops.permute(each, dims=[1, 0, 2]) for each in last]
    return (y, *last)


@op("RNN", ignores=("hidden_size",))
def rnn(n: Node, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
        h: Value | None = None) -> tuple[Value, ...]:
    """h = activation(W x + R h + biases)."""
    activation = _check(n, ["Tanh"], [["tanh"], ["relu"]])[0]
    return _run(n, x, w, r, b, lengths, [h], activation=activation)


@op("GRU", ignores=("hidden_size",))
def gru(n: Node, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
        h: Value | None = None) -> tuple[Value, ...]:
    """Gated recurrent units, gates in the order z, r, h."""
    _check(n, ["Sigmoid", "Tanh"], [["sigmoid", "tanh"]])
    return _run(n, x, w, r, b, lengths, [h], linear_before_reset=n.flag("linear_before_reset"))


@op("LSTM", ignores=("hidden_size",))
def lstm(n: Node, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
         h: Value | None = None, c: Value | None = None, p: Value | None = None) -> tuple[Value, ...]:
    """Long short-term memory, gates in the order i, o, f, c."""
    _check(n, ["Sigmoid", "Tanh", "Tanh"], [["sigmoid", "tanh", "tanh"]])
    if n.flag("input_forget"):
        raise n.refuse("input_forget")
    if p is not None:  # Kiln's lstm has no such
        return _peeping(n, x, w, r, b, lengths, [h, c], p)
    return _run(n, x, w, r, b, lengths, [h, c])


def _peeping(n: Node, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None,
             states: list[Value | None], p: Value) -> tuple[Value, ...]:
    """An LSTM whose gates see the state c: a scan in each direction."""
    direction = n.text("direction", "forward", among=("forward", "reverse", "bidirectional"))
    order = [1, 0, 2] if n.flag("layout") else [0, 1, 2]
    x = ops.permute(x, dims=order)
    batch, hidden = x.shape[1], r.shape[-1]
    ends = ops.full(value=2.0**31 - 1, dtype="i32", shape=[batch]) if lengths is None else convert(lengths, "i32")
    turns = ops.iota(shape=[x.shape[0]], dtype="i32")
    sequences, last_h, last_c = [], [], []
    for i, backwards in enumerate({"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]):
        begin = [ops.full(dtype=x.dtype, shape=[batch, hidden]) if each is None else
                 _part(ops.permute(each, dims=order), i) for each in states]
        projected = ops.matmul(_turned(x, lengths) if backwards else x, _part(w, i), transpose_b=True)
        if b is not None:
            first, second = ops.split(_part(b, i), sizes=[4 * hidden] * 2)
            projected = projected + first + second
        h, c, y = ops.scan(*begin, projected, turns, _part(r, i), _part(p, i), ends,
                           body_graph=_peeping_turn(x, batch, hidden), carried=2, sequences=2)
        sequences.append(_turned(y, lengths) if backwards else y)
        last_h.append(h)
        last_c.append(c)
    dim = 1 if n.flag("layout") else 0
    y = ops.stack(*sequences, dim=1)
    y = ops.permute(y, dims=[2, 0, 1, 3]) if n.flag("layout") else y
    return y, ops.stack(*last_h, dim=dim), ops.stack(*last_c, dim=dim)


def _peeping_turn(x: Value, batch: Size, hidden: Size) -> kiln.Graph:
    """One turn: h, c, and the element's product and number, then weights and lengths; gives h, c and the result."""
    body = kiln.Graph(x.graph.context)
    h, c = (body.input(name, x.dtype, [batch, hidden]) for name in ("h", "c"))
    element, turn = body.input("x", x.dtype, [batch, 4 * hidden]), body.input("turn", "i32", [])
    weight, peep = body.input("r", x.dtype, [4 * hidden, hidden]), body.input("p", x.dtype, [3 * hidden])
    ends = body.input("ends", "i32", [batch])
    gates = ops.split(element + ops.matmul(h, weight, transpose_b=True), sizes=[hidden] * 4, dim=1)
    see_i, see_o, see_f = ops.split(peep, sizes=[hidden] * 3)
    kept = ops.sigmoid(gates[2] + see_f * c) * c + ops.sigmoid(gates[0] + see_i * c) * ops.tanh(gates[3])
    shown = ops.sigmoid(gates[1] + see_o * kept) * ops.tanh(kept)
    alive = ops.unsqueeze(ops.lt(turn, ends), dims=[1])
    body.output(ops.where(alive, shown, h), "h1")
    body.output(ops.where(alive, kept, c), "c1")
    body.output(shown * ops.convert(alive, dtype=x.dtype), "y")
    return body
