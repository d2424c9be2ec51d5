"""Passes, ops and functions of Python's: what they do, when they run, and what is cached of it."""

import gc
import weakref

import kiln
import numpy as np
import pytest
from building import compiled

pytestmark = pytest.mark.fast
UUID = "5ab0a1f2-3a3c-4f6a-9d0a-2f6f3f0b8a11"


def sine_for_exp(runs, **settings):
    @kiln.graph_pass("sine", **settings)
    def run(graph, call):
        runs.append(call)
        found = [node for node in graph.nodes if node.op == "exp"]
        for node in found:
            graph.replace(node.outputs[0], kiln.ops.sin(node.inputs[0]))
        call.note(f"{len(found)} found")
        return len(found)
    return run


def exp():
    return compiled(lambda x: kiln.ops.exp(x), ("f32", ["n"]))


def test_a_pass_rewrites_until_it_is_taken_away(context):
    remove = context.add(sine_for_exp([], uuid=UUID))
    x, program = np.float32([0, 1]), exp()
    np.testing.assert_allclose(program(x), np.sin(x), rtol=1e-6)
    assert program.report["passes_run"]["sine"] == 1
    assert [p["notes"] for p in program.report["passes"] if p["name"] == "sine"] == [["1 found"]]
    remove()
    np.testing.assert_allclose(exp()(x), np.exp(x), rtol=1e-6)


def test_a_pass_with_identity_runs_once_for_a_graph_and_again_for_another_version(cache):
    runs = []
    for version in ("1", "1", "2"):
        with kiln.Context(cache=str(cache)) as context:
            kiln.set_default_context(context)
            context.add(sine_for_exp(runs, uuid=UUID, version=version))
            program = exp()
            assert program(np.float32([0]))[0] == 0
            if version == "1" and len(runs) == 1:
                last = program.report["lookup"]
    assert len(runs) == 2 and last in ("MISS", "HIT") and program.report["lookup"] == "MISS"


def test_what_a_fingerprint_reads_is_in_the_key(cache):
    runs, read, lookups = [], b"a", []
    for read in (b"a", b"a", b"b"):
        with kiln.Context(cache=str(cache)) as context:
            kiln.set_default_context(context)
            context.add(sine_for_exp(runs, uuid=UUID, fingerprint=lambda: read))
            lookups.append(exp().report["lookup"])
    assert lookups == ["MISS", "HIT", "MISS"] and len(runs) == 2


def test_what_a_pass_asks_has_a_variant_for_each_answer(cache):
    asked, lookups = [], []

    def run(graph, call):
        asked.append((call.query("host.rank"), call.query("host.nobody")))
        return 0

    for rank in (1, 2, 1, 2):
        with kiln.Context(cache=str(cache)) as context:
            kiln.set_default_context(context)
            context.set_fact("host.rank", rank)
            context.add(kiln.graph_pass("asks", uuid=UUID)(run))
            program = exp()
            lookups.append(program.report["lookup"])
            assert {"question": "host.rank", "answer": str(rank)} in program.report["questions"]
    assert lookups == ["MISS", "MISS", "HIT", "HIT"] and asked == [(1, None), (2, None)]
    with kiln.Context(cache="off") as context:
        with pytest.raises(kiln.Error, match="rank"):
            context.set_fact("rank", 1)
        context.set_fact("host.rank", 1)
        context.set_fact("host.rank", None)
        assert not context.report().get("facts")


def test_what_is_uncacheable_is_made_again_and_says_why(cache):
    runs = []

    @kiln.graph_pass("clock", uuid=UUID)
    def clock(graph, call):
        runs.append(call.query("device.kind"))
        call.uncacheable("it reads the clock")
        return 0

    for _ in range(2):
        with kiln.Context(cache=str(cache)) as context:
            kiln.set_default_context(context)
            context.add(clock)
            report = exp().report
            assert report["lookup"] == "MISS" and "it reads the clock" in report["warnings"][0]
    assert runs == ["cpu", "cpu"]


def test_a_pass_without_identity_bypasses_the_cache_with_its_name(context):
    context.add(sine_for_exp([]))
    report = exp().report
    assert report["lookup"] == "BYPASS" and "sine" in report["reason"]


