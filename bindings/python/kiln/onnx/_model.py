"""A model from a file: as a graph with its weights, or ready to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

import kiln
from kiln._errors import file_error
from kiln.onnx import families
from kiln.onnx._convert import Converter, NeedsValues
from kiln.onnx._registry import NEWEST, OLDEST
from kiln.onnx._values import Array
from kiln.onnx._weights import FOLDER, NameTaken, kiln_name

VARIANTS = 8
"""For so many values of inputs that decide sizes a session is ready at once."""

Source = str | os.PathLike[str] | bytes | onnx.ModelProto


@dataclass(frozen=True)
class Model:
    """What a model has become. Unpacks to the graph and its weights."""

    graph: kiln.Graph
    weights: dict[str, Array]
    """Parameters by name; those of files stay mapped."""

    specialised: dict[str, Array] = field(default_factory=dict)
    """Inputs that are none any more: the graph is for these values of theirs."""

    def __iter__(self) -> Any:
        return iter((self.graph, self.weights))


def load(source: Source, *, values: Mapping[str, Any] | None = None, context: kiln.Context | None = None) -> Model:
    """Reads an ONNX model: `graph, weights = kiln.onnx.load("model.onnx")`.

    values: of inputs that decide sizes (a shape that Reshape is given, the k of TopK), by name; the graph is then for
    these values and has no such inputs. Without them such a model is refused, and the message names them.
    context: the graph's; the default one.
    Errors: kiln.Unimplemented tells what Kiln lacks, kiln.TypeMismatch what the model has wrong; both name the node.
    kiln.Corrupt: it is no model, or a file of weights is shorter than it says. kiln.InvalidArgument: weights lie outside of
    the model's folder. kiln.FileError, an OSError: of files; kiln.FileNotFound, a FileNotFoundError, of those that there are
    not.
    """
    return convert(read(source), values, context)


def convert(model: ir.Model, values: Mapping[str, Any] | None, context: kiln.Context | None) -> Model:
    """What `load` does with a model that is read."""
    names = {str(value.name) for value in model.graph.inputs}
    given = {name: np.asarray(value) for name, value in (values or {}).items()}
    for name in given:
        if name not in names:
            raise kiln.UnknownName(f"the model has no input '{name}'; it has {', '.join(sorted(names))}")
    try:
        converter = Converter(model, context, given)
        converter.run()
    except NameTaken:
        converter = Converter(model, context, given, declare=True)
        converter.run()
    return Model(converter.graph, converter.weights.arrays, given)


def read(source: Source) -> ir.Model:
    """The model as onnx-ir has it, after what may be said of it as a whole."""
    try:
        if isinstance(source, onnx.ModelProto):
            model = ir.serde.deserialize_model(source)
        elif isinstance(source, bytes):
            model = ir.serde.deserialize_model(onnx.ModelProto.FromString(source))
        else:
            path = os.path.abspath(source)
            model = ir.load(path)
            model.meta[FOLDER] = os.path.dirname(path)
    except OSError as error:
        raise file_error(error.errno, f"the model cannot be read: {error}", error.filename) from error
    except Exception as error:  # protobuf, onnx and onnx-ir have no class in common
        raise kiln.Corrupt(f"this is no ONNX model: {error}") from error
    families.load_all()
    if not model.opset_imports:
        raise kiln.Corrupt("this is no ONNX model: it says of no operator set that it is of it, as an empty file does not")
    version = model.opset_imports.get("", model.opset_imports.get("ai.onnx"))
    if version is not None:
        model.opset_imports[""] = version
        if not 1 <= version <= NEWEST or version < OLDEST and any(map(_was_another, model.graph.all_nodes(), repeat(version))):
            raise kiln.Unimplemented(f"the model is of opset {version}, {OLDEST} to {NEWEST} were expected")
    return model


def _was_another(node: ir.Node, version: int) -> bool:
    """Whether the op of a node was another one in an opset before the oldest."""
    def since(opset: int) -> int:
        try:
            return int(onnx.defs.get_schema(node.op_type, opset).since_version)
        except onnx.defs.SchemaError:
            return 0
    return node.domain in ("", "ai.onnx") and since(version) != since(OLDEST)


class Session:
    """A model that is ready to run: called with its inputs, by name or in order, it gives its outputs, in order.

    Inputs that decide sizes are found when they are given: for each of their values the model is converted and compiled
    anew, `VARIANTS` of them at most; `report` tells which.
    """

    def __init__(self, source: Source, *, context: kiln.Context | None = None, **options: Any) -> None:
        self.model, self.options = read(source), options
        self.context = context or kiln.default_context()
        self.names = [str(value.name) for value in self.model.graph.inputs
                      if value.name not in self.model.graph.initializers]
        self.output_names = [str(value.name) for value in self.model.graph.outputs]
        self._deciders: set[str] = set()
        self._variants: dict[tuple[Any, ...], tuple[Model, kiln.Call]] = {}

    @property
    def report(self) -> dict[str, Any]:
        """Which inputs decide sizes, and for which values of theirs there is a program."""
        return {"deciders": sorted(self._deciders),
                "variants": [{name: array.tolist() for name, array in model.specialised.items()}
                             for model, _ in self._variants.values()]}

    def __call__(self, *arrays: Any, **named: Any) -> list[Any]:
        given = dict(zip(self.names, arrays, strict=False)) | named
        if len(arrays) > len(self.names):
            raise kiln.TypeMismatch(f"{len(arrays)} arrays are given, and the model has {len(self.names)} inputs")
        call = self._variant(given)
        results = call(**{kiln_name(name): array for name, array in given.items() if name not in self._deciders})
        return list(results) if isinstance(results, tuple | list) else [results]

    def _variant(self, given: Mapping[str, Any]) -> kiln.Call:
        while True:
            values = {name: np.asarray(given[name]) for name in sorted(self._deciders) if name in given}
            key = tuple((name, array.dtype.str, array.shape, array.tobytes()) for name, array in values.items())
            if key in self._variants:
                return self._variants[key][1]
            if len(self._variants) >= VARIANTS:
                raise kiln.OutOfRange(f"inputs that decide sizes ({', '.join(sorted(self._deciders))}) have had "
                                      f"{VARIANTS} different values, and each is a program of its own")
            try:
                model = convert(self.model, values, self.context)
            except NeedsValues as needed:
                if not needed.names <= given.keys():
                    raise
                self._deciders |= needed.names
                continue
            executable = self.context.compile(model.graph, self.options)
            call = executable.bind(model.weights)
            self._variants[key] = model, call
            return call
