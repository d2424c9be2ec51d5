"""What a compile did and a run takes: inspect --after, --dump, --profile, and the nodes that kernels come from."""

import json
import os
import pathlib

from harness import CHAIN, LINEAR, PLUGINS, Case, f32, graph, main, node

# The same sum twice, which cse makes one.
TWICE = graph([f32("x", "n", 3)], [node("a", "exp", ["x"]), node("b", "exp", ["x"]), node("y", "add", ["a", "b"])], ["y"])

GIVEN = """symbol n
input x: f32[n, 3]
a = exp(x): f32[n, 3]
b = exp(x): f32[n, 3]
y = add(a, b): f32[n, 3]
output y = y
"""
CHANGED = GIVEN.replace("b = exp(x): f32[n, 3]\n", "").replace("add(a, b)", "add(a, a)")
DIFF = """--- 000_given.txt
+++ 001_post_grad_cse.txt
@@ -1,6 +1,5 @@
 symbol n
 input x: f32[n, 3]
 a = exp(x): f32[n, 3]
-b = exp(x): f32[n, 3]
-y = add(a, b): f32[n, 3]
+y = add(a, a): f32[n, 3]
 output y = y
"""
HEADING = "; ---- after pass 'cse' of stage post_grad: 4 nodes before, 3 then\n"

# A norm as it is written by hand: two passes change it.
NORM = graph([f32("x", "n", 8)],
             [node("square", "mul", ["x", "x"]), node("mean", "mean", ["square"], dims=[-1], keepdim=True),
              node("shifted", "add", ["mean", "eps"]), node("inverse", "rsqrt", ["shifted"]),
              node("scaled", "mul", ["x", "inverse"]), node("y", "mul", ["scaled", "w"])], ["y"],
             parameters=[f32("w", 8)], constants=[{**f32("eps"), "data": [0.25]}])


class AfterTest(Case):
    def test_a_pass_and_a_stage_show_the_graph_that_they_left(self):
        path = self.write_graph(TWICE)
        self.assertEqual(self.kiln("inspect", path, "--after", "given"), GIVEN)
        self.assertEqual(self.kiln("inspect", path, "--after", "pre_grad"), GIVEN)
        for after in "cse", "post_grad":
            self.assertEqual(self.kiln("inspect", path, "--after", after), CHANGED)
        told = json.loads(self.kiln("inspect", path, "--after", "cse", "--json"))
        self.assertEqual([n["name"] for n in told["nodes"]], ["a", "y"])
        self.assertIn("digraph", self.kiln("inspect", path, "--after", "cse", "--dot"))

    def test_a_diff_tells_what_a_pass_changed(self):
        path = self.write_graph(TWICE)
        self.assertEqual(self.kiln("inspect", path, "--after", "cse", "--diff"), HEADING + DIFF)
        self.assertEqual(self.kiln("inspect", path, "--after", "post_grad", "--diff"), HEADING + DIFF)
        chain = self.write_graph(CHAIN)
        self.assertEqual(self.kiln("inspect", chain, "--after", "cse", "--diff"),
                         "; ---- after pass 'cse' of stage post_grad: nothing changed\n")
        self.assertEqual(self.kiln("inspect", chain, "--after", "post_grad", "--diff"), "; ---- nothing changed\n")

    def test_all_shows_what_was_given_and_each_pass(self):
        words = [self.write_graph(NORM), "--plugin", PLUGINS / "fuse_rms_norm.so", "--after", "all"]
        text = self.kiln("inspect", *words)
        self.assertTrue(text.startswith("; ---- as it was given\nsymbol n\n"), text)
        self.assertIn("; ---- after pass 'fuse_rms_norm' of stage", text)
        self.assertEqual(text.count("\ninput x: f32[n, 8]\n"), 3, text)  # given, fused, decomposed
        told = json.loads(self.kiln("inspect", *words, "--json"))
        self.assertEqual(told[0]["stage"], "given")
        ops = {run["pass"]: [n["op"] for n in run["graph"]["nodes"]] for run in told}
        self.assertEqual([len(ops[""]), ops["fuse_rms_norm"]], [6, ["rms_norm"]])
        self.assertNotIn("rms_norm", ops["decompose"])

    def test_stage_lower_shows_each_region(self):
        marked = graph([f32("x", "n", 3)],
                       [{**node("a", "sin", ["x"]), "annotations": {"kiln.region": {"text": "first"}}},
                        {**node("y", "softmax", ["a"], dim=1), "annotations": {"kiln.region": {"text": "last"}}}], ["y"])
        text = self.kiln("inspect", self.write_graph(marked), "--mode", "marked", "--after", "lower")
        self.assertIn("; ---- after pass 'decompose' of stage lower, of first: nothing changed\n", text)
        self.assertIn("; ---- after pass 'decompose' of stage lower, of last: ", text)
        self.assertIn(" = exp(", text)

    def test_what_does_not_go_together_is_wrong_use(self):
        path, artifact = self.write_graph(TWICE), self.file("a.kiln")
        message = self.kiln("inspect", path, "--after", "cze", code=2)
        self.assertIn("no pass of this compile and no stage is named 'cze' (did you mean 'cse'?); there are: given,", message)
        self.assertIn("--diff is for --after", self.kiln("inspect", path, "--diff", code=2))
        self.assertIn("exclude each other", self.kiln("inspect", path, "--after", "cse", "--diff", "--json", code=2))
        self.assertIn("exclude each other", self.kiln("inspect", path, "--after", "cse", "--kernels", code=2))
        self.kiln("compile", path, "-o", artifact)
        self.assertIn("--after applies to a graph", self.kiln("inspect", artifact, "--after", "cse", code=2))


