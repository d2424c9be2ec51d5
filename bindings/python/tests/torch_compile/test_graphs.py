"""What passes through the backend as it is in eager: views, writes, sizes, random numbers; and what it refuses."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed in this environment")

import kiln
import kiln.torch
from counted import count_calls
from kiln.torch import parts


def compiled(function, dynamic=None, **options):
    return torch.compile(function, backend=kiln.torch.backend, dynamic=dynamic, fullgraph=True, options=options or None)


def same(function, *inputs, dynamic=None, run=None):
    """Both give the same, with the same strides; inputs are written alike."""
    run = run or compiled(function, dynamic)
    mine, theirs = ([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2))
    torch.manual_seed(1)
    expected = function(*theirs)
    torch.manual_seed(1)
    got = run(*mine)
    torch.testing.assert_close(got, expected)
    for a, b in zip(*(each if isinstance(each, tuple) else (each,) for each in (got, expected)), strict=True):
        assert not isinstance(a, torch.Tensor) or a.stride() == b.stride()
    torch.testing.assert_close(mine, theirs)
    return got


def test_inputs_duplicates_and_sizes_pass_through():
    x = torch.randn(3, 4)
    got = same(lambda x, n: (x, x * n, x.shape[0] + n, None), x, 2)
    assert got[3] is None

    def twice(x):
        y = x + 1
        return y, y, x

    a, b, c = compiled(twice)(x)
    assert a is b and c is x


def test_views_share_memory_and_have_torchs_strides():
    def views(x):
        y = torch.sin(x)
        return y, y.t(), y[1:], x[:, ::2], x.t() + 1, y.expand(2, 3, 4), (x * 2).permute(1, 0)

    got = same(views, torch.randn(3, 4))
    assert got[0].data_ptr() == got[1].data_ptr() and got[2].data_ptr() == got[0][1:].data_ptr()


def test_views_whose_elements_share_memory():
    for view in (lambda x: x.as_strided((2, 3), (1, 2)), lambda x: x.unfold(0, 3, 2)):
        same(lambda x: view(torch.sin(x)), torch.randn(6))


def test_inputs_with_strides_are_read_where_they_lie():
    for x in (torch.randn(4, 3).t(), torch.randn(3, 8)[:, ::2], torch.randn(1, 4).expand(3, 4), torch.randn(3, 4)):
        same(lambda x: torch.exp(x) @ x.t(), x)


def test_inputs_are_written_in_place_and_their_versions_count():
    def step(x, y):
        x.mul_(2).add_(y)
        y[0] = x.sum()
        return x + y

    same(step, torch.randn(3), torch.randn(3))
    x = torch.zeros(3)
    version = x._version
    compiled(lambda x: x.add_(1))(x)
    assert x.tolist() == [1, 1, 1] and x._version > version


def test_what_kiln_lacks_stays_in_torch_and_is_told():
    def mixed(x):
        a = torch.sin(x) + 1
        return a.t(), torch.fft.fft(a).real.exp() + a, torch.special.i0(a) * a

    same(mixed, torch.randn(3, 4))
    (report,) = kiln.torch.reports()
    left = [each.op for each in report.left]
    assert report.parts == 2 and "aten._fft_r2c.default" in left and "aten.i0.default" in left
    assert "complex numbers, which Kiln has not" in str(report)
    with pytest.raises(Exception, match="strict, and . nodes stay in torch: .*_fft_r2c"):
        compiled(mixed, strict=True)(torch.randn(3, 4))


@pytest.mark.parametrize("function, reason", [
    (lambda x: x[x > 0].exp() * 2, "a mask as index, whose size is known when it runs"),
    (lambda x: torch.nonzero(x.sin()).sum(0), "the size of its result is known when it runs"),
    (lambda x: x + torch.ones(int(x[0].item()) + 2).sum(), "it makes a number of an element")])
def test_sizes_that_data_decide_stay_in_torch(function, reason):
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        run = compiled(function)
        for x in (torch.tensor([1.0, -2.0, 0.0, 4.0]), torch.tensor([3.0, 2.0, 5.0, 4.0])):
            same(function, x, run=run)
    assert reason in str(kiln.torch.reports()[0]) and len(kiln.torch.reports()) == 1


def test_a_mask_that_puts_one_number_is_kilns():
    def masked(x, y):
        x[x > 0] = 2
        y[y.sum(1) > 0] = x[0]
        return x + y

    same(masked, torch.randn(3, 4), torch.randn(3, 4))
    assert not kiln.torch.reports()[0].left


def test_random_numbers_are_eagers_bit_by_bit():
    def draws(x):
        return torch.nn.functional.dropout(torch.sin(x)) + torch.rand_like(x), torch.bernoulli(torch.full_like(x, 0.5))

    got = same(draws, torch.randn(50))
    assert len(set(got[0].tolist())) > 10


def test_sizes_add_no_guards_and_one_compile_serves_all():
    def sizes(x, w):
        n = x.shape[0]
        y = torch.cat([x[n // 2:], x[:n // 2]]).reshape(-1)
        return y * n, torch.arange(n) + 1, (x @ w).view(n, 2, -1).sum(0), y.view(n, -1).mean(), x.new_zeros(n, n + 1)

    run = compiled(sizes, dynamic=True)
    for n in (4, 6, 10):
        same(sizes, torch.randn(n, 3), torch.randn(3, 6), run=run)
    assert len(kiln.torch.reports()) == 1 and not kiln.torch.reports()[0].left


def guards_of(backend):
    torch._dynamo.reset()
    seen = []

    def spy(gm, inputs):
        made = backend(gm, inputs)
        shape_env = torch._guards.TracingContext.get().fake_mode.shape_env
        seen.append(sorted(str(guard.expr) for guard in shape_env.guards))
        return made

    def function(x, y):
        z = torch.nn.functional.layer_norm(x.flatten(1) @ y, (y.shape[1],))
        return z[1:].softmax(-1).reshape(-1), z.shape[0] * 2

    run = torch.compile(function, backend=spy, dynamic=True)
    run(torch.randn(5, 2, 3), torch.randn(6, 7))
    return seen


def test_guards_are_those_of_torchs_own_backend():
    assert guards_of(kiln.torch.backend) == guards_of(torch._dynamo.lookup_backend("aot_eager"))


def test_a_size_that_no_array_tells_comes_by_itself():
    run = compiled(lambda x, n: x * n + torch.arange(n).sum(), dynamic=True)
    for n in (3, 5):
        assert run(torch.ones(2), n).tolist() == [n + n * (n - 1) / 2] * 2
    assert len(kiln.torch.reports()) == 1 and not kiln.torch.reports()[0].left


def test_an_int_that_may_be_below_zero_is_no_size():
    run = compiled(lambda x, n: x * n, dynamic=True)
    for n in (3, -3):
        assert run(torch.ones(2), n).tolist() == [n, n]
    assert "may be below 0" in str(kiln.torch.reports()[0])


def test_a_size_is_no_attribute_that_is_a_number():
    def numbers(x):
        return torch.nn.functional.hardtanh(x, -1, x.shape[0]), torch.linalg.vector_norm(x, ord=x.shape[0])

    run = compiled(numbers, dynamic=True)
    for n in (3, 5):
        same(numbers, torch.full((n,), 4.5), run=run)
    assert "a size, where a number is expected" in str(kiln.torch.reports()[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_made_of_sizes_are_kilns(dtype):
    def numbers(x):
        n = x.shape[0]
        wide = torch.nn.functional.interpolate(x[None, None], size=(2 * n, n + 1), mode="bilinear")
        return x * (n / 3), x.clamp(max=n / 7), torch.full((2,), n / 5), x > n / 9, wide

    run = compiled(numbers, dynamic=True)
    for n in (3, 5, 8):
        same(numbers, torch.randn(n, n).to(dtype), run=run)
    assert len(kiln.torch.reports()) == 1 and not kiln.torch.reports()[0].left, kiln.torch.reports()[0]


def test_a_number_that_no_integer_is_is_torchs_error():
    with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
        compiled(lambda x: x + torch.full((2,), float("inf"), dtype=torch.int64))(torch.arange(2))


def test_attention_by_a_scale_of_zero_is_a_mean():
    q, k, v = torch.randn(3, 1, 2, 4, 8)
    got = same(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.0), q, k, v)
    torch.testing.assert_close(got, v.mean(2, keepdim=True).expand_as(v))


def test_options_are_checked_by_name_and_reach_kiln():
    x = torch.randn(3)
    for options, why in (({"bogus": 1}, "option 'bogus' is none of the backend's"),
                         ({"mode": "some"}, "'mode' is 'some'"), ({"strict": 1}, "a bool was expected")):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=why):
            compiled(lambda x: x + 1, **options)(x)
    torch._dynamo.reset()
    compiled(lambda x: (x + 1).exp().sin(), mode="none")(x)
    assert kiln.torch.reports()[-1].programs[0]["kernels_compiled"] > 1
    with pytest.raises(Exception, match="mode 'max-autotune'"):
        torch.compile(lambda x: x + 1, backend=kiln.torch.backend, mode="max-autotune")(x)


def written(x, n):
    x[-n:] = 0
    x[-n - 1].add_(1)
    return x * 2


SLICES = [
    lambda x, n: x[-n:] + 1, lambda x, n: x[:-n] + 1, lambda x, n: x[:, -n:] * 2, lambda x, n: x[-n:-1] * 2,
    lambda x, n: x[n:-n] * 2, lambda x, n: x[-2 * n:-n] * 2, lambda x, n: x[-n::2] * 2, lambda x, n: x[-n] * 2,
    lambda x, n: torch.cat([x[-n:], x[:-n]]), lambda x, n: x[-((n + 1) // 2):] * 2, written]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", SLICES)
def test_what_a_size_counts_from_the_end_lies_there(function, dynamic):
    run = compiled(function, dynamic)
    for n in (2, 3, 4):
        same(function, torch.randn(9, 4), n, run=run)
    assert not kiln.torch.reports()[-1].left, kiln.torch.reports()[-1]


@pytest.mark.parametrize("function", SLICES[:3])
def test_gradients_lie_where_a_size_counts_from_the_end(function):
    run = compiled(function, True)
    for n in (2, 3, 4):
        x = torch.randn(9, 4)
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        run(mine, n).sin().sum().backward()
        function(theirs, n).sin().sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("function", [
    lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 1),
    lambda x: x.flatten(1)[:0].relu() @ x.flatten(1)[:0].t(),
    lambda x: torch.nn.functional.scaled_dot_product_attention(x[:, :, :0], x[:, :, :0], x[:, :, :0])])
def test_strides_of_dims_of_one_element_or_none_are_torchs(function):
    same(function, torch.randn(2, 4, 9, 9).to(memory_format=torch.channels_last))


def test_other_dtypes_devices_and_layouts_stay_in_torch():
    same(lambda x: torch.view_as_real(x * x) + 1, torch.randn(3, dtype=torch.complex64))
    assert "complex64" in str(kiln.torch.reports()[-1])


def test_a_slice_that_begins_behind_its_end_is_empty_for_each_size():
    run = torch.compile(lambda x: (x[3:-2] * 2, x[-3:2] + 1), backend=kiln.torch.backend, dynamic=True)
    for size in (8, 5, 4, 3, 6):
        x = torch.arange(float(size))
        for made, expected in zip(run(x), (x[3:-2] * 2, x[-3:2] + 1)):
            torch.testing.assert_close(made, expected)


@pytest.mark.parametrize("function, is_direct", [
    (lambda x, y, z: (x + y * z, z - x), True), (lambda x, y, z: (z - y) * x, True), (lambda x, y, z: x.mul_(2) + y + z, True),
    (lambda x, y, z: (x + y + z)[1:], False), (lambda x, y, z: torch.special.i0(x - z) + y, False)])
def test_a_graph_that_is_one_call_runs_as_that_alone(function, is_direct, monkeypatch):
    made, compile_graph = [], kiln.torch.compiler.compile_graph
    monkeypatch.setattr(kiln.torch.compiler, "compile_graph", lambda *args: made.append(compile_graph(*args)) or made[-1])
    same(function, *(torch.randn(4) for _ in range(3)))
    given = [torch.randn(4) for _ in range(3)]
    expected = [x.clone() for x in given]
    result = made[-1](given)
    assert given == [] and ("_direct" in made[-1].__qualname__) == is_direct
    for each, theirs in zip(result, made[-1].module().forward(expected), strict=True):
        torch.testing.assert_close(each, theirs)


def test_what_is_negated_when_it_is_read_stays_in_torch():
    same(lambda x: x * 1.0 + 0, torch.tensor([1 + 2j, 3 + 4j]).conj().imag)


def node(graph, target, *args):
    made = graph.call_function(target, args)
    made.meta["val"] = torch.empty(2)
    return made


def test_nothing_moves_across_a_write():
    graph, aten = torch.fx.Graph(), torch.ops.aten
    x, y = graph.placeholder("x"), graph.placeholder("y")
    before = node(graph, aten.sin.default, x)
    write = node(graph, aten.copy_.default, x, y)
    after = node(graph, aten.sin.default, x)
    nodes = [before, write, after]
    turns = parts.plan(nodes, {before, after})
    assert turns[0].kiln == [before] and turns[0].torch == [write] and turns[1].kiln == [after]
    turns = parts.plan(nodes, {before, write, after})
    assert turns[0].kiln == [before, write] and turns[1].kiln == [after]
    turns = parts.plan(nodes, {write})
    assert turns[0].torch == [before] and turns[1].kiln == [write] and turns[1].torch == [after]


def test_copies_that_follow_each_other_are_of_one_part():
    graph, aten = torch.fx.Graph(), torch.ops.aten
    x, y, z = graph.placeholder("x"), graph.placeholder("y"), graph.placeholder("z")
    made = node(graph, aten.sin.default, x)
    nodes = [made, node(graph, aten.copy_.default, x, made), node(graph, aten.copy_.default, y, made)]
    assert [turn.kiln for turn in parts.plan(nodes, set(nodes))] == [nodes]
    later = node(graph, aten.sin.default, z)  # of what nobody writes, and yet behind, as in torch
    assert [turn.kiln for turn in parts.plan([*nodes, later], {*nodes, later})] == [nodes, [later]]


def test_what_comes_after_a_part_of_torch_may_still_be_of_an_earlier_part():
    graph, aten = torch.fx.Graph(), torch.ops.aten
    x = graph.placeholder("x")
    left = node(graph, aten.special_i0.default, x)
    one, two = node(graph, aten.sin.default, left), node(graph, aten.sin.default, x)
    turns = parts.plan([left, one, two], {one, two})
    assert [turn.kiln for turn in turns] == [[], [one, two]] and turns[0].torch == [left]


def test_random_numbers_keep_their_order_and_part_nothing():
    graph, aten = torch.fx.Graph(), torch.ops.aten
    x = graph.placeholder("x")
    one = node(graph, aten.sin.default, x)
    draw = node(graph, aten.bernoulli.default, one)
    two = node(graph, aten.sin.default, one)
    again = node(graph, aten.bernoulli.default, x)
    end = node(graph, aten.mul.Tensor, two, again)
    turns = parts.plan([one, draw, two, again, end], {one, two, end})
    assert [turn.kiln for turn in turns] == [[one, two], [end]] and turns[0].torch == [draw, again]


def test_planning_is_linear():
    def chain(length):
        graph, nodes, taken = torch.fx.Graph(), [], set()
        last = graph.placeholder("x")
        for i in range(length):
            last = node(graph, torch.ops.aten.special_i0.default if i % 10 == 9 else torch.ops.aten.sin.default, last)
            nodes.append(last)
            if i % 10 != 9:
                taken.add(last)
        return nodes, taken

    calls = {}
    for length in (1000, 4000):
        nodes, taken = chain(length)
        planned = []
        calls[length] = count_calls(lambda: planned.append(parts.plan(nodes, taken)))
        turns = planned[0]
        assert len(turns) == length // 10 and turns[0].torch == [nodes[9]]
    assert calls[4000] <= 4.2 * calls[1000]  # how long it takes is measured: parts_4000 of bench/python


def test_breaks_and_frames_that_run_as_python_are_told():
    def broken(x):
        y = torch.sin(x)
        torch._dynamo.graph_break()
        return y * 2

    torch._dynamo.utils.counters.clear()
    run = torch.compile(broken, backend=kiln.torch.backend)
    with torch._dynamo.config.patch(recompile_limit=1):
        for dtype in (torch.float32, torch.float64):
            run(torch.ones(3, dtype=dtype))
    told = kiln.torch.summary()
    assert "1 times: Call to `torch._dynamo.graph_break()`" in told and "recompile limit exceeded" in told, told


PROCESS = """
import torch, kiln.torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())
torch.compile(model, backend=kiln.torch.backend, dynamic=True)(torch.ones(3, 4)).sum().backward()
print(*(program["lookup"] for report in kiln.torch.reports() for program in report.programs))
"""


def test_the_next_process_is_served_by_kilns_cache(cache):
    got = [subprocess.run([sys.executable, "-c", PROCESS], env={**os.environ, "KILN_CACHE": str(cache)}, check=True,
                          capture_output=True, text=True).stdout.split() for _ in range(2)]
    assert got == [["MISS", "MISS"], ["HIT", "HIT"]]


@pytest.mark.parametrize("function", [
    lambda x: x * x[:, :1], lambda x: x - x[:1], lambda x: x * x[:, -1:], lambda x: x * x[:, 1:2], lambda x: x * x.narrow(1, 0, 1)],
    ids=["first column", "first row", "last column", "second column", "narrow"])
def test_a_slice_of_one_broadcasts_whatever_the_size(function):
    run = compiled(function, dynamic=True)
    for shape in ((3, 4), (3, 5), (6, 7)):
        mine = torch.randn(shape, requires_grad=True)
        theirs = mine.detach().clone().requires_grad_()
        got, expected = run(mine), function(theirs)
        torch.testing.assert_close(got, expected)
        for y in (got, expected):
            y.square().sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("ignored, target, weight", [
    (0, [0, 0, 0], None), (1, [1, 1, 1], None), (0, [0, 1, 2], None), (0, [0, 0, 0], [1.0, 2.0, 3.0, 4.0]),
    (-100, [1, 2, 3], [0.0] * 4)])
def test_gradients_of_a_loss_of_which_all_is_ignored_are_those_of_eager(ignored, target, weight):
    def loss(x):
        return torch.nn.functional.cross_entropy(x, torch.tensor(target), ignore_index=ignored,
                                                 weight=None if weight is None else torch.tensor(weight))
    x = torch.randn(3, 4, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    torch.compile(loss, backend=kiln.torch.backend)(x).backward()
    loss(y).backward()
    torch.testing.assert_close(x.grad, y.grad, equal_nan=True)
