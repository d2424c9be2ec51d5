"""rank_scale, and facts on the command line: processes of one rank share what they compile, those of another do not."""

import json

from harness import CHAIN, KILN, PLUGINS, Case, main, read_npy, write_npy

PLUGIN = ["--plugin", PLUGINS / "rank_scale.so"]
PASSES = {"cse": 0, "rank_scale": 1, "canonicalize": 0, "fold_constants": 0, "remove_no_ops": 0, "merge_views": 0}


class RankScaleTest(Case):
    def run_as(self, *facts, options=()):
        """(statistics, y of CHAIN at x = 1) in a process of its own."""
        x, y = self.folder / "x.npy", self.folder / "y.npy"
        write_npy(x, [1, 3], [1, 1, 1])
        words = ["run", self.write_graph(CHAIN), *PLUGIN, "--cache", self.cache, "--input", f"x={x}", "--output",
                 f"y={y}", "--stats", "-"]
        for fact in facts:
            words += ["--fact", fact]
        stats = json.loads(self.call(KILN, *words, *options).stdout)
        return stats, read_npy(y)[1]

    def test_each_rank_hits_its_own_in_another_process(self):
        _, plain = self.run_as()
        for lookup in ("MISS", "HIT"):
            for rank in (2, 5):
                stats, y = self.run_as(f"host.rank={rank}")
                self.assertEqual(stats["lookup"], lookup, stats["reason"])
                self.assertEqual(stats["passes_run"], PASSES if lookup == "MISS" else {})
                self.assertEqual(stats["kernels_compiled"], int(lookup == "MISS"))
                for got, one in zip(y, plain):
                    self.assertAlmostEqual(got, rank * one, delta=1e-5)
        stats, y = self.run_as()
        self.assertEqual(stats["lookup"], "HIT")
        self.assertEqual(y, plain)

    def test_an_output_that_is_written_into_an_input_stays(self):
        path = self.write_graph({"kiln": 1, "inputs": [{"name": name, "type": {"dtype": "f32", "shape": [2]}} for name in "xv"],
                                 "nodes": [{"name": "w", "op": "copy_", "inputs": ["x", "v"]},
                                           {"name": "y", "op": "neg", "inputs": ["v"]}],
                                 "outputs": [{"name": name, "value": name} for name in "wy"]})
        arrays = {name: self.folder / f"{name}.npy" for name in "xvwy"}
        write_npy(arrays["x"], [2], [1, 2])
        write_npy(arrays["v"], [2], [3, 4])
        words = ["run", path, *PLUGIN, "--fact", "host.rank=3"]
        for flag, names in ("--input", "xv"), ("--output", "wy"):
            for name in names:
                words += [flag, f"{name}={arrays[name]}"]
        self.call(KILN, *words)
        self.assertEqual([list(read_npy(arrays[name])[1]) for name in "wy"], [[3, 4], [-9, -12]])

    def test_a_miss_tells_which_answer_differs(self):
        self.run_as("host.rank=2")
        stats, _ = self.run_as("host.rank=3")
        self.assertEqual(stats["reason"],
                         "question 'host.rank' is answered 3, and the nearest record was made after 2")

    def test_its_option_names_another_question(self):
        option = ["--plugin-option", "rank_scale.question=host.world_size"]
        _, plain = self.run_as()
        _, y = self.run_as("host.world_size=4", options=option)
        self.assertAlmostEqual(y[0], 4 * plain[0], delta=1e-5)

    def test_a_fact_of_another_kind_fails_with_the_question(self):
        told = self.call(KILN, "run", self.write_graph(CHAIN), "--random", 1, "--size", "n=1", *PLUGIN, "--fact",
                         "host.rank=first", code=1).stderr
        self.assertIn("pass 'rank_scale' of rank_scale: failed: the answer to 'host.rank' is of another kind", told)

    def test_facts_are_the_hosts(self):
        told = self.kiln("run", self.write_graph(CHAIN), "--random", 1, "--fact", "rank=1", code=2)
        self.assertIn("--fact: 'rank' is not host.NAME", told)

    def test_it_warns_that_it_changes_what_is_computed(self):
        told = self.call(KILN, "run", self.write_graph(CHAIN), "--random", 1, "--size", "n=1", *PLUGIN)
        self.assertIn("pass 'rank_scale' of rank_scale changes what is computed", told.stderr)

    def test_verify_makes_a_hit_again(self):
        self.run_as("host.rank=2")
        stats, _ = self.run_as("host.rank=2", options=["--option", "verify=true"])
        self.assertEqual((stats["lookup"], stats["passes_run"]), ("HIT", PASSES))


if __name__ == "__main__":
    main()