class DumpTest(Case):
    def test_each_compile_has_a_folder_with_what_passes_changed(self):
        path, dump = self.write_graph(TWICE), pathlib.Path(self.file("dump"))
        words = [path, "--random", "1", "--size", "n=2", "--dump", dump]
        self.stats(*words[:-2])
        stats = self.stats(*words)
        self.assertEqual([stats["lookup"], stats["reason"]], ["BYPASS", "dump"])  # though there is a record
        self.kiln("compile", path, "-o", self.file("a.kiln"), "--dump", dump)
        self.assertEqual(sorted(os.listdir(dump)), ["compile_000", "compile_001"])
        first = dump / "compile_000"
        self.assertEqual(sorted(os.listdir(first)), [
            "000_given.dot", "000_given.json", "000_given.txt", "001_post_grad_cse.diff", "001_post_grad_cse.dot",
            "001_post_grad_cse.json", "001_post_grad_cse.txt", "passes.tsv"])
        self.assertEqual((first / "000_given.txt").read_text(), GIVEN)
        self.assertEqual((first / "001_post_grad_cse.txt").read_text(), CHANGED)
        self.assertEqual((first / "001_post_grad_cse.diff").read_text(), DIFF)
        rows = (first / "passes.tsv").read_text().splitlines()
        self.assertEqual(rows[0], "stage\tpass\tpart\tbefore\tafter\tnodes before\tnodes after")
        self.assertIn("post_grad\tcse\t\t000_given\t001_post_grad_cse\t4\t3", rows)
        self.assertEqual(rows[-1], "lower\tdecompose\t\t001_post_grad_cse\t001_post_grad_cse\t3\t3")  # nothing changed
        again = self.kiln("inspect", first / "001_post_grad_cse.json")  # it is a graph like any other
        self.assertEqual(again, CHANGED)

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        path = self.write_graph(TWICE)
        message = self.kiln("run", path, "--random", "1", "--size", "n=2", "--dump", path, code=1)
        self.assertIn("option 'dump': cannot make folder", message)


# The old value of x is read together with the new one.
LATE = graph([f32("x", "n", 8)],
             [node("b", "softmax", ["x"], dim=1), node("t", "permute", ["x"], dims=[1, 0]), node("y", "matmul", ["b", "t"]),
              node("w", "copy_", ["x", "b"])], ["y"])
WHY = "the step of 't' reads later what it would overwrite"


class InPlaceTest(Case):
    def test_a_copy_that_is_left_is_told_with_its_node_bytes_and_reason(self):
        path, artifact = self.write_graph(LATE), self.file("a.kiln")
        stats = json.loads(self.kiln("compile", path, "-o", artifact, "--stats", "-"))
        self.assertEqual([stats["in_place"], stats["copies"], stats["copied_bytes"]], [0, 1, "32*n"])
        self.assertRegex(self.kiln("inspect", artifact), rf"copy \S.* -> x, 32\*n bytes of 'w' \[copy_\]: {WHY}\n")

    def test_an_input_that_is_written_where_it_lies_is_counted(self):
        stats = self.stats(self.write_graph(graph([f32("x", "n")], [node("b", "exp", ["x"]), node("w", "copy_", ["x", "b"]),
                                                                     node("y", "neg", ["x"])], ["y"])), "--random", 1, "--size", "n=2")
        self.assertEqual([stats["in_place"], stats["copies"], stats["copied_bytes"]], [1, 0, "0"])


def noted(line, name, op, inputs, **attrs):
    return {**node(name, op, inputs, **attrs), "annotations": {"debug.line": {"text": line}}}


# A composite op between a product and a sum: two kernels and more.
MODEL = graph([f32("x", 64, 32)],
              [noted("model.py:3", "a", "matmul", ["x", "w"]), noted("model.py:4", "b", "softmax", ["a"], dim=1),
               noted("model.py:5", "y", "exp", ["b"])], ["y"], parameters=[f32("w", 32, 16)])


