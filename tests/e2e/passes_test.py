"""kiln passes: what a compile would run, in order."""

import json

from harness import BUILD, CHAIN, KILN, PLUGINS, Case, main

FUSE, FOLD = PLUGINS / "fuse_rms_norm.so", PLUGINS / "fold_batch_norm.so"
CLEANUP = ["canonicalize", "fold_constants", "remove_no_ops", "merge_views"]  # Kiln's own, after others' passes


class PassesTest(Case):
    def told(self, *words):
        return json.loads(self.kiln("passes", self.write_graph(CHAIN), "--json", *words))

    def stages(self, *words):
        return {stage["name"]: [step["name"] for step in stage["steps"]] for stage in self.told(*words)["stages"]}

    def compiled(self, *words):
        return self.stats(self.write_graph(CHAIN), "--random", 1, "--size", "n=2", *words)

    def test_the_stages_are_the_phases_of_a_compile(self):
        for words in ([], ["--mode", "except_fallback"], ["--backend", "reference"], ["--option", "split_at=silu"],
                      ["--specialize", "n=2", "--mode", "none"]):
            ran = self.compiled(*words)
            self.assertEqual(ran["lookup"], "MISS")
            told = [name.replace(" ", "_") + "_ms" for name in self.stages(*words)]
            self.assertEqual([*told, "read_ms", "bind_ms", "run_ms"], list(ran["phases"]))

    def test_a_bypassed_cache_is_not_looked_up(self):
        self.assertEqual(self.told()["bypass"], "")
        told = self.told("--option", "cache=false")
        self.assertEqual(told["bypass"], "cache off")
        self.assertNotIn("lookup", [stage["name"] for stage in told["stages"]])
        self.assertIn("\nBYPASS: cache off\n", self.kiln("passes", self.write_graph(CHAIN), "--option", "cache=false"))

    def test_passes_of_plugins_stand_where_they_run(self):
        plugins = ["--plugin", FUSE, "--plugin", FOLD]
        stages = self.stages(*plugins)
        self.assertEqual(stages["post_grad"], ["cse", "fuse_rms_norm", "fold_batch_norm", *CLEANUP])
        self.assertEqual(list(self.compiled(*plugins)["passes_run"]), stages["post_grad"])
        self.assertEqual(self.stages(*plugins, "--passes", "fold_batch_norm")["post_grad"], ["cse", "fold_batch_norm", *CLEANUP])
        self.assertEqual(self.stages(*plugins, "--disable-passes", "cse")["post_grad"],
                         ["fuse_rms_norm", "fold_batch_norm", *CLEANUP])
        self.assertNotIn("fold_constants", self.stages("--disable-passes", "fold_constants")["post_grad"])
        self.assertRegex(self.kiln("passes", self.write_graph(CHAIN), *plugins),
                         r"\n  pass fuse_rms_norm +of fuse_rms_norm, version \S+, late, priority 0, uuid and file 6d1f8a52")

    def test_steps_of_relaxed_rounding_are_told_where_they_run(self):
        relaxed = ["--rounding", "relaxed"]
        self.assertNotIn("winograd", self.stages()["lower"])
        self.assertIn("winograd", self.stages(*relaxed)["lower"])
        self.assertNotIn("winograd", self.stages(*relaxed, "--backend", "cuda", "--arch", "sm_90")["lower"])

    def test_an_option_that_its_pass_has_not_is_told_with_those_that_it_has(self):
        told = self.kiln("run", self.write_graph(CHAIN), "--random", 1, "--size", "n=2", "--plugin", FUSE,
                         "--plugin-option", "fuse_rms_norm.depth=1", code=1)
        self.assertIn("pass 'fuse_rms_norm' has no option 'depth'; it has none", told)

    def test_compare_runs_the_reference_beside_what_the_passes_made(self):
        words = ["run", self.write_graph(CHAIN), "--random", 1, "--size", "n=2", "--compare", "reference"]
        told = self.call(KILN, *words, "--plugin", FUSE)
        self.assertRegex(told.stdout, r"\n\S+  differs from reference by \S+, relative \S+")
        self.assertIn("without pass 'fuse_rms_norm' of fuse_rms_norm", told.stderr)
        wrong = BUILD / "test_plugins" / "author.so"  # it scales the outputs
        self.assertIn(", beyond the tolerance\n", self.call(KILN, *words, "--plugin", wrong, code=1).stdout)
        off = self.call(KILN, *words, "--plugin", wrong, "--plugin-option", "scale_outputs.on=false")
        self.assertNotIn("beyond", off.stdout)
        counted = self.call(KILN, *words, "--times", "--stats", "-")  # statistics alone on standard output
        self.assertEqual(json.loads(counted.stdout)["lookup"], "MISS")
        self.assertRegex(counted.stderr, r"differs from reference by")
        self.assertRegex(counted.stderr, r" us +1 x +step 0: kernel 0")

    def test_a_number_in_the_place_of_nan_is_beyond_the_tolerance_wherever_it_stands(self):
        # fuse_attention makes 0 of a row that is hidden whole, where softmax makes NaN; the row after it is right.
        tensor = lambda name, shape: {"name": name, "type": {"dtype": "f32", "shape": shape}}
        node = lambda name, op, inputs, **attrs: {"name": name, "op": op, "inputs": inputs, "attrs": attrs}
        shown = {"name": "shown", "type": {"dtype": "bool", "shape": [2, 3]}, "data": [False] * 3 + [True] * 3}
        graph = {
            "kiln": 1,
            "inputs": [tensor("q", [1, 1, 2, 4]), tensor("k", [1, 1, 3, 4]), tensor("v", [1, 1, 3, 4])],
            "constants": [{**tensor("hidden", []), "data": ["-inf"]}, shown],
            "nodes": [node("kt", "permute", ["k"], dims=[0, 1, 3, 2]), node("s", "matmul", ["q", "kt"]),
                      node("w", "where", ["shown", "s", "hidden"]), node("p", "softmax", ["w"]),
                      node("y", "matmul", ["p", "v"])],
            "outputs": [{"name": "y", "value": "y"}]}
        words = ["run", self.write_graph(graph), "--random", 1, "--compare", "reference"]
        told = self.call(KILN, *words, "--plugin", PLUGINS / "fuse_attention.so", code=1).stdout
        self.assertIn("differs from reference by inf, relative inf at [0, 0, 0, 0], beyond the tolerance", told)

    def test_the_oracle_runs_no_pass(self):
        self.assertEqual(sum(self.stages("--plugin", FUSE, "--backend", "reference").values(), []), [])

    def test_regions_are_cut_before_they_are_lowered(self):
        self.assertNotIn("partition", self.stages()["lower"])
        lower = self.stages("--mode", "marked")["lower"]
        self.assertLess(lower.index("partition"), lower.index("decompose"))

    def test_nothing_is_compiled(self):
        self.told()
        self.assertEqual(self.kiln("cache", "ls"), "")

    def test_what_a_compile_would_refuse_is_refused(self):
        path = self.write_graph(CHAIN)
        self.assertIn("no pass is named 'cse2'; there are: cse, canonicalize, algebra", self.kiln("passes", path, "--disable-passes", "cse2", code=2))
        self.assertIn("'cpi'", self.kiln("passes", path, "--backend", "cpi", code=2))

    def test_explain_tells_the_closest_place_and_what_failed_there(self):
        path = self.write_graph(
            {"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [2, 4]}}],
             "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [4]}}],
             "constants": [{"name": "eps", "type": {"dtype": "f32", "shape": []}, "data": [1e-5]}],
             "nodes": [{"name": "square", "op": "mul", "inputs": ["x", "x"]},
                       {"name": "mean", "op": "mean", "inputs": ["square"], "attrs": {"dims": [0], "keepdim": True}},
                       {"name": "shifted", "op": "add", "inputs": ["eps", "mean"]},
                       {"name": "inverse", "op": "rsqrt", "inputs": ["shifted"]},
                       {"name": "scaled", "op": "mul", "inputs": ["x", "inverse"]},
                       {"name": "y", "op": "mul", "inputs": ["scaled", "w"]}],
             "outputs": [{"name": "y", "value": "y"}]})
        words = ["passes", "explain", path, "--plugin", FUSE, "--pass", "fuse_rms_norm"]
        told = self.kiln(*words)
        self.assertIn("pass fuse_rms_norm of fuse_rms_norm, stage post_grad: 0 rewrites\n"
                      "pattern rms_norm: 0 found, 0 rewritten\n  closest: at 'y', ", told)
        self.assertIn("\n  attribute 'dims' of 'mean' is [0], expected axes [-1]\n", told)
        closest = json.loads(self.kiln(*words, "--json"))["patterns"][0]["closest"]
        self.assertEqual((closest["node"], closest["graph"], closest["of"]), ("y", "", 9))
        self.assertEqual(self.kiln(*words, "--fact", "host.rank=3"), told)
        self.assertIn("no pass that would run is named 'fuse'", self.kiln(*words[:-1], "fuse", code=2))
        self.assertIn("--pass NAME goes with explain GRAPH", self.kiln("passes", path, "--pass", "cse", code=2))

    def test_an_artifact_has_run_its_passes(self):
        self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"))
        self.assertIn("this is an artifact", self.kiln("passes", self.file("a.kiln"), code=2))


if __name__ == "__main__":
    main()
