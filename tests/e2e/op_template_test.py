"""The ops of a plugin, as a user of the command line meets them: those of the template."""

import math

from harness import KILN, PLUGINS, SOURCE, f32, graph, main, node, read_npy, write_npy
from op_case import MODES, OpCase

PLUGIN = PLUGINS / "op_template.so"

# y = logit(x * x) + 1
SQUARE = graph([f32("x", "n")],
               [node("p", "mul", ["x", "x"]), node("l", "template.logit", ["p"]), node("y", "add", ["l", "one"])],
               ["y"], constants=[{**f32("one"), "data": [1.0]}])

# Prints logit(x), x and x, and yields nothing; of x, which is there at once, tokens alone say that it comes later.
PRINTS = graph([f32("x", "n")],
               [node("t", "token", []), node("s", "template.logit", ["x"]), node("p", "template.print", ["s", "t"]),
                node("q", "template.print", ["x", "p"]), node("r", "template.print", ["x", "q"])], [])


class OpTemplateTest(OpCase):
    NAME = "op_template"

    def test_its_samples_are_right_in_every_mode_at_every_level(self):
        levels = ["x86-64", *(level for level in ("v3", "v4") if self.runs_on_host(level))]
        variants = [["--backend", "reference", "--disable-passes", "use_square"],
                    *(["--mode", mode, "--cpu", level] for mode in MODES for level in levels)]
        for name, kind, peer in (("template.logit", "function", lambda x: math.log(x / (1 - x))),
                                 ("template.square", "composite", lambda x: x * x)):
            self.assertEqual(self.ops()[name]["kind"], kind)
            self.check_samples(name, lambda arrays, _, each=peer: (arrays[0][0], [each(x) for x in arrays[0][1]]),
                               variants=variants)

    def runs_on_host(self, level):
        done = self.call(KILN, "run", self.write_graph(SQUARE), "--plugin", PLUGIN, "--random", 1, "--size", "n=3",
                         "--cpu", level, code=None)
        return done.returncode == 0

    def test_ops_test_runs_its_samples_and_compares(self):
        told = self.kiln("ops", "--test", "--plugin", PLUGIN)
        apart = r": as on reference, at most \S+ apart\n"
        logit, square = f"template.logit, sample rows{apart}", "".join(
            f"template.square, sample {name}{apart}" for name in ("rows", "doubles"))
        self.assertRegex(told, f"^{logit}{square}template.print: no samples\n$")
        self.assertRegex(self.kiln("ops", "--test", "--plugin", PLUGIN, "template.square"), f"^{square}$")

    def test_ops_test_ends_at_the_first_sample_that_differs(self):
        right = "y[i] = logf(x[i] / (1 - x[i]));"
        source = (SOURCE / "plugins/op_template/op_template.c").read_text()
        self.assertIn(right, source)
        with open(self.file("drifts.c"), "w") as file:
            file.write(source.replace(right, "static int runs; " + right[:-1] + " + (float)runs++;"))
        self.call("cc", "-std=c11", "-shared", "-fPIC", "-I", SOURCE / "abi/include", "-o", self.file("drifts.so"),
                  self.file("drifts.c"), "-lm")
        told = self.call(KILN, "ops", "--test", "--plugin", self.file("drifts.so"), code=1).stdout
        self.assertRegex(told, r"^template.logit, sample rows: 'y' differs from reference by 15, relative \S+ at \[\d, \d\]\n$")

    def test_ops_test_tells_what_it_cannot_test(self):
        self.assertIn("there is no op of a plugin", self.kiln("ops", "--test", code=2))
        self.assertIn("'neg' is a built-in op", self.kiln("ops", "--test", "neg", code=2))
        self.assertIn("--test is given with --json", self.kiln("ops", "--test", "--json", code=2))
        self.assertIn("no op of these has samples", self.kiln("ops", "--test", "--plugin", PLUGIN, "template.print", code=1))

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

    def test_what_its_pass_leaves_decomposes_with_what_it_puts_there(self):
        value = graph([f32("x", "n")],
                      [node("p", "mul", ["x", "x"]), node("s", "silu", ["p"]), node("y", "mul", ["s", "x"])], ["y"])
        write_npy(self.file("x.npy"), [3], [-1.0, 0.5, 2.0])
        words = [self.write_graph(value), "--plugin", PLUGIN, "--input", "x=" + self.file("x.npy")]
        stats = self.stats(*words)
        self.assertEqual((stats["passes_run"]["use_square"], stats["kernels_compiled"]), (1, 1))
        self.kiln("run", *words, "--output", "y=" + self.file("y.npy"))
        self.assert_close(read_npy(self.file("y.npy"))[1],
                          [x ** 3 / (1 + math.exp(-x * x)) for x in (-1.0, 0.5, 2.0)])

    def test_what_has_an_effect_runs_in_the_order_of_its_tokens(self):
        write_npy(self.file("x.npy"), [2], [0.5, 0.25])
        words = ["run", self.write_graph(PRINTS), "--plugin", PLUGIN, "--input", "x=" + self.file("x.npy")]
        printed = "0 -1.09861\n0.5 0.25\n0.5 0.25\n"
        for options in ([], [], ["--mode", "none"], ["--backend", "reference", "--disable-passes", "use_square"],
                        ["--option", "split_at=template.print"]):
            self.assertEqual(self.call(KILN, *words, *options).stderr, printed)
        told = self.kiln("inspect", self.write_graph(PRINTS), "--plugin", PLUGIN, "--regions")
        self.assertIn("fallback 'p' [template.print]: a function of its op\n", told)
        self.assertRegex(self.kiln("ops", "--plugin", PLUGIN, "template.print"),
                         r"^template.print, registered, version 1, function, effect\n(.*\n)*  after +token *\n")

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
        told = self.kiln("compile", self.write_graph(PRINTS), "--plugin", PLUGIN, "--backend", "cuda", "--arch", "sm_90",
                         "-o", self.file("a.kiln"), code=1)
        self.assertIn("node 't' [token]: backend cuda does not take it: it orders effects", told)


main()
