"""torch's private names, all of them: what is to be looked at when torch changes. Tested with 2.15."""

from __future__ import annotations

import contextlib
import operator
import re
from functools import cache
from typing import Any, Callable, Mapping, Sequence

import torch
import torch.fx
from functorch.compile import min_cut_rematerialization_partition  # type: ignore[import-untyped]
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.graph import _BoxedCodeGen
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.checkpoint import CheckpointPolicy
from torch.utils._sympy.functions import (CeilToInt, CleanDiv, FloatTrueDiv, FloorDiv, IntTrueDiv, Max, Min, Mod,
                                          ModularIndexing, PythonMod, ToFloat)

TESTED = ("2.15",)
SYMBOLIC = (torch.SymInt, torch.SymBool, torch.SymFloat)
MUST_SAVE = {"recompute": CheckpointPolicy.MUST_SAVE}  # of a node's meta: no backward pass computes it again

__all__ = ["CeilToInt", "CleanDiv", "FakeTensor", "FloatTrueDiv", "FloorDiv", "IntTrueDiv", "MUST_SAVE", "Max", "Min", "Mod",
           "ModularIndexing", "PythonMod", "TESTED", "ToFloat", "annotations_of", "aot_autograd", "asserts", "boxed",
           "composites", "drop_unused", "dynamo_counts", "expr", "fake_empty", "for_files", "is_kept", "is_ordered",
           "load_graph", "may_be_nothing", "min_cut_rematerialization_partition", "module_path", "output_code",
           "overload_name", "range_of", "reads_data", "register_optimizer_step_post_hook", "save_graph", "schema_with",
           "static_inputs", "wants_files", "weight_name", "weight_names", "with_wide_floats", "writes"]


def expr(size: Any) -> Any:
    """A size as an int or sympy's expression. Never evaluates it, which would add a guard."""
    if type(size) is int:  # as most are; a compile asks thousands of times
        return size
    return size.node.expr if isinstance(size, SYMBOLIC) else size


def may_be_nothing(size: Any) -> bool:
    """Whether a size may be 0 in a run: of others than those that data decide, a guard of torch's has told."""
    if type(size) is int:
        return size == 0
    environment: Any = size.node.shape_env
    return bool(free_unbacked_symbols(size)) and not environment.bound_sympy(size.node.expr).lower > 0


def range_of(size: torch.SymInt | torch.SymFloat, symbol: Any,
             said: Mapping[Any, Any]) -> tuple[int | None, int | None]:
    """The least and the greatest value of a symbol, None where nothing bounds it: as said, else as torch knows it."""
    environment: Any = size.node.shape_env
    known = said.get(symbol) or environment.var_to_range.get(symbol)
    if known is None:
        return 0, None
    low, high = known.lower, known.upper
    bounded = high.is_Integer and int(high) < 2 ** 62
    return (int(low) if low.is_Integer else None), (int(high) if bounded else None)


def boxed(graph: torch.fx.Graph, root: dict[str, Any], run: Callable[[list[Any]], Any] | None = None) \
        -> Callable[[list[Any]], Any]:
    """A function of a list of arguments, which it empties, so that each dies when it is no longer used: `run`, which does
    what the graph does, or code that torch makes of that. `run.module()` is the graph as a module."""
    @cache
    def module() -> torch.fx.GraphModule:
        graph.set_codegen(_BoxedCodeGen())
        return torch.fx.GraphModule(root, graph)

    if run is None:
        function = module().forward
        assert callable(function)

        def run(args: list[Any]) -> Any:
            return function(args)
    run._boxed_call = True  # type: ignore[attr-defined]
    run.module = module  # type: ignore[attr-defined]
    return run


def drop_unused(graph: torch.fx.Graph, is_kept: Callable[[torch.fx.Node], bool]) -> None:
    """Erases what nothing reads. torch's own way checks all of the graph besides, which takes longer than the rest."""
    for node in reversed(list(graph.nodes)):
        if not node.users and not is_kept(node):
            graph.erase_node(node)


def wants_files() -> bool:
    """Whether torch compiles for a file. Else its cache would hold what one backend made, and give it to another."""
    return bool(torch._functorch.config.bypass_autograd_cache_key)


