"""kiln compile and kiln inspect: artifacts in files, and what they show."""

import json
import pathlib
import re

from harness import CHAIN, LINEAR, MODELS, Case, f32, graph, main, node, read_npy, write_npy


class CompileTest(Case):
    def compiled(self, value=CHAIN, *words):
        self.kiln("compile", self.write_graph(value), "-o", self.file("a.kiln"), *words)
        return self.file("a.kiln")

    def test_an_artifact_runs_without_a_compiler(self):
        artifact = self.compiled()
        write_npy(self.file("x.npy"), [1, 3], [1, 2, 3])
        stats = self.stats(artifact, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"))
        self.assertEqual(stats["kernels_compiled"], 0)
        self.assertFalse(stats["llvm_loaded"])
        self.assertEqual(read_npy(self.file("y.npy"))[1], self.run_chain([1, 2, 3]))

    def test_an_artifact_has_programs_for_the_sizes_that_were_asked_for(self):
        artifact = self.compiled(CHAIN, "--specialize", "n=1")
        write_npy(self.file("x.npy"), [1, 3], [1, 2, 3])
        stats = self.stats(artifact, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"))
        self.assertEqual((stats["entry"], stats["llvm_loaded"]), ("n=1", False))
        self.assertEqual(read_npy(self.file("y.npy"))[1], self.run_chain([1, 2, 3]))
        self.assertEqual(self.stats(artifact, "--random", 1, "--size", "n=2")["entry"], "general")

    def test_an_artifact_for_several_targets_runs_by_what_fits(self):
        artifact = self.compiled(CHAIN, "--cpu", "v3,x86-64")
        write_npy(self.file("x.npy"), [1, 3], [1, 2, 3])
        stats = self.stats(artifact, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"))
        self.assertFalse(stats["llvm_loaded"])
        self.assertEqual(read_npy(self.file("y.npy"))[1], self.run_chain([1, 2, 3], "--cpu", "v3"))
        self.assertRegex(self.kiln("inspect", artifact), r"target v3\ntargets v3, x86-64\n")
        self.assertIn("'v3' is there twice", self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("b.kiln"),
                                                       "--cpu", "v3,v3", code=2))
        self.assertIn("cpu 'v9' is unknown", self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("b.kiln"),
                                                       "--cpu", "v3,v9", code=2))

    def test_a_damaged_program_for_some_sizes_is_refused(self):
        artifact = pathlib.Path(self.compiled(CHAIN, "--specialize", "n=1"))
        whole = bytearray(artifact.read_bytes())
        whole[-1] ^= 0x10
        artifact.write_bytes(whole)
        self.assertRegex(self.kiln("run", artifact, "--random", 1, "--size", "n=1", code=1),
                         r"section 'entries' at offset \d+: wrong checksum")

    def test_compile_says_what_it_wrote(self):
        line = self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"))
        self.assertRegex(line, r"a\.kiln: \d+ bytes, 1 kernels, [\d.]+ ms\n$")

    def test_compile_runs_every_pass_and_keeps_no_record(self):
        words = ["compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"), "--stats", "-"]
        for _ in range(2):
            stats = json.loads(self.kiln(*words))
            self.assertEqual(stats["lookup"], "BYPASS")
            self.assertTrue(stats["passes_run"])
        self.assertNotIn("artifact", self.kiln("cache", "ls"))  # kernels are kept: they only save emitting

    def test_two_processes_write_the_same_code(self):
        def listing():
            return self.kiln("inspect", self.compiled(), "--asm")

        self.assertEqual(listing(), listing())

    def test_equal_inputs_make_equal_files(self):
        first, second = self.compiled(LINEAR), self.file("second.kiln")
        self.kiln("compile", self.write_graph(LINEAR), "-o", second)
        self.assertEqual(pathlib.Path(first).read_bytes(), pathlib.Path(second).read_bytes())

    def test_an_artifact_for_the_reference_holds_no_code(self):
        stats = self.stats(self.compiled(LINEAR, "--backend", "reference"), "--random", 1, "--size", "n=2")
        self.assertEqual(stats["lookup"], "BYPASS")

    def test_an_artifact_cannot_be_compiled_again(self):
        self.assertIn("compiled already", self.kiln("compile", self.compiled(), "-o", self.file("b.kiln"), code=2))

    def test_flags_of_a_compile_are_refused_for_an_artifact(self):
        self.assertIn("--cpu applies to a graph", self.kiln("run", self.compiled(), "--cpu", "v3", code=2))

    def test_a_cut_artifact_is_refused(self):
        artifact = self.compiled()
        with open(artifact, "rb") as file:
            whole = file.read()
        for size in (1, 7, 64, len(whole) // 2, len(whole) - 1):
            with open(artifact, "wb") as file:
                file.write(whole[:size])
            self.assertTrue(self.kiln("run", artifact, "--random", 1, "--size", "n=1", code=1))

    def test_a_flipped_byte_is_noticed(self):
        artifact = self.compiled()
        with open(artifact, "rb") as file:
            whole = bytearray(file.read())
        for at in range(0, len(whole), max(1, len(whole) // 40)):
            changed = bytearray(whole)
            changed[at] ^= 0x10
            with open(artifact, "wb") as file:
                file.write(changed)
            self.assertTrue(self.kiln("inspect", artifact, code=1))

    def test_a_folder_that_is_not_there(self):
        self.assertIn("missing", self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("missing/a.kiln"), code=1))


class WeightsTest(Case):
    """kiln compile --weights: the program and its parameters as one file."""

    MODEL = MODELS / "digits"

    def compiled(self, *words):
        self.kiln("compile", self.MODEL / "graph.json", "--weights", self.MODEL / "weights.safetensors", "-o",
                  self.file("a.kiln"), *words)
        return self.file("a.kiln")

    def run_it(self, artifact, *words):
        self.kiln("run", artifact, "--random", 1, "--size", "batch=2", "--output", "logits=" + self.file("y.npy"), *words)
        return read_npy(self.file("y.npy"))

    def test_it_runs_without_the_weights(self):
        expected = self.run_it(self.MODEL / "graph.json", "--weights", self.MODEL / "weights.safetensors")
        artifact = self.compiled()
        copy = self.file("copy.kiln")
        pathlib.Path(artifact).rename(copy)
        self.assertEqual(self.run_it(copy), expected)
        self.assertEqual(self.run_it(copy, "--cache", "off"), expected)
        # Others may be given in their place.
        self.assertEqual(self.run_it(copy, "--weights", self.MODEL / "weights.safetensors"), expected)

    def test_two_processes_write_the_same_file(self):
        first = pathlib.Path(self.compiled()).read_bytes()
        self.assertEqual(pathlib.Path(self.compiled()).read_bytes(), first)

    def test_inspect_tells_what_it_has(self):
        text = self.kiln("inspect", self.compiled())
        self.assertRegex(text, r"\nweights \d+ bytes\n")
        names = [p["name"] for p in json.loads(self.kiln("inspect", self.file("a.kiln"), "--json"))["parameters"]]
        for name in names:
            self.assertRegex(text, rf"\nweights parameter {re.escape(name)}: (\d+ bytes|as it is prepared)\n")
        self.assertRegex(text, r"\nweights prepared of .*: \d+ bytes\n")
        self.kiln("compile", self.MODEL / "graph.json", "-o", self.file("b.kiln"))
        self.assertNotIn("weights", self.kiln("inspect", self.file("b.kiln")))

    def test_what_it_cannot_be_is_refused(self):
        words = ["compile", self.MODEL / "graph.json", "--weights", self.MODEL / "weights.safetensors", "-o",
                 self.file("b.kiln")]
        self.assertIn("--weights is for one target", self.kiln(*words, "--cpu", "v3,x86-64", code=2))
        self.assertIn("--unpacked writes a folder", self.kiln(*words, "--unpacked", code=2))
        self.assertIn("its parameters are in", self.kiln("unpack", self.compiled(), "-o", self.file("folder"), code=1))

    def test_names_that_the_file_lacks_are_told(self):
        message = self.kiln("compile", self.write_graph(LINEAR), "--weights", self.MODEL / "weights.safetensors", "-o",
                            self.file("b.kiln"), code=1)
        self.assertIn("has none of the graph's parameters, 'b', 'w'", message)

    def test_a_run_of_a_file_with_a_changed_weight_ends_with_an_error(self):
        artifact = pathlib.Path(self.compiled())
        changed = bytearray(artifact.read_bytes())
        changed[-4096] ^= 0x40
        artifact.write_bytes(changed)
        for _ in range(5):  # whether it is noticed is not a matter of who comes first
            self.assertIn("is damaged, which has the parameters of a call",
                          self.kiln("run", artifact, "--random", 1, "--size", "batch=1", code=1))

    def test_a_run_that_mapped_a_damaged_record_ends_with_an_error_and_the_next_one_is_right(self):
        words = [self.MODEL / "graph.json", "--weights", self.MODEL / "weights.safetensors"]
        expected = self.run_it(*words)
        records = list(self.cache.rglob("*.kprep"))
        self.assertTrue(records)
        for record in records:
            changed = bytearray(record.read_bytes())
            changed[-1] ^= 0x40
            record.write_bytes(changed)
        self.assertIn("the record is damaged", self.kiln("run", *words, "--random", 1, "--size", "batch=1", code=1))
        self.assertEqual(self.run_it(*words), expected)

    def test_a_cut_file_is_refused(self):
        artifact = pathlib.Path(self.compiled())
        whole = artifact.read_bytes()
        artifact.write_bytes(whole[:-1])
        self.assertIn(f"{len(whole) - 1} bytes, expected {len(whole)}",
                      self.kiln("run", artifact, "--random", 1, "--size", "batch=1", code=1))


class InspectTest(Case):
    def test_a_graph_as_text_names_every_node(self):
        text = self.kiln("inspect", self.write_graph(CHAIN))
        for word in ("silu", "add", "x"):
            self.assertIn(word, text)

    def test_a_graph_as_json_reads_back(self):
        first = self.kiln("inspect", self.write_graph(CHAIN), "--json")
        self.assertEqual(self.kiln("inspect", self.write_graph(first), "--json"), first)
        self.assertEqual(json.loads(first)["kiln"], 1)

    def test_a_graph_as_a_drawing(self):
        self.assertTrue(self.kiln("inspect", self.write_graph(CHAIN), "--dot").startswith("digraph"))

    def test_functions_of_known_sizes_go_two_vectors_at_a_time(self):
        for size, pairs in (64, True), ('"n"', False):
            path = self.write_graph('{"kiln":1,"inputs":[{"name":"x","type":{"dtype":"f32","shape":[%s]}}],'
                                    '"nodes":[{"name":"y","op":"gelu","inputs":["x"]}],'
                                    '"outputs":[{"name":"y","value":"y"}]}' % size)
            self.assertEqual("fma.v16f32" in self.kiln("inspect", path, "--llvm", "--cpu", "v3"), pairs)

    def test_kernels_llvm_and_machine_code(self):
        path = self.write_graph(CHAIN)
        self.assertIn("parallel", self.kiln("inspect", path, "--kernels"))
        self.assertIn("define", self.kiln("inspect", path, "--llvm"))
        self.assertTrue(re.search(r"\bretq?\b", self.kiln("inspect", path, "--asm")))

    def test_an_artifact_shows_its_signature_and_plan(self):
        self.kiln("compile", self.write_graph(LINEAR), "-o", self.file("a.kiln"))
        text = self.kiln("inspect", self.file("a.kiln"))
        self.assertIn("backend cpu", text)
        self.assertIn("input x: f32[n, 3]", text)
        self.assertIn("parameter w: f32[2, 3]", text)
        description = json.loads(self.kiln("inspect", self.file("a.kiln"), "--json"))
        self.assertEqual(description["inputs"][0]["shape"], ["n", 3])
        self.assertEqual(description["backend"], "cpu")

    def test_an_artifact_draws_the_graph_that_it_keeps(self):
        self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"))
        self.assertTrue(self.kiln("inspect", self.file("a.kiln"), "--dot").startswith("digraph"))

    def test_the_graph_after_passes(self):
        twice = graph([f32("x", "n")], [node("a", "exp", ["x"]), node("b", "exp", ["x"]), node("y", "add", ["a", "b"])],
                      ["y"])
        path = self.write_graph(twice)
        self.kiln("compile", path, "-o", self.file("a.kiln"))
        for subject in (path, self.file("a.kiln")):
            after = json.loads(self.kiln("inspect", subject, "--graph"))
            self.assertEqual([n["inputs"] for n in after["nodes"]], [["x"], ["a", "a"]])


if __name__ == "__main__":
    main()
