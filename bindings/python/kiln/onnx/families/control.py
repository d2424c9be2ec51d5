"""If, Loop and Scan: nested graphs, which take what they use from outside as further operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

import kiln
from kiln import Value, ops
from kiln.onnx._convert import Frame, NeedsValues, frame_of
from kiln.onnx._node import Node
from kiln.onnx._registry import Known, op
from kiln.onnx._types import Size, is_literal
from kiln.onnx._values import Tensor


def _outputs(frame: Frame, graph: ir.Graph) -> list[Value]:
    """Converts a nested graph's nodes; what its outputs are."""
    with frame.graph:
        frame.converter.nodes(graph, frame)
        return [frame.value(value) for value in graph.outputs]


def _nested(n: Node, graph: ir.Graph, captures: Sequence[Tensor] = ()) -> Frame:
    """A frame with a Kiln graph of its own, which takes these tensors of the outer one to begin with."""
    made = frame_of(n.frame, graph, kiln.Graph(n.frame.graph.context))
    for tensor in captures:
        made.take(tensor)
    return made


def _operands(n: Node, frame: Frame) -> list[Value]:
    return [each.in_graph(n.frame.graph) for each in frame.captures]


def _finish(frame: Frame, outputs: Sequence[Value]) -> kiln.Graph:
    frame.bind_sizes()
    for i, value in enumerate(outputs):
        frame.graph.output(value, f"output{i}")
    return frame.graph


def _as_results(n: Node, results: Value | tuple[Value, ...], count: int) -> list[Value]:
    return [results] if isinstance(results, Value) else list(results)[:count]


def inline(n: Node, graph: ir.Graph, inputs: Sequence[Tensor] = ()) -> list[Tensor | None]:
    """A nested graph's nodes in the node's place."""
    frame = frame_of(n.frame, graph)
    frame.tensors.update(zip(graph.inputs, inputs, strict=True))
    frame.converter.nodes(graph, frame)
    return [frame.find(value) for value in graph.outputs]


@op("If")
def if_(n: Node, condition: Value) -> list[Value | Tensor | None]:
    """One of two graphs; where the condition is known when the model is read, that one alone."""
    branches = [n.graph("then_branch"), n.graph("else_branch")]
    told = n.frame.find(n.ir.inputs[0])  # type: ignore[arg-type]
    if told is not None and told.known is not None:
        return list(inline(n, branches[0 if told.known.item() else 1]))
    frames = [_nested(n, branch) for branch in branches]
    for frame, branch in zip(frames, branches, strict=True):
        _outputs(frame, branch)
    captures = list(dict.fromkeys(each for frame in frames for each in frame.captures))
    made = []  # both take the same operands: once more, with all that either of them wants
    frames = [_nested(n, branch, captures) for branch in branches]
    results = [_outputs(frame, branch) for frame, branch in zip(frames, branches, strict=True)]
    for index, (a, b) in enumerate(zip(*results, strict=True)):
        if str(a.dtype) != str(b.dtype) or a.shape != b.shape:
            raise n.refuse(f"output {index} is {a.dtype}{list(a.shape)} of one branch and {b.dtype}{list(b.shape)} of the "
                           "other; Kiln has one type for both")
    frames[0].sizes.extend(frames[1].sizes)
    frames[1].sizes = frames[0].sizes
    for frame, outputs in zip(frames, results, strict=True):
        made.append(_finish(frame, outputs))
    results_ = ops.cond(ops.reshape(condition, shape=[]), *_operands(n, frames[0]), then_graph=made[0],
                        else_graph=made[1])
    return list(_as_results(n, results_, len(results[0])))


def _known(n: Node, value: Value | None, index: int) -> Tensor | None:
    told = n.ir.inputs[index] if index < len(n.ir.inputs) else None
    return None if value is None or told is None else n.frame.find(told)


UNROLLED = 64
"""So many turns, known when the model is read, are written one after the other where they fit no loop of Kiln's."""


COLLECTED = 4096
"""So many turns a loop may have that ends when its body says so, and gives elements of each."""


@op("Loop")
def loop(n: Node, trips: Value | None = None, condition: Value | None = None, *carried: Value) -> list[Value]:
    """A graph turn after turn, as often as is told and as long as its condition holds.

    With a number of turns that is a size and no condition it is a scan, and gives elements of each turn. Where only a
    run tells when it ends, it is a while, and gives what is carried in the end. Known turns that need to know which
    they are, or change the types of what they carry, are unrolled.
    """
    try:
        return _looped(n, trips, condition, carried)
    except NeedsValues:
        raise
    except kiln.Unimplemented as error:
        told = [_decided(n, index, name) for index, name in enumerate(("M", "cond"))]
        if told[0] is None or told[0] > UNROLLED or told[1] is None:
            raise error
        return _unrolled(n, told[0] if told[1] else 0, carried)


