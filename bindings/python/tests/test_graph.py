"""Graphs: what is built, how it is told, and what is refused."""

import html
import inspect
import pickle

import kiln
import numpy as np
import pytest
from building import compiled

pytestmark = pytest.mark.fast


def test_a_value_knows_its_dtype_and_its_symbolic_shape(graph):
    x = graph.input("x", "f32", ["n", 4])
    y = kiln.ops.concat(x, x, dim=0)
    assert y.dtype is kiln.f32 and y.dtype == "f32" and y.dtype == "float32"
    assert y.shape == (kiln.Dim("n + n"), 4) and str(y.shape[0]) == "2*n"
    assert y.shape[0].evaluate(n=5) == 10


def test_arithmetic_of_sizes_is_brought_to_one_form():
    n = kiln.Dim("n")
    assert n + n == 2 * n and n - n == 0 and hash(n + 1) == hash(1 + n)
    assert (n * 2 + 4) // 2 == n + 2
    assert str(kiln.dim_max(n, 4)) in ("max(n, 4)", "max(4, n)")
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(n)
    assert pickle.loads(pickle.dumps(n + 1)) == n + 1


@pytest.mark.parametrize("text, build, expected", [
    ("+", lambda a, b: a + b, lambda a, b: a + b), ("-", lambda a, b: a - b, lambda a, b: a - b),
    ("*", lambda a, b: a * b, lambda a, b: a * b), ("/", lambda a, b: a / b, lambda a, b: a / b),
    ("//", lambda a, b: a // b, lambda a, b: a // b), ("%", lambda a, b: a % b, lambda a, b: a % b),
    ("**", lambda a, b: a ** b, lambda a, b: a ** b), ("-x", lambda a, b: -a, lambda a, b: -a),
    ("abs", lambda a, b: abs(-a), lambda a, b: abs(-a)), ("reflected", lambda a, b: 2.0 - a, lambda a, b: 2.0 - a),
    ("<", lambda a, b: a < b, lambda a, b: a < b), ("==", lambda a, b: a == b, lambda a, b: a == b),
    ("~", lambda a, b: ~(a < b), lambda a, b: ~(a < b)),
    ("& |", lambda a, b: (a < b) & (a > 1.5) | (a == b), lambda a, b: (a < b) & (a > 1.5) | (a == b)),
    ("array", lambda a, b: a + np.ones(3, np.float32), lambda a, b: a + 1),
    ("array first", lambda a, b: np.ones(3, np.float32) + a, lambda a, b: a + 1)])
def test_operators_compute_what_numpy_does(text, build, expected):
    a, b = np.array([1, 2, 3], np.float32), np.array([3, 2, 1.5], np.float32)
    result = compiled(build, ("f32", [3]), ("f32", ["n"]))(a, b)
    np.testing.assert_allclose(result, expected(a, b), rtol=1e-6)


@pytest.mark.parametrize("key", [
    np.s_[0], np.s_[-1], np.s_[1:3], np.s_[:, 1], np.s_[..., -1], np.s_[None], np.s_[:, None, ::2], np.s_[::-1, 1:],
    np.s_[5:], np.s_[3:1], np.s_[-2:, ..., 0], np.s_[2:0:-1]])
def test_indexing_computes_what_numpy_does(key):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(compiled(lambda v: v[key] + 0.0, ("f32", [3, 4]))(x), x[key])


def test_indexing_beyond_a_size_is_refused(graph):
    x = graph.input("x", "f32", [3])
    with pytest.raises(IndexError, match="index 3 of dim 0, whose size is 3"):
        x[3]
    with pytest.raises(IndexError, match="2 indices"):
        x[0, 0]


def test_dtypes_never_mix_silently(graph):
    x, y = graph.input("x", "f32", [2]), graph.input("y", "f64", [2])
    with pytest.raises(kiln.TypeMismatch, match="add"):
        x + y
    assert (x + kiln.ops.convert(y, "f32")).dtype == "f32"
    with pytest.raises(TypeError, match="i32 does not hold"):
        graph.input("i", "i32", []) + 0.5


def test_a_number_takes_the_dtype_of_the_operands_that_share_one(graph):
    c, x = graph.input("c", "bool", [3]), graph.input("x", "i32", [3])
    assert kiln.ops.where(c, x, 0).dtype == "i32" and kiln.ops.where(c, 0, x).dtype == "i32"


def test_ops_are_functions_with_signature_and_doc():
    signature = inspect.signature(kiln.ops.softmax)
    assert list(signature.parameters) == ["x", "dim", "name"] and signature.parameters["dim"].default == -1
    assert "the dim whose elements add up to 1" in kiln.ops.softmax.__doc__
    assert kiln.ops.and_.__name__ == "and_"
    with pytest.raises(AttributeError, match="no op is named 'softmex'.*softmax|softmex"):
        kiln.ops.softmex
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        kiln.ops.softmax(None, axis=0)


def test_every_op_is_a_function_of_its_name(context):
    assert len(context.op_names) > 250
    for name in dir(kiln.ops):
        assert callable(getattr(kiln.ops, name)), name


def test_ops_without_operands_belong_to_the_graph_being_built(graph):
    with pytest.raises(RuntimeError, match=r"\[iota\] no operand is a value"):
        kiln.ops.iota([3])
    with graph:
        graph.output(kiln.ops.iota([3]))
    np.testing.assert_array_equal(kiln.compile(graph)(), [0, 1, 2])


def test_values_of_another_graph_are_refused(graph):
    x, y = graph.input("x", "f32", [2]), kiln.Graph().input("y", "f32", [2])
    with pytest.raises(ValueError, match=r"\[add\] operand 1 is a value of another graph"):
        x + y


def test_a_value_has_no_truth(graph):
    with pytest.raises(TypeError, match="neither true nor false"):
        if graph.input("x", "f32", []) > 0:
            pass


def test_several_results_are_a_tuple():
    first, second = compiled(lambda x: kiln.ops.split(x, sizes=[1, 2]), ("f32", [3]))(np.float32([1, 2, 3]))
    assert first.tolist() == [1] and second.tolist() == [2, 3]


def test_parameters_symbols_and_names_are_described(graph):
    n = graph.symbol("n", min=1, max=64, divisor=2, hint=8)
    x, w = graph.input("x", "f32", [n, 3]), graph.parameter("w", "f32", [3, 2])
    graph.output(kiln.ops.matmul(x, w, name="product"), "y")
    described = graph.describe()
    assert described["symbols"] == {"n": {"min": 1, "max": 64, "divisor": 2, "hint": 8}}
    assert [value.name for value in graph.inputs + graph.parameters] == ["x", "w"]
    assert graph.output_names == ("y",) and graph.node("product").op == "matmul"
    assert [node.kind for node in graph.nodes] == ["input", "parameter", "op"]


def test_scopes_annotate_what_is_added_inside(graph):
    x = graph.input("x", "f32", [4])
    with graph, kiln.region("outer"), graph.scope({"debug.line": 7}):
        a = kiln.ops.exp(x)
        with kiln.scope({"kiln.region": "inner"}):
            b = kiln.ops.sin(a)
    c = kiln.ops.cos(b)
    assert a.node.annotations == {"debug.line": 7, "kiln.region": "outer"}
    assert b.node.annotations["kiln.region"] == "inner" and c.node.annotations == {}
    c.annotate({"kiln.cut": True})
    assert c.node.annotations == {"kiln.cut": True}
    c.annotate({"kiln.cut": None})
    assert c.node.annotations == {}
    with pytest.raises(kiln.UnknownName):
        c.annotate({"kiln.nothing": 1})


def test_a_nested_graph_is_an_attribute():
    body = kiln.Graph()
    i, x = body.input("i", "i64", []), body.input("x", "f32", ["n"])
    body.output(i + 1)
    body.output(x * 2.0)
    more = kiln.Graph()
    i, x = more.input("i", "i64", []), more.input("x", "f32", ["n"])
    more.output(i < 5)
    program = compiled(lambda n, x: kiln.ops.while_(n, x, cond_graph=more, body_graph=body),
                       ("i64", []), ("f32", ["n"]))
    count, result = program(2, np.float32([1, 3]))
    assert count == 5 and result.tolist() == [8, 24]


def test_json_and_pickle_read_back_to_an_equal_graph(graph):
    graph.output(kiln.ops.softmax(graph.input("x", "bf16", ["n", 3]) * 0.5), "p")
    for copy in (kiln.Graph.from_json(graph.to_json()), pickle.loads(pickle.dumps(graph))):
        assert copy.to_json() == graph.to_json()
        assert kiln.compile(copy).report["key"] == kiln.compile(graph).report["key"]
    with pytest.raises(ValueError, match=r"nodes\[0\].op"):
        kiln.Graph.from_json('{"kiln": 1, "nodes": [{"name": "a", "op": "nothing"}]}')


def test_a_graph_that_was_compiled_can_grow(graph):
    x = graph.input("x", "f32", [2])
    graph.output(x + 1.0, "a")
    first = kiln.compile(graph)
    graph.output(x * 2.0, "b")
    second = kiln.compile(graph)
    assert first(np.float32([1, 2])).tolist() == [2, 3]
    assert [r.tolist() for r in second(np.float32([1, 2]))] == [[2, 3], [2, 4]]


def test_a_notebook_shows_the_lines_of_a_graph(graph):
    graph.output(graph.input("x", "f32", [2]) < 1.0)
    assert graph._repr_html_().startswith("<pre>input x: f32[2]") and "lt(x" in graph._repr_html_()


def test_constants_keep_their_elements(graph):
    c = graph.constant(np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::-1], name="c")
    assert c.node.constant.tolist() == [[2, 1, 0], [5, 4, 3]] and c.dtype == "i32"
    assert graph.constant(3, "bf16").dtype is kiln.bf16


