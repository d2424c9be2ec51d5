"""Runs: results, bound calls, files, threads, forks, and that they can be ended."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import time

import interrupts
import kiln
import numpy as np
import pytest
from building import compiled

fast = pytest.mark.fast


@pytest.fixture
def add():
    return compiled(lambda a, b: a + b, ("f32", ["n"]), ("f32", ["n"]))


@fast
def test_one_compilation_serves_every_size(add, context):
    for size in (1, 5, 1000, 5, 0):
        a = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(add(a, a), a + a)
    assert context.report()["compiles"]["misses"] == 1


@fast
def test_sizes_that_differ_are_refused_and_the_next_run_is_right(add):
    with pytest.raises(TypeError, match="x1"):
        add(np.zeros(2, np.float32), np.zeros(3, np.float32))
    assert add(np.ones(2, np.float32), np.ones(2, np.float32)).tolist() == [2, 2]


@fast
def test_a_run_that_is_refused_is_not_taken_for_the_last_one():
    program = compiled(lambda x: x + 1.0, ("f32", ["n"]))
    small, large = np.zeros(3, np.float32), np.zeros(50_000, np.float32)
    for _ in range(4):
        assert program(small).tolist() == [1] * 3
    for bad in (np.zeros(3), large[:4], (large, large)):
        with pytest.raises(TypeError):
            program(large, out=bad)
        assert (program(large) == 1).all() and program(small).tolist() == [1] * 3
        with pytest.raises(ValueError):
            program(large, nothing=small)
        assert (program(large, out=large.copy()) == 1).all() and program(small, out=small.copy()).tolist() == [1] * 3


@fast
def test_results_are_kept_apart(add):
    a = np.ones(8, np.float32)
    results = [add(a, np.float32([i] * 8)) for i in range(50)]
    assert [result[0] for result in results] == [i + 1 for i in range(50)]
    large = [add(np.full(100_000, i, np.float32), np.zeros(100_000, np.float32)) for i in range(10)]
    assert [result[-1] for result in large] == list(range(10))


@fast
def test_out_is_written_and_given_back(add):
    a, out = np.ones(4, np.float32), np.empty(4, np.float32)
    assert add(a, a, out=out) is out and out.tolist() == [2] * 4
    for bad, message in ((np.empty(3, np.float32), "output0"), (np.empty(4), "output0"),
                         ((out, out), "out has 2 arrays")):
        with pytest.raises(TypeError, match=message):
            add(a, a, out=bad)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="'output0' is written, but its array is read-only"):
        add(a, a, out=out)


@fast
def test_parameters_are_bound_once_or_given_by_name(graph):
    x, w = graph.input("x", "f32", ["n", 2]), graph.parameter("w", "f32", [2, 2])
    graph.output(x @ w)
    program, eye, x = kiln.compile(graph), np.eye(2, dtype=np.float32), np.float32([[1, 2]])
    with pytest.raises(ValueError, match="parameter 'w' is not bound"):
        program(x)
    call = program.bind(w=eye * 2)
    assert call(x).tolist() == [[2, 4]] and program(x, w=eye * 3).tolist() == [[3, 6]]
    with pytest.raises(ValueError, match="parameter 'w' is not bound"):
        program(x)
    call.bind({"w": np.asfortranarray(np.float32([[0, 1], [2, 0]]))})
    assert call(x).tolist() == [[4, 1]] and call.clone()(x).tolist() == [[4, 1]]
    with pytest.raises(ValueError, match="no input, parameter or output 'v'"):
        call.bind(v=eye)


@fast
def test_a_bound_call_reads_and_writes_where_its_arrays_lie(add):
    a, b, out = np.ones(4, np.float32), np.ones(4, np.float32), np.empty(4, np.float32)
    call = add.bind(x0=a, x1=b, output0=out)
    assert call() is out and out.tolist() == [2] * 4
    a += 1
    assert call()[0] == 3
    call.bind(x0=None)
    assert call(np.full(4, 7, np.float32))[0] == 8


@fast
def test_a_run_in_flight_is_waited_for(add):
    call, a = add.bind(), np.ones(100_000, np.float32)
    with pytest.raises(kiln.Error, match="stream"):
        call.start(a, a, stream=7)
    call.start(a, a)
    with pytest.raises(kiln.Busy, match="in flight"):
        call(a, a)
    assert (call.wait() == 2).all() and call.done() and (call(a, a) == 2).all()
    with pytest.raises(ValueError, match="no run of this call is in flight"):
        call.wait()


@fast
def test_a_call_that_is_dropped_in_flight_lets_its_arrays_go_after_the_run(add):
    for size in (1 << 20, 7, 1 << 18):
        call = add.bind()
        call.start(np.ones(size, np.float32), np.ones(size, np.float32)[::-1])
        del call
    call = add.bind()
    for size in (3, 5, 3):  # sizes of a run in flight are not taken for those of the next
        call.start(np.ones(size, np.float32), np.ones(size, np.float32))
        assert call.wait().tolist() == [2] * size and call(*[np.ones(size, np.float32)] * 2).tolist() == [2] * size


@fast
def test_files_bytes_and_pickles_hold_the_program(add, tmp_path, context):
    a = np.float32([1, 2])
    add.save(tmp_path / "add.kiln")
    add.save(tmp_path / "folder", packed=False)
    for copy in (kiln.load(tmp_path / "add.kiln"), kiln.load(tmp_path / "folder"), kiln.load(add.to_bytes()),
                 pickle.loads(pickle.dumps(add)), kiln.load(tmp_path / "add.kiln", expect_key=add.report["key"])):
        assert copy(a, a).tolist() == [2, 4] and copy.report is None and copy.input_names == ("x0", "x1")
    with pytest.raises(kiln.Incompatible):
        kiln.load(tmp_path / "add.kiln", expect_key="0" * 64)
    assert context.report()["compiles"]["misses"] == 1


@fast
def test_a_call_is_saved_with_its_parameters(context, tmp_path):
    graph = kiln.Graph(context)
    x, w, b = graph.input("x", "f32", ["n", 64]), graph.parameter("w", "f32", [64, 64]), graph.parameter("b", "f32", [64])
    graph.output(graph.add("linear", x, w, b), "y")
    weights = {"w": np.eye(64, dtype=np.float32) * 2, "b": np.full(64, 3, np.float32)}
    ones = np.ones((4, 64), np.float32)
    call = context.compile(graph).bind(weights)
    call.save(tmp_path / "linear.kiln")
    opened = kiln.load(tmp_path / "linear.kiln")
    assert opened(ones).tolist() == call(ones).tolist() == np.full((4, 64), 5).tolist()
    again = opened.bind()
    assert again(ones).tolist() == call(ones).tolist()
    assert again.report()["prepare_steps"] == 0 and again.report()["weights"]["parameters"] == ["w", "b"]
    # One that is given is the caller's, for that run.
    assert opened(ones, b=np.zeros(64, np.float32))[0, 0] == 2 and opened(ones)[0, 0] == 5
    with pytest.raises(kiln.InvalidArgument, match="kiln_call_save writes a file that has them"):
        pickle.dumps(opened)
    with pytest.raises(kiln.InvalidArgument, match="open the file that it is in by its path"):
        kiln.load((tmp_path / "linear.kiln").read_bytes())


@fast
def test_describe_and_listings_are_dicts_and_texts(add):
    assert add.describe()["inputs"] == [{"name": "x0", "dtype": "f32", "shape": ["n"]},
                                        {"name": "x1", "dtype": "f32", "shape": ["n"]}]
    assert "kernel" in add.text("plan") and add.report["lookup"] == "MISS"


@fast
def test_a_page_that_shows_the_compile_is_written_by_an_option(tmp_path):
    page = tmp_path / "page.html"
    program = compiled(lambda x: kiln.ops.exp(x), ("f32", ["n"]), report_html=str(page))
    assert program.report["reason"] == "report_html"
    text = page.read_text()
    assert text.startswith("<!doctype html>") and '"lookup":{"report":{"lookup":"MISS"' in text


def test_an_input_that_is_written_must_be_writable_and_is_written_in_place(graph):
    cache, x = graph.input("cache", "f32", [4]), graph.input("x", "f32", [4])
    graph.output(kiln.ops.copy_(cache, cache * 0.5 + x), "cache", view=True)
    program, state, x = kiln.compile(graph), np.ones(4, np.float32), np.ones(4, np.float32)
    result = program(state, x)
    assert state.tolist() == [1.5] * 4 and np.shares_memory(result, state)
    state.flags.writeable = False
    with pytest.raises(ValueError, match="'cache' is written"):
        program(state, x)
    with pytest.raises(ValueError, match="'cache' is written or viewed where it lies"):
        program(np.ones(8, np.float32)[::2], x)
    x.flags.writeable = False
    assert program(np.zeros(4, np.float32), x).tolist() == [1] * 4


@fast
def test_an_output_that_is_a_view_shares_its_inputs_memory_and_keeps_it_alive(graph):
    x = graph.input("x", "f32", [4, 3])
    graph.output(x[1:, 0], "column", view=True)
    program, array = kiln.compile(graph), np.arange(12, dtype=np.float32).reshape(4, 3)
    column = program(array)
    assert column.tolist() == [3, 6, 9] and np.shares_memory(column, array) and column.strides == (12,)
    array[1, 0] = 7
    del array
    gc.collect()
    assert column.tolist() == [7, 6, 9]
    with pytest.raises(ValueError, match="'x' is written or viewed where it lies"):
        program(np.zeros((3, 4), np.float32).T)


@fast
def test_the_cache_serves_another_context(cache, graph):
    graph.output(kiln.ops.tanh(graph.input("x", "f32", ["n"])))
    text = graph.to_json()
    counts = []
    for _ in range(2):
        with kiln.Context(cache=str(cache)) as context:
            program = context.compile(kiln.Graph.from_json(text, context))
            np.testing.assert_allclose(program(np.float32([1])), np.tanh(np.float32([1])), rtol=1e-6)
            counts.append((program.report["lookup"], program.report["kernels_compiled"]))
    assert counts == [("MISS", 1), ("HIT", 0)]
    with kiln.Context(cache=str(cache)) as context:
        assert context.cache("stats")["entries"] > 0 and context.cache("verify")["problems"] == []
        assert context.cache("clear")["removed"] > 0 and context.cache("ls")["entries"] == []


@fast
def test_entries_for_some_sizes_run_where_they_fit():
    program = compiled(lambda x: kiln.ops.softmax(x), ("f32", ["n", "m"]), specialize=["m=8,n=2"])
    assert [entry["name"] for entry in program.describe()["entries"]] == ["general", "m=8,n=2"]
    call = program.bind()
    call(np.zeros((2, 8), np.float32))
    assert call.report()["entry"] == "m=8,n=2"
    call(np.zeros((3, 8), np.float32))
    assert call.report()["entry"] == "general"


@fast
def test_times_tell_what_each_step_took(add):
    a = np.ones(1000, np.float32)
    (step,) = add.bind().times(a, a)
    assert step["runs"] == 1 and step["ns"] > 0 and "kernel" in step["what"]


@fast
def test_tensors_are_views_of_a_file_and_parameters_may_lie_there(tmp_path, graph):
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    kiln.save_tensors(tmp_path / "w.safetensors", {"w": w, "t": w.T, "i": np.array([1, 2])})
    read = kiln.open_tensors(tmp_path / "w.safetensors")
    assert read["w"].tolist() == w.tolist() and read["t"].tolist() == w.T.tolist() and read["i"].dtype == "int64"
    assert not read["w"].flags.writeable and not read["w"].flags.owndata
    graph.output(graph.input("x", "f32", ["n", 2]) @ graph.parameter("w", "f32", [2, 3]))
    call = kiln.compile(graph).bind(w=read["w"])
    del read
    assert call(np.float32([[1, 0]])).tolist() == [[0, 1, 2]]
    with pytest.raises(OSError):
        kiln.open_tensors(tmp_path / "nothing.npy")


@fast
def test_threads_run_one_executable_at_once(add):
    wrong = []

    def work(number):
        a = np.full(200_000, number, np.float32)
        for _ in range(20):
            if not (add(a, a) == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@fast
def test_other_threads_of_python_go_on_during_a_long_run():
    program = compiled(lambda x: kiln.ops.matmul(x, x), ("f32", ["n", "n"]))
    x = np.ones((1500, 1500), np.float32)
    program(x)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    for _ in range(3):
        program(x)
    end = time.perf_counter()
    stop.set()
    thread.join()
    during = [t for t in ticks if begin <= t <= end]
    assert end - begin < 0.01 or len(during) > 2


@fast
def test_a_fork_goes_on_with_its_handles(add):
    a = np.ones(4, np.float32)
    add(a, a)
    child = os.fork()
    if child == 0:
        ok = add(a, a).tolist() == [2] * 4 and compiled(lambda x: x * 3.0, ("f32", [4]))(a)[0] == 3
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0 and add(a, a).tolist() == [2] * 4


PRELUDE = """
import kiln
kiln.set_default_context(kiln.Context(cache="off"))
def compiled(build, *types):
    g = kiln.Graph()
    r = build(*(g.input(f"x{i}", d, s) for i, (d, s) in enumerate(types)))
    for v in r if isinstance(r, tuple) else (r,): g.output(v)
    return g
