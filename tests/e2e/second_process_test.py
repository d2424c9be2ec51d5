"""The second process: a hit runs no pass and loads no compiler; each component of the key makes a miss when it differs."""

import copy
import shutil

from harness import BUILD, CHAIN, MODELS, PLUGINS, Case, main

HOST = BUILD / "bin" / "kiln_e2e_host"
PRE_GRAD, POST_GRAD = 1, 3


def registered(name, uuid_byte, version="1.0", priority=0, stage=POST_GRAD):
    """Arguments of the host for a pass that changes nothing; uuid_byte 0: without identity."""
    return ["--pass", f"{name}:{stage}:{uuid_byte}:{version}:{priority}"]


ONE, TWO = registered("one", 1), registered("two", 2)


class HitTest(Case):
    def test_the_second_process_hits(self):
        words = [MODELS / "chars" / "graph.json", "--plugin", PLUGINS / "fuse_rms_norm.so", "--random", 1, "--size",
                 "batch=1", "--size", "length=8"]
        cold, warm = self.stats(*words), self.stats(*words)
        self.assertEqual(cold["lookup"], "MISS")
        self.assertEqual(cold["passes_run"]["fuse_rms_norm"], 9)
        self.assertGreater(cold["kernels_compiled"], 0)
        self.assertTrue(cold["llvm_loaded"])
        self.assertEqual(warm["lookup"], "HIT")
        self.assertEqual(warm["passes_run"], {})
        self.assertEqual((warm["kernels_compiled"], warm["kernels_from_cache"]), (0, 0))
        self.assertFalse(warm["llvm_loaded"])
        self.assertEqual(warm["key"], cold["key"])

    def test_a_program_for_some_sizes_is_found_by_itself(self):
        words = [MODELS / "chars" / "graph.json", "--random", 1, "--size", "batch=1", "--size", "length=8"]
        sizes = ["--specialize", "length=8,batch=1"]
        general = self.stats(*words)
        self.assertEqual((general["entry"], general["entries"]), ("general", []))
        made, found = self.stats(*words, *sizes), self.stats(*words, *sizes)
        for stats, lookup in ((made, "MISS"), (found, "HIT")):
            self.assertEqual(stats["lookup"], "HIT")
            self.assertEqual(stats["passes_run"], {})
            self.assertEqual(stats["entries"], [{"name": "batch=1,length=8", "state": "made", "lookup": lookup}])
            self.assertEqual(stats["entry"], "batch=1,length=8")
            self.assertEqual(stats["key"], general["key"])
        self.assertFalse(found["llvm_loaded"])

    def test_a_hit_maps_no_compiler(self):
        words = [self.write_graph(CHAIN), self.cache, "--map", *ONE, *TWO]
        cold, warm = self.call(HOST, *words).stdout, self.call(HOST, *words).stdout
        self.assertTrue(cold.startswith("MISS\t"))
        self.assertIn("libkiln_llvm", cold)
        self.assertTrue(warm.startswith("HIT\t"))
        self.assertIn("libkiln.so", warm)
        self.assertNotIn("libkiln_llvm", warm)
        self.assertNotIn("libLLVM", warm)


