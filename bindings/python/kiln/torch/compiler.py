"""torch.compile's backend: from what Dynamo captured to what runs."""

from __future__ import annotations

import operator
import time
from typing import Any, Callable, Sequence

import torch
import torch.fx

import kiln
from kiln.torch import _torch, cached, decompositions, freeze, options as options_, passes, random, report
from kiln.torch.lowering import Lowering, is_view
from kiln.torch.parts import is_size, plan
from kiln.torch.program import Assembly
from kiln.torch.rows import Unsupported


def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None,
            options: dict[str, Any] | None = None, name: str | None = None) -> Callable[..., Any]:
    """`torch.compile(model, backend="kiln")`.

    options: strict (what stays in torch is an error), freeze (parameters are bound once),
    random ("kiln": random numbers are Kiln's), and those of Kiln's compile
    (`kiln options`), as {"mode": "none"}. name: of the graph, in reports.
    """
    read = options_.read(mode, options)
    title = name or "graph"
    files = _torch.wants_files()
    weights = _torch.weight_names(gm) if read.freeze else ()

    def compiler(phase: str) -> Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
        def compile(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            if read.freeze and phase != "inference":
                raise kiln.InvalidArgument(f"[{title}.{phase}] freeze, and weights are trained: use it under "
                                           "torch.no_grad(), of a model in eval")
            if phase == "inference" and read.random == "kiln":
                random.draw_by_seed(graph, kiln.default_context())
            run = compile_graph(graph, read, f"{title}.{phase}", weights)
            return cached.code(run) if files else run
        return compile

    split = random.partition if read.random == "kiln" else _torch.min_cut_rematerialization_partition
    compilers: dict[str, Any] = {
        "fw_compiler": compiler("forward"), "bw_compiler": compiler("backward"), "inference_compiler": compiler("inference")}
    said: dict[str, Any] = {"partition_fn": split, "decompositions": decompositions.table(),
                            "keep_inference_input_mutations": True}
    run = _torch.for_files(cached.key(read), compilers, **said) if files else _torch.aot_autograd(**compilers, **said)
    made: Callable[..., Any] = run(gm, example_inputs)
    return made


def compile_graph(gm: torch.fx.GraphModule, options: options_.Options, title: str,
                  weights: Sequence[str] = ()) -> Callable[[list[Any]], Any]:
    """What runs a graph of ATen's ops, as AOTAutograd makes it of one whose inputs are weights of these names."""
    begin = time.perf_counter()
    told = report.GraphReport(title)
    passes.run(gm)
    nodes = [node for node in gm.graph.nodes if node.op == "call_function"]
    context = kiln.default_context()
    frozen = freeze.placeholders(gm.graph) if options.freeze else frozenset()
    taken, whole = take(nodes, context, frozen, told)
    for each in told.left:
        if each.op.startswith("kiln."):  # drawn by a seed, which torch cannot
            raise kiln.Internal(f"[{title}] {each.node}: {each.reason}")
    turns = plan(nodes, taken)
    assembly = Assembly(gm.graph, turns, taken)
    lowerings = []
    for number, turn in enumerate(turns):
        whole_fits = len(turns) == 1 and set(whole.inputs) == assembly.inputs_of(number)
        lowering = whole if whole_fits else lower(turn.kiln, taken, context, frozen)
        for node in assembly.outputs_of(number):
            lowering.value(node)
            lowering.output(node)
        lowering.finish()
        lowerings.append(lowering)
    told.parts = sum(bool(turn.kiln) for turn in turns)
    told.planned = time.perf_counter() - begin
    if options.strict and told.left:
        raise kiln.Unimplemented(f"[{title}] strict, and {len(told.left)} nodes stay in torch: {told.reasons()}")

    def compile(graph: kiln.Graph, lowering: Lowering) -> Callable[..., Any]:
        executable = context.compile(graph, options.kiln)
        told.programs.append(executable.report)
        places = [i for i, node in enumerate(lowering.inputs) if node in frozen]
        said = [_torch.weight_name(lowering.inputs[i], weights) for i in places]
        return freeze.Frozen(executable, places, executable.parameter_names, told, said) if places else executable
    run = assembly.build(lowerings, compile)
    told.compiled = time.perf_counter() - begin
    report.add(told)
    return run


def take(nodes: list[torch.fx.Node], context: kiln.Context, frozen: frozenset[torch.fx.Node],
         told: report.GraphReport) -> tuple[set[torch.fx.Node], Lowering]:
    """The nodes that Kiln takes, found by lowering each; what was lowered, which is the whole graph if none is left."""
    taken: set[torch.fx.Node] = set()
    trial = Lowering(context, taken, frozen)
    for node in nodes:
        if is_size(node) or random.is_seed(node) or _torch.asserts(node.target):
            continue
        try:
            trial.run(node)
            taken.add(node)
            told.ops += not is_view(node) and node.target is not operator.getitem
        except Unsupported as why:
            source = node.args[0] if node.args else None
            if node.target is operator.getitem and source not in taken:
                continue
            told.left.append(report.Left(node.name, str(node.target), str(why)))
    return taken, trial


def lower(nodes: list[torch.fx.Node], taken: set[torch.fx.Node], context: kiln.Context,
          frozen: frozenset[torch.fx.Node]) -> Lowering:
    """A part's graph."""
    lowering = Lowering(context, taken, frozen)
    for node in nodes:
        lowering.run(node)
    return lowering