def for_files(key: str, compilers: Mapping[str, Callable[..., Any]], **said: Any) -> Callable[..., Any]:
    """aot_autograd of compilers that give OutputCode, of which torch makes files under a key that has this in it."""
    for name, compiler in compilers.items():
        said[name] = SerializableAOTDispatchCompiler(output_code(), compiler)
    made = aot_autograd(**said)

    def run(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        config: Any = torch.compiler.config
        with config.patch(cache_key_tag=f"{config.cache_key_tag} {key}"):
            return made(gm, inputs)
    return run


def output_code() -> Any:
    """The class of what torch puts in files; part of inductor, which is slow to import."""
    from torch._inductor.output_code import OutputCode
    return OutputCode


def save_graph(module: torch.fx.GraphModule) -> bytes:
    """A graph that runs, with all that its nodes get, as bytes."""
    from torch.fx._graph_pickler import GraphPickler, Options
    for node in module.graph.nodes:
        node.meta.clear()
    data: bytes = GraphPickler.dumps(module, Options(ops_filter=None))
    return data


def load_graph(data: bytes) -> torch.fx.GraphModule:
    """What save_graph saved."""
    from torch.fx._graph_pickler import GraphPickler
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    module = GraphPickler.loads(data, FakeTensorMode(shape_env=ShapeEnv()))
    assert isinstance(module, torch.fx.GraphModule)
    module.recompile()
    return module


def writes(target: Any) -> bool:
    """Whether a node of it writes an operand, or may, as far as is known."""
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable
    return not (getattr(target, "__module__", "") in ("_operator", "math") or target is operator.getitem
                or target in (torch.sym_max, torch.sym_min, torch.sym_not, torch.sym_float, torch.sym_int))


def is_ordered(target: Any) -> bool:
    """Whether it keeps its place among its kind: it draws random numbers, asserts, or has an effect, as others may."""
    return asserts(target) or isinstance(target, torch._ops.OpOverload) and (
        torch.Tag.nondeterministic_seeded in target.tags or target.namespace not in ("aten", "prims", "kiln"))


def asserts(target: Any) -> bool:
    """Whether it only ends a run that breaks what was assumed: it runs in torch, and is no op that stayed there."""
    return target in torch.fx.node._side_effectful_functions


def is_kept(node: torch.fx.Node) -> bool:
    """Whether a node runs even if nothing reads its value."""
    return node.op in ("placeholder", "output") or node.op == "call_function" and (
        writes(node.target) or is_ordered(node.target))


def reads_data(target: Any) -> bool:
    """Whether it makes a size of an element, which takes a run."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.data_dependent_output in target.tags


def overload_name(target: Any) -> str:
    """`packet.overload`."""
    return str(target._schema.name).partition("::")[2] + "." + str(target._overloadname)


def schema_with(target: Any, first: str) -> str:
    """The schema of an overload, without its namespace, of which arguments stand before its own."""
    _, _, said = str(target._schema).partition("::")
    name, _, rest = said.partition("(")
    return f"{name}({first}, {rest}" if not rest.startswith(")") else f"{name}({first}{rest}"


def fake_empty(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A fake tensor on the CPU, of the graph that is being compiled; outside of one an empty tensor."""
    context = TracingContext.try_get()
    with (context.fake_mode if context and context.fake_mode else contextlib.nullcontext()):
        return torch.empty(shape, dtype=dtype, device="cpu")


def with_wide_floats(graph: torch.fx.Graph) -> torch.fx.Graph:
    """The graph of a score or mask function, with fake values as if it were given f32 in place of 16-bit floats."""
    changed = False
    for node in graph.nodes:
        fake = node.meta.get("val")
        if node.op == "placeholder" and isinstance(fake, FakeTensor) and fake.dtype in (torch.float16, torch.bfloat16):
            with fake.fake_mode:
                node.meta["val"] = torch.empty_like(fake, dtype=torch.float32)
            changed = True
        elif node.op == "call_function" and changed:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
            mode = fake.fake_mode if isinstance(fake, FakeTensor) else contextlib.nullcontext()
            with mode:
                node.meta["val"] = node.target(*args, **kwargs)
    return graph


def annotations_of(node: torch.fx.Node) -> dict[str, Any]:
    """What the user said of it by torch.fx.traceback.annotate; of a node of the backward pass, of the one it is for."""
    custom = node.meta.get("custom") or {}
    return custom if isinstance(custom, dict) else {}


def module_path(node: torch.fx.Node) -> str:
    """The module that called it, as a path of names."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = next(reversed(stack.values()), ("", None))[0] if stack else ""
    return str(path).removeprefix("L['self'].").removeprefix("L['fn'].")


def composites() -> dict[Any, Callable[..., Any]]:
    """How torch.export takes apart what AOTAutograd never shows: ops that are made of others whatever the device."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    table: Any = torch.export.default_decompositions()
    return {op: make for op, make in table.items()
            if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)}


def dynamo_counts() -> tuple[int, int, dict[str, int]]:
    """Frames that Dynamo saw, those of it that it compiled, and why graphs broke or frames run as Python: how often."""
    frames = counters["frames"]
    why = {reason.partition("\n")[0]: count for kind in ("graph_break", "unimplemented")
           for reason, count in counters[kind].items()}
    return frames["total"], frames["ok"], why


def static_inputs() -> Sequence[int]:
    """Of the graph that is being compiled: which inputs are parameters and buffers of modules."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return tuple(metadata.static_input_indices) if metadata else ()


_OF_MODULE = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")


def weight_names(gm: torch.fx.GraphModule) -> tuple[str, ...]:
    """Of each input of a graph of Dynamo's: its name as a parameter or buffer of the module, "" of others."""
    sources = (getattr(node.meta.get("grapharg"), "source", None) for node in gm.graph.nodes if node.op == "placeholder")
    return tuple(".".join(_OF_MODULE.findall(str(getattr(source, "name", "")))) for source in sources)


def weight_name(node: torch.fx.Node, names: Sequence[str]) -> str:
    """The same of an input of a graph of AOTAutograd's, which was made of the one that has these names."""
    told = node.meta.get("desc")
    index = getattr(told, "idx", None)
    if index is None:
        return str(getattr(told, "target", ""))  # a parameter that Dynamo left in its module
    return names[index] if index < len(names) else ""
