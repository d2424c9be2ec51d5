"""One ATen call a graph, without Dynamo: what it gives beside eager, and where OpInfo's samples call which overload."""

from __future__ import annotations

import itertools
import operator

import torch
import torch.fx
from torch._functorch.aot_autograd import aot_export_joint_simple
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from kiln.torch import options
from kiln.torch.backend import compile_graph
from kiln.torch.report import graphs
from kiln.torch.rows import find

# Of 16 bits both round once; of f32 the order of sums differs.
DEBUG = None
TOLERANCES = {torch.float32: (2e-5, 2e-5), torch.float16: (4e-3, 4e-3), torch.bfloat16: (2e-2, 2e-2), torch.float64: (1e-9, 1e-9)}


def graph_of(target, args, kwargs):
    """A graph of the one call, and its tensors, flat."""
    flat, spec = tree_flatten((args, kwargs))
    graph, tensors, made = torch.fx.Graph(), [], []
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in flat]
        fake_args, fake_kwargs = tree_unflatten(fakes, spec)
        result = target(*fake_args, **fake_kwargs)
    for x, fake in zip(flat, fakes):
        if isinstance(x, torch.Tensor):
            node = graph.placeholder(f"x{len(tensors)}")
            node.meta["val"] = fake
            tensors.append(x)
            made.append(node)
        else:
            made.append(x)
    args_, kwargs_ = tree_unflatten(made, spec)
    call = graph.call_function(target, args_, kwargs_)
    call.meta["val"] = result
    if isinstance(result, tuple | list):
        outputs = []
        for i, each in enumerate(result):
            node = graph.call_function(operator.getitem, (call, i))
            node.meta["val"] = each
            outputs.append(node)
    else:
        outputs = [call]
    graph.output(tuple(outputs))
    return torch.fx.GraphModule({}, graph), tensors


def check(target, args, kwargs, values=True):
    """Runs the call in Kiln and eagerly; whether Kiln took it, else why not."""
    gm, tensors = graph_of(target, args, kwargs)
    run = compile_graph(gm, options.Options(), "call")
    left = graphs()[-1].left
    if left:
        return left[0].reason
    expected = target(*args, **kwargs)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    with torch.no_grad():
        got = run(list(tensors))
    assert len(got) == len(expected)
    for fake, mine, theirs in zip(gm_outputs(gm), got, expected):
        if theirs is None or mine is None:
            continue
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, (target, mine, theirs)
        assert mine.stride() == fake.stride() or mine.numel() < 2 or any(s == 1 for s in mine.shape), \
            (target, mine.stride(), fake.stride())
        if values:
            rtol, atol = TOLERANCES.get(theirs.dtype, (0, 0))
            torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)
    return ""


def gm_outputs(gm):
    return [node.meta["val"] for node in next(iter(reversed(gm.graph.nodes))).args[0]]


def calls_of(op, sample):
    """The claimed ATen calls that a sample's forward and backward come to, functionalised, each with its arguments."""
    flat, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]

    def function(*tensors):
        values = list(flat)
        for i, x in zip(places, tensors):
            values[i] = x
        first, args, kwargs = tree_unflatten(values, spec)
        result = tree_flatten(op(first, *args, **kwargs))[0]
        return tuple(x for x in result if isinstance(x, torch.Tensor))

    tensors = [flat[i].detach().requires_grad_(flat[i].requires_grad) for i in places]
    try:
        outputs = function(*tensors)
    except Exception as e:
        DEBUG and DEBUG(e)
        return
    joint = any(x.requires_grad for x in outputs) and all(x.requires_grad for x in outputs)
    try:
        gm = aot_export_joint_simple(function, tensors, trace_joint=joint)
    except Exception as e:
        DEBUG and DEBUG(e)
        return
    recorded = []

    class Record(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if find(target) is not None:
                recorded.append((target, args, kwargs))
            return super().call_function(target, args, kwargs)

    given = list(tensors)
    if joint:
        given += [torch.ones_like(x) if x.dtype.is_floating_point else x for x in outputs]
    with torch.no_grad():
        flat_inputs = [x.detach() for x in given]
        try:
            Record(gm).run(*flat_inputs)
        except Exception as e:
            DEBUG and DEBUG(e)
            pass
    yield from recorded


def samples(op, dtype, count):
    torch.manual_seed(0)
    needs = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    return itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=needs), count)
