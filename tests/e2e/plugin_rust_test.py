"""A plugin in Rust, by the module that `kiln plugin new --lang rust` writes (plugins/author.rs): what it reads and changes, and
what becomes of its errors and panics."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import BUILD, KILN, SOURCE, Case, f32, graph, main, node, read_npy, write_npy

PASSES = 10  # each of which says when the host lets go of it
NONE = "cse"  # of the plugin's
NEGATED = graph([f32("x", "n")], [node("y", "neg", ["x"])], ["y"])
# Its only pass does BODY.
UNLUCKY = """mod kiln;
use kiln::{Pass, Result, Rewriter, Setup};
kiln::entry!("unlucky", 0, setup);
fn rewrite(_: &mut Rewriter) -> Result<u64> {
    BODY
}
fn setup(context: &Setup) -> Result<()> {
    context.add_pass(Pass::new("unlucky", "1", *b"16 bytes, yours.", rewrite))
}
"""
# Before what docs/passes.md has of a pattern.
DROP_SCALE = """mod kiln;
use kiln::{Match, Pass, Pattern, Result, Setup};
kiln::entry!("drop_scale", kiln::FEATURE_PATTERNS, setup);
const SCALED: &str = r#"{"kiln": 1, "pattern": "scaled", "captures": [{"name": "x"}, {"name": "by", "number": "any"}],
    "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "by"]}], "outputs": ["y"]}"#;
"""
# Compiles a graph with a plugin whose pass fails; how that, and all failures, are counted.
COUNTS = """import pathlib, sys
from binding import Context, KilnError
context = Context(cache="off")
context.load_plugin(sys.argv[1])
try:
    context.compile(context.parse(pathlib.Path(sys.argv[2]).read_text()))
except KilnError as error:
    print(error)
