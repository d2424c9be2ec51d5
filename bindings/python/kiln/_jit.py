"""@kiln.jit: a function of arrays, traced into a graph, compiled when its arguments' types are new."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from kiln._arrays import require_shape
from kiln._errors import Error, Overflow
from kiln._kiln import Call, Context, Executable, Graph, Value
from kiln._kiln import dtype as to_dtype
from kiln._traced import Trace, Traced, convert, f32, f64, lift, tracing
from kiln._trees import flatten, unflatten

_SMALL = 64  # arrays from outside of so many elements are constants, larger ones are parameters
_NUMBERS = {bool: "bool", int: "i64", float: "f64"}  # as exact as they are, beside whatever array; see _give


def _leaf_key(leaf: Any) -> tuple[Any, ...]:
    """The type of a leaf, and its shape; of what is no array, what it is."""
    kind = type(leaf)
    if kind in _NUMBERS:
        return (kind, ())
    shape = getattr(leaf, "shape", None)
    if shape is None or not hasattr(leaf, "dtype"):
        return (kind, None, _exact(leaf))
    return (leaf.dtype, tuple(shape))


def _leaf_keys(leaves: list[Any], kind: str) -> list[tuple[Any, ...]]:
    try:
        return [_leaf_key(leaf) for leaf in leaves]
    except RuntimeError:
        for i, leaf in enumerate(leaves):
            require_shape(leaf, f"{kind}{i}")
        raise


def _exact(value: Any) -> Hashable:
    """A value and its type, inside of tuples, too: 2 equals 2.0, and 0.0 is -0.0, but they trace to other programs."""
    if isinstance(value, float):
        return (type(value), value.hex())
    if isinstance(value, (tuple, frozenset)):
        inside = tuple(_exact(each) for each in value)
        return (type(value), inside if isinstance(value, tuple) else frozenset(inside))
    return (type(value), value)


def _is_array(key: tuple[Any, ...]) -> bool:
    return key[1] is not None


class _Program:
    """What was compiled for some types: shapes may have symbols, and then hold for many sizes."""

    def __init__(self, executable: Executable, trace: Trace, shapes: list[tuple[Any, ...] | None], result: Hashable,
                 outputs: list[int]) -> None:
        self.least = trace.least  # of every symbol
        self.ranges = [(int(name.removeprefix("input")), *rest) for name, rest in trace.ranges.items()]
        parameters = trace.parameters
        self.executable, self.parameters, self.shapes = executable, parameters, shapes
        self.result, self.outputs = result, outputs
        self._calls = threading.local()
        self._first: Call | None = None

    def runner(self) -> Callable[..., Any]:
        """The executable, or where parameters are bound a call of this thread's own."""
        if not self.parameters:
            return self.executable
        call = getattr(self._calls, "call", None)
        if call is None:
            if self._first is None:
                self._first = call = self.executable.bind(self.parameters)
            else:
                call = self._first.clone()
            self._calls.call = call
        return call

    def fits(self, shapes: list[tuple[Any, ...] | None]) -> bool:
        bound: dict[str, int] = {}
        for own, given in zip(self.shapes, shapes):
            if own is None or given is None:
                continue
            for size, actual in zip(own, given):
                if isinstance(size, str):
                    if bound.setdefault(size, actual) != actual or actual < self.least:
                        return False
                elif size != actual:
                    return False
        return True


