"""kiln run: files in, files out, random data, sizes, backends."""

import json
import math
import struct

from harness import CHAIN, LINEAR, MODELS, Case, f32, graph, main, node, read_npy, typed, write_npy


def silu_plus_one(x):
    return x / (1 + math.exp(-x)) + 1


class RunTest(Case):
    def test_an_input_file_gives_an_output_file(self):
        x = [-1.0, 0.0, 0.5, 2.0, -3.0, 10.0]
        self.assert_close(self.run_chain(x), [silu_plus_one(v) for v in x])

    def test_the_reference_backend_gives_the_same(self):
        x = [0.1 * i - 2 for i in range(42)]
        self.assert_close(self.run_chain(x, "--backend", "reference"), self.run_chain(x, "--cache", "off"))

    def test_an_input_is_laid_out_as_the_graph_declares_it(self):
        values = [float(v) for v in range(6)]
        write_npy(self.file("x.npy"), [2, 3], values, "<f4")
        for strides, given in ([-3, 1], values), (["-n", -1], values), ([1, 2], values):
            path = self.write_graph({"kiln": 1, "inputs": [
                {"name": "x", "type": {"dtype": "f32", "shape": [2, "n"], "strides": strides}}],
                "nodes": [node("y", "neg", ["x"])], "outputs": [{"name": "y", "value": "y"}]})
            for backend in "cpu", "reference":
                self.kiln("run", path, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"),
                          "--backend", backend)
                self.assertEqual(list(read_npy(self.file("y.npy"))[1]), [-v for v in given])
            self.kiln("run", path, "--random", "1", "--size", "n=4")

    def test_outputs_of_strides_and_views_are_shown_and_written(self):
        write_npy(self.file("x.npy"), [2, 3], [float(v) for v in range(6)], "<f4")
        path = self.write_graph({"kiln": 1, "inputs": [typed("f32", "x", 2, 3)],
            "nodes": [node("y", "neg", ["x"]), node("t", "permute", ["x"], dims=[1, 0])],
            "outputs": [{"name": "y", "value": "y", "type": {"dtype": "f32", "shape": [2, 3], "strides": [1, -2]}},
                        {"name": "t", "value": "t", "view": True}]})
        for backend in "cpu", "reference":
            self.kiln("run", path, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"),
                      "--output", "t=" + self.file("t.npy"), "--backend", backend)
            self.assertEqual(list(read_npy(self.file("y.npy"))[1]), [-float(v) for v in range(6)])
            self.assertEqual(list(read_npy(self.file("t.npy"))[1]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0])

    def test_elements_that_strides_place_on_each_other_are_equal(self):
        path = self.write_graph({"kiln": 1, "inputs": [
            {"name": "x", "type": {"dtype": "f32", "shape": [2, 3], "strides": [0, 1]}}],
            "nodes": [node("y", "neg", ["x"])], "outputs": [{"name": "y", "value": "y"}]})
        write_npy(self.file("x.npy"), [2, 3], [1.0, 2.0, 3.0] * 2, "<f4")
        self.kiln("run", path, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"))
        self.assertEqual(list(read_npy(self.file("y.npy"))[1]), [-1.0, -2.0, -3.0] * 2)
        write_npy(self.file("x.npy"), [2, 3], [1.0, 2.0, 3.0, 1.0, 2.0, 4.0], "<f4")
        failed = self.kiln("run", path, "--input", "x=" + self.file("x.npy"), code=1)
        self.assertEqual(failed, "'x': elements differ that its strides place on each other")

    def test_times_are_those_of_the_steps_of_the_plan(self):
        path = self.write_graph({"kiln": 1, "inputs": [typed("f32", "x", 2, 3)],
            "nodes": [node("y", "neg", ["x"]), node("z", "exp", ["y"])], "outputs": [{"name": "z", "value": "z"}]})
        printed = self.kiln("run", path, "--random", "1", "--times", "--option", "fuse=false").splitlines()
        self.assertEqual(len(printed), 3, "the output, then two steps")
        for step, line in enumerate(printed[1:]):
            self.assertRegex(line, rf"^ +[0-9.]+ us +1 x  step {step}: kernel \d+\(")

    def test_one_graph_serves_no_row_and_one_row(self):
        self.assertEqual(self.run_chain([]), [])
        self.assert_close(self.run_chain([1.0, 2.0, 3.0]), [silu_plus_one(v) for v in (1.0, 2.0, 3.0)])

    def test_arrays_of_every_type_of_npy_are_read_and_written(self):
        for dtype, descr, values in (("f64", "<f8", [0.1, -2.5]), ("i64", "<i8", [2**62 + 1, -3]), ("i32", "<i4", [-5, 7]),
                                     ("i16", "<i2", [-300, 7]), ("i8", "|i1", [-100, 7]), ("u64", "<u8", [2**63 + 1, 2]),
                                     ("u32", "<u4", [2**31 + 1, 2]), ("u16", "<u2", [2**15 + 1, 2]),
                                     ("u8", "|u1", [130, 2]), ("bool", "|b1", [1, 0])):
            op = "ne" if dtype == "bool" else "add"
            path = self.write_graph(graph([typed(dtype, "x", "n")], [node("y", op, ["x", "x"])], ["y"]))
            write_npy(self.file("x.npy"), [2], values, descr)
            bits = 64 if dtype == "f64" else int(dtype[1:]) if dtype != "bool" else 8
            wrapped = [v * 2 for v in values] if dtype in ("f64", "i32", "i16") else [
                ((2 * v + 2**(bits - 1)) % 2**bits - 2**(bits - 1)) if dtype[0] == "i" else 2 * v % 2**bits for v in values]
            for backend in "cpu", "reference":
                self.kiln("run", path, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"),
                          "--backend", backend)
                self.assertEqual(read_npy(self.file("y.npy"))[1], [0, 0] if dtype == "bool" else wrapped, (dtype, backend))

    def test_types_that_npy_lacks_are_read_and_written_as_safetensors(self):
        for dtype, code, stored in ("bf16", "BF16", [0x80, 0x3F, 0x20, 0xC0]), ("f8_e5m2", "F8_E5M2", [0x3C, 0x7C]):
            shape = [2]
            header = json.dumps({"anything": {"dtype": code, "shape": shape, "data_offsets": [0, len(stored)]}}).encode()
            with open(self.file("x.safetensors"), "wb") as file:
                file.write(struct.pack("<Q", len(header)) + header + bytes(stored))
            path = self.write_graph(graph([typed(dtype, "x", "n")], [node("y", "flip", ["x"], dims=[0])], ["y"]))
            self.kiln("run", path, "--input", "x=" + self.file("x.safetensors"), "--output",
                      "y=" + self.file("y.safetensors"))
            with open(self.file("y.safetensors"), "rb") as file:
                size, = struct.unpack("<Q", file.read(8))
                described = json.loads(file.read(size))
                self.assertEqual(file.read(), bytes(stored[2:] + stored[:2] if dtype == "bf16" else stored[::-1]))
            self.assertEqual(described["y"]["dtype"], code)
            self.assertEqual(described["y"]["shape"], shape)
            # Its name is the output's: of a file of several, the one with the input's name would be taken.
            self.kiln("run", path, "--input", "x=" + self.file("y.safetensors"), "--output",
                      "y=" + self.file("z.safetensors"))

    def test_an_output_is_as_large_as_the_run_finds(self):
        path = self.write_graph(graph([f32("x", "n", 3)], [node("at", "nonzero", ["x"])], ["at:0"]))
        write_npy(self.file("x.npy"), [2, 3], [0.0, 1.0, -0.0, math.nan, 0.0, -2.0])
        for words in ["--stats", self.file("cold")], ["--stats", self.file("warm")], ["--backend", "reference"]:
            self.kiln("run", path, "--input", "x=" + self.file("x.npy"), "--output", "at:0=" + self.file("at.npy"), *words)
            self.assertEqual(read_npy(self.file("at.npy")), ([3, 2], [0, 1, 1, 0, 1, 2]), words)
        with open(self.file("warm")) as file:
            self.assertEqual(json.load(file)["lookup"], "HIT")

    def test_small_floats_are_summed_up_and_drawn(self):
        for dtype in "f16", "bf16", "f8_e4m3fn", "f8_e5m2":
            path = self.write_graph(graph([typed(dtype, "x", 64)], [node("y", "convert", ["x"], dtype="f32")], ["x", "y"]))
            shown = [line.split()[1:] for line in self.kiln("run", path, "--random", 1).splitlines() if line[:2] in "x y "]
            self.assertEqual([line[0] for line in shown], [dtype, "f32"])
            self.assertEqual(shown[0][1:], shown[1][1:])  # the same least, largest and mean
            self.assertLess(float(shown[0][shown[0].index("min") + 1]), -0.5)

    def test_the_number_of_threads_does_not_change_a_bit(self):
        x = [0.37 * i - 40 for i in range(3 * 5000)]
        self.assertEqual(self.run_chain(x, "--threads", "1"), self.run_chain(x, "--threads", "2"))

    def test_code_for_a_plain_cpu_agrees(self):
        x = [0.1 * i - 2 for i in range(42)]
        self.assert_close(self.run_chain(x, "--cpu", "x86-64"), [silu_plus_one(v) for v in x])

    def test_random_inputs_and_weights_depend_on_the_seed_alone(self):
        path = self.write_graph(LINEAR)

        def outputs(seed):
            self.kiln("run", path, "--random", seed, "--size", "n=4", "--output", "y=" + self.file("y.npy"))
            return read_npy(self.file("y.npy"))

        self.assertEqual(outputs(1), outputs(1))
        self.assertEqual(outputs(1)[0], [4, 2])
        self.assertNotEqual(outputs(1), outputs(2))

    def test_a_given_input_tells_its_sizes_to_the_random_ones(self):
        path = self.write_graph(graph([f32("a", "n", 2), f32("b", "n", 2)], [node("c", "add", ["a", "b"])], ["c"]))
        write_npy(self.file("a.npy"), [5, 2], range(10))
        self.assertIn("[5, 2]", self.kiln("run", path, "--input", "a=" + self.file("a.npy"), "--random", 1))

    def test_a_hint_is_the_size_when_none_is_given(self):
        path = self.write_graph({**CHAIN, "symbols": {"n": {"hint": 7}}})
        self.assertIn("[7, 3]", self.kiln("run", path, "--random", 1))

    def test_weights_come_from_a_file_by_name(self):
        digits = MODELS / "digits"
        self.kiln("run", digits / "graph.json", "--weights", digits / "weights.safetensors", "--input",
                  f"image={digits}/test_images.npy", "--output", "logits=" + self.file("logits.npy"))
        shape, logits = read_npy(self.file("logits.npy"))
        self.assertEqual(shape[1], 10)
        labels = read_npy(digits / "test_labels.npy")[1]
        rows = [logits[10 * i:10 * i + 10] for i in range(shape[0])]
        right = sum(row.index(max(row)) == label for row, label in zip(rows, labels))
        self.assertGreaterEqual(right / shape[0], 0.97)

    def test_stats_tell_how_it_went(self):
        path = self.write_graph(CHAIN)
        stats = self.stats(path, "--random", 1, "--size", "n=2")
        self.assertEqual(stats["lookup"], "MISS")
        self.assertGreater(stats["kernels_compiled"], 0)
        self.assertTrue(stats["llvm_loaded"])
        self.assertEqual(stats["passes_run"].keys() & {"fuse_rms_norm"}, set())
        self.assertRegex(stats["key"], "^[0-9a-f]{32,}$")
        self.assertGreater(stats["peak_bytes"], 1 << 20)
        for phase, milliseconds in stats["phases"].items():
            self.assertTrue(phase.endswith("_ms"), phase)
            self.assertGreaterEqual(milliseconds, 0)

    def test_a_long_chain_of_views_is_copied_where_its_index_maps_would_multiply(self):
        nodes, value, dims = [], "x", ["n", 4, 3, 2]
        for k in range(10):
            order = [2, 1, 3, 0] if k % 2 == 0 else [3, 1, 0, 2]
            nodes += [node(f"a{k}", "permute", [value], dims=order), node(f"b{k}", "reshape", [f"a{k}"], shape=dims)]
            value = f"b{k}"
        path = self.write_graph(graph([f32("x", *dims)], nodes, [value]))
        flags = ("--random", 1, "--size", "n=5", "--output")
        stats = self.stats(path, *flags, value + "=" + self.file("compiled.npy"))
        self.assertGreater(stats["materialised"], 0)
        self.assertEqual(stats["launches"], stats["materialised"])  # the last copy is the output, under other dims
        self.kiln("run", path, *flags, value + "=" + self.file("oracle.npy"), "--backend", "reference")
        self.assertEqual(read_npy(self.file("compiled.npy")), read_npy(self.file("oracle.npy")))

    def test_stats_go_to_a_file_too(self):
        self.kiln("run", self.write_graph(CHAIN), "--random", 1, "--size", "n=2", "--stats", self.file("s.json"))
        with open(self.file("s.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["lookup"], "MISS")

    def test_with_the_cache_off_nothing_is_looked_up_or_kept(self):
        path = self.write_graph(CHAIN)
        for _ in range(2):
            stats = self.stats(path, "--random", 1, "--size", "n=2", "--cache", "off")
            self.assertEqual(stats["lookup"], "BYPASS")
            self.assertGreater(stats["kernels_compiled"], 0)
        self.assertFalse(self.cache.exists())


if __name__ == "__main__":
    main()