class Profiled(Case):
    def steps(self, path, *words):
        """The kernels of the trace that a run's profile is: their arguments."""
        self.kiln("run", path, "--random", "1", "--profile", self.file("trace.json"), *words)
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        return [event["args"] for event in events if event["ph"] == "X" and "kernel" in event["args"]]


class OriginTest(Profiled):
    def test_kernels_tell_the_nodes_and_annotations_of_the_graph_that_was_given(self):
        path = self.write_graph(MODEL)
        text = self.kiln("run", path, "--random", "1", "--times")
        self.assertIn("'a' [matmul] (debug.line=model.py:3)", text)
        self.assertIn("'b' [softmax] (debug.line=model.py:4)", text)  # and not what it is made of
        self.assertNotIn("[max]", text)
        for view in "--kernels", "--llvm", "--asm":
            self.assertRegex(self.kiln("inspect", path, view), r"---- kernel \d+ of 'a' \[matmul\]")
        self.kiln("compile", path, "-o", self.file("a.kiln"))
        self.assertIn(" of 'a' [matmul]", self.kiln("inspect", self.file("a.kiln")))

    def test_a_hit_has_the_names_and_annotations_of_the_graph_at_hand(self):
        other = json.loads(json.dumps(MODEL).replace("model.py", "other.py").replace('"b"', '"renamed"'))
        first, second = self.steps(self.write_graph(MODEL)), self.steps(self.write_graph(other))
        self.assertEqual(self.stats(self.write_graph(other), "--random", "1")["lookup"], "HIT")
        nodes = [" ".join(step["nodes"] for step in steps) for steps in (first, second)]
        self.assertIn("'b' [softmax] (debug.line=model.py:4)", nodes[0])
        self.assertIn("'renamed' [softmax] (debug.line=other.py:4)", nodes[1])
        self.assertNotIn("model.py", nodes[1])

    def test_an_error_of_a_run_has_the_annotations_of_its_node(self):
        path = self.write_graph(graph([{"name": "x", "type": {"dtype": "i32", "shape": [2]}}],
                                      [noted("model.py:7", "y", "div", ["x", "zero"])], ["y"],
                                      constants=[{"name": "zero", "type": {"dtype": "i32", "shape": []}, "data": [0]}]))
        self.assertIn("node 'y' [div] (debug.line=model.py:7)", self.kiln("run", path, "--random", "1", code=1))

    def test_what_a_pass_made_is_told_by_its_op(self):
        words = ["--plugin", PLUGINS / "fuse_rms_norm.so", "--size", "n=4"]
        self.assertIn("[rms_norm]", " ".join(step["nodes"] for step in self.steps(self.write_graph(NORM), *words)))
        hit = self.steps(self.write_graph(NORM), *words)
        self.assertIn("a pass's [rms_norm]", " ".join(step["nodes"] for step in hit))


class ProfileTest(Profiled):
    def test_estimates_are_those_of_the_sizes_of_the_run(self):
        rows = graph([f32("x", "n", 1024)], [node("y", "neg", ["x"])], ["y"])
        for n in 3, 5:
            step, = self.steps(self.write_graph(rows), "--size", f"n={n}")
            self.assertEqual([step["bytes"], step["flops"]], [n * 1024 * 4 * 2, n * 1024])
        product, = self.steps(self.write_graph(graph([f32("a", 64, 32), f32("b", 32, 16)],
                                                     [node("y", "matmul", ["a", "b"])], ["y"])))
        self.assertEqual(product["flops"], 2 * 64 * 32 * 16)
        self.assertEqual(product["bytes"], 4 * (64 * 32 + 32 * 16 + 64 * 16))

    def test_the_trace_has_the_compile_and_the_steps_one_after_the_other(self):
        path = self.write_graph(MODEL)
        table = self.kiln("run", path, "--random", "1", "--profile", self.file("trace.json"))
        self.assertRegex(table, r"roof, as measured: [0-9.]+ GB/s, [0-9.]+ GFLOP/s")
        self.assertRegex(table, r" %  kernel \d+ of 'a' \[matmul\]")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        self.assertIn("kernels", [span["name"] for span in spans if span["tid"] == 1])
        run = [span for span in spans if span["tid"] == 2]
        for before, after in zip(run, run[1:]):
            self.assertGreaterEqual(after["ts"] + 1e-3, before["ts"] + before["dur"])
        self.assertTrue(all(span["dur"] >= 0 for span in spans))

    def test_an_artifact_is_profiled_without_its_compile(self):
        path = self.write_graph(LINEAR)
        self.kiln("compile", path, "-o", self.file("a.kiln"))
        self.assertIn("[linear]", " ".join(step["nodes"] for step in self.steps(self.file("a.kiln"), "--size", "n=2")))


if __name__ == "__main__":
    main()
