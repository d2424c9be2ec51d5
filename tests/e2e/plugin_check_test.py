"""kiln plugin check: each of its tests fails for a plugin that is wrong in that way (plugins/bad.c), and what is right passes."""

import json
import re
import signal
import subprocess

from harness import KILN, PAIR, PLUGINS, SOURCE, Case, f32, graph, main, node

# Of each bad plugin the test that finds it, and what that says.
BAD = [
    ("NOTE", "load", "its table and its note differ in features_needed"),
    ("EMPTY", "load", "its setup registers nothing"),
    ("TYPE", "invariants", "pass 'bad' of bad: .*invariant 'signature' broken by the graph: output '.*' was f32.* and is bool"),
    ("NOT_DONE", "invariants", "pass 'bad' of bad.*kiln_pass_done"),
    ("LARGE", "invariants", "graph 'model chars': .*too many nodes"),
    ("EXIT", "identity", "another process ended before it had told what it makes"),
    ("PATTERN_TYPE", "invariants", r"graph 'pattern bad/exchanged.*': pass 'bad' of bad: .*pattern 'exchanged'"),
    ("PATTERN", "numerics", r"graph 'pattern bad/exchanged.*': output 'out0' differs by .* from what it was before the passes"),
    ("WRONG", "numerics", "output '.*' differs by .* from what it was before the passes"),
    ("HALF", "numerics", r"graph 'random \d+': output '.*' differs by"),
    ("NESTED", "random", r"graph 'random \d+': output '.*' differs by"),
    ("EFFECT", "numerics", r"graph 'random \d+': \d+ effects happen in a run, and \d+ did before the passes"),
    ("ALTERNATING", "repeat", "graph '.*': the second compile in a context makes something else of it"),
    ("CONSTANT", "repeat", "graph '.*': the second compile in a context makes something else of it"),
    ("IDENTITY", "identity", "another process finds another identity in 'what it registers': '.*version"),
    ("FINGERPRINT", "cache", "a second context does not find what was made.*: 'HIT' or 'MISS: component 'pass bad' differs"),
    ("PROCESS", "cache", "another process does not find what was made.*: 'HIT' or 'MISS: component 'pass bad' differs"),
    ("STATE", "cache", "another process .* finds something else: '.* on backend bad': '.*outputs .*' or '.*outputs"),
    ("OP", "ops", "graph 'sample bad.op/row': output 'y' differs by .* from the reference"),
    ("OP_TWICE", "ops", "graph 'sample bad.op/row': (a second run gives other outputs|output 'y' differs)"),
    ("NO_SAMPLES", "ops", "op 'bad.op' has no samples"),
    ("BACKEND", "backends", "differs by .* from the reference, on backend bad"),
    ("VARIABLE", "surroundings", "a process with each variable set that the plugin's file has the name of makes something else"),
    ("COUNT_VARIABLE", "surroundings", "a process with each variable set that the plugin's file has the name of makes"),
    ("FILES", "surroundings", "a process in an empty folder makes something else"),
    ("CLOCK", "surroundings", "another process, a second later, makes something else"),
    ("FACT", "facts", "with host.rank=5, after a compile with host.rank=2, something else is made than without that of"),
    ("FACT_TYPE", "facts", "pass 'bad' of bad: .*invariant 'signature' broken by the graph"),
    ("FACT_KEPT", "facts", "with host.rank=5, after a compile with host.rank=2, something else is made than without"),
    ("NAMES", "names", "with other names of nodes it becomes another graph"),
    ("GLOBAL", "threads", "threads at once, .*, make something else of"),
    ("LEAK", "leaks", r"graphs are compiled \d+ bytes more stay in use"),
    ("HANDLE", "leaks", r"\d+ handles are left"),
    ("TOO_STRICT", "hosts", r"in a host of (a later ABI|ABI 1\.0) its setup fails: .*another table"),
]

# Sanitizers keep memory of their own, and tell leaks and faults themselves.
SANITIZED = any(word in KILN.read_bytes() for word in (b"__asan_init", b"__tsan_init"))
NOT_SANITIZED = {"LEAK", "HANDLE", "TOO_NEW"}


