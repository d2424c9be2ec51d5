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
from kiln.torch.compiler import compile_graph
from kiln.torch.report import graphs
from kiln.torch.rows import find

# Of f32 the order of sums differs. 16-bit results are held to f64's, of which eager is off as well.
TOLERANCES = {torch.float32: (2e-5, 5e-5), torch.float16: (4e-3, 4e-3), torch.bfloat16: (1.6e-2, 2e-2),
              torch.float64: (1e-9, 1e-9)}
# Of these Kiln gives some results alone, and takes them where the others are not used.
GIVEN = {"aten._linalg_det.default": {0}, "aten.mkldnn_rnn_layer.default": {0, 1, 2},
         "aten._embedding_bag.default": {0}, "aten._embedding_bag_forward_only.default": {0}}
UNDEFINED = {"aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default",
             "aten.empty_permuted.default", "aten.empty_strided.default", "aten.new_empty_strided.default"}


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
            if each is None or i not in GIVEN.get(str(target), {i}):
                outputs.append(None)
                continue
            node = graph.call_function(operator.getitem, (call, i))
            node.meta["val"] = each
            outputs.append(node)
    else:
        outputs = [call]
    graph.output(tuple(outputs))
    return torch.fx.GraphModule({}, graph), tensors


def check(target, args, kwargs=None):
    """Runs the call in Kiln and eagerly; "" if Kiln took it, else why not."""
    gm, tensors = graph_of(target, args, kwargs or {})
    run = compile_graph(gm, options.Options(), "call")
    left = graphs()[-1].left
    if left:
        return left[0].reason
    expected = flat(target(*args, **(kwargs or {})))
    with torch.no_grad():
        got = run(list(tensors))
    for i, (fake, mine, theirs) in enumerate(zip(gm_outputs(gm), got, expected, strict=True)):
        if theirs is None or mine is None:
            continue
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, (target, mine, theirs)
        if mine.numel() > 1 and 1 not in mine.shape:
            assert mine.stride() == fake.stride(), (target, mine.stride(), fake.stride())
        if str(target) not in UNDEFINED and not (i == 1 and str(target) in ANY_OF_EQUALS and is_small(args[0])):
            compare(mine, theirs, target, args, kwargs or {}, i)
    return ""


# Of equal elements torch may give any, and does.
ANY_OF_EQUALS = {"aten.sort.default", "aten.topk.default", "aten.kthvalue.default", "aten.median.dim"}


def is_small(x):
    return x.dtype in (torch.float16, torch.bfloat16)


def flat(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def compare(mine, theirs, target, args, kwargs, index):
    rtol, atol = TOLERANCES.get(theirs.dtype, (0, 0))
    try:
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError:
        if not is_small(theirs):
            raise
        wide, spec = tree_flatten((args, kwargs))
        wide = [x.double() if isinstance(x, torch.Tensor) and is_small(x) else x for x in wide]
        args, kwargs = tree_unflatten(wide, spec)
        exact = flat(target(*args, **kwargs))[index].double()
        off, eager = ((x.double() - exact).abs() for x in (mine, theirs))
        most = 2 * eager.max() + atol + rtol * exact.abs()
        assert (off <= most).all(), f"{target}: off by {off.max()}, eager by {eager.max()}"


def gm_outputs(gm):
    return [node and node.meta["val"] for node in next(iter(reversed(gm.graph.nodes))).args[0]]


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
    except Exception:  # what AOTAutograd cannot trace has no calls
        return
    joint = any(x.requires_grad for x in outputs) and all(x.requires_grad for x in outputs)
    try:
        gm = aot_export_joint_simple(function, tensors, trace_joint=joint)
    except Exception:  # what AOTAutograd cannot trace has no calls
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
        except Exception:  # what a sample that is refused came to before
            pass
    yield from recorded


def samples(op, dtype, count):
    torch.manual_seed(0)
    needs = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    return itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=needs), count)
