"""A plugin's folder: kiln plugin test runs its graphs."""

from folder_case import FolderCase
from harness import KILN, PLUGINS, SOURCE, f32, graph, main, node

# Plugins of this folder that have cases, with flags.
FOLDERS = [("template",), ("op_template",), ("backend_template",), ("fuse_attention",), ("mark_regions",),
           ("bf16_matmul", "--tolerance", 0.02)]


class TestTest(FolderCase):
    def test_the_plugins_that_come_with_kiln_pass(self):
        for name, *words in FOLDERS:
            told = self.kiln("plugin", "test", SOURCE / "plugins" / name, "--plugin", PLUGINS / f"{name}.so", *words)
            self.assertRegex(told, r"^(ok    \w+\n)+$")

    def test_numbers_that_a_pass_changes_are_held_to_a_tolerance(self):
        words = ["plugin", "test", SOURCE / "plugins" / "bf16_matmul", "--plugin", PLUGINS / "bf16_matmul.so"]
        self.assertIn("ok    products", self.kiln(*words))  # it says that it changes them
        self.assertIn("FAIL  products: output 'y' differs by 0.0", self.call(KILN, *words, "--tolerance", 1e-6, code=1).stdout)
        self.assertIn("--tolerance: '-1' is not a number above 0", self.kiln(*words, "--tolerance", -1, code=2))

    def test_another_result_is_told_by_its_line_and_update_writes_it(self):
        folder = self.begin("p", "c", "pass")
        self.build(folder, "c")
        text = folder / "golden" / "p.txt"
        expected = text.read_text()
        text.write_text(expected.replace("y = exp(x)", "y = exp(twice)"))
        self.assertEqual(self.failures(folder), "FAIL  p: p.txt: line 14 is 'y = exp(x): f32[n]'; expected "
                         "'y = exp(twice): f32[n]'; if that is meant, --update writes it anew\n")
        self.kiln("plugin", "test", folder, "--update")
        self.assertEqual(text.read_text(), expected)
        self.kiln("plugin", "test", folder)

    def test_a_pass_that_rewrites_nothing_is_noted_and_kilns_own_passes_behind_it_change_no_text(self):
        folder = self.begin("p", "c", "pass")
        self.build(folder, "c")
        self.write_graph(graph([f32("x", 8)], [node("m", "mul", ["x", "one"]), node("y", "exp", ["m"])], ["y"],
                               constants=[{"name": "one", "type": {"dtype": "f32", "shape": []}, "data": [1]}]),
                         "p/golden/p.json")
        self.assertIn("note  pass 'p' rewrote nothing in any of them\n", self.kiln("plugin", "test", folder, "--update"))
        self.assertIn("m = mul(x, one)", (folder / "golden" / "p.txt").read_text().split("after")[1])

    def test_a_text_that_is_missing_is_told(self):
        folder = self.begin("p", "c", "pass")
        self.build(folder, "c")
        (folder / "golden" / "p.txt").unlink()
        self.assertEqual(self.failures(folder), "FAIL  p: p.txt is not there; --update writes it\n")

    def test_numbers_that_are_not_the_oracles_fail_though_the_text_is_as_expected(self):
        folder = self.begin("p", "cpp", "pass")
        source = folder / "p.cpp"
        source.write_text(source.read_text().replace('graph.op("neg")', 'graph.op("abs")'))  # abs(abs(x)) becomes x
        self.build(folder, "cpp")
        self.write_graph(graph([f32("x", 8)], [node("a", "abs", ["x"]), node("y", "abs", ["a"])], ["y"]),
                         "p/golden/p.json")
        self.assertRegex(self.failures(folder), "FAIL  p: output 'y' differs by .* from the reference, on backend cpu\n")
        before = (folder / "golden" / "p.txt").read_text()
        self.call(KILN, "plugin", "test", folder, "--update", code=1)
        self.assertEqual((folder / "golden" / "p.txt").read_text(), before, "what is wrong is not written as expected")

    def test_a_graph_that_cannot_be_compiled_fails_alone(self):
        folder = self.begin("p", "cpp", "pass")
        self.build(folder, "cpp")
        self.write_graph(graph([f32("x", 8)], [node("y", "nge", ["x"])], ["y"]), "p/golden/a.json")
        told = self.failures(folder)
        self.assertIn("FAIL  a: nodes[0].op: unknown op 'nge'", told)
        self.assertIn("ok    p\n", told)

    def test_a_folder_without_plugin_or_graphs_says_so(self):
        folder = self.begin("p", "c", "pass")
        self.assertIn("there is no plugin (.so) in it or its folder build", self.kiln("plugin", "test", folder, code=1))
        self.assertIn("there is no graph (.json) in it", self.kiln("plugin", "test", self.folder, code=1))
        self.build(folder, "c")
        (folder / "build" / "q.so").write_text("")
        self.assertIn("has p.so and q.so; say which: --plugin P.so", self.kiln("plugin", "test", folder, code=2))


if __name__ == "__main__":
    main()