add = kiln.compile(compiled(lambda a, b: a + b, ("f32", ["n"]), ("f32", ["n"])))
"""
AFTER = """
import numpy as np
assert add(np.float32([1]), np.float32([1])).tolist() == [2]
"""


def interrupted(code):
    return interrupts.ends(PRELUDE, code, AFTER)


@fast
def test_ctrl_c_ends_a_loop_that_does_not_end():
    assert interrupted("""
body, more = kiln.Graph(), kiln.Graph()
body.output(body.input("x", "f32", []) * 1.0)
more.output(more.input("x", "f32", []) < 5.0)
loop = kiln.compile(compiled(lambda x: kiln.ops.while_(x, cond_graph=more, body_graph=body), ("f32", [])))
ended(lambda: loop(1.0))""")


def test_ctrl_c_ends_a_long_compile():
    assert interrupted("""
def many(x):
    for i in range(3000):
        x = kiln.ops.softmax(kiln.ops.sin(x) @ x + float(i))
    return x
g = compiled(many, ("f32", [64, 64]))
ended(lambda: [kiln.compile(g, fuse=False) for _ in range(100)])""")


def test_ctrl_c_ends_a_long_run():
    assert interrupted("""
import numpy as np
def many(x):
    for i in range(400):
        x = kiln.ops.sin(x @ x)
    return x
