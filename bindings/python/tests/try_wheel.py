"""What is tried of a wheel where it alone is installed, with NumPy: compiles, runs, the program, a plugin."""

import pathlib
import subprocess
import sys
import tempfile

import kiln
import numpy as np

package = pathlib.Path(kiln.__file__).parent
assert "bindings" not in package.parts, package
with tempfile.TemporaryDirectory() as folder:
    for lookup in ("MISS", "HIT"):
        with kiln.Context(cache=folder + "/cache") as context:
            context.load_plugin(package / "lib/kiln/plugins/fuse_rms_norm.so")
            graph = kiln.Graph(context)
            graph.output(kiln.ops.softmax(graph.input("x", "f32", ["n", 8])))
            program = context.compile(graph)
            assert program.report["lookup"] == lookup, program.report
            assert np.allclose(program(np.ones((2, 8), np.float32)), 1 / 8)
    program.save(folder + "/softmax.kiln")
    for command in ([sys.executable, "-m", "kiln"], [pathlib.Path(sys.executable).with_name("kiln")]):
        told = subprocess.run([*command, "inspect", folder + "/softmax.kiln"], capture_output=True, text=True,
                              check=True)
        assert "softmax" in told.stdout or "kernel" in told.stdout, told.stdout
    graph = kiln.Graph()
    graph.output(graph.input("x", "f32", [4]) * 2.0)
    assert "__global__" in kiln.compile(graph, backend="cuda", arch="sm_90", code=False, cache=False).text("cuda")
print("the wheel runs:", kiln.build_report()["version"], package)
