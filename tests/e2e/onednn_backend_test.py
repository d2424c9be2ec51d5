"""The backend of plugins/onednn_backend: what of a graph becomes one primitive, what is prepared, kept and refused. oneDNN
itself tells what it runs (DNNL_VERBOSE)."""

import math
import os
import random

from harness import MODELS, PLUGINS, Case, f32, graph, main, node, read_npy, typed

PLUGIN = PLUGINS / "onednn_backend.so"
CHOSEN = ["--plugin", PLUGIN, "--backend", "onednn"]
LOST = ["--option", "backend.onednn.not_finite=lost"]
ALL = ["--option", "backend.onednn.take=all"]

# y = relu(gelu(x w' + b) * s + x): five nodes.
FOLLOWED = graph([f32("x", "n", 8), f32("s", 8)],
                 [node("l", "linear", ["x", "w", "b"]), node("g", "gelu", ["l"]), node("m", "mul", ["g", "s"]),
                  node("a", "add", ["x", "m"]), node("y", "relu", ["a"])], ["y"],
                 parameters=[f32("w", 8, 8), f32("b", 8)])

# A padded convolution, a batch norm and tanh, of weights that are bound.
NORMED = graph([f32("x", "n", 2, 5, 5)],
               [node("c", "conv2d", ["x", "w"], padding=[1, 1]),
                node("b", "batch_norm", ["c", "scale", "shift", "mean", "variance"]), node("y", "tanh", ["b"])], ["y"],
               parameters=[f32("w", 4, 2, 3, 3), *(f32(name, 4) for name in ("scale", "shift", "mean", "variance"))])


class OnednnCase(Case):
    def setUp(self):
        super().setUp()
        if os.environ.get("KILN_TEST_THREADS_ONLY"):
            self.skipTest("threads of OpenMP's are none that the thread sanitizer sees")
        if not PLUGIN.exists():
            self.skipTest("onednn_backend was left out of the build: there is no libdnnl-dev")

    def primitives(self, value, *words):
        """[(primitive, post-ops)] of what runs, in order."""
        self.environment["DNNL_VERBOSE"] = "1"
        path = value if isinstance(value, str) else self.write_graph(value)
        told = self.kiln("run", path, *CHOSEN, "--random", 1, *words)
        lines = [line.split(",") for line in told.splitlines() if line.startswith("onednn_verbose,exec,")]
        return [(line[3], line[7]) for line in lines]

    def count(self, kind, primitives):
        return sum(1 for primitive, _ in primitives if primitive == kind)

    def assert_agrees(self, value, *words):
        self.environment.pop("DNNL_VERBOSE", None)
        told = self.kiln("run", self.write_graph(value), *CHOSEN, "--random", 1, "--compare", "reference", *words)
        differs = [float(line.split(" by ")[1].split(",")[0]) for line in told.splitlines() if "differs from" in line]
        self.assertEqual(len(differs), len(value["outputs"]), told)
        self.assertLess(max(differs), 1e-5)


class PostOpsTest(OnednnCase):
    def test_what_follows_a_product_is_computed_with_it(self):
        ran = self.primitives(FOLLOWED, *LOST, "--size", "n=3")
        self.assertEqual([kind for kind, _ in ran], ["reorder", "matmul"])
        for post in ("eltwise_gelu_erf", "binary_mul", "binary_add", "eltwise_relu"):
            self.assertIn(post, ran[1][1])
        self.assert_agrees(FOLLOWED, *LOST, "--size", "n=3")

    def test_without_leave_to_lose_nan_relu_is_cpus(self):
        ran = self.primitives(FOLLOWED, "--size", "n=3")
        self.assertNotIn("eltwise_relu", ran[-1][1])
        self.assertIn("region 1: 1 node, 1 input, 1 output, 1 kernel: y\n",
                      self.kiln("inspect", self.write_graph(FOLLOWED), *CHOSEN, "--regions"))
        self.assert_agrees(FOLLOWED, "--size", "n=3")

    def test_a_value_that_others_use_is_stored(self):
        both = graph([f32("x", 3, 8)], [node("l", "linear", ["x", "w"]), node("t", "tanh", ["l"])], ["l", "t"],
                     parameters=[f32("w", 8, 8)])
        self.assertEqual([kind for kind, _ in self.primitives(both)], ["reorder", "matmul"])
        self.assertEqual([kind for kind, _ in self.primitives(both, *ALL)], ["reorder", "matmul", "eltwise"])
        self.assert_agrees(both, *ALL)

    def test_a_batch_norm_goes_into_the_weights(self):
        ran = self.primitives(NORMED, "--size", "n=2")
        self.assertEqual(self.count("convolution", ran), 1)
        self.assertEqual(self.count("batch_normalization", ran), 0)
        self.assert_agrees(NORMED, "--size", "n=2")

    def test_sides_of_a_difference(self):
        for inputs in (["l", "x"], ["x", "l"]):
            value = graph([f32("x", 3, 8)], [node("l", "linear", ["x", "w"]), node("y", "sub", inputs)], ["y"],
                          parameters=[f32("w", 8, 8)])
            self.assertEqual(len(self.primitives(value)), 2)
            self.assert_agrees(value)

    def test_the_environment_does_not_lower_precision(self):
        self.environment["DNNL_DEFAULT_FPMATH_MODE"] = "BF16"
        self.assert_agrees(FOLLOWED, "--size", "n=64")


