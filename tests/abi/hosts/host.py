"""A host of Kiln in Python: what the ABI promises, seen from a language that only has a C interface to it.

    KILN_LIBRARY=…/libkiln.so python3 host.py PLUGIN GRAPH FOLDER ELEMENT_TYPE FUNCTION OP
"""

import ctypes
import math
import pathlib
import sys

from binding import (CANCELLED, DTYPES, INVALID_ARGUMENT, NOT_CACHED, PLUGIN_FAILED, Array, Call, Context, Function, KilnError,
                     Listener, Op, Pass, held, lib)
from binding_backend import Backend

PLUGIN, GRAPH, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(), pathlib.Path(sys.argv[3])
ELEMENT_TYPE, FUNCTION, OP = (pathlib.Path(name).read_text() for name in sys.argv[4:7])
UUID = bytes.fromhex("7b1e0c6a52d94f0e8f3a64c1d2b7a905")
WEIGHT = Array([4], [1.0, -2.0, 0.5, 3.0])


def drop_double_negation(graph):
    """neg(neg(x)) -> x"""
    rewrites = 0
    for node in graph.nodes():
        inner = graph.input(node, 0) >> 32
        if graph.is_op(node, "neg") and graph.is_op(inner, "neg"):
            graph.replace(node << 32, graph.input(inner, 0))
            rewrites += 1
    return rewrites


def double_by_product(graph):
    """x + x -> x * 2"""
    rewrites = 0
    for node in graph.nodes():
        x = graph.input(node, 0)
        if graph.is_op(node, "add") and x == graph.input(node, 1):
            graph.replace(node << 32, graph.add("mul", x, graph.constant(2.0)))
            rewrites += 1
    return rewrites


def passed(name):
    print("ok:", name, flush=True)


def expect(actual, expected):
    if actual != expected:
        raise AssertionError(f"{actual!r}, expected {expected!r}")


def expect_in(part, whole):
    if part not in whole:
        raise AssertionError(f"{whole!r} does not say {part!r}")


def fails(code, function, *arguments, **settings):
    """The error that the function raises."""
    try:
        function(*arguments, **settings)
    except KilnError as error:
        expect(error.code, code)
        return error
    raise AssertionError("it did not fail")


def open_session(cache, *passes, listener=None):
    """A context with the plugin and passes, the graph in it, and the passes' ids."""
    context = Context(listener, cache=FOLDER / cache)
    context.load_plugin(PLUGIN)
    return context, context.parse(GRAPH), [context.register(each) for each in passes]


def call_of(executable):
    call = Call(executable)
    call.bind("w", WEIGHT)
    return call


def run_rows(call, rows):
    """y = 2 * -(-(x / sqrt(mean(x * x) + 1/2) * w)) on arrays of our own; y's memory, NaN before, must hold it after."""
    x, y = Array([rows, 4], [0.25 * i - 1 for i in range(rows * 4)]), Array([rows, 4])
    call.run(x, y)
    for row in range(0, rows * 4, 4):
        ours = x.values[row:row + 4]
        scale = 2 / math.sqrt(sum(value * value for value in ours) / 4 + 0.5)
        for value, weight, result in zip(ours, WEIGHT.values, y.values[row:row + 4]):
            if not abs(value * scale * weight - result) < 1e-5:
                raise AssertionError(f"row {row // 4}: {result}, expected {value * scale * weight}")
    return y.values


def end(context, *handles, lent=()):
    """Destroys the handles in the order given: none is left, and what was lent to Kiln is let go of once."""
    for handle in handles:
        handle.destroy()
    expect(context.report().i64("handles.live"), 0)
    context.destroy()
    expect([each.destroyed for each in lent], [1] * len(lent))


def parses_and_loads():
    context, graph, _ = open_session("parse")
    expect(lib.kiln_version() >> 16, 1)
    expect((graph.describe().text("inputs.0.shape.0"), graph.describe().i64("inputs.0.shape.1")), ("n", 4))
    passed("parses a graph from JSON")
    expect(context.report().text("plugins.0.name"), "fuse_rms_norm")
    passed("loads a plugin")
    end(context, graph)


def compiles_and_runs():
    own = Pass("drop_double_negation", drop_double_negation, UUID)
    context, graph, _ = open_session("run", own)
    executable, report = context.compile(graph)
    expect([report.i64(f"passes_run.{name}") for name in ("fuse_rms_norm", "drop_double_negation")], [1, 1])
    expect("neg" in executable.text("kernels"), False)
    passed("rewrites with a pass of its own, counted by path in the report")

    call = call_of(executable)
    results = run_rows(call, 3), run_rows(call, 8)
    passed("runs at two sizes on its own arrays, the parameter bound once")

    executable.save(FOLDER / "artifact.kiln")
    loaded = context.load(FOLDER / "artifact.kiln")
    again = call_of(loaded)
    expect((run_rows(again, 3), run_rows(again, 8)), results)
    passed("saves an artifact, loads it, runs to the same values")
    end(context, loaded, graph, executable, again, call, lent=[own])


