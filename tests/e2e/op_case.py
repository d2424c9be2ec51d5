"""What tests of a plugin's ops share: its samples as files and graphs, in every type and mode; peers are the tests' own."""

import json
import math
import random

from harness import KILN, PLUGINS, Case, graph, node, read_npy, typed, write_npy

MODES = ["all", "marked", "except_fallback", "none"]
VARIANTS = [*(["--mode", mode] for mode in MODES), ["--backend", "reference"]]
DESCR = {"f32": "<f4", "f64": "<f8"}
TOLERANCE = {"f32": 2e-5, "f64": 1e-12}


def drawn(seed, *shape, between=(-1, 1)):
    """(shape, values), which f32 holds, too."""
    draw = random.Random(seed)
    return list(shape), [round(draw.uniform(*between) * 2**16) / 2**16 for _ in range(math.prod(shape))]


class OpCase(Case):
    """Tests of a plugin in build/…/plugins, which is not built where Debian's package of what it uses is missing."""

    NAME = PACKAGE = ""

    def setUp(self):
        super().setUp()
        self.plugin = PLUGINS / f"{self.NAME}.so"
        if self.PACKAGE and not self.plugin.exists():
            self.skipTest(f"{self.NAME} was left out of the build: there is no {self.PACKAGE}")

    def ops(self):
        """Its ops by their names."""
        listed = json.loads(self.kiln("ops", "--plugin", self.plugin, "--json", "--samples"))
        return {op["name"]: op for op in listed if op["family"] == "registered"}

    def write_inputs(self, dtype, arrays):
        """Flags that give the pairs of shape and values as inputs x0, x1, …"""
        words = []
        for i, (shape, values) in enumerate(arrays):
            write_npy(self.file(f"{i}.npy"), shape, values, DESCR[dtype])
            words += ["--input", f"x{i}=" + self.file(f"{i}.npy")]
        return words

    def op_graph(self, name, dtype, shapes, attrs):
        """y = -op(-x0, …): what is compiled stands on both sides of what a function runs."""
        marked = {"annotations": {"kiln.region": {"text": "r"}}}
        inputs = [typed(dtype, f"x{i}", *shape) for i, shape in enumerate(shapes)]
        nodes = [{**node(f"n{i}", "neg", [f"x{i}"]), **marked} for i in range(len(shapes))]
        nodes += [{**node("op", name, [f"n{i}" for i in range(len(shapes))], **attrs), **marked},
                  {**node("y", "neg", ["op"]), **marked}]
        return graph(inputs, nodes, ["y"])

    def run_op(self, name, dtype, arrays, attrs, *words, shapes=None):
        """(shape, values) of the op on these, which the graph gets with the signs turned."""
        path = self.write_graph(self.op_graph(name, dtype, shapes or [shape for shape, _ in arrays], attrs))
        turned = [(shape, [-value for value in values]) for shape, values in arrays]
        self.kiln("run", path, "--plugin", self.plugin, *self.write_inputs(dtype, turned), "--output",
                  "y=" + self.file("y.npy"), *words)
        shape, values = read_npy(self.file("y.npy"))
        return shape, [-value for value in values]

    def check_samples(self, name, peer, tolerance=TOLERANCE, variants=VARIANTS):
        """Each sample, of f32 and f64, under each of these flags, against peer(arrays, attrs) in float64."""
        samples = self.ops()[name]["samples"]
        self.assertGreater(len(samples), 0)
        for sample in samples:
            for dtype in {sample["inputs"][0]["type"]["dtype"], *sample["other_types"]}:
                arrays = [drawn(given["stream"], *given["type"]["shape"], between=sample["range"])
                          for given in sample["inputs"]]
                expected = peer(arrays, sample["attrs"])
                for words in variants:
                    with self.subTest(name, sample=sample["name"], dtype=dtype, words=words):
                        actual = self.run_op(name, dtype, arrays, sample["attrs"], *words)
                        self.assert_array(actual, expected, tolerance[dtype])

    def assert_array(self, actual, expected, tolerance):
        self.assertEqual(actual[0], list(expected[0]))
        self.assert_close(actual[1], expected[1], tolerance)

    def refusal(self, value):
        """What a compile of this graph fails with."""
        return self.kiln("compile", self.write_graph(value), "--plugin", self.plugin, "-o", self.file("a.kiln"), code=1)

    def run_failure(self, name, dtype, arrays, shapes=None, **attrs):
        path = self.write_graph(self.op_graph(name, dtype, shapes or [shape for shape, _ in arrays], attrs))
        turned = [(shape, [-value for value in values]) for shape, values in arrays]
        return self.kiln("run", path, "--plugin", self.plugin, *self.write_inputs(dtype, turned), code=1)

    def assert_second_process_hits(self, name, dtype, shapes, attrs, *sizes):
        """For any sizes; nothing is compiled in it and no pass runs."""
        path = self.write_graph(self.op_graph(name, dtype, shapes, attrs))
        for lookup, given in zip(("MISS", "HIT", "HIT"), (*sizes, sizes[0])):
            words = [word for size in given for word in ("--size", size)]
            stats = self.stats(path, "--plugin", self.plugin, "--random", 1, *words)
            self.assertEqual((stats["lookup"], stats["llvm_loaded"]), (lookup, lookup == "MISS"))