class WeightsTest(OnednnCase):
    def test_are_prepared_once_for_a_binding(self):
        once, twice = (self.primitives(FOLLOWED, *LOST, "--size", "n=3", *words) for words in ([], ["--times"]))
        self.assertEqual((self.count("matmul", once), self.count("reorder", once)), (1, 1))
        self.assertEqual((self.count("matmul", twice), self.count("reorder", twice)), (2, 1))

    def test_that_are_not_finite_are_multiplied_with_padding(self):
        draw, results = random.Random(1), []
        weights = ["inf", *(draw.uniform(-1, 1) for _ in range(4 * 2 * 9 - 1))]
        value = graph([f32("x", 2, 2, 5, 5)], [node("c", "conv2d", ["x", "w"], padding=[1, 1]), node("y", "tanh", ["c"])],
                      ["y"], constants=[{**f32("w", 4, 2, 3, 3), "data": weights}])
        for words in (CHOSEN, ["--backend", "reference"]):
            self.kiln("run", self.write_graph(value), *words, "--random", 1, "--output", "y=" + self.file("y.npy"))
            results.append(read_npy(self.file("y.npy"))[1])
        self.assertGreater(sum(map(math.isnan, results[1])), 0)
        self.assert_close(*([9 if math.isnan(v) else v for v in result] for result in results), 1e-5)


class CacheTest(OnednnCase):
    def test_the_next_process_hits(self):
        path, lookups = self.write_graph(FOLLOWED), []
        for words in ([], [], LOST, LOST, []):
            lookups.append(self.stats(path, *CHOSEN, "--random", 1, "--size", "n=3", *words)["lookup"])
        self.assertEqual(lookups, ["MISS", "HIT", "MISS", "HIT", "HIT"])

    def test_an_option_has_its_values(self):
        told = self.kiln("run", self.write_graph(FOLLOWED), *CHOSEN, "--option", "backend.onednn.take=some", "--random", 1,
                         "--size", "n=1", code=1)
        self.assertIn("option 'backend.onednn.take' is 'some', expected products or all", told)

    def test_an_artifact_runs_where_the_plugin_is(self):
        self.kiln("compile", self.write_graph(NORMED), *CHOSEN, "-o", self.file("a.kiln"))
        told = self.kiln("run", self.file("a.kiln"), "--random", 1, "--size", "n=2", code=1)
        self.assertIn("plugin onednn_backend", told)
        self.kiln("run", self.file("a.kiln"), "--plugin", PLUGIN, "--random", 1, "--size", "n=2")


class GraphsTest(OnednnCase):
    def test_two_backends_in_one_graph(self):
        marks = {"l": "onednn", "a": "template"}
        value = graph([f32("x", 4, 8)], [node("l", "linear", ["x", "w"]), node("t", "tanh", ["l"]),
                                         node("a", "add", ["t", "t"]), node("y", "exp", ["a"])], ["y"],
                      parameters=[f32("w", 8, 8)])
        for made in value["nodes"]:
            if made["name"] in marks:
                made["annotations"] = {"kiln.region": {"text": made["name"]},
                                       "kiln.region.backend": {"text": marks[made["name"]]}}
        words = ["--plugin", PLUGIN, "--plugin", PLUGINS / "backend_template.so", "--mode", "marked"]
        told = self.kiln("inspect", self.write_graph(value), *words, "--regions")
        self.assertIn("on onednn: 1 node", told)
        self.assertIn("on template: 1 node", told)
        told = self.kiln("run", self.write_graph(value), *words, "--random", 1, "--compare", "reference")
        self.assertLess(float(told.split("reference by ")[1].split(",")[0]), 1e-5)

    def test_sizes_may_be_zero_and_change(self):
        for n in (0, 1, 70):
            self.assert_agrees(FOLLOWED, *LOST, "--size", f"n={n}")
            self.assert_agrees(NORMED, "--size", f"n={n}")

    def test_other_element_types_are_cpus(self):
        value = graph([typed("f64", "x", 4, 8), typed("f64", "w", 8, 8)], [node("y", "matmul", ["x", "w"])], ["y"])
        self.assertNotIn("on onednn", self.kiln("inspect", self.write_graph(value), *CHOSEN, "--regions"))

    def test_both_models(self):
        for model, sizes in (("digits", ["batch=5"]), ("chars", ["batch=2", "length=17"])):
            for words in ([], LOST, [*LOST, *ALL]):
                flags = [flag for size in sizes for flag in ("--size", size)]
                told = self.kiln("run", MODELS / model / "graph.json", "--weights", MODELS / model / "weights.safetensors",
                                 *CHOSEN, *words, *flags, "--random", 1, "--compare", "reference")
                self.assertLess(float(told.split("reference by ")[1].split(",")[0]), 5e-5)

    def test_a_whole_model_is_one_region(self):
        told = self.kiln("inspect", MODELS / "digits" / "graph.json", *CHOSEN, *LOST, "--regions")
        self.assertIn("region 0 on onednn: 13 nodes", told)
        self.assertNotIn("region 1", told)


main()