program = kiln.compile(compiled(many, ("f32", [700, 700])))
x = np.zeros((700, 700), np.float32)
ended(lambda: [program(x) for _ in range(1000)])""")


def test_ctrl_c_ends_a_run_of_one_long_kernel():
    assert interrupted("""
import numpy as np
program = kiln.compile(compiled(lambda x: x @ x, ("f32", [6000, 6000])))
assert program.describe()["kernels"] == 1
x = np.zeros((6000, 6000), np.float32)
ended(lambda: [program(x) for _ in range(20)])""")


LONG = '''
import numpy as np
n = 30_000_000
x = np.random.default_rng(0).integers(0, n, n, np.int64)
def program_of(op):
    return kiln.compile(compiled(op, ("i64", ["n"])))
'''


@pytest.mark.parametrize("op", ["sort(x, dim=0)[0]", "unique(x)[0]", "argsort(x, dim=0)"])
def test_ctrl_c_ends_a_run_of_one_long_step_that_nothing_looks_into(op):
    assert interrupted(LONG + f"""
program = program_of(lambda x: kiln.ops.{op})
ended(lambda: program(x))
assert program(x[:1000]).tolist()[0] >= 0  # while the run that was left may go on
assert add(np.float32([1]), np.float32([1])).tolist() == [2]""")


def test_ctrl_c_ends_the_wait_for_a_run_in_flight_and_the_call_can_be_used_again():
    assert interrupted(LONG + """
