"""kiln --mode, and inspect --regions."""

import json

from harness import CHAIN, KILN, PLUGINS, Case, f32, graph, main, node, read_npy, write_npy


def marked(region, name, op, inputs, **attrs):
    return {**node(name, op, inputs, **attrs), "annotations": {"kiln.region": {"text": region}}}


# Two parts of a region around an op that is in none.
AROUND = graph([f32("x", "n", 3)],
               [marked("m", "a", "sin", ["x"]), marked("m", "b", "exp", ["a"]), node("c", "softmax", ["b"], dim=1),
                marked("m", "d", "tanh", ["c"])], ["d"])

TEXT = """mode marked
region 0 'm': 2 nodes, 1 input, 1 output, 1 kernel: a, b
region 1 'm': 1 node, 1 input, 1 output, 1 kernel: d
split 'm' before 'd': 'c' lies between, in no region
fallback 'c' [softmax]: a kernel of its own, in no region
fallbacks by op: softmax 1
"""

# A norm as it is written by hand, which the plugin fuse_rms_norm makes one op of; x is read beside it.
NORM = graph([f32("x", "n", 8)],
             [marked("norm", "square", "mul", ["x", "x"]), marked("norm", "mean", "mean", ["square"], dims=[-1], keepdim=True),
              marked("norm", "shifted", "add", ["mean", "eps"]), marked("norm", "inverse", "rsqrt", ["shifted"]),
              marked("norm", "scaled", "mul", ["x", "inverse"]), marked("norm", "y", "mul", ["scaled", "w"])], ["y"],
             parameters=[f32("w", 8)], constants=[{**f32("eps"), "data": [0.25]}])