class KeyTest(Case):
    """Each test: what is in the cache misses once one component differs, and the reason names that component."""

    def setUp(self):
        super().setUp()
        self.look(CHAIN)
        self.assertEqual(self.look(CHAIN)[0], "HIT")

    def look(self, graph, *words):
        path = self.write_graph(graph)
        lookup, reason = self.call(HOST, path, self.cache, *words).stdout.rstrip("\n").split("\t")
        return lookup, reason

    def assert_miss(self, graph, *words, names):
        lookup, reason = self.look(graph, *words)
        self.assertEqual(lookup, "MISS")
        self.assertIn(names, reason)

    def changed(self, change):
        value = copy.deepcopy(CHAIN)
        change(value)
        return value

    def test_an_op(self):
        self.assert_miss(self.changed(lambda g: g["nodes"][0].update(op="sigmoid")), names="graph")

    def test_a_shape(self):
        self.assert_miss(self.changed(lambda g: g["inputs"][0]["type"].update(shape=["n", 4])), names="graph")

    def test_a_constant(self):
        self.assert_miss(self.changed(lambda g: g["constants"][0].update(data=[1.5])), names="graph")

    def test_what_is_known_of_a_symbol(self):
        self.assert_miss({**CHAIN, "symbols": {"n": {"max": 100}}}, names="graph")

    def test_a_name_of_the_signature(self):
        self.assert_miss(self.changed(lambda g: g["outputs"][0].update(name="z")), names="graph")

    def test_an_annotation(self):
        self.assert_miss(self.changed(lambda g: g["nodes"][0].update(annotations={"mine": {"i64": 1}})), names="graph")

    def test_an_annotation_for_people_is_no_component(self):
        graph = self.changed(lambda g: g["nodes"][0].update(annotations={"debug.line": {"i64": 1}}))
        self.assertEqual(self.look(graph)[0], "HIT")

    def test_a_name_inside_the_graph_is_no_component(self):
        graph = self.changed(lambda g: (g["nodes"][0].update(name="t"), g["nodes"][1].update(inputs=["t", "one"])))
        self.assertEqual(self.look(graph)[0], "HIT")

    def test_an_option(self):
        self.assert_miss(CHAIN, "--option", "fuse=bool:0", names="options")

    def test_a_pass_more(self):
        self.assert_miss(CHAIN, *ONE, names="pass")

    def assert_second_pass_matters(self, *words):
        self.look(CHAIN, *ONE, *TWO)
        self.assertEqual(self.look(CHAIN, *ONE, *TWO)[0], "HIT")
        self.assert_miss(CHAIN, *words, names="pass")

    def test_the_version_of_a_pass(self):
        self.assert_second_pass_matters(*ONE, *registered("two", 2, version="1.1"))

    def test_the_uuid_of_a_pass(self):
        self.assert_second_pass_matters(*ONE, *registered("two", 3))

    def test_the_stage_of_a_pass(self):
        self.assert_second_pass_matters(*ONE, *registered("two", 2, stage=PRE_GRAD))

    def test_the_priority_of_a_pass(self):
        self.assert_second_pass_matters(*ONE, *registered("two", 2, priority=1))

    def test_the_order_of_passes(self):
        self.assert_second_pass_matters(*TWO, *ONE)

    def test_an_early_pass_without_identity_that_changes_nothing_is_no_component(self):
        self.assertEqual(self.look(CHAIN, *registered("before", 0, stage=PRE_GRAD))[0], "HIT")

    def test_a_late_pass_without_identity_bypasses_the_cache(self):
        lookup, reason = self.look(CHAIN, *registered("nameless", 0))
        self.assertEqual(lookup, "BYPASS")
        self.assertIn("nameless", reason)

    def test_a_late_pass_without_identity_is_an_error_when_strict(self):
        words = [self.write_graph(CHAIN), self.cache, *registered("nameless", 0), "--option", "strict=bool:1"]
        self.assertIn("nameless", self.call(HOST, *words, code=1).stderr)


class CommandLineKeyTest(Case):
    """The components that the program's own flags and files flip."""

    WORDS = ["--random", 1, "--size", "n=2"]

    def look(self, *words):
        return self.stats(self.write_graph(CHAIN), *self.WORDS, *words)["lookup"]

    def setUp(self):
        super().setUp()
        self.look()
        self.assertEqual(self.look(), "HIT")

    def test_the_cpu(self):
        self.assertEqual(self.look("--cpu", "x86-64"), "MISS")

    def test_the_backend(self):
        self.assertEqual(self.look("--backend", "reference"), "MISS")

    def test_threads_are_no_component(self):
        self.assertEqual(self.look("--threads", "1"), "HIT")

    def test_the_bytes_of_a_plugin(self):
        copied = self.file("plugin.so")
        shutil.copy(PLUGINS / "fuse_rms_norm.so", copied)
        self.assertEqual(self.look("--plugin", copied), "MISS")
        self.assertEqual(self.look("--plugin", copied), "HIT")
        with open(copied, "ab") as file:
            file.write(b"\0")
        self.assertEqual(self.look("--plugin", copied), "MISS")

    def test_the_folder_of_a_plugin_is_no_component(self):
        self.look("--plugin", PLUGINS / "fuse_rms_norm.so")
        shutil.copy(PLUGINS / "fuse_rms_norm.so", self.file("moved.so"))
        self.assertEqual(self.look("--plugin", self.file("moved.so")), "HIT")


if __name__ == "__main__":
    main()