def test_extract_gives_a_part_as_a_graph(graph):
    x = graph.input("x", "f32", [2])
    with graph.scope({"kiln.stage": "head"}):
        y = kiln.ops.exp(x)
    graph.output(kiln.ops.sin(y))
    part, told = graph.extract("kiln.stage", "head")
    assert [node.op for node in part.nodes if node.op] == ["exp"] and told["inputs"][0]["from"] == "x"


def test_an_op_is_described_with_samples_and_without(context):
    whole, schema = context.describe_op("add"), context.describe_op("add", samples=False)
    assert whole.pop("samples") and whole == schema


def test_an_input_takes_the_name_that_a_node_was_given_for_want_of_one(graph):
    x = graph.input("x", "f32", [2])
    y = x + x
    assert y.name == "add"
    graph.output(y * graph.input("add", "f32", [2]), "r")
    assert y.name == "add_1" and [value.name for value in graph.inputs] == ["x", "add"]
    given = {"x": np.float32([1, 2]), "add": np.float32([3, 4])}
    assert kiln.compile(graph)(**given).tolist() == [6, 16]
    with pytest.raises(kiln.InvalidArgument, match="name 'add' is taken already"):
        graph.input("add", "f32", [2])


def test_a_graph_that_cannot_be_finished_is_printed_with_the_reason(graph):
    graph.symbol("q")
    graph.input("x", "f32", [3]) + 1.0
    why = "not finished: invariant 'symbols' broken by symbol 'q': no input has it as a dimension, so nothing binds it\n"
    text = graph.to_text()
    assert text.startswith(f"# {why}symbol q\ninput x: f32[3]\n") and "add(x" in text and str(graph) == text
    assert graph._repr_html_() == f"<pre>{html.escape(text)}</pre>"
    assert graph.to_dot().startswith(f"// {why}digraph kiln {{")
    with pytest.raises(kiln.Invariant, match="'symbols'"):
        graph.to_json()
    graph.input("y", "f32", ["q"])
    assert graph.to_text() == "symbol q\ninput x: f32[3]\ninput y: f32[q]\n"
