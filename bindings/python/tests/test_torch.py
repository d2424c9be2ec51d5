"""torch's tensors, by its exchange functions; what has no memory to lend is refused by name."""

import kiln
import kiln.array_api
import numpy as np
import pytest
from building import compiled

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")


@pytest.fixture
def add():
    return compiled(lambda a, b: a + b, ("f32", ["n"]), ("f32", ["n"]))


def test_every_element_type_goes_in_and_comes_out():
    for dtype in kiln.dtypes:
        type_ = getattr(torch, dtype.long_name)
        x = torch.tensor([0, 1, 1]).to(type_)
        result = compiled(lambda v: kiln.ops.flip(v, dims=[0]), (dtype, ["n"]))(x)
        assert result.dtype == type_ and result.to(torch.float32).tolist() == [1, 1, 0] and kiln.dtype(type_) is dtype


def test_results_are_tensors_and_out_is_written(add):
    a, b = torch.randn(100), torch.randn(100)
    assert torch.equal(add(a, b), a + b)
    out = torch.empty(100)
    assert add(a, b, out=out) is out and torch.equal(out, a + b)
    assert isinstance(add(a, b, library="numpy"), np.ndarray) and isinstance(add(a.numpy(), b), np.ndarray)
    assert torch.equal(add(a.numpy(), b, library="torch"), a + b)


@pytest.mark.parametrize("view", [lambda x: x[::2, 0], lambda x: x[3], lambda x: x.t()[1], lambda x: x[:0, 0],
                                  lambda x: x[0, :1].expand(7)])
def test_strided_views_give_what_their_elements_are(add, view):
    a = view(torch.randn(8, 8))
    assert torch.equal(add(a, a), a + a)
    whole = torch.zeros(2 * len(a))
    add(a, a, out=whole[::2])
    assert torch.equal(whole[::2], a + a) and not whole[1::2].any()


def test_a_tensor_that_requires_grad_is_refused_in_grad_mode_alone(add):
    a, p = torch.ones(2), torch.nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError, match="'x1' is a Parameter: it requires grad"):
        add(a, p)
    with torch.no_grad():
        assert add(a, p).tolist() == [2, 2]
    assert add(a, p.detach()).tolist() == [2, 2]
    for _ in range(3):  # whatever the last call was told
        with torch.no_grad():
            assert add(p, p).tolist() == [2, 2]
        with pytest.raises(TypeError, match="'x1' is a Parameter: it requires grad"):
            add(a, p, out=torch.empty(2))


def test_a_tensor_with_a_tangent_is_refused_by_name(add):
    import torch.autograd.forward_ad as forward_ad
    a, t = torch.ones(2), torch.full((2,), 3.0)
    doubled = kiln.jit(lambda x: x * 2)
    for _ in range(2):
        assert add(a, a).tolist() == [2, 2]
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(a, t)
            for bad in (lambda: add(a, dual), lambda: add(a, a, out=dual), lambda: doubled(dual)):
                with pytest.raises(TypeError, match="it has a tangent of forward-mode differentiation, which would be lost"):
                    bad()
            assert add(a, forward_ad.unpack_dual(dual).primal).tolist() == [2, 2]
    for function in (doubled, lambda x: add(x, x)):
        with pytest.raises(TypeError, match="is a Tensor"):
            torch.func.jvp(function, (a,), (t,))


@pytest.fixture
def shift(graph):
    x, by = graph.input("x", "f32", ["n"]), graph.input("by", "f32", ["n"])
    kiln.ops.copy_(x, x + by)
    graph.output(by * 2.0, "twice")
    return kiln.compile(graph)


def test_tensors_that_a_run_writes_count_it_as_torch_does(add, shift):
    a, x, out = torch.ones(3), torch.zeros(3), torch.zeros(3)
    for runs in range(1, 5):
        assert add(a, a, out=out) is out and out._version == runs
        shift(x, a)
        assert x.tolist() == [runs] * 3 and (x._version, a._version) == (runs, 0)
    call = shift.bind(x=x, by=a, twice=out)
    for runs in range(5, 9):
        assert call() is out and (out._version, x._version, a._version) == (runs, runs, 0)
    call.start()
    call.wait()
    assert (out._version, x._version, a._version) == (9, 9, 0)
    view = torch.zeros(6)
    add(a, a, out=view[::2])
    assert view._version == 1 and view[::2].tolist() == [2, 2, 2]
    with torch.inference_mode():
        add(a, a, out=torch.zeros(3))  # which counts nothing