print(context.report().i64("passes_run.threw"), context.report().i64("passes_run.errors"))
"""


@unittest.skipUnless(shutil.which("rustc"), "SKIP: rust: no rustc on PATH")
class RustTest(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="kiln-rust-")
        cls.addClassCleanup(folder.cleanup)
        cls.author = pathlib.Path(folder.name) / "author"
        subprocess.run([KILN, "plugin", "new", cls.author, "--lang", "rust"], check=True, stdout=subprocess.DEVNULL)
        (cls.author / "author.rs").rename(cls.author.parent / "template.rs")
        shutil.copy(SOURCE / "tests" / "e2e" / "plugins" / "author.rs", cls.author)
        cls.plugin = cls.build()

    @classmethod
    def build(cls, *flags):
        return cls.compile(cls.author / "author.rs", cls.author / f"author{len(flags)}.so", *flags)

    @staticmethod
    def compile(source, plugin, *flags):
        subprocess.run(["rustc", "--edition", "2021", "-O", "-D", "warnings", *flags, "--crate-name", "plugin", "--crate-type",
                        "cdylib", source.name, "-o", plugin], check=True, cwd=source.parent)
        return plugin

    def setUp(self):
        super().setUp()
        self.x = self.file("x.npy")
        write_npy(self.x, [4], [1, 2, 3, 4])

    def told(self, value, passes, *words, code=0):
        """Both streams of a run, without what passes say when they are dropped: each does, once."""
        done = self.call(KILN, "run", self.write_graph(value), "--plugin", self.plugin, "--passes", passes, "--input",
                         f"x={self.x}", *words, code=code)
        self.assertIn(done.stderr.count("dropped\n"), (PASSES, 2 * PASSES))  # options are looked up in a context of their own
        return done.stdout + done.stderr.replace("dropped\n", "")

    def test_what_fails_in_a_pass_is_told_with_its_text(self):
        for name, line in (
                ("panics", r"it panicked at author\.rs:\d+:\d+: index out of bounds: the len is 0 but the index is 2"),
                ("fails", "there is nothing to do"),
                ("asks_for_an_op_that_is_not_there", "no op is named 'nge'; did you mean 'ne'\\?"),
                ("asks_for_another_kind", r"'by' is I64\(2\), of another kind than was asked for"),
                ("misshapes", r"a constant of shape \[2, 2\] has not 1 elements"),
                ("replaces_by_another_type", r"replacing 'y' by 'sum': the former is f32\[n\], the latter f32\[\]")):
            self.assertRegex(self.told(NEGATED, name, code=1), f"^kiln: pass '{name}' of author: failed: {line}\n$")

    def test_a_pass_reads_the_graph(self):
        value = graph([f32("x", "n")], [node("c", "add", ["x", "two"]), node("y", "softmax", ["c"], dim=0)], ["y"],
                      constants=[{**f32("two", 1), "data": [2.0]}])
        value["nodes"][1]["annotations"] = {"host.note": {"text": "here"}}
        self.assertEqual(re.findall("warning: pass 'looks' of author: (.*)", self.told(value, "looks")), [
            "x kind 1 dtype 2 rank 1 uses 1 users 1 operands 0",
            "two kind 3 dtype 2 rank 1 uses 1 users 1 operands 0 [1] [2.0] elements are of code 2, 32 bits; not i32",
            "c kind 4 dtype 2 rank 1 uses 1 users 1 operands 2",
            'y kind 4 dtype 2 rank 1 uses 1 users 0 operands 1 dim=I64(0) host.note=Text("here")',
            "signature (1, 0, 1)"])

    def test_a_pass_adds_nodes_by_its_options_and_by_what_it_asks(self):
        for words, factor in ([], 2), (["--fact", "host.rank=2"], 6), (["--plugin-option", "scales.by=-1"], -1):
            self.told(NEGATED, "scales", "--output", "y=" + self.file("y.npy"), *words)
            self.assertEqual(read_npy(self.file("y.npy"))[1], [-factor, -2 * factor, -3 * factor, -4 * factor])
        done = self.call(KILN, "inspect", self.file("graph.json"), "--plugin", self.plugin, "--passes", "scales", "--after", "scales")
        self.assertIn('{host.names=["a", ""], host.sizes=[4, 5]}\n', done.stdout)

    def test_a_pass_says_why_it_cannot_be_cached(self):
        self.assertIn("uncacheable because it reads the clock", self.told(NEGATED, "reads_the_clock"))

    def test_a_pass_of_patterns_rewrites(self):
        value = graph([f32("x", "n")], [node("a", "neg", ["x"]), node("b", "neg", ["a"]), node("y", "exp", ["b"])], ["y"])
        done = self.call(KILN, "inspect", self.write_graph(value), "--plugin", self.plugin, "--passes", "rewrites_by_patterns",
                         "--after", "rewrites_by_patterns")
        self.assertIn("y = exp(x): f32[n]", done.stdout)

    def scaled(self, by):
        return graph([f32("x", "n")], [node("y", "mul", ["x", "by"])], ["y"], constants=[{**f32("by"), "data": [by]}])

    def test_a_function_rewrites_what_a_pattern_finds(self):
        for by, expected in (3.0, ["add", "add"]), (2.5, ["mul"]):
            done = self.call(KILN, "inspect", self.write_graph(self.scaled(by)), "--plugin", self.plugin, "--passes",
                             "rewrites_by_patterns", "--after", "rewrites_by_patterns")
            self.assertEqual(re.findall(r"= (\w+)\(", done.stdout), expected)
        for by, line in (13.0, r"it panicked at author\.rs:\d+:\d+: 13 is no number for this"), (14.0, "it is too much"):
            told = self.told(self.scaled(by), "rewrites_by_patterns", code=1)
            self.assertRegex(told, f"^kiln: pass 'rewrites_by_patterns' of author: failed: pattern 'scaled' at 'y': {line}\n$")

    def test_what_panics_is_told_apart_from_what_fails(self):
        if any(word in KILN.read_bytes() for word in (b"__asan_init", b"__tsan_init")):
            self.skipTest("SKIP: Python has no sanitizer")
        for body, counted in ('panic!("no luck")', "1 0"), ('kiln::fail(kiln::OUT_OF_RANGE, "no luck")', "0 1"):
            source = self.author / "unlucky.rs"
            source.write_text(UNLUCKY.replace("BODY", body))
            plugin = self.compile(source, self.author / f"unlucky{counted[0]}.so")
            done = subprocess.run([sys.executable, "-c", COUNTS, plugin, self.write_graph(NEGATED)], check=True, text=True,
                                  capture_output=True, env={**os.environ, "PYTHONPATH": str(SOURCE / "tests" / "abi" / "hosts"),
                                                            "KILN_LIBRARY": str(BUILD / "lib" / "libkiln.so")})
            self.assertRegex(done.stdout, f"^pass 'unlucky' of unlucky: failed: .*no luck\n{counted}\n$")

    def test_ops_infer_decompose_and_run(self):
        value = graph([f32("x", "n")], [node("h", "author.halves", ["x"]), node("t", "author.twice", ["h:1"])], ["t"])
        value["outputs"].append({"name": "h", "value": "h:0"})
        outputs = "--output", "h=" + self.file("h.npy"), "--output", "t=" + self.file("t.npy")
        self.told(value, NONE, *outputs)
        self.assertEqual([read_npy(self.file(name))[1] for name in ("h.npy", "t.npy")], [[1, 2], [6, 8]])
        write_npy(self.x, [3], [1, 2, 3])
        self.assertIn("[author.halves] x dim 0 and twice its half must be equal; n is 3", self.told(value, NONE, code=1))
        write_npy(self.x, [2], [1000, 2])
        self.assertRegex(self.told(value, NONE, code=1), r"node 'h': \[author\.halves\] it panicked at author\.rs:.*: 1000 is too much, in run 1")

    def test_a_backend_runs_its_region_and_may_panic(self):
        words = ["--backend", "author", "--output", "y=" + self.file("y.npy")]
        for by in -1, 3:
            for _ in range(2):  # the second time from the cache
                self.told(NEGATED, NONE, *words, "--option", f"backend.author.by={by}")
                self.assertEqual(read_npy(self.file("y.npy"))[1], [by, 2 * by, 3 * by, 4 * by])
        self.assertRegex(self.told(NEGATED, NONE, *words, "--option", "backend.author.by=0", code=1),
                         r"it panicked at author\.rs:\d+:\d+: by is to be another number")
        self.assertRegex(self.told(NEGATED, NONE, *words, "--option", "backend.author.by=7", code=1), "it panicked at .*: no sevens\n")
        value = graph([f32("x", "n")], [node("y", "exp", ["x"])], ["y"])
        done = self.call(KILN, "inspect", self.write_graph(value), "--plugin", self.plugin, "--passes", NONE, "--backend",
                         "author", "--regions")
        self.assertIn("backend author does not take 'y' [exp]: it only negates", done.stdout)

    def test_random_graphs_have_more_of_the_ops_that_it_names(self):
        counts = []
        for op in "neg", "rms_norm":
            source = self.author.parent / op / "names.rs"
            source.parent.mkdir()
            shutil.copytree(self.author / "kiln", source.parent / "kiln")
            text = (self.author.parent / "template.rs").read_text()
            source.write_text(text.replace("let neg =", f'graph.op("{op}")?;\n    let neg ='))
            plugin = self.compile(source, source.with_suffix(".so"))
            counts.append(sum(self.kiln("plugin", "check", plugin, "--reproduce", seed).count('"op": "rms_norm"')
                              for seed in range(3)))
        self.assertGreater(counts[1], counts[0])

    def test_the_plugin_of_the_page_is_built_by_its_command_and_passes_its_test(self):
        page = (SOURCE / "docs" / "passes.md").read_text()
        folder = self.folder / "fold_twice"
        self.kiln("plugin", "new", folder, "--lang", "rust")
        (folder / "fold_twice.rs").write_text(re.search(r"```rust\n(.*?)```", page, re.DOTALL)[1])
        command = re.search(r"^    (mkdir build && rustc .*)$", page, re.MULTILINE)[1]
        subprocess.run(command, shell=True, check=True, cwd=folder)
        self.assertEqual(self.kiln("plugin", "test", folder), "ok    fold_twice\n")

    def test_the_pattern_of_the_page_calls_its_function(self):
        page = (SOURCE / "docs" / "passes.md").read_text()
        block = re.findall(r"```rust\n(.*?)```", page, re.DOTALL)[1]
        source = self.author / "drop_scale.rs"
        source.write_text(DROP_SCALE + block)
        plugin = self.compile(source, source.with_suffix(".so"))
        for by, found in (1.0, 1), (2.0, 0):
            done = self.call(KILN, "passes", "explain", self.write_graph(self.scaled(by)), "--plugin", plugin, "--pass", "drop_scale")
            self.assertIn(f"pattern scaled: 1 found, {found} rewritten", done.stdout)

    def test_a_setup_that_panics_is_told_and_leaves_nothing(self):
        told = self.kiln("plugin", "inspect", self.build("--cfg", "broken"), code=1)
        self.assertRegex(told, r"setup failed: it panicked at author\.rs:\d+:\d+: setup is broken$")


if __name__ == "__main__":
    main()