class RegionsTest(Case):
    def test_a_graph_and_its_artifact_are_cut_alike(self):
        path, artifact = self.write_graph(AROUND), self.file("a.kiln")
        self.assertEqual(self.kiln("inspect", path, "--regions", "--mode", "marked"), TEXT)
        self.kiln("compile", path, "--mode", "marked", "-o", artifact)
        self.assertEqual(self.kiln("inspect", artifact, "--regions"), TEXT)

    def test_an_option_of_a_region_is_shown_with_it(self):
        path = self.write_graph(AROUND)
        text = self.kiln("inspect", path, "--regions", "--mode", "marked", "--option", "region.m.fuse=false")
        self.assertIn("region 0 'm' (fuse=false): 2 nodes, 1 input, 1 output, 2 kernels: a, b", text)
        words = ["compile", path, "-o", self.file("a"), "--mode", "marked", "--option"]
        self.assertIn("a compile has no option 'region.m.fuze'", self.kiln(*words, "region.m.fuze=false", code=2))
        self.assertIn("no node is marked for region 'k'; there are 'm'",
                      self.kiln(*words, "region.k.fuse=false", code=2))
        self.assertIn("under mode 'all' there are no regions",
                      self.kiln("passes", path, "--option", "region.m.fuse=false", code=2))

    def test_where_nothing_is_cut_that_is_said(self):
        path = self.write_graph(AROUND)
        self.assertTrue(self.kiln("inspect", path, "--regions").startswith("mode all: the whole graph"))
        text = self.kiln("inspect", path, "--regions", "--backend", "reference", "--mode", "marked")
        self.assertTrue(text.startswith("backend reference: the graph is run as it is given"), text)
        done = self.call(KILN, "inspect", self.write_graph(CHAIN), "--regions", "--mode", "marked")
        for text in done.stdout, done.stderr:
            self.assertIn("warning: no node is marked for a region (kiln.region)", text)

    def test_what_falls_back_says_to_what_and_why(self):
        path = self.write_graph(AROUND)
        text = self.kiln("inspect", path, "--regions", "--mode", "none", "--fallback", "reference")
        self.assertEqual(text.count("its reference kernel, by the mode"), 4)

    def test_a_drawing_has_a_cluster_a_region(self):
        text = self.kiln("inspect", self.write_graph(AROUND), "--regions", "--dot", "--mode", "marked")
        self.assertEqual(text.count("subgraph cluster_"), 2)
        self.assertIn('"c" -> "d" [lhead=cluster_1];', text)
        self.assertIn('"b" -> "c";', text)

    def test_as_json_they_are_in_the_description(self):
        path, artifact = self.write_graph(AROUND), self.file("a.kiln")
        told = json.loads(self.kiln("inspect", path, "--regions", "--json", "--mode", "marked"))["compile"]["partition"]
        self.assertEqual([region["nodes"] for region in told["regions"]], [["a", "b"], ["d"]])
        self.assertEqual(told["splits"], [{"region": "m", "node": "d", "why": "unmarked", "with": "c"}])
        self.assertEqual(told["fallback_counts"], {"softmax": 1})
        self.kiln("compile", path, "--mode", "marked", "-o", artifact)
        same = json.loads(self.kiln("inspect", artifact, "--regions", "--json"))["compile"]["partition"]
        self.assertEqual(same, told)
        self.kiln("inspect", path, "--regions", "--json", "--dot", code=2)

    def test_marks_survive_a_plugin_that_replaces_their_nodes(self):
        words = [self.write_graph(NORM), "--regions", "--mode", "marked"]
        self.assertIn("region 0 'norm': 6 nodes", self.kiln("inspect", *words))
        self.assertIn("region 0 'norm': 1 node, 2 inputs",
                      self.kiln("inspect", *words, "--plugin", PLUGINS / "fuse_rms_norm.so"))

    def test_every_mode_gives_the_same_bytes_and_a_second_process_hits(self):
        write_npy(self.file("x.npy"), [2, 3], [0.5, -1.0, 2.0, 0.0, 3.5, -2.25])
        path, results = self.write_graph(AROUND), []
        for mode in "all", "marked", "except_fallback", "none":
            words = ["--input", "x=" + self.file("x.npy"), "--output", "d=" + self.file("d.npy"), "--mode", mode]
            cold, warm = self.stats(path, *words), self.stats(path, *words)
            self.assertEqual([cold["lookup"], warm["lookup"], warm["kernels_compiled"]], ["MISS", "HIT", 0], mode)
            self.assertEqual(warm["fallbacks"], cold["fallbacks"])
            self.assertEqual(sum(warm["fallbacks"].values()), {"marked": 1, "none": 4}.get(mode, 0), mode)
            results.append(read_npy(self.file("d.npy")))
        self.assertEqual(results, results[:1] * 4)

    def test_what_the_backend_does_not_take_is_shown_with_the_reason(self):
        path = self.write_graph(graph([f32("x", 3)], [
            node("a", "sin", ["x"]),
            {**node("b", "softmax", ["a"], dim=0), "annotations": {"kiln.decompose": {"text": "keep"}}},
            node("c", "tanh", ["b"])], ["c"]))
        reason = "it is marked to be kept whole, and there is code for its decomposition alone"
        text = self.kiln("inspect", path, "--regions")
        self.assertIn(f"fallback 'b' [softmax]: its reference kernel, for the backend does not take it: {reason}\n", text)
        message = self.kiln("run", path, "--random", "1", "--fallback", "error", code=1)
        self.assertIn(f"node 'b' [softmax]: backend cpu does not take it: {reason}", message)

    def test_pieces_are_listed_drawn_and_kept_in_an_artifact(self):
        path, artifact = self.write_graph(AROUND), self.file("a.kiln")
        cut = ["--option", "split_at=exp,softmax"]
        text = "piece 0: 2 nodes: a, b\npiece 1: 1 node: c\npiece 2: 1 node: d\n"
        self.assertEqual(self.kiln("inspect", path, "--regions", *cut), text)
        self.kiln("compile", path, *cut, "-o", artifact)
        self.assertEqual(self.kiln("inspect", artifact, "--regions"), text)
        drawing = self.kiln("inspect", path, "--regions", "--dot", *cut)
        self.assertEqual(drawing.count("subgraph cluster_"), 3)
        self.assertIn('"c" -> "d" [lhead=cluster_2];', drawing)
        self.assertIn("mode marked\nregion 0 'm': 2 nodes",
                      self.kiln("inspect", path, "--regions", "--mode", "marked", *cut))

    def test_a_second_process_compiles_the_piece_that_changed(self):
        changed = graph([f32("x", "n", 3)], [*AROUND["nodes"][:3], node("d", "cos", ["c"])], ["d"])
        words = ["--size", "n=2", "--random", "1", "--option", "split_at=softmax"]
        first, second = self.stats(self.write_graph(AROUND), *words), self.stats(self.write_graph(changed), *words)
        self.assertEqual([first["lookup"], first["kernels_compiled"]], ["MISS", 2])
        self.assertEqual([second["lookup"], second["kernels_compiled"]], ["MISS", 1])
        self.assertEqual([piece["lookup"] for piece in second["pieces"]], ["HIT", "MISS"])
        self.assertEqual(second["pieces"][0]["key"], first["pieces"][0]["key"])


if __name__ == "__main__":
    main()
