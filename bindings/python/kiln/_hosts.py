"""Passes, ops and functions of Python's, as decorated functions, and how they join a context.

What has a `uuid` has an identity: what is made with it is cached, and must follow from the graph, the uuid and the
version. Raise the version whenever what the function does changes. Without a uuid the cache is bypassed.
"""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple, Sequence

from kiln import _kiln
from kiln._kiln import Context, DType, Graph, PassCall, Value

_STAGES = {"pre_grad": 1, "post_grad": 3, "lower": 4}
_TIMINGS = {"": 0, "late": 1, "early": 2}


def _uuid_bytes(uuid: Any) -> bytes | None:
    """16 bytes of a uuid.UUID, its text, or bytes."""
    if uuid is None:
        return None
    if isinstance(uuid, str):
        from uuid import UUID
        uuid = UUID(uuid)
    data = uuid if isinstance(uuid, bytes) else uuid.bytes
    if len(data) != 16:
        raise ValueError(f"a uuid has 16 bytes, this one {len(data)}")
    return bytes(data)


def _one_of(choices: dict[str, int], value: str, what: str) -> int:
    if value not in choices:
        raise ValueError(f"{what} {value!r} is none of {', '.join(map(repr, choices))}")
    return choices[value]


class Pass:
    """A pass: `run(graph, call)` rewrites the graph and returns how often."""

    def __init__(self, run: Callable[[Graph, PassCall], int], name: str, stage: str, uuid: Any, version: str,
                 priority: int, timing: str, options: dict[str, Any], fingerprint: Callable[[], bytes] | None) -> None:
        self.run, self.name, self.version, self.priority, self.options = run, name, version, priority, options
        self.stage_number = _one_of(_STAGES, stage, "stage")
        self.timing_number = _one_of(_TIMINGS, timing, "timing")
        self.uuid_bytes, self.fingerprint = _uuid_bytes(uuid), fingerprint

    def __call__(self, graph: Graph, call: PassCall) -> int:
        return self.run(graph, call)

    def add_to(self, context: Context) -> Callable[[], None]:
        number = _kiln.register_pass(context, self)
        return lambda: _kiln.unregister_pass(context, number)


def graph_pass(name: str, *, stage: str = "post_grad", uuid: Any = None, version: str = "", priority: int = 0,
               timing: str = "", options: dict[str, Any] | None = None,
               fingerprint: Callable[[], bytes] | None = None) -> Callable[[Callable[[Graph, PassCall], int]], Pass]:
    """Makes a pass of a function of a graph and of what it is told: `graph.nodes`, ops of `kiln.ops`, `graph.replace`.

    It returns how often it rewrote. `options` are those that it knows, with their defaults (`call.option(name)`);
    `fingerprint` gives bytes that join the key. `context.add(pass_)` has it run; see docs/write-a-pass.md.
    """
    return lambda run: Pass(run, name, stage, uuid, version, priority, timing, options or {}, fingerprint)


class Type(NamedTuple):
    """Element type and sizes of an operand or a result."""

    dtype: DType
    shape: tuple[Any, ...]


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) and not isinstance(results, Type) else (results,)


