"""A model from a file: as a graph with its weights, or ready to run."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping
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
from kiln.onnx._weights import FOLDER, NameTaken, misplaced

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

    names: dict[str, str] = field(default_factory=dict)
    """Of the model's inputs, as Kiln has them."""

    def __iter__(self) -> Any:
        return iter((self.graph, self.weights))


def load(source: Source, *, values: Mapping[str, Any] | None = None, inputs: Collection[str] = (),
         context: kiln.Context | None = None) -> Model:
    """Reads an ONNX model: `graph, weights = kiln.onnx.load("model.onnx")`.

    values: of inputs that decide sizes (a shape that Reshape is given, the k of TopK), by name; the graph is then for
    these values and has no such inputs. Without them such a model is refused, and the message names them.
    inputs: names of inputs that have a default (an initializer of the same name): they are inputs of the graph, too. Others
    with a default are weights.
    context: the graph's; the default one.
    Errors: kiln.Unimplemented tells what Kiln lacks, kiln.TypeMismatch what the model has wrong; both name the node.
    kiln.Corrupt: it is no model, a file of weights is shorter than it says, or weights are told to lie where they cannot, or
    to be of another length than their shape tells. kiln.InvalidArgument: weights lie outside of the model's folder.
    kiln.FileError, an OSError: of files; kiln.FileNotFound, a FileNotFoundError, of those that there are not.
    """
    return convert(read(source), values, context, inputs)


def convert(model: ir.Model, values: Mapping[str, Any] | None, context: kiln.Context | None,
            inputs: Collection[str] = ()) -> Model:
    """What `load` does with a model that is read."""
    names = {str(value.name) for value in model.graph.inputs}
    given = {name: np.asarray(value) for name, value in (values or {}).items()}
    for name in (*given, *inputs):
        if name not in names:
            raise kiln.UnknownName(f"the model has no input '{name}'; it has {', '.join(sorted(names))}")
    try:
        converter = Converter(model, context, given, inputs)
        converter.run()
    except NameTaken:
        converter = Converter(model, context, given, inputs, declare=True)
        converter.run()
    return Model(converter.graph, converter.weights.arrays, given, converter.names)


def read(source: Source) -> ir.Model:
    """The model as onnx-ir has it, after what may be said of it as a whole."""
    proto, folder = None, None
    try:
        if isinstance(source, onnx.ModelProto):
            proto = source
        elif isinstance(source, bytes):
            proto = onnx.ModelProto.FromString(source)
        else:
            path = os.path.abspath(source)
            proto, folder = onnx.load(path, load_external_data=False), os.path.dirname(path)
        model = ir.serde.deserialize_model(proto)
    except OSError as error:
        raise file_error(error.errno, f"the model cannot be read: {error}", error.filename) from error
    except Exception as error:  # protobuf, onnx and onnx-ir have no class in common
        raise kiln.Corrupt(f"this is no ONNX model: {(misplaced(proto) if proto else None) or error}") from error
    if folder is not None:
        model.meta[FOLDER] = folder
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


class _Program:
    """What was compiled for some inputs and values: a call for each thread, made when it first runs there."""

    def __init__(self, model: Model, key: tuple[Any, ...], first: kiln.Call) -> None:
        self.model, self.key, self.has_run = model, key, False
        self._first, self._lock, self._own = first, threading.Lock(), threading.local()

    @property
    def call(self) -> kiln.Call:
        """This thread's."""
        call: kiln.Call | None = getattr(self._own, "call", None)
        if call is None:
            with self._lock:  # the first never runs: it can be cloned at any time
                call = self._own.call = self._first.clone()
        return call


class Session:
    """A model that is ready to run: called with its inputs, by name or in order, it gives its outputs, in order.

    An input with a default (an initializer of the same name) may be given by name. Any threads may call at once.

    Inputs that decide sizes are found when they are given: for each of their values the model is converted and compiled
    anew, `VARIANTS` of them at most; `report` tells which. Values with which the first run fails do not count.
    """

    def __init__(self, source: Source, *, context: kiln.Context | None = None, **options: Any) -> None:
        self.model, self.options = read(source), options
        self.context = context or kiln.default_context()
        self.names = [str(value.name) for value in self.model.graph.inputs
                      if value.name not in self.model.graph.initializers]
        self.output_names = [str(value.name) for value in self.model.graph.outputs]
        self._defaults = {str(value.name) for value in self.model.graph.inputs} - set(self.names)
        self._deciders: set[str] = set()
        self._programs: dict[tuple[Any, ...], _Program] = {}
        self._lock = threading.Lock()

    @property
    def report(self) -> dict[str, Any]:
        """Which inputs decide sizes, and for which values of theirs there is a program."""
        return {"deciders": sorted(self._deciders),
                "variants": [{name: array.tolist() for name, array in program.model.specialised.items()}
                             for program in list(self._programs.values())]}

    def __call__(self, *arrays: Any, **named: Any) -> list[Any]:
        given = dict(zip(self.names, arrays, strict=False)) | named
        if len(arrays) > len(self.names):
            raise kiln.TypeMismatch(f"{len(arrays)} arrays are given, and the model has {len(self.names)} inputs")
        for name in named:
            if name in self.names[:len(arrays)]:
                raise kiln.TypeMismatch(f"'{name}' is given twice")
            if name not in self.names and name not in self._defaults:
                raise kiln.UnknownName(f"the model has no input '{name}'; it has {', '.join([*self.names, *self._defaults])}")
        program = self._program(given)
        model = program.model
        try:
            results = program.call(**{model.names[name]: array for name, array in given.items()
                                      if name not in model.specialised})
            program.has_run = True
        finally:
            if not program.has_run:
                self._forget(program)
        return list(results) if isinstance(results, tuple | list) else [results]

    def _forget(self, program: _Program) -> None:
        """Of values with which nothing has run: they would count for good. What is for no values at all may stay."""
        with self._lock:
            if program.key and self._programs.get(program.key) is program:
                del self._programs[program.key]

    def _program(self, given: Mapping[str, Any]) -> _Program:
        while True:
            values = {name: np.asarray(given[name]) for name in sorted(self._deciders) if name in given}
            replaced = sorted(self._defaults & given.keys() - values.keys())
            key = (*replaced, *((name, array.dtype.str, array.shape, array.tobytes()) for name, array in values.items()))
            known = self._programs.get(key)
            if known is None:
                with self._lock:  # of several threads one makes it
                    known = self._programs.get(key) or self._made(key, given, values, replaced)
            if known is not None:
                return known

    def _made(self, key: tuple[Any, ...], given: Mapping[str, Any], values: dict[str, Array],
              replaced: list[str]) -> _Program | None:
        """A new program; None: more inputs turn out to decide sizes."""
        if len(self._programs) >= VARIANTS:
            names = ", ".join(sorted(self._deciders | set(replaced)))
            raise kiln.OutOfRange(f"inputs that decide sizes, or have a default ({names}), have had {VARIANTS} different "
                                  "values, and each is a program of its own")
        try:
            model = convert(self.model, values, self.context, replaced)
        except NeedsValues as needed:
            if not needed.names <= given.keys():
                raise
            self._deciders = self._deciders | needed.names
            return None
        executable = self.context.compile(model.graph, self.options)
        program = self._programs[key] = _Program(model, key, executable.bind(model.weights))
        return program