def _decided(n: Node, index: int, name: str) -> int | None:
    """An input's number, which may have to be told; of an absent one 1; None where only a run tells it."""
    tensor = n.frame.find(n.ir.inputs[index]) if index < len(n.ir.inputs) and n.ir.inputs[index] else None  # type: ignore[arg-type]
    if tensor is None:
        return None if name == "M" else 1
    try:
        known = n.frame.converter.known(n, name, tensor)
    except NeedsValues:
        raise
    except kiln.Unimplemented:
        return None
    return int(known.item()) if isinstance(known, np.ndarray) and is_literal(known) else None


def _unrolled(n: Node, turns: int, carried: Sequence[Value]) -> list[Value]:
    body = n.graph("body")
    state, elements = [Tensor.of(each) for each in carried], []
    for turn in range(turns):
        start = [Tensor.elements(np.array(turn, np.int64)), Tensor.elements(np.array(True)), *state]
        again, *made = inline(n, body, start)
        if again is None or again.known is None:
            raise n.refuse("it ends when its body says so, and its turns fit no loop of Kiln's")
        results = [Tensor.of(each.in_graph(n.frame.graph)) for each in made if each is not None]
        state = results[:len(carried)]
        elements.append(results[len(carried):])
        if not again.known.item():
            break
    if not elements and len(body.outputs) > 1 + len(carried):
        raise n.refuse("it has no turns, and gives an element of each")
    stacks = [ops.stack(*(each.in_graph(n.frame.graph) for each in column)) for column in zip(*elements, strict=True)]
    return [*(each.in_graph(n.frame.graph) for each in state), *stacks]


def _looped(n: Node, trips: Value | None, condition: Value | None, carried: Sequence[Value]) -> list[Value]:
    body = n.graph("body")
    count = len(carried)
    limit, goes_on = _known(n, trips, 0), _known(n, condition, 1)
    if goes_on is not None and goes_on.known is not None and not goes_on.known.item():
        limit = Tensor.elements(np.array(0, np.int64))
    gives_elements = len(body.outputs) > 1 + count
    frame = _nested(n, body)
    i64, no_dims = "i64", ()
    turn, go = frame.argument(i64, no_dims, "turn"), frame.argument("bool", no_dims, "go")
    inner = [frame.argument(str(each.dtype), each.shape, f"carried.{i}") for i, each in enumerate(carried)]
    frame.tensors.update(zip(body.inputs, [turn, go, *inner], strict=True))
    outputs = _outputs(frame, body)
    again, *rest = outputs
    end = frame.find(body.outputs[0])
    is_endless = again.same_as(go.in_graph(frame.graph)) or (
        end is not None and end.known is not None and bool(end.known.item()))
    starts = goes_on is None or goes_on.known is not None
    for i, (before, after) in enumerate(zip(carried, rest, strict=False)):
        if str(before.dtype) != str(after.dtype) or before.shape != after.shape:
            raise n.refuse(f"carried {i} is {before.dtype}{list(before.shape)}, and {after.dtype}{list(after.shape)} after "
                           "a turn; what a loop carries in Kiln keeps its type")
    ends_itself = not is_endless or not starts
    if gives_elements and ends_itself:
        if is_endless and goes_on is not None:  # the condition at the begin alone decides how many there are
            n.frame.converter.known(n, "cond", goes_on)
        most = limit.known.item() if limit is not None and limit.known is not None else None
        if not isinstance(most, int) or most > COLLECTED:
            raise n.refuse("it ends when its body says so, and gives an element of each turn: how many is not known before, "
                           f"but where M, the most that there can be, is a number up to {COLLECTED}")
    with frame.graph:
        following = turn.in_graph(frame.graph) + 1
        if not is_endless or gives_elements and not starts:
            made = _finish(frame, [following, again, *rest])
    begin = ops.full(dtype=i64, shape=[])
    first = ops.full(value=1, dtype="bool", shape=[]) if condition is None else ops.reshape(condition, shape=[])
    if gives_elements and ends_itself:
        return _collected(n, frame, made, [begin, first, *carried], max(limit.known.item(), 0))  # type: ignore[union-attr]
    if is_endless and starts and limit is not None and (gives_elements or limit.known is not None):
        turns = n.frame.converter.known(n, "M", limit)
        made = _finish(frame, [following, go.in_graph(frame.graph), *rest])
        results = ops.scan(begin, first, *carried, *_operands(n, frame), body_graph=made, carried=2 + count, sequences=0,
                           turns=_size(turns))
        return _as_results(n, results, 2 + len(rest))[2:]
    if is_endless:
        made = _finish(frame, [following, go.in_graph(frame.graph), *rest])
    last = ops.reshape(trips, shape=[]) if trips is not None else ops.full(exact=str(2**62), dtype=i64, shape=[])
    question = kiln.Graph(n.frame.graph.context)  # of all operands: is there a turn left, and the condition holds?
    operands = [begin, first, *carried, *_operands(n, frame), last]
    types = [*((str(each.dtype), each.shape) for each in frame.graph.inputs), (i64, no_dims)]
    asked = [question.input(f"operand{i}", dtype, shape) for i, (dtype, shape) in enumerate(types)]
    with question:
        question.output(ops.and_(asked[1], ops.lt(asked[0], asked[-1])), "again")
    made.input("last", i64, [])
    results = ops.while_(*operands, cond_graph=question, body_graph=made, carried=2 + count)
    return _as_results(n, results, 2 + count)[2:]