call = program_of(lambda x: kiln.ops.sort(x, dim=0)[0]).bind()
call.start(x)
ended(call.wait)
try:
    call.wait()
    raise SystemExit("nothing to wait for was expected")
except ValueError:
    pass
few = x[:1000].copy()
assert call(few).tolist() == sorted(few.tolist())""")


def test_ctrl_c_ends_a_long_run_of_small_arrays():
    assert interrupted(LONG + """
def made(n):
    many = kiln.ops.expand(kiln.ops.reshape(n, shape=[1]), shape=[60_000_000])
    return kiln.ops.sum(kiln.ops.sort(kiln.ops.remainder(kiln.ops.cumsum(many, dim=0), 1_000_003), dim=0)[0], dims=[0])
program = kiln.compile(compiled(made, ("i64", [])))
program(5)  # from which it is known that it is long
ended(lambda: program(1_000_003))""")


def test_what_ctrl_c_left_keeps_its_arrays_until_it_is_over():
    assert interrupted(LONG + """
import gc, weakref
call, lent = program_of(lambda x: kiln.ops.sort(x, dim=0)[0]).bind(), [x]
alive = weakref.ref(x)
del x
ended(lambda: call(lent.pop()))
gc.collect()
assert call.done() or alive() is not None
while not call.done():
    pass