# One, a small number and the largest of each type, as its array holds them and as numbers.
ELEMENTS = {
    "f64": ([1.0, -0.5, 1.7976931348623157e308], [1.0, -0.5, 1.7976931348623157e308]),
    "f32": ([1.0, -0.5, 3.0], [1.0, -0.5, 3.0]),
    "f16": ([0x3c00, 0xb800, 0x7bff], [1.0, -0.5, 65504.0]),
    "bf16": ([0x3f80, 0xbf00, 0x7f7f], [1.0, -0.5, 255 * 2.0 ** 120]),
    "f8_e4m3fn": ([0x38, 0xb0, 0x7e], [1.0, -0.5, 448.0]),
    "f8_e5m2": ([0x3c, 0xb8, 0x7b], [1.0, -0.5, 57344.0]),
    "i64": ([1, -2, 2 ** 62], [1.0, -2.0, 2.0 ** 62]),
    "i32": ([1, -2, 2 ** 31 - 1], [1.0, -2.0, 2147483647.0]),
    "i16": ([1, -2, 32767], [1.0, -2.0, 32767.0]),
    "i8": ([1, -2, 127], [1.0, -2.0, 127.0]),
    "u64": ([1, 2, 2 ** 64 - 1], [1.0, 2.0, 2.0 ** 64]),
    "u32": ([1, 2, 2 ** 32 - 1], [1.0, 2.0, 4294967295.0]),
    "u16": ([1, 2, 65535], [1.0, 2.0, 65535.0]),
    "u8": ([1, 2, 255], [1.0, 2.0, 255.0]),
    "bool": ([1, 0, 1], [1.0, 0.0, 1.0]),
}


def reads_and_writes_every_type():
    expect(ELEMENTS.keys(), DTYPES.keys())
    for dtype, (elements, numbers) in ELEMENTS.items():
        context = Context(cache="off")
        graph = context.parse(ELEMENT_TYPE.replace("DTYPE", dtype))
        executable, _ = context.compile(graph)
        call = Call(executable)
        x, twice, number = Array([3], elements, dtype), Array([6], dtype=dtype), Array([3], dtype="f64")
        call.run(x, twice, number)
        expect((list(twice.values), list(number.values)), (elements * 2, numbers))
        end(context, call, executable, graph)
    passed("reads and writes every element type in its own memory")


def caches_with_identity():
    for lookup, runs in (("MISS", 1), ("HIT", 0)):
        own = Pass("drop_double_negation", drop_double_negation, UUID)
        context, graph, _ = open_session("identity", own)
        executable, report = context.compile(graph)
        expect((report.text("lookup"), own.runs), (lookup, runs))
        call = call_of(executable)
        run_rows(call, 5)
        if lookup == "HIT":
            expect(report.count("passes_run"), 0)
            passed("with an identity: a miss, then a hit that runs no pass")
            missed = fails(NOT_CACHED, context.compile, graph, require_hit=True, fuse=False)
            expect(missed.reason, "component 'options' differs from the nearest record")
            passed("reads why a strict hit is a miss off the error")
        end(context, call, executable, graph, lent=[own])


def bypasses_without_identity():
    own = Pass("double_by_product", double_by_product)
    context, graph, _ = open_session("bypass", own)
    executable, report = context.compile(graph)
    expect((report.text("lookup"), report.i64("passes_run.double_by_product")), ("BYPASS", 1))
    expect_in("double_by_product", report.text("reason"))
    expect_in("constant 2\n", executable.text("kernels"))
    call = call_of(executable)
    run_rows(call, 2)
    expect_in("double_by_product", str(fails(INVALID_ARGUMENT, context.compile, graph, strict=True)))
    passed("without an identity: a bypass that names the pass, an error when strict")
    end(context, executable, call, graph, lent=[own])


def survives_an_exception():
    def breaks(graph):
        double_by_product(graph)  # given up with the rest
        raise ValueError("no such luck")

    own = Pass("own", breaks, UUID)
    context, graph, ids = open_session("exception", own)
    before = graph.text("json")
    error = fails(PLUGIN_FAILED, context.compile, graph)
    expect((str(error), error.plugin), ("pass 'own' of the host: failed: ValueError: no such luck", "the host"))
    expect(graph.text("json"), before)
    expect(context.report().i64("passes_run.threw"), 1)
    own.rewrite = drop_double_negation
    executable, report = context.compile(graph)
    expect(report.i64("passes_run.own"), 1)
    context.unregister(ids[0])
    expect(own.destroyed, 1)
    call = call_of(executable)
    run_rows(call, 4)
    passed("a pass that raises fails the compile with its message; graph and process live on")
    end(context, graph, call, executable, lent=[own])


def triple(x, y, size):
    if size == 1:
        raise ValueError("no such luck")
    for i in range(size):
        y[i] = 3 * x[i]