def test_a_pass_that_raises_fails_the_compile_with_its_exception_as_cause(context):
    @kiln.graph_pass("unlucky")
    def unlucky(graph, call):
        raise LookupError("no luck")

    remove = context.add(unlucky)
    with pytest.raises(kiln.PluginFailed, match="unlucky.*LookupError: no luck") as caught:
        exp()
    assert isinstance(caught.value.__cause__, LookupError)
    remove()
    assert exp()(np.float32([0])).tolist() == [1]


@pytest.mark.parametrize(("raised", "failed_by"), [(LookupError("no luck"), "throw"), (kiln.Error("it does"), "error")])
def test_a_pass_that_raises_has_thrown_unless_it_is_an_error_of_kilns(context, raised, failed_by):
    @kiln.graph_pass("unlucky")
    def unlucky(graph, call):
        raise raised

    context.add(unlucky)
    with pytest.raises(kiln.PluginFailed) as caught:
        exp()
    assert [run["failed_by"] for run in caught.value.report["passes"] if run["name"] == "unlucky"] == [failed_by]
    counted = context.report()["passes_run"]
    assert (counted["threw"], counted["errors"]) == ((1, 0) if failed_by == "throw" else (0, 1))


def test_a_pass_that_breaks_the_graph_is_named(context):
    @kiln.graph_pass("retype")
    def retype(graph, call):
        node = next(node for node in graph.nodes if node.op == "exp")
        graph.replace(node.outputs[0], kiln.ops.convert(node.inputs[0], "f64"))
        return 1

    context.add(retype)
    with pytest.raises(kiln.Error, match="retype"):
        exp()


def test_a_passs_graph_is_refused_afterwards(context):
    kept = []

    @kiln.graph_pass("keeper")
    def keeper(graph, call):
        kept.extend([graph, call, graph.nodes[0]])
        return 0

    context.add(keeper)
    exp()
    graph, call, node = kept
    for use in (lambda: graph.input("z", "f32", []), lambda: call.note("late")):
        with pytest.raises(kiln.InvalidArgument):
            use()


def test_options_of_a_pass_have_defaults(context):
    told = []

    @kiln.graph_pass("optional", options={"scale": 2.5, "names": ["a", "b"], "deep": True})
    def optional(graph, call):
        told.extend([call.option("scale"), call.option("names"), call.option("deep")])
        return 0

    context.add(optional)
    exp()
    assert told == [2.5, ["a", "b"], True]


def test_a_pass_is_let_go_when_the_context_closes(cache):
    mine = sine_for_exp([], uuid=UUID)
    alive = weakref.ref(mine)
    with kiln.Context(cache=str(cache)) as context:
        context.add(mine)
    del mine
    gc.collect()
    assert alive() is None


SCALE = {"name": "test.scale", "args": [{"name": "x", "dtypes": ["f32", "f64"]}], "results": ["y"],
         "attrs": [{"name": "by", "kind": "f64", "default": 2.0}]}


def test_an_op_runs_as_a_function_of_arrays(context):
    @kiln.op(SCALE)
    def scale(x, y, *, by):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.multiply(x, by, out=y)

    context.add(scale)
    program = compiled(lambda x: scale(x + 1.0, by=3.0) * 2.0, ("f32", ["n"]))
    assert program(np.float32([1, 2])).tolist() == [12, 18]
    assert program.report["lookup"] == "BYPASS" and "test.scale" in program.report["reason"]
    assert kiln.compile(kiln.Graph.from_json(program.text("graph")))(np.float32([0])).tolist() == [6]


def test_an_op_with_identity_is_cached_and_found_by_name(context):
    @kiln.op(SCALE, uuid=UUID)
    def scale(x, y, *, by):
        np.multiply(x, by, out=y)

    context.add(scale)
    from kiln.ops import Ops
    build = lambda x: Ops(context)["test.scale"](x, by=4.0)
    assert [compiled(build, ("f32", ["n"])).report["lookup"] for _ in range(2)] == ["MISS", "HIT"]


def test_an_op_tells_its_types_and_is_decomposed(context):
    split = kiln.op({"name": "test.widen", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["wide", "sum"]},
                    uuid=UUID)(None)

    @split.infer
    def types(x):
        return kiln.Type(kiln.f64, x.shape), kiln.Type(kiln.f32, ())

    @split.decompose
    def parts(x):
        return kiln.ops.convert(x, "f64"), kiln.ops.sum(x, dims=[0])

    context.add(split)
    wide, total = compiled(lambda x: split(x), ("f32", ["n"]))(np.float32([1, 2]))
    assert wide.dtype == np.float64 and wide.tolist() == [1, 2] and total == 3


