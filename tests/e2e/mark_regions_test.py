"""The plugin mark_regions: what it marks is compiled together, and the rest is not."""

import json

from harness import KILN, PLUGINS, Case, f32, graph, main, node

PLUGIN = PLUGINS / "mark_regions.so"
VALUE = graph([f32("x", "n", 4)], [node("h", "matmul", ["x", "w"]), node("g", "gelu", ["h"]), node("y", "tanh", ["g"])],
              ["y"], parameters=[f32("w", 4, 4)])


class MarkRegionsTest(Case):
    def regions(self, *words):
        told = self.kiln("inspect", self.write_graph(VALUE), "--plugin", PLUGIN, "--mode", "marked", "--regions", "--json", *words)
        partition = json.loads(told)["compile"]["partition"]
        return [(region["name"], region["nodes"]) for region in partition["regions"]]

    def test_the_ops_that_are_listed_are_one_region(self):
        self.assertEqual(self.regions(), [("marked", ["h"])])
        self.assertEqual(self.regions("--plugin-option", "mark_regions.ops=matmul,gelu", "--plugin-option",
                                      "mark_regions.region=products"), [("products", ["h", "g"])])

    def test_the_numbers_stay_the_references(self):
        told = self.call(KILN, "run", self.write_graph(VALUE), "--plugin", PLUGIN, "--mode", "marked", "--random", 1, "--size",
                         "n=3", "--compare", "reference").stdout
        self.assertIn("y  differs from reference by", told)

    def test_what_is_no_op_is_named(self):
        told = self.kiln("run", self.write_graph(VALUE), "--plugin", PLUGIN, "--plugin-option", "mark_regions.ops=matmul,gelo",
                         "--random", 1, "--size", "n=3", code=1)
        self.assertIn("option 'ops' names 'gelo', which is no op", told)


if __name__ == "__main__":
    main()