def test_a_gradient_of_what_a_run_wrote_over_is_refused(add, shift):
    w, a = torch.nn.Parameter(torch.ones(3)), torch.ones(3)
    for write in (lambda x: add(a, a, out=x), lambda x: shift(x, a)):
        saved = torch.ones(3)
        loss = (w * saved).sum()
        with torch.no_grad():
            write(saved)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_results_of_calls_alike_are_kept_apart(add):
    given = [(torch.full((n,), float(i)), torch.ones(n)) for n in (3, 3, 3, 3, 5, 5, 5, 5) for i in range(3)]
    results = [add(a, b) for a, b in given]
    assert len({x.data_ptr() for x in results}) == len(results)
    assert all(torch.equal(x, a + b) for x, (a, b) in zip(results, given))


def test_what_has_no_dense_memory_is_refused_by_name(add):
    from torch._subclasses.fake_tensor import FakeTensorMode
    a = torch.ones(2)
    with FakeTensorMode():
        fake = torch.ones(2)

    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise AssertionError

    wrapped = torch.Tensor._make_wrapper_subclass(Wrapper, (2,))
    for bad, why in ((a.to_sparse(), "layout torch.sparse_coo"), (torch.ones(2, device="meta"), "a meta tensor"),
                     (fake, "a fake tensor"), (wrapped, "a subclass of torch.Tensor that says itself"),
                     (torch.ones(2, dtype=torch.complex64), "x0")):
        with pytest.raises(TypeError, match=why):
            add(bad, a)
    assert add(a, a).tolist() == [2, 2]


def test_an_expanded_output_is_refused(add):
    one = torch.zeros(1)
    program = compiled(lambda x: x + 1.0, ("f32", ["n"]))
    with pytest.raises(kiln.TypeMismatch, match=r"'output0' is a Tensor: its shape \(5,\) and strides \(0,\), in elements, lead"):
        program(torch.arange(5.), out=one.expand(5))
    assert one.item() == 0
    program(torch.arange(1.), out=one.expand(1))
    assert one.item() == 1


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_tensor_is_refused_by_name(layout, add):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    why = r"' is a (Nested)?Tensor: a nested tensor, whose parts have sizes of their own; a dense one was expected"
    double = kiln.jit(lambda x: x * 2)
    for name, call in (("input0", lambda: double(nested)), ("input0", lambda: double.graph(nested)),
                       ("parameter0", lambda: kiln.jit(lambda x, w: x * w, parameters=["w"])(torch.ones(2), nested)),
                       ("an array from outside", lambda: kiln.jit(lambda x: kiln.array_api.add(x, nested))(torch.ones(2))),
                       ("x1", lambda: add(torch.ones(2), nested))):
        with pytest.raises(kiln.TypeMismatch, match="^'" + name + why):
            call()
    assert double(torch.ones(2)).tolist() == [2, 2]


def test_a_tensor_whose_elements_are_negated_when_read_is_refused_by_name(add):
    negated = torch.tensor([1 + 2j, 3 + 4j]).conj().imag
    assert negated.is_neg() and not torch.ones(2)[:1].is_neg()
    for bad in (negated, negated[:1], negated[1], negated[None]):
        plain = torch.ones(bad.shape)
        program = compiled(lambda a, b: a + b, *[("f32", list(bad.shape))] * 2)
        with pytest.raises(TypeError, match=r"'x1' is a Tensor: its elements are negated .* call .resolve_neg\(\)"):
            program(plain, bad)
        with pytest.raises(TypeError, match=r"call .resolve_neg\(\)"):
            kiln.jit(lambda x: x * 2)(bad)
        assert torch.equal(program(plain, bad.resolve_neg()), plain + bad)
        with pytest.raises(TypeError, match=r"call .resolve_neg\(\)"):
            program(plain, plain, out=bad)


def test_a_plain_subclass_is_a_tensor(add):
    class Plain(torch.Tensor):
        pass

    assert add(torch.ones(2).as_subclass(Plain), torch.ones(2)).tolist() == [2, 2]


def test_parameters_of_a_module_are_bound_in_place(graph):
    linear = torch.nn.Linear(3, 2)
    x, w, b = (graph.input("x", "f32", ["n", 3]), graph.parameter("w", "f32", [2, 3]), graph.parameter("b", "f32", [2]))
    graph.output(kiln.ops.linear(x, w, b))
    given = torch.randn(4, 3)
    with torch.no_grad():
        call = kiln.compile(graph).bind(w=linear.weight, b=linear.bias)
        torch.testing.assert_close(call(given), linear(given))


def test_the_default_context_has_as_many_threads_as_torch():
    before = torch.get_num_threads()
    kiln.set_default_context(None)
    try:
        torch.set_num_threads(3)
        assert kiln.default_context().report()["threads"] == 3
    finally:
        torch.set_num_threads(before)


def test_results_outlive_the_program_and_share_no_memory(add):
    a = torch.ones(1 << 18)
    results = [add(a, a) for _ in range(4)]
    results[0].zero_()
    del add
    assert all((result == 2).all() for result in results[1:])
