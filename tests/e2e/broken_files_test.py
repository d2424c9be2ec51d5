"""Files that are not what they should be: one line that names the file and what is wrong, exit code 1."""

import json
import pathlib

from harness import CHAIN, LINEAR, MODELS, Case, main, write_npy


class BrokenFilesTest(Case):
    def refused(self, *words):
        return self.kiln("run", *words, code=1)

    def test_a_graph_that_is_not_there(self):
        self.assertEqual(self.refused(self.file("absent.json")), self.file("absent.json") + ": No such file or directory")

    def test_a_graph_that_is_empty(self):
        self.assertIn("empty.json", self.refused(self.write_graph("", "empty.json")))

    def test_a_graph_that_is_cut(self):
        text = json.dumps(CHAIN)
        for size in (1, 20, len(text) // 2, len(text) - 1):
            self.assertIn("cut.json", self.refused(self.write_graph(text[:size], "cut.json")))

    def sparse(self, name, begin):
        """A file of a tebibyte, of which the disk holds the beginning."""
        with open(self.file(name), "wb") as file:
            file.write(begin)
            file.truncate(1 << 40)
        return self.file(name)

    def test_files_that_are_larger_than_memory(self):
        flags = ["--random", 1, "--size", "n=1"]
        path = self.sparse("g.json", json.dumps(CHAIN).encode())
        self.assertEqual(self.refused(path, *flags),
                         path + ": is larger than a graph's JSON may be, which is 1073741824 bytes")
        path = self.sparse("zeros.json", b"")
        self.assertIn(path + ": neither a graph", self.refused(path, *flags))
        self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"))
        artifact = pathlib.Path(self.file("a.kiln")).read_bytes()
        self.assertIn(f"header at offset 16: {1 << 40} bytes, expected {len(artifact)}",
                      self.refused(self.sparse("huge.kiln", artifact), *flags))

    def test_text_behind_a_graph(self):
        self.refused(self.write_graph(json.dumps(CHAIN) + "x"))

    def test_an_unknown_op_names_its_node(self):
        graph = {**CHAIN, "nodes": [{"name": "y", "op": "sillu", "inputs": ["x"]}]}
        self.assertIn("sillu", self.refused(self.write_graph(graph)))

    def test_an_array_of_another_shape(self):
        write_npy(self.file("x.npy"), [2, 4], range(8))
        message = self.refused(self.write_graph(CHAIN), "--input", "x=" + self.file("x.npy"))
        self.assertIn("'x'", message)
        self.assertIn("3", message)

    def test_an_array_of_another_dtype(self):
        write_npy(self.file("x.npy"), [2, 3], range(6), "<i8")
        message = self.refused(self.write_graph(CHAIN), "--input", "x=" + self.file("x.npy"))
        self.assertIn("f32", message)
        self.assertIn("i64", message)

    def test_an_array_that_is_cut(self):
        write_npy(self.file("x.npy"), [2, 3], range(6))
        whole = pathlib.Path(self.file("x.npy")).read_bytes()
        for size in (0, 5, 9, 40, len(whole) - 1):
            pathlib.Path(self.file("x.npy")).write_bytes(whole[:size])
            self.assertIn("x.npy", self.refused(self.write_graph(CHAIN), "--input", "x=" + self.file("x.npy")))

    def test_weights_that_are_cut(self):
        whole = (MODELS / "digits" / "weights.safetensors").read_bytes()
        for size in (0, 4, 8, 100, len(whole) - 1):
            pathlib.Path(self.file("w.safetensors")).write_bytes(whole[:size])
            message = self.refused(self.write_graph(LINEAR), "--weights", self.file("w.safetensors"), "--random", 1,
                                   "--size", "n=1")
            self.assertIn("w.safetensors", message)

    def test_weights_without_a_parameter(self):
        message = self.refused(self.write_graph(LINEAR), "--weights", MODELS / "digits" / "weights.safetensors",
                               "--input", "x=" + self.rows())
        self.assertIn("'w'", message)

    def rows(self):
        write_npy(self.file("x.npy"), [1, 3], [1, 2, 3])
        return self.file("x.npy")

    def test_a_plugin_that_is_none(self):
        self.assertIn("p.so", self.refused(self.write_graph(CHAIN), "--plugin", self.write_graph("text", "p.so")))

    def test_an_output_folder_that_is_not_there(self):
        message = self.refused(self.write_graph(CHAIN), "--random", 1, "--size", "n=1", "--output",
                               "y=" + self.file("absent/y.npy"))
        self.assertIn("absent/y.npy", message)


if __name__ == "__main__":
    main()