def _collected(n: Node, frame: Frame, turn: kiln.Graph, carried: Sequence[Value], most: int) -> list[Value]:
    """A loop that ends when its body says so, as a scan of as many turns as there can be. Those after its end give what they
    are given, and elements that are cut off."""
    count, context = len(carried), n.frame.graph.context
    types = [(each.name, str(each.dtype), each.shape) for each in turn.inputs]
    idle, body = kiln.Graph(context), kiln.Graph(context)
    with idle:
        for same in [idle.input(*type_) for type_ in types][:count]:
            idle.output(same)
        for element in turn.outputs[count:]:
            idle.output(ops.full(dtype=str(element.dtype), shape=element.shape))
    with body:
        inner = [body.input(*type_) for type_ in types]
        for value in ops.cond(inner[1], *inner, then_graph=turn, else_graph=idle):
            body.output(value)
        body.output(ops.clone(inner[1]))
    results = ops.scan(*carried, *_operands(n, frame), body_graph=body, carried=count, sequences=0, turns=most)
    ran = ops.sum(ops.convert(results[-1], dtype="i64"), dims=[0])
    symbol = n.frame.converter.fresh_symbol("turns")
    ops.resolve(ran, bound=most, symbol=symbol)
    elements = [ops.slice(each, dim=0, start=0, end=kiln.Dim(symbol)) for each in results[count:-1]]
    return [*results[2:count], *elements]


def _size(array: Known) -> Size:
    first = array.reshape(-1)[0]
    return first if isinstance(first, kiln.Dim) else max(int(first), 0)


@op("Scan", since=9)
def scan(n: Node, *inputs: Value) -> list[Value]:
    """A graph applied turn after turn to the elements of sequences, with what it carries."""
    body = n.graph("body")
    sequences = n.integer("num_scan_inputs")
    count = len(inputs) - sequences
    axes, directions = n.ints("scan_input_axes", [0] * sequences), n.ints("scan_input_directions", [0] * sequences)
    carried, moved = inputs[:count], []
    for value, axis, backwards in zip(inputs[count:], axes, directions, strict=True):
        value = _to_front(value, n.axis(axis, value.ndim))
        moved.append(ops.flip(value, dims=[0]) if backwards else value)
    results = _scanned(n, body, carried, moved)
    elements = len(results) - count
    out_axes, out_directions = n.ints("scan_output_axes", [0] * elements), n.ints("scan_output_directions", [0] * elements)
    made = list(results[:count])
    for value, axis, backwards in zip(results[count:], out_axes, out_directions, strict=True):
        value = ops.flip(value, dims=[0]) if backwards else value
        made.append(_from_front(value, n.axis(axis, value.ndim)))
    return made


def _scanned(n: Node, body: ir.Graph, carried: Sequence[Value], sequences: Sequence[Value]) -> list[Value]:
    frame = _nested(n, body)
    types = [*((each.dtype, each.shape) for each in carried), *((each.dtype, each.shape[1:]) for each in sequences)]
    inner = [frame.argument(str(dtype), shape, f"input{i}") for i, (dtype, shape) in enumerate(types)]
    frame.tensors.update(zip(body.inputs, inner, strict=True))
    outputs = _outputs(frame, body)
    for i, (before, after) in enumerate(zip(carried, outputs, strict=False)):
        if str(before.dtype) != str(after.dtype) or before.shape != after.shape:
            raise n.refuse(f"carried {i} is {before.dtype}{list(before.shape)}, and {after.dtype}{list(after.shape)} after "
                           "a turn; what a scan carries in Kiln keeps its type")
    made = _finish(frame, outputs)
    results = ops.scan(*carried, *sequences, *_operands(n, frame), body_graph=made, carried=len(carried),
                       sequences=len(sequences))
    return _as_results(n, results, len(outputs))


def _to_front(value: Value, axis: int) -> Value:
    others = [i for i in range(value.ndim) if i != axis]
    return value if axis == 0 else ops.permute(value, dims=[axis, *others])


def _from_front(value: Value, axis: int) -> Value:
    dims = [*range(1, axis + 1), 0, *range(axis + 1, value.ndim)]
    return value if axis == 0 else ops.permute(value, dims=dims)


@op("Scan", since=8)
def scan_8(n: Node, lengths: Value | None = None, *inputs: Value) -> list[Value]:
    """A scan for each row of a batch; here of batches of one row."""
    if lengths is not None:
        raise n.refuse("sequence_lens")
    body = n.graph("body")
    sequences = n.integer("num_scan_inputs")
    if n.literal([inputs[0].shape[0]], "the batch")[0] != 1 or any(n.ints("directions", [0] * sequences)):
        raise n.refuse("of a batch of more than one row, or backwards")
    rows = [ops.squeeze(each, dims=[0]) for each in inputs]
    results = _scanned(n, body, rows[:len(rows) - sequences], rows[len(rows) - sequences:])
    return [ops.unsqueeze(each, dims=[0]) for each in results]