gc.collect()
assert alive() is None""")


@fast
def test_events_go_to_logging_and_to_a_receiver_that_can_cancel(caplog, graph):
    graph.output(kiln.ops.exp(graph.input("x", "f32", ["n"])))
    told = []
    with kiln.Context(cache="off", on_event=lambda kind, text: told.append((kind, text))) as context:
        with caplog.at_level("DEBUG", "kiln"):
            context.compile(kiln.Graph.from_json(graph.to_json(), context))
    assert ("progress", told[0][1]) == told[0] and any("progress" in record.getMessage() for record in caplog.records)
    with kiln.Context(cache="off", on_event=lambda kind, text: True) as context:
        with pytest.raises(kiln.Cancelled):
            context.compile(kiln.Graph.from_json(graph.to_json(), context))

    def raises(kind, text):
        raise LookupError("of the receiver")

    with kiln.Context(cache="off", on_event=raises) as context:
        with pytest.raises(kiln.Cancelled) as caught:
            context.compile(kiln.Graph.from_json(graph.to_json(), context))
        assert isinstance(caught.value.__cause__, LookupError)


def test_a_receiver_of_events_can_end_a_long_run_between_its_steps():
    told = []

    def end(kind, text):
        told.append((kind, text))
        return kind == "loop"

    with kiln.Context(cache="off", on_event=end) as context:
        graph = kiln.Graph(context)
        made = graph.input("x", "f32", [700, 700])
        for _ in range(200):
            made = kiln.ops.sin(made @ made)
        graph.output(made)
        program = kiln.compile(graph)
        with pytest.raises(kiln.Cancelled, match="cancelled the run after step"):
            program(np.zeros((700, 700), np.float32))
    assert told[-1][0] == "loop" and told[-1][1].startswith("step ")


@fast
def test_progress_is_shown_of_what_takes_longer(capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed in this environment")
    with kiln.progress(after=0):
        compiled(lambda x: kiln.ops.cosh(x), ("f32", ["n"]))
    shown = capsys.readouterr().err
    assert "kiln" in shown and "events" in shown
    with kiln.progress(after=60):
        compiled(lambda x: kiln.ops.sinh(x), ("f32", ["n"]))
    compiled(lambda x: kiln.ops.asinh(x), ("f32", ["n"]))
    assert capsys.readouterr().err == ""


@fast
def test_a_call_in_use_by_another_thread_is_refused():
    program = compiled(lambda x: kiln.ops.matmul(x, x), ("f32", ["n", "n"]))
    call, x, busy = program.bind(), np.ones((1200, 1200), np.float32), []
    threads = [threading.Thread(target=lambda: busy.append(attempt(call, x))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(busy) <= {True, "this call is in use"} and True in busy
    assert call.clone()(x)[0, 0] == 1200


def attempt(call, x):
    try:
        return bool((call(x) == 1200).all())
    except kiln.Busy as error:
        return str(error)[:19]


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_calls_leak_nothing(add):
    a, b, out = (np.ones(16, np.float32) for _ in range(3))
    call, strided, bad = add.bind(x0=a), np.ones(32, np.float32)[::2], np.ones(3, np.float64)

    def work(times):
        for _ in range(times):
            add(a, b)
            add(a, b, out=out)
            add(strided, b, library="dlpack")
            call(b)
        for _ in range(times // 20):
            with pytest.raises(TypeError):
                add(a, bad)

    work(20_000)
    gc.collect()
    before, objects = memory(), len(gc.get_objects())
    work(250_000)
    gc.collect()
    assert memory() - before < 4 << 20 and len(gc.get_objects()) - objects < 200


def test_compiles_and_calls_leak_nothing(context):
    def work(times):
        for i in range(times):
            compiled(lambda x: x + 1.0, ("f32", ["n"])).bind(x0=np.ones(3, np.float32))()

    work(50)
    gc.collect()
    before = memory()
    work(500)
    gc.collect()
    handles = context.report()["handles"]
    assert memory() - before < 8 << 20 and handles["executables"] == handles["calls"] == handles["graphs"] == 0, handles
