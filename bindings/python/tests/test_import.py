"""What `import kiln` costs and does to a process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.fast


def python(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_import_needs_no_array_library_and_starts_no_thread():
    code = ("import kiln, os, sys; print([name for name in ('numpy', 'torch', 'typing', 'json', 'logging') "
            "if name in sys.modules], len(os.listdir('/proc/self/task')))")
    assert python(code) == "[] 1"


def test_import_takes_at_most_30_ms_beyond_pythons_start():
    code = "import time; t = time.process_time(); import kiln; print(time.process_time() - t)"
    assert min(float(python(code)) for _ in range(5)) < 0.030


def test_a_graph_compiles_and_runs_without_numpy():
    code = """if True:
        import sys
        sys.modules["numpy"] = None
        import kiln
        kiln.set_default_context(kiln.Context(cache="off"))
        g = kiln.Graph()
        g.output(g.input("x", "f32", []) * 2.0)
        result = kiln.compile(g)(1.5, library="dlpack")
        print(result, result.__dlpack_device__())"""
    assert python(code) == "kiln.Array(shape=(), dtype=f32) (1, 0)"


def test_the_module_runs_the_program():
    run = subprocess.run([sys.executable, "-m", "kiln", "ops", "softmax"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("softmax, activation")
    run = subprocess.run([sys.executable, "-m", "kiln", "nothing"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "nothing" in run.stderr


def test_every_name_of_the_package_is_there():
    import kiln
    for name in kiln.__all__:
        assert getattr(kiln, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kiln.nothing
