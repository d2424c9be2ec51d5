"""A backend of a plugin, as a user of the command line meets it: that of the template."""

import json

from harness import PLUGINS, Case, f32, graph, main, node

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
        self.assertIn("node 'e' [exp]: backend template does not take it: it says that it does not; option 'fallback' is "
                      "'error'", told)


main()
