"""What the end-to-end tests share: running the program, small graphs, .npy files. Python's standard library only.

CTest sets KILN_BUILD_DIR and KILN_SOURCE_DIR.
"""

import array
import ast
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["KILN_SOURCE_DIR"])
KILN = BUILD / "bin" / "kiln"
PLUGINS = BUILD / os.environ["KILN_PLUGIN_DIR"]
MODELS = SOURCE / "tests" / "models"

TYPECODES = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "<i2": "h", "|i1": "b",
             "<u8": "Q", "<u4": "I", "<u2": "H", "|u1": "B", "|b1": "B"}


def write_npy(path, shape, values, descr="<f4"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = array.array(TYPECODES[descr], values).tobytes()
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path):
    """(shape, values)"""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    values = array.array(TYPECODES[header["descr"]])
    values.frombytes(data[10 + size:])
    return list(header["shape"]), list(values)


def node(name, op, inputs, **attrs):
    return {"name": name, "op": op, "inputs": list(inputs), "attrs": attrs}


def typed(dtype, name, *shape):
    return {"name": name, "type": {"dtype": dtype, "shape": list(shape)}}


def f32(name, *shape):
    return typed("f32", name, *shape)


def graph(inputs, nodes, outputs, **more):
    """A graph as a dict; `outputs` are names of values."""
    return {"kiln": 1, "inputs": inputs, "nodes": nodes,
            "outputs": [{"name": name, "value": name} for name in outputs], **more}


# y = silu(x) + 1 over a symbolic number of rows: small enough to read in every test.
CHAIN = graph([f32("x", "n", 3)],
              [node("s", "silu", ["x"]), node("y", "add", ["s", "one"])], ["y"],
              constants=[{**f32("one"), "data": [1.0]}])

# A product with a weight, so that there is a parameter.
LINEAR = graph([f32("x", "n", 3)], [node("y", "linear", ["x", "w", "b"])], ["y"],
               parameters=[f32("w", 2, 3), f32("b", 2)])

# What plugins/bad.c takes out.
PAIR = graph([f32("x", 4)], [node("a", "neg", ["x"]), node("y", "neg", ["a"])], ["y"])


class Case(unittest.TestCase):
    """A test with a folder of its own, and a cache folder inside it."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kiln-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        self.environment = {}  # variables that the programs get besides this process's

    def file(self, name):
        return str(self.folder / name)

    def write_graph(self, value, name="graph.json"):
        (self.folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
        return self.file(name)

    def call(self, program, *words, code=0):
        """Runs a program; returns it when it exits with `code` (None: with any). The user's own cache is never touched."""
        environment = {**os.environ, "KILN_CACHE": str(self.cache), **self.environment}
        done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, env=environment,
                              timeout=300, check=False)
        # The stand-in for a GPU switches stacks. The warning cannot be switched off; nothing has been reported falsely.
        done.stderr = re.sub(r"==\d+==WARNING: ASan doesn't fully support makecontext.*\n", "", done.stderr)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def kiln(self, *words, code=0):
        """The program's standard output; when it has to fail, its one line on stderr."""
        done = self.call(KILN, *words, code=code)
        if code == 0:
            self.assertEqual(done.stderr, "")
            return done.stdout
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("kiln: "), done.stderr)
        return done.stderr[len("kiln: "):-1]

    def bad_plugin(self, kind):
        """A plugin that is wrong in that way (plugins/bad.c)."""
        plugin = self.folder / f"{kind}.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", SOURCE / "abi" / "include", f"-DBAD={kind}",
                        SOURCE / "tests" / "e2e" / "plugins" / "bad.c", "-o", plugin], check=True)
        return plugin

    def stats(self, *words):
        """What `kiln run … --stats -` writes."""
        return json.loads(self.kiln("run", *words, "--stats", "-"))

    def run_chain(self, values, *words):
        """CHAIN on rows of three; returns the output's values."""
        write_npy(self.file("x.npy"), [len(values) // 3, 3], values)
        self.kiln("run", self.write_graph(CHAIN), "--input", "x=" + self.file("x.npy"), "--output",
                  "y=" + self.file("y.npy"), *words)
        shape, result = read_npy(self.file("y.npy"))
        self.assertEqual(shape, [len(values) // 3, 3])
        return result

    def assert_close(self, actual, expected, tolerance=1e-6):
        self.assertEqual(len(actual), len(expected))
        for index, (a, e) in enumerate(zip(actual, expected)):
            self.assertLessEqual(abs(a - e), tolerance * max(1, abs(e)), f"element {index}: {a}, expected {e}")


class Result(unittest.TextTestResult):
    """Tells what was skipped as every test of Kiln does: a line that begins with SKIP."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIP {test.id().partition('.')[2]}: {reason.removeprefix('SKIP: ')}", flush=True)


def main():
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2))
