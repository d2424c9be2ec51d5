"""The ops of a plugin, as a user of the command line meets them: those of the template."""

import json

from harness import KILN, PLUGINS, Case, f32, graph, main, node, read_npy, write_npy

PLUGIN = PLUGINS / "op_template.so"
MODES = ["all", "marked", "except_fallback", "none"]

# y = logit(x * x) + 1
SQUARE = graph([f32("x", "n")],
               [node("p", "mul", ["x", "x"]), node("l", "template.logit", ["p"]), node("y", "add", ["l", "one"])],
               ["y"], constants=[{**f32("one"), "data": [1.0]}])


class OpTemplateTest(Case):
    def test_its_samples_agree_with_the_reference_in_every_mode_at_every_level(self):
        ops = {op["name"]: op for op in json.loads(self.kiln("ops", "--plugin", PLUGIN, "--json", "--samples"))}
        levels = ["x86-64", *(level for level in ("v3", "v4") if self.runs_on_host(level))]
        for name, kind in (("template.logit", "function"), ("template.square", "composite")):
            self.assertEqual(ops[name]["kind"], kind)
            self.assertGreater(len(ops[name]["samples"]), 0)
            for sample in ops[name]["samples"]:
                for mode in MODES:
                    for level in levels:
                        self.compare(name, sample, "--mode", mode, "--cpu", level)

    def compare(self, name, sample, *words):
        inputs = [{"name": f"x{i}", "type": given["type"]} for i, given in enumerate(sample["inputs"])]
        marked = {**node("y", name, [i["name"] for i in inputs], **sample["attrs"]),
                  "annotations": {"kiln.region": {"text": "r"}}}
        path = self.write_graph(graph(inputs, [marked], ["y"]))
        low, high = sample["range"]
        files = []
        for i, given in enumerate(sample["inputs"]):
            shape, count = given["type"]["shape"], 1
            for size in shape:
                count *= size
            values = [low + (high - low) * (k + 0.5) / count for k in range(count)]
            write_npy(self.file(f"{i}.npy"), shape, values, {"f32": "<f4", "f64": "<f8"}[given["type"]["dtype"]])
            files += ["--input", f"x{i}=" + self.file(f"{i}.npy")]
        told = self.call(KILN, "run", path, "--plugin", PLUGIN, *files, *words, "--compare", "reference")
        self.assertRegex(told.stdout, r"\ny  differs from reference by (0|\d\.?\d*e-0[5-9]\S*), relative \S+")

    def runs_on_host(self, level):
        done = self.call(KILN, "run", self.write_graph(SQUARE), "--plugin", PLUGIN, "--random", 1, "--size", "n=3",
                         "--cpu", level, code=None)
        return done.returncode == 0

    def test_its_pass_matches_and_what_it_puts_there_decomposes_and_fuses(self):
        write_npy(self.file("x.npy"), [3], [0.25, 0.5, 0.75])
        words = [self.write_graph(SQUARE), "--plugin", PLUGIN, "--input", "x=" + self.file("x.npy")]
        first = self.stats(*words)
        self.assertEqual((first["lookup"], first["passes_run"]["use_square"]), ("MISS", 1))
        self.assertEqual(first["kernels_compiled"], 2)
        again = self.stats(*words)
        self.assertEqual((again["lookup"], again["passes_run"], again["kernels_compiled"]), ("HIT", {}, 0))
        self.kiln("run", *words, "--output", "y=" + self.file("y.npy"))
        self.assert_close(read_npy(self.file("y.npy"))[1], [-1.7080502, -0.0986123, 1.2513144])

    def test_it_is_told_as_run_by_its_function(self):
        told = self.kiln("inspect", self.write_graph(SQUARE), "--plugin", PLUGIN, "--regions")
        self.assertIn("fallback 'l' [template.logit]: a function of its op\n", told)
        self.assertIn("template.logit, registered, version 1, function\n",
                      self.kiln("ops", "--plugin", PLUGIN, "template.logit"))

    def test_what_its_function_fails_with_names_the_node(self):
        write_npy(self.file("x.npy"), [2], [0.5, 3.0])
        told = self.kiln("run", self.write_graph(SQUARE), "--plugin", PLUGIN, "--input", "x=" + self.file("x.npy"), code=1)
        self.assertIn("node 'l': [template.logit] an element is not between 0 and 1", told)

    def test_inspect_lists_its_ops(self):
        told = self.kiln("plugin", "inspect", PLUGIN)
        self.assertRegex(told, r"\nop template.logit  version 1 of plugin op_template, uuid 3b7e510c-\S+, file [0-9a-f]+\n")

    def test_without_the_plugin_the_op_is_not_known(self):
        told = self.kiln("run", self.write_graph(SQUARE), "--random", 1, "--size", "n=3", code=1)
        self.assertIn("nodes[1].op: unknown op 'template.logit'", told)

    def test_an_artifact_that_runs_it_needs_it(self):
        self.kiln("compile", self.write_graph(SQUARE), "--plugin", PLUGIN, "-o", self.file("a.kiln"))
        told = self.kiln("run", self.file("a.kiln"), "--random", 1, "--size", "n=3", code=1)
        self.assertIn("it was made with op 'template.logit', version 1 of plugin op_template, uuid 3b7e510c", told)

    def test_a_device_does_not_take_what_runs_on_the_host(self):
        told = self.kiln("compile", self.write_graph(SQUARE), "--plugin", PLUGIN, "--backend", "cuda", "--arch", "sm_90",
                         "-o", self.file("a.kiln"), code=1)
        self.assertIn("node 'l' [template.logit]: backend cuda does not take it: a function of its own runs it; what runs "
                      "it does so on the host", told)


main()