def test_an_op_that_raises_ends_the_run_and_names_the_node(context):
    @kiln.op(SCALE)
    def scale(x, y, *, by):
        raise LookupError("not today")

    context.add(scale)
    program = compiled(lambda x: scale(x, name="scaled"), ("f32", ["n"]))
    with pytest.raises(kiln.Error, match="not today") as caught:
        program(np.float32([1]))
    assert "scaled" in str(caught.value) and isinstance(caught.value.__cause__, LookupError)


def test_a_function_runs_marked_nodes_and_those_that_fall_back(context):
    calls = []

    @kiln.function("product", op="matmul", attrs=["transpose_b"], fallback=True, uuid=UUID)
    def product(a, b, y, *, transpose_b):
        calls.append(transpose_b)
        np.matmul(a, b.T if transpose_b else b, out=y)

    remove = context.add(product)
    a, b = np.float32([[1, 2]]), np.float32([[3], [4]])

    def marked(x, w):
        y = kiln.ops.matmul(x, w)
        y.annotate({"kiln.fallback.function": "product"})
        return y

    types = ("f32", ["n", 2]), ("f32", [2, 1])
    assert compiled(marked, *types)(a, b).tolist() == [[11]] and calls == [False]
    assert compiled(lambda x, w: x @ w, *types, mode="none")(a, b).tolist() == [[11]] and calls == [False] * 2
    assert compiled(lambda x, w: x @ w, *types)(a, b).tolist() == [[11]] and len(calls) == 2
    remove()
    with pytest.raises(kiln.Error, match="product"):
        compiled(marked, *types)
    with pytest.raises(ValueError, match=r"\[matmul\] attribute 'axis'"):
        context.add(kiln.function("other", op="matmul", attrs=["axis"])(lambda: None))


def test_a_plugin_that_is_none_is_refused(context, tmp_path):
    (tmp_path / "none.so").write_bytes(b"nothing")
    with pytest.raises(kiln.Incompatible):
        context.load_plugin(tmp_path / "none.so")
    with pytest.raises(OSError):
        kiln.inspect_plugin(tmp_path / "absent.so")


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_arrays_that_an_op_keeps_stay_as_they_were(context, backend):
    kept = []

    @kiln.op(SCALE)
    def scale(x, y, *, by):
        np.multiply(x, by, out=y)
        kept.extend([x, y, x[::2], memoryview(y)])

    context.add(scale)
    program = compiled(lambda x: scale(scale(x + 1.0, by=3.0), by=2.0) + 1.0, ("f32", ["n"]), backend=backend)
    for size in (100_000, 3, 200_000):  # whose memory is used again, or given back
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_allclose(program(x), (x + 1) * 6 + 1)
        del x
    del program
    gc.collect()
    for i, size in enumerate((100_000, 3, 200_000)):
        first, tripled, even, view = kept[8 * i:8 * i + 4]
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(first, x + 1)
        np.testing.assert_array_equal(tripled, (x + 1) * 3)
        np.testing.assert_array_equal(even, (x + 1)[::2])
        np.testing.assert_array_equal(np.asarray(view), (x + 1) * 3)


def test_arrays_in_the_frames_of_an_ops_exception_stay(context):
    @kiln.op(SCALE)
    def scale(x, y, *, by):
        raise LookupError("not today")

    context.add(scale)
    with pytest.raises(kiln.Error) as caught:
        compiled(lambda x: scale(x * 2.0), ("f32", ["n"]))(np.ones(100_000, np.float32))
    gc.collect()
    frame = caught.value.__cause__.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    assert np.all(frame.tb_frame.f_locals["x"] == 2) and frame.tb_frame.f_locals["y"].shape == (100_000,)


def test_arrays_that_a_function_keeps_stay_as_they_were(context):
    kept = []

    @kiln.function("product", op="matmul", fallback=True)
    def product(a, b, y):
        np.matmul(a, b, out=y)
        kept.append(a)

    context.add(product)
    program = compiled(lambda x: (x * 2.0) @ x, ("f32", [300, 300]), mode="none")
    x = np.ones((300, 300), np.float32)
    assert np.all(program(x) == 600)
    del program
    gc.collect()
    assert np.all(kept[0] == 2)