def triples(cache, json, own, register, by, message):
    """What `own` makes runs a node of the graph: a miss, then a hit; what it raises ends the run with the message."""
    for lookup in ("MISS", "HIT"):
        owner = own()
        context = Context(cache=FOLDER / cache)
        register(context, owner)
        graph = context.parse(json)
        executable, report = context.compile(graph)
        expect((report.text("lookup"), report.text("made.partition.fallbacks.0.by")), (lookup, by))
        call = Call(executable)
        for size in (2, 3):
            x, y = Array([size], [0.5] * size), Array([size])
            call.run(x, y)
            expect(list(y.values), [1.5] * size)
            expect(str(fails(PLUGIN_FAILED, call.run, Array([1]), Array([1]))), message)
        expect(owner.runs, 4)
        end(context, graph, executable, call, lent=[owner])


def calls_a_function():
    floats = ctypes.POINTER(ctypes.c_float)

    def own():
        return Function("triple", "error (f32 data 0[n], f32 data 2[n], i64 n)", [floats, floats, ctypes.c_int64], triple,
                        UUID)

    triples("function", FUNCTION, own, Context.register_function, "triple",
            "node 'tripled': [mul] function 'triple': ValueError: no such luck")
    passed("runs a node by a function of its own: a miss, then a hit; what it raises ends that run alone")


def brings_an_op():
    def infer(call):
        if len(call.dims(0)) != 1:
            raise TypeError("x is no vector")
        call.result(0, call.dtype(0), call.dims(0))

    def own():
        schema = '{"name": "host.triple", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"]}'
        return Op(schema, infer, lambda x, y: triple(x, y, len(x)), UUID)

    triples("op", OP, own, Context.register_op, "function", "node 'tripled': [host.triple] ValueError: no such luck")
    context, op = Context(cache="off"), own()
    context.register_op(op)
    refused = fails(PLUGIN_FAILED, context.parse, OP.replace('["n"]', '["n", 2]'))
    expect_in("node 'tripled': [host.triple] TypeError: x is no vector", str(refused))
    end(context, lent=[op])
    passed("brings an op: a miss, then a hit; what it raises refuses the node, or ends that run alone")


class Signs(Backend):
    """Runs chains of neg: its bytes are how many there are."""

    def refusal(self, region, node):
        return None if region.is_op(node, "neg") else "it is no neg"

    def compile(self, region):
        return bytes([region.count("neg")])

    def run(self, program, x, y):
        if x[0] > 9:
            raise ValueError("no such luck")
        for i, value in enumerate(x):
            y[i] = -value if program[0] % 2 else value


SIGNS = """{"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2]}}],
  "nodes": [{"name": "a", "op": "neg", "inputs": ["x"]}, {"name": "b", "op": "neg", "inputs": ["a"]},
            {"name": "c", "op": "neg", "inputs": ["b"]}, {"name": "d", "op": "exp", "inputs": ["c"]}],
  "outputs": [{"name": "y", "value": "d"}]}"""


def brings_a_backend():
    for lookup, compiles in (("MISS", 1), ("HIT", 0)):
        backend = Signs("signs", UUID)
        context = Context(cache=FOLDER / "backend")
        backend.register_in(context)
        graph = context.parse(SIGNS)
        executable, report = context.compile(graph, backend="signs")
        expect((report.text("lookup"), backend.compiles), (lookup, compiles))
        parts = "made.partition"
        expect([report.text(f"{parts}.regions.{i}.backend") for i in (0, 1)], ["signs", "cpu"])
        expect([report.text(f"{parts}.declined.0.{what}") for what in ("node", "reason")], ["d", "it is no neg"])
        call, x, y = Call(executable), Array([2], [1.0, 0.0]), Array([2])
        call.run(x, y)
        expect([round(value, 6) for value in y.values], [0.367879, 1.0])
        expect(str(fails(PLUGIN_FAILED, call.run, Array([2], [10.0, 0.0]), y)),
               "node 'c': backend 'signs': ValueError: no such luck")  # the two before it cancel
        expect(backend.runs, 2)
        end(context, graph, executable, call, lent=[backend])
        expect(backend.programs, {})
    passed("brings a backend: a miss, then a hit that compiles nothing; what it raises ends that run alone")


def cancels_from_an_event():
    phases = []
    listener = Listener(lambda text: phases.append(text) or len(phases) == 3)
    context, graph, _ = open_session("cancel", listener=listener)
    fails(CANCELLED, context.compile, graph)
    expect(len(phases), 3)
    executable, _ = context.compile(graph)
    passed("an event cancels a compile, and the next one works")
    end(context, graph, executable, lent=[listener])


def outlives_its_context():
    own = Pass("drop_double_negation", drop_double_negation, UUID)
    context, graph, _ = open_session("order", own)
    executable, _ = context.compile(graph)
    first, second = call_of(executable), Call(executable)
    executable.destroy()
    context.close()
    expect((own.destroyed, context.report().i64("handles.live")), (1, 3))
    second.destroy()
    context.destroy()
    run_rows(first, 6)
    expect(graph.text("text").count("= neg("), 2)
    first.destroy()
    graph.destroy()
    expect((own.destroyed, held), (1, {}))
    passed("frees everything in any order: no handle lives, each destroy ran once")


for check in (parses_and_loads, compiles_and_runs, reads_and_writes_every_type, caches_with_identity,
              bypasses_without_identity, survives_an_exception, calls_a_function, brings_an_op, brings_a_backend,
              cancels_from_an_event, outlives_its_context):
    check()
