"""A module as a graph of Kiln's and its weights, for a program that runs without torch."""

from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.fx

import kiln
from kiln.torch import _torch, passes
from kiln.torch.lowering import Lowering
from kiln.torch.parts import is_size
from kiln.torch.rows import Unsupported


def export(module: torch.nn.Module, args: Sequence[Any], *, kwargs: dict[str, Any] | None = None,
           dynamic_shapes: Any = None,
           context: kiln.Context | None = None) -> tuple[kiln.Graph, dict[str, torch.Tensor]]:
    """The graph of the module at such arguments, and its weights by the names of the graph's parameters.

    dynamic_shapes is torch.export's: which sizes may change. All of the module must be Kiln's: what is not is an error
    that names it. Outputs have the names of torch's nodes; one that is given twice is "mul", then "mul.2". Weights are
    the module's own tensors, not copies; save them with safetensors, or bind them.
    """
    program = torch.export.export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
    program = program.run_decompositions(_torch.composites())
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        written = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
        raise kiln.Unimplemented(f"the module writes {written[0]!r} as it runs; use it in eval, or write a copy")
    weights = _weights(program)
    passes.run(program.graph_module)
    nodes = list(program.graph.nodes)
    names = {node: weights[node.name][0] if node.name in weights else node.name
             for node in nodes if node.op == "placeholder"}
    taken: set[torch.fx.Node] = set()
    frozen = frozenset(node for node in names if node.name in weights)
    lowering = Lowering(context or kiln.default_context(), taken, frozen, names,
                        program.range_constraints)
    for node in nodes:
        if node.op == "placeholder" and node not in frozen and isinstance(node.meta["val"], torch.Tensor):
            lowering.value(node)  # all inputs, in order
        if node.op != "call_function" or is_size(node):
            continue
        try:
            lowering.run(node)
        except Unsupported as why:
            raise kiln.Unimplemented(f"[{node.target}] node {node.name}: {why}") from why
        taken.add(node)
    given: dict[str, int] = {}  # how often an output's name was
    for spec, node in zip(signature.output_specs, nodes[-1].args[0]):
        if not isinstance(node, torch.fx.Node) or not isinstance(node.meta["val"], torch.Tensor):
            raise kiln.Unimplemented(f"output {spec.arg} is no tensor")
        lowering.value(node)
        given[node.name] = given.get(node.name, 0) + 1
        again = f".{given[node.name]}" if given[node.name] > 1 else ""
        lowering.output(node, row_major=True, name=node.name + again)
    used = {names[node] for node in lowering.inputs if node in frozen}
    return lowering.finish(), {name: tensor for name, tensor in weights.values() if name in used}


def _weights(program: torch.export.ExportedProgram) -> dict[str, tuple[str, torch.Tensor]]:
    """Of placeholders that are weights: the name in the module, and the tensor."""
    signature = program.graph_signature
    found: dict[str, tuple[str, torch.Tensor]] = {}
    for placeholder, name in {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
                              **signature.inputs_to_lifted_tensor_constants}.items():
        tensor = program.state_dict[name] if name in program.state_dict else program.constants[name]
        assert isinstance(tensor, torch.Tensor)
        found[placeholder] = (name, tensor.detach())
    return found