class Op:
    """An op: what it computes (`run`), is made of (`decompose`), and the types of its results (`infer`)."""

    def __init__(self, schema: dict[str, Any], uuid: Any, run: Callable[..., None] | None) -> None:
        self.name: str = schema["name"]
        self.schema_json = json.dumps(schema)
        self.attr_names = tuple(attr["name"] for attr in schema.get("attrs", ()))
        self.result_count = len(schema["results"])
        self.uuid_bytes = _uuid_bytes(uuid)
        self._run = run
        self._decompose: Callable[..., Any] | None = None
        self._infer: Callable[..., Any] = lambda first, *others, **attrs: first

    def infer(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates what tells the types of the results: of a kiln.Type each operand, and attributes as keywords."""
        self._infer = function
        return function

    def decompose(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates what makes the results of other ops: of a Value each operand, and attributes as keywords."""
        self._decompose = function
        return function

    @property
    def has_run(self) -> bool:
        return self._run is not None

    @property
    def has_decomposition(self) -> bool:
        return self._decompose is not None

    def infer_types(self, types: tuple[Type, ...], attrs: dict[str, Any]) -> tuple[Type, ...]:
        return tuple(Type(*result) for result in _as_tuple(self._infer(*types, **attrs)))

    def decompose_in(self, graph: Graph, operands: tuple[Value, ...], attrs: dict[str, Any]) -> tuple[Value, ...]:
        assert self._decompose is not None
        with graph:
            return _as_tuple(self._decompose(*operands, **attrs))

    def run_on(self, arrays: list[Any], attrs: dict[str, Any]) -> None:
        assert self._run is not None
        self._run(*arrays, **attrs)

    def add_to(self, context: Context) -> None:
        _kiln.register_op(context, self)

    def __call__(self, *operands: Any, name: str | None = None, **attrs: Any) -> Any:
        """Adds a node of it."""
        return _kiln.add_node(self.name, operands, attrs, name)


def op(schema: dict[str, Any], *, uuid: Any = None) -> Callable[[Callable[..., None] | None], Op]:
    """Makes an op of its schema (docs/write-an-op.md) and a function that computes it.

    The function gets arrays of operands, then of results, which it fills, and attributes as keywords; None: the op is
    only decomposed. Arrays are copies, which may be kept. `.infer` and `.decompose` of it decorate more functions;
    without `infer` the results' types are the first operand's. `context.add(op)` makes it known.
    """
    return lambda run: Op(schema, uuid, run)


class Function:
    """A function that runs nodes of a built-in op."""

    def __init__(self, run: Callable[..., None], name: str, op: str, attrs: Sequence[str], uuid: Any, version: str,
                 fallback: bool) -> None:
        self._run, self.name, self.op, self.attrs, self.version = run, name, op, tuple(attrs), version
        self.uuid_bytes, self._fallback = _uuid_bytes(uuid), fallback
        self.signature, self.array_count, self.result_count, self.attr_kinds = "", 0, 0, [""]

    def _say(self, context: Context) -> None:
        schema = context.describe_op(self.op, samples=False)
        kinds = {attr["name"]: attr["kind"] for attr in schema["attrs"]}
        unknown = [name for name in self.attrs if kinds.get(name) not in ("i64", "f64", "bool")]
        if unknown:
            raise ValueError(f"[{self.op}] attribute {unknown[0]!r} is none that a function gets: i64, f64 or bool")
        arrays = [arg["name"] for arg in schema["args"]] + schema["results"]
        self.array_count, self.attr_kinds = len(arrays), [kinds[name] for name in self.attrs]
        self.result_count = len(schema["results"])
        said = [f"tensor {i}" for i in range(len(arrays))] + [f"{kinds[name]} *{name}" for name in self.attrs]
        self.signature = f"error ({', '.join([*said, 'user'])})"

    def run_on(self, arrays: list[Any], attrs: list[Any]) -> None:
        self._run(*arrays, **dict(zip(self.attrs, attrs)))

    def add_to(self, context: Context) -> Callable[[], None]:
        self._say(context)
        number = _kiln.register_function(context, self)
        fallback = _kiln.register_fallback(context, self.op, self.name) if self._fallback else None

        def remove() -> None:
            if fallback is not None:
                _kiln.unregister_fallback(context, fallback)
            _kiln.unregister_function(context, number)
        return remove


def function(name: str, *, op: str, attrs: Sequence[str] = (), uuid: Any = None, version: str = "",
             fallback: bool = False) -> Callable[[Callable[..., None]], Function]:
    """Makes a function that runs nodes of a built-in op: those annotated kiln.fallback.function = name.

    It gets arrays of operands, then of results, which it fills, and the attributes that `attrs` names as keywords.
    `fallback`: it also runs the op's nodes that fall back. `context.add(function)` makes it known.
    """
    return lambda run: Function(run, name, op, attrs, uuid, version, fallback)
