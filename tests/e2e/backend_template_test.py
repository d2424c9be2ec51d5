"""A backend of a plugin, as a user of the command line meets it: that of the template."""

import json

from harness import BUILD, PLUGINS, Case, f32, graph, main, node, read_npy, write_npy

PLUGIN = PLUGINS / "backend_template.so"
CHOSEN = ["--plugin", PLUGIN, "--backend", "template"]

# y = relu(exp(x + x) * x), of which the backend takes all but exp.
PARTLY = graph([f32("x", 2, 3)], [node("a", "add", ["x", "x"]), node("e", "exp", ["a"]),
                                  node("m", "mul", ["e", "x"]), node("y", "relu", ["m"])], ["y"])


class BackendTemplateTest(Case):
    def test_it_agrees_with_the_reference(self):
        told = self.kiln("run", self.write_graph(PARTLY), *CHOSEN, "--random", 1, "--compare", "reference")
        self.assertIn("y  differs from reference by 0", told)

    def test_its_regions_are_told(self):
        told = self.kiln("inspect", self.write_graph(PARTLY), *CHOSEN, "--regions")
        self.assertIn("region 0 on template: 1 node, 1 input, 1 output, 0 kernels: a\n", told)
        self.assertIn("region 1: 1 node, 1 input, 1 output, 1 kernel: e\n", told)
        self.assertIn("region 2 on template: 2 nodes, 2 inputs, 1 output, 0 kernels: m, y\n", told)

    def test_the_next_process_finds_what_it_made(self):
        path, lookups = self.write_graph(PARTLY), []
        for _ in range(2):
            told = self.kiln("run", path, *CHOSEN, "--random", 1, "--stats", "-")
            lookups.append(json.loads(told[told.index("{"):])["lookup"])
        self.assertEqual(lookups, ["MISS", "HIT"])

    def test_an_artifact_needs_it_and_names_it(self):
        self.kiln("compile", self.write_graph(PARTLY), *CHOSEN, "-o", self.file("a.kiln"))
        told = self.kiln("run", self.file("a.kiln"), "--random", 1, code=1)
        self.assertIn("its steps run on backend 'template', which is not there; none is registered; load or register what "
                      "it was made with: version '1' of plugin backend_template, uuid 4e9017cb", told)
        self.kiln("run", self.file("a.kiln"), "--plugin", PLUGIN, "--random", 1)

    def test_what_it_does_not_take_is_an_error_where_that_is_wanted(self):
        told = self.kiln("run", self.write_graph(PARTLY), *CHOSEN, "--fallback", "error", "--random", 1, code=1)
        self.assertIn("node 'e' [exp]: backend template does not take it: it takes add, mul and relu of f32 arrays of one known size; option 'fallback' is "
                      "'error'", told)


class OptionsTest(Case):
    """Of a backend: tests/abi/plugins/tuned.c."""

    NEG = graph([f32("x", 2)], [node("y", "neg", ["x"])], ["y"])

    def output(self, *words, value=NEG, code=0):
        write_npy(self.file("x.npy"), [2], [1.0, 2.0])
        told = self.kiln("run", self.write_graph(value),
                         "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"),
                         "--plugin", BUILD / "test_plugins" / "tuned.so", "--backend", "tuned", *words, code=code)
        return told if code else read_npy(self.file("y.npy"))[1]

    def test_they_are_set_by_their_full_names(self):
        self.assertEqual(self.output(), [2.0, 4.0])
        self.assertEqual(self.output("--option", "backend.tuned.factor=5"), [5.0, 10.0])
        self.assertEqual(self.output("--option", "backend.tuned.negative=true", "--cpu", "v3"), [-2.0, -4.0])
        self.assertEqual(self.output("--option", "backend.tuned.only=neg"), [2.0, 4.0])
        self.assertEqual(self.output("--option", "backend.tuned.only=neg,abs"), [-1.0, -2.0], "it takes no neg then")

    def test_they_are_set_for_one_region(self):
        marked = node("a", "neg", ["x"])
        marked["annotations"] = {"kiln.region": {"text": "r"}}
        value = graph([f32("x", 2)], [marked, node("y", "neg", ["a"])], ["y"])
        words = ["--mode", "except_fallback", "--option", "backend.tuned.factor=5"]
        self.assertEqual(self.output(*words, value=value), [25.0, 50.0])
        self.assertEqual(self.output(*words, "--option", "region.r.backend.factor=3", value=value), [15.0, 30.0])
        self.assertIn("region 'r': option 'backend.fcator': backend 'tuned' has no option 'fcator'",
                      self.output(*words, "--option", "region.r.backend.fcator=3", value=value, code=2))

    def test_what_does_not_fit_is_refused_by_name(self):
        for option, words, code in (
                ("backend.tuned.factor=two", "--option backend.tuned.factor", 2),
                ("backend.tuned.negative=1", "'1' is neither true nor false", 2),
                ("backend.tuned.fcator=1", "backend 'tuned' has no option 'fcator'; it has factor, negative, only", 2),
                ("backend.tnued.factor=1", "no backend is named 'tnued'; there are tuned", 2)):
            self.assertIn(words, self.output("--option", option, code=code))


main()