class Jit:
    """A function that is traced and compiled; made by `kiln.jit`."""

    def __init__(self, function: Callable[..., Any], static: Sequence[str], parameters: Sequence[str],
                 sizes: Mapping[str, Sequence[Any]], dynamic: bool, context: Context | None,
                 options: dict[str, Any]) -> None:
        import inspect
        functools.update_wrapper(self, function)
        self._function, self._context, self._options = function, context, options
        self._signature = inspect.signature(function)
        self._names = list(self._signature.parameters)
        self._static, self._parameters = frozenset(static), frozenset(parameters)
        self._sizes, self._dynamic = sizes, dynamic
        self._least = 0 if sizes else 2  # of a symbol: 0 and 1 broadcast, so that a trace with others says nothing of them
        for name in (*static, *parameters, *sizes):
            if name not in self._signature.parameters:
                raise ValueError(f"{function.__name__} has no argument {name!r}")
        plain = all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in
                    self._signature.parameters.values())
        self._count = len(self._names) if plain else -1  # of arguments that are all given by place
        self._programs: dict[Hashable, _Program] = {}  # by the whole key
        self._families: dict[Hashable, list[_Program]] = {}  # by the key without sizes
        self._failed: set[Hashable] = set()  # families that cannot be traced with symbols
        self._lock = threading.Lock()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def programs(self) -> list[Executable]:
        """What was compiled so far."""
        return [program.executable for programs in self._families.values() for program in programs]

    def refresh(self) -> None:
        """Arrays that are parameters, or were captured, have been changed: they are bound anew at the next call."""
        with self._lock:
            self._programs.clear()
            self._families.clear()

    def _arguments(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
        if not keywords and len(args) == self._count:
            return dict(zip(self._names, args))
        bound = self._signature.bind(*args, **keywords)
        bound.apply_defaults()
        return dict(bound.arguments)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        arguments = self._arguments(args, keywords)
        leaves: list[Any] = []
        fixed: list[Hashable] = []
        weights: list[Any] = []
        for name, value in arguments.items():
            if name in self._static:
                fixed.append((name, _exact(value)))
            else:
                fixed.append(flatten(value, weights if name in self._parameters else leaves))
        if tracing.get() is not None:  # inside another one's trace: a part of it
            return self._function(*args, **keywords)
        keys = _leaf_keys(leaves, "input")
        weight_keys = _leaf_keys(weights, "parameter")
        try:
            key = (tuple(fixed), tuple(keys), tuple(weight_keys))
            program = self._programs.get(key)
        except TypeError as error:
            name = self._function.__name__
            raise TypeError(f"{name}: what is no array must be hashable: {error}") from None
        if program is None:
            with self._lock:
                program = self._programs.get(key) or self._program(key, arguments, leaves, weights)
        for place, low, high, dtype in program.ranges:
            if not low <= leaves[place] <= high:
                raise Overflow(f"{self._function.__name__}: {leaves[place]} meets an array of {dtype}, which does not hold it")
        arrays = [leaf for leaf, own in zip(leaves, keys) if _is_array(own)]
        runner = program.runner() if not weights else self._with(program, weights)
        results = runner(*arrays)
        if program.result == "*":
            return results
        if len(program.outputs) == 0:
            return unflatten(program.result, iter(()))
        made = results if isinstance(results, tuple) else (results,)
        return unflatten(program.result, iter([made[i] for i in program.outputs]))

    def _with(self, program: _Program, weights: list[Any]) -> Callable[..., Any]:
        """The call whose parameters are these arrays; bound anew where one is another object."""
        calls = program._calls
        call = getattr(calls, "call", None)
        if call is None:
            call = calls.call = program.executable.bind(program.parameters)  # those that were captured
        known = getattr(calls, "weights", None)
        if known is None or any(a is not b for a, b in zip(known, weights)):
            call.bind({f"parameter{i}": weight for i, weight in enumerate(weights)})
            calls.weights = list(weights)
        bound: Callable[..., Any] = call
        return bound

    def _program(self, key: Any, arguments: dict[str, Any], leaves: list[Any], weights: list[Any]) -> _Program:
        """One that fits; else a new one, with symbols for the sizes that have changed."""
        fixed, keys, weight_keys = key
        family_key = (fixed, tuple((own[0], len(own[1])) if _is_array(own) else own for own in keys), weight_keys)
        family = self._families.setdefault(family_key, [])
        shapes = [own[1] if _is_array(own) else None for own in keys]
        program = next((each for each in family if each.fits(shapes)), None)
        if program is None:
            declared = self._declared(arguments, shapes)
            general = declared or (self._generalised(family[-1].shapes, shapes)
                                   if family and self._dynamic and family_key not in self._failed else None)
            if general is not None:
                try:
                    program = self._compile(arguments, leaves, weights, general)
                except (Error, TypeError, ValueError):
                    if declared:
                        raise
                    self._failed.add(family_key)  # it needs the sizes: a program for each
            if program is None:
                program = self._compile(arguments, leaves, weights, shapes)
            family.append(program)
        self._programs[key] = program
        return program

    def _declared(self, arguments: dict[str, Any], shapes: list[Any]) -> list[Any] | None:
        """Shapes with the symbols that `sizes` declares; None: it declares nothing."""
        if not self._sizes:
            return None
        result, at = list(shapes), 0
        for name, value in arguments.items():
            if name in self._static or name in self._parameters:
                continue
            leaves: list[Any] = []
            flatten(value, leaves)
            if name in self._sizes and len(leaves) == 1 and shapes[at] is not None:
                told = tuple(self._sizes[name])
                if len(told) != len(shapes[at]):
                    raise ValueError(f"{name} has {len(shapes[at])} dims, and sizes declares {len(told)}")
                result[at] = tuple(actual if size is None else size for size, actual in zip(told, shapes[at]))
            at += len(leaves)
        return result

    def _generalised(self, before: list[Any], now: list[Any]) -> list[Any] | None:
        """Sizes that differ become symbols, those that differ alike the same one. None: 0 and 1 are no symbols."""
        names: dict[tuple[Any, int], str] = {}
        fresh = (name for name in map("s{}".format, itertools.count()) if name not in names.values())

        def merged(old: Any, new: int) -> Any:
            if old == new:
                return old
            if (old, new) not in names:
                names[old, new] = old if isinstance(old, str) and old not in names.values() else next(fresh)
            return names[old, new]

        for old, new in zip(before, now):
            if any(a != b and (b < 2 or a in (0, 1)) for a, b in zip(old or (), new or ())):
                return None
        return [None if old is None else tuple(map(merged, old, new)) for old, new in zip(before, now)]

    def _compile(self, arguments: dict[str, Any], leaves: list[Any], weights: list[Any], shapes: list[Any]) -> _Program:
        graph, trace, result, places = self._trace(arguments, leaves, weights, shapes)
        executable = graph.context.compile(graph, self._options)
        return _Program(executable, trace, shapes, result, places)

    def _trace(self, arguments: dict[str, Any], leaves: list[Any], weights: list[Any],
               shapes: list[Any]) -> tuple[Graph, Trace, Hashable, list[int]]:
        graph = Graph(self._context)
        trace = Trace(graph, _SMALL, self._least)
        inputs: list[Any] = []
        for i, (leaf, shape) in enumerate(zip(leaves, shapes)):
            if shape is None:
                inputs.append(leaf)
                continue
            require_shape(leaf, f"input{i}")
            number = _NUMBERS.get(type(leaf))
            dtype = number if number else to_dtype(leaf.dtype)
            inputs.append(Traced(graph.input(f"input{i}", dtype, shape), number is not None))
        for i, weight in enumerate(weights):
            require_shape(weight, f"parameter{i}")
        held = [Traced(graph.parameter(f"parameter{i}", to_dtype(weight.dtype), tuple(weight.shape)))
                for i, weight in enumerate(weights)]
        given, of = iter(inputs), iter(held)
        traced = {}
        for name, value in arguments.items():
            if name in self._static:
                traced[name] = value
            else:
                traced[name] = unflatten(flatten(value, []), of if name in self._parameters else given)
        call = self._signature.bind_partial()
        call.arguments.update(traced)
        before = tracing.set(trace)
        try:
            with graph:
                result = self._function(*call.args, **call.kwargs)
                outputs: list[Any] = []
                shape_of_result = flatten(result, outputs)
                places = self._give(graph, outputs)
        finally:
            tracing.reset(before)
        return graph, trace, shape_of_result, places

    def _give(self, graph: Graph, outputs: list[Any]) -> list[int]:
        """Makes the leaves of the result outputs; of each, its place among them."""
        from kiln.array_api import asarray
        places: list[int] = []
        given: dict[Value, int] = {}
        for leaf in outputs:
            made = lift(leaf) if hasattr(leaf, "dtype") or isinstance(leaf, Traced) else asarray(leaf)
            value = (convert(made, f32) if made.weak and made.dtype is f64 else made).value  # of numbers alone
            known = next((place for other, place in given.items() if other.same_as(value)), None) if given else None
            if known is None:
                known = len(given)
                given[value] = known
                graph.output(value)
            places.append(known)
        return places

    def graph(self, *args: Any, **keywords: Any) -> Graph:
        """The graph of these arguments' types, as it is traced."""
        arguments = self._arguments(args, keywords)
        leaves: list[Any] = []
        weights: list[Any] = []
        for name, value in arguments.items():
            if name not in self._static:
                flatten(value, weights if name in self._parameters else leaves)
        keys = _leaf_keys(leaves, "input")
        shapes: list[Any] = [own[1] if _is_array(own) else None for own in keys]
        return self._trace(arguments, leaves, weights, self._declared(arguments, shapes) or shapes)[0]


def jit(function: Callable[..., Any] | None = None, *, static: Sequence[str] = (), parameters: Sequence[str] = (),
        sizes: Mapping[str, Sequence[Any]] | None = None, dynamic: bool = True, context: Context | None = None,
        options: dict[str, Any] | None = None, **keywords: Any) -> Any:
    """Compiles a function of arrays: of NumPy's, torch's or others', inside tuples, lists and dicts (register_tree).

    It is traced once for each element types and ranks of its arguments: with arrays that have types and no elements,
    whose operators and `kiln.array_api` make a graph. Sizes are fixed at first; where a second call has others,
    those that differ become symbols, and one program serves all.

    static: names of arguments that are no arrays, by value. parameters: names of arguments that are weights: bound
    once, and again only where they are other objects. sizes: {"x": ("n", None, 3)} declares symbols from the first call
    on; None: as it is given. dynamic=False: a program for each size. Arrays that the function finds outside are
    parameters, too (constants, up to 64 elements); after they have been changed in place, `refresh()`. Others are
    options of a compile.
    """
    if function is None:
        return lambda of: jit(of, static=static, parameters=parameters, sizes=sizes, dynamic=dynamic, context=context,
                              options=options, **keywords)
    return Jit(function, static, parameters, sizes or {}, dynamic, context, {**(options or {}), **keywords})