class CheckTest(Case):
    def failures(self, *words):
        return self.call(KILN, "plugin", "check", *words, code=1).stdout

    def test_each_test_finds_what_is_wrong_in_its_way(self):
        (self.folder / "bad.txt").write_text("")
        for kind, test, expected in BAD:
            if SANITIZED and kind in NOT_SANITIZED:
                continue
            with self.subTest(kind):
                told = self.failures(self.bad_plugin(kind), "--only", test)
                self.assertRegex(told, f"^FAIL  {test} +.*({expected})")
                self.assertRegex(told, r"\n      mend: \w")

    def test_what_does_not_compile_is_told_to_be_mended_alike_by_each_test_that_meets_it(self):
        for test in ("invariants", "numerics", "repeat", "names"):
            told = self.failures(self.bad_plugin("TYPE"), "--only", test)
            self.assertRegex(told, f"^FAIL  {test} +graph .*invariant 'signature' broken")
            self.assertIn("\n      mend: kiln plugin check P.so --graph NAME writes the graph, kiln run", told)

    def test_the_same_plugin_without_a_mistake_passes_all(self):
        told = self.kiln("plugin", "check", self.bad_plugin("NONE"))
        self.assertIn("15 of 15 tests passed, at level 10\n", told)
        self.assertEqual(len(re.findall("^ok    ", told, re.MULTILINE)), 15)

    def test_a_fact_that_is_asked_in_each_run_is_no_mistake(self):
        self.kiln("plugin", "check", self.bad_plugin("FACT_ASKED"), "--only", "facts")

    def test_facts_may_be_given(self):
        plugin = self.bad_plugin("FACT_ASKED")
        self.kiln("plugin", "check", plugin, "--only", "random", "--fact", "host.rank=2")
        self.kiln("plugin", "check", plugin, "--only", "facts", "--fact", "host.rank=2")
        self.assertRegex(self.failures(plugin, "--fact", "host.rank=5", "--level", 8), "FAIL  random +graph 'random")
        self.assertIn("--fact: 'rank' is not host.NAME",
                      self.kiln("plugin", "check", plugin, "--only", "random", "--fact", "rank=5", code=2))

    def test_what_ends_the_process_as_if_all_were_well_has_not_passed(self):
        told = self.failures(self.bad_plugin("EXIT"), "--level", 3)
        self.assertRegex(told, "FAIL  invariants +it ended the process, with exit code 0")
        self.assertRegex(told, "FAIL  numerics +it ended the process, with exit code 0")

    def test_what_ends_the_process_ends_one_test(self):
        told = self.failures(self.bad_plugin("RARE"), "--level", 8, "--seed", 3)
        self.assertRegex(told, r"FAIL  random +it was ended by signal 6 \(Aborted\)")
        self.assertIn("ok    load", told)
        if not SANITIZED:
            self.call(KILN, "plugin", "check", self.bad_plugin("TOO_NEW"), "--only", "hosts", code=-signal.SIGSEGV)

    def test_what_does_not_load_is_tested_no_further(self):
        told = self.failures(self.bad_plugin("CRASH"))
        self.assertRegex(told, r"FAIL  load +it was ended by signal 6")
        self.assertIn("0 of 1 tests passed", told)
        self.assertNotIn("invariants", told)
        self.assertRegex(self.failures(self.bad_plugin("SLOW"), "--seconds", 1), "FAIL  load +it did not end within 1 s")

    def test_a_level_has_the_tests_of_those_below_it(self):
        told = self.kiln("plugin", "check", PLUGINS / "template.so", "--level", 2)
        self.assertEqual(re.findall(r"^ok    (\w+)", told, re.MULTILINE), ["load", "invariants"])

    def test_a_seed_is_one_graph_again_and_again(self):
        told = self.kiln("plugin", "check", PLUGINS / "template.so", "--reproduce", 7)
        self.assertEqual(told[:told.index("ok ")], self.kiln("plugin", "check", PLUGINS / "template.so", "--reproduce", 7)[:told.index("ok ")])
        self.assertIn('{"kiln": 1', told)
        self.kiln("inspect", self.write_graph(told[:told.index("ok ")]))

    def test_random_graphs_have_types_nested_graphs_and_effects(self):
        graphs = [self.kiln("plugin", "check", PLUGINS / "template.so", "--graph", f"random {seed}") for seed in range(60)]
        for word in ('"f16"', '"bf16"', '"f64"', '"call"', '"cond"', '"while"', '"scan"', '"check.note"', '"copy_"'):
            self.assertTrue(any(word in graph for graph in graphs), word)

    def test_a_graph_that_a_failure_names_is_written(self):
        plugin = PLUGINS / "template.so"
        for name in "model chars", "model digits", "sample softmax/rows":
            self.kiln("inspect", self.write_graph(self.kiln("plugin", "check", plugin, "--graph", name)))
        self.assertIn("--graph: there is no 'model char' (did you mean 'model chars'?)",
                      self.kiln("plugin", "check", plugin, "--graph", "model char", code=2))

    def pattern_graphs(self, plugin, name):
        """All that are made of one, by --graph."""
        graphs = []
        while len(graphs) < 30:
            number = f" {len(graphs) + 1}" if graphs else ""
            done = self.call(KILN, "plugin", "check", plugin, "--graph", f"pattern {name}{number}", code=None)
            if done.returncode:
                break
            graphs.append(done.stdout)
        return graphs

    def test_patterns_that_plugins_declare_are_found_in_graphs_that_are_made_of_them(self):
        for name in "fuse_rms_norm", "fold_batch_norm":
            plugin = PLUGINS / f"{name}.so"
            pattern = json.loads(self.kiln("plugin", "inspect", plugin, "--json"))["passes"][0]["patterns"][0]["pattern"]
            graphs = self.pattern_graphs(plugin, f"{name}/{pattern}")
            self.assertGreater(len(graphs), 4)
            for value in graphs:
                told = self.kiln("passes", "explain", self.write_graph(value), "--plugin", plugin, "--pass", name)
                self.assertIn(f"pattern {pattern}: 1 found", told)

    def test_the_graphs_of_a_pattern_have_its_parts_in_each_way(self):
        plugin = self.bad_plugin("PARTS")
        graphs = [json.loads(value) for value in self.pattern_graphs(plugin, "bad/parts")]
        nodes = [{node["name"]: node["inputs"] for node in value["nodes"]} for value in graphs]
        self.assertEqual({tuple(each["y"]) for each in nodes}, {("x", "s"), ("s", "x")})
        self.assertEqual({tuple(each["s"]) for each in nodes}, {("n",), ("x",)})
        types = [value["inputs"][0]["type"] for value in graphs]
        self.assertLessEqual({"f32", "f64", "bf16"}, {each["dtype"] for each in types})
        self.assertEqual({len(each["shape"]) for each in types}, {1, 2, 3, 4})
        self.assertTrue(any(1 in each["shape"] for each in types))
        self.assertIn("3 of 3 tests passed", self.kiln("plugin", "check", plugin, "--level", 3))

    def test_graphs_that_are_named_are_tested_and_named(self):
        path = self.write_graph(PAIR)
        told = self.failures(self.bad_plugin("WRONG"), path, "--only", "numerics")
        self.assertIn(f"graph '{path}': output 'y' differs", told)

    def test_what_is_no_graph_is_told_once_and_is_no_failure_of_a_pass(self):
        path = self.write_graph('{"kiln": 1, "nodes": [{"name": "y", "op": "absent", "inputs": []}], "outputs": ["y"]}')
        told = self.failures(PLUGINS / "template.so", path)
        self.assertRegex(told, f"FAIL  load +the plugin loads; {path} is no graph, with its ops or without: .*'absent'")
        self.assertIn("0 of 1 tests passed", told)

    def test_the_graphs_of_a_plugins_folder_are_tested(self):
        (self.folder / "golden").mkdir()
        path = self.write_graph(PAIR, "golden/pair.json")
        self.assertIn(f"graph '{path}': output 'y' differs", self.failures(self.bad_plugin("WRONG"), "--only", "numerics"))

    def test_models_are_tested_in_the_sizes_of_their_files_too(self):
        graphs = [SOURCE / "tests" / "models" / name / "graph.json" for name in ("digits", "chars")]
        for name in "fuse_rms_norm", "fold_batch_norm":
            self.kiln("plugin", "check", PLUGINS / f"{name}.so", *graphs, "--level", 3)

    def test_what_cannot_be_asked_is_refused(self):
        plugin = PLUGINS / "template.so"
        self.assertIn("--only: there is no test 'laod' (did you mean 'load'?)",
                      self.kiln("plugin", "check", plugin, "--only", "laod", code=2))
        self.assertIn("--level: '11' is not an integer from 1 to 10", self.kiln("plugin", "check", plugin, "--level", 11, code=2))
        self.assertIn("--tolerance: '-1' is not a number above 0",
                      self.kiln("plugin", "check", plugin, "--tolerance", "-1", code=2))
        self.assertIn("No such file", self.kiln("plugin", "check", self.file("absent.so"), code=1))
        told = self.kiln("plugin", "check", plugin, self.file("absent.json"), code=1)
        self.assertTrue("absent.json: No such file" in told and "FAIL" not in told, told)
        self.assertIn("1 of 1 tests passed, at level 1; not at this level: invariants, numerics,",
                      self.kiln("plugin", "check", plugin, "--level", 1))


class ShippedTest(Case):
    def test_all_plugins_that_come_with_kiln_pass(self):
        for plugin in sorted(PLUGINS.glob("*.so")):
            with self.subTest(plugin.name):
                graphs = sorted((SOURCE / "plugins" / plugin.stem / "golden").glob("*.json"))
                self.assertIn("15 of 15 tests passed", self.kiln("plugin", "check", plugin, *graphs))


if __name__ == "__main__":
    main()
