"""kiln bench: what is measured, of which variants, how it is told and compared, and how it ends. No time is asserted."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import CHAIN, KILN, LINEAR, PAIR, PLUGINS, Case, f32, graph, main, node

COMPILED = ["cold_compile", "warm_compile", "lookup", "first_run", "run"]
AGGREGATES = ["mean", "median", "stddev", "cv", "p25", "p75"]
QUICK = ["--rounds", "2", "--ms", "1"]
ROWS = graph([f32("x", "n", 1024)], [node("y", "neg", ["x"])], ["y"])


class Bench(Case):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()
        self.environment["TMPDIR"] = str(self.temporary)
        self.addCleanup(self.nothing_is_left)

    def nothing_is_left(self):
        self.assertEqual(os.listdir(self.temporary), [])
        self.assertFalse(self.cache.exists(), "the user's cache was used")

    def bench(self, *words, code=0):
        """The JSON."""
        done = self.call(KILN, "bench", *words, *QUICK, "--json", "-", code=code)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def table(self, *words, code=0):
        done = self.call(KILN, "bench", *words, *QUICK, code=code)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refused(self, *words):
        return self.kiln("bench", *words, code=2)

    def chain(self):
        return [self.write_graph(CHAIN), "--size", "n=5"]


def run_names(told):
    return list(dict.fromkeys(row["run_name"] for row in told["benchmarks"]))


def variants(told):
    """Their names, of those that were run."""
    return [name.removesuffix("/run") for name in run_names(told) if name.endswith("/run")]


class FiguresTest(Bench):
    def test_a_graph_has_each_figure_in_google_benchmarks_format(self):
        told = self.bench(*self.chain())
        self.assertEqual(told["context"]["json_schema_version"], 1)
        for member in "date", "host_name", "executable", "num_cpus", "caches", "load_avg", "library_build_type":
            self.assertIn(member, told["context"])
        self.assertEqual(run_names(told), [f"graph.json/{figure}" for figure in COMPILED])
        for place, figure in enumerate(COMPILED):
            rows = [row for row in told["benchmarks"] if row["run_name"] == f"graph.json/{figure}"]
            self.assertEqual([row["run_type"] for row in rows], ["iteration"] * 2 + ["aggregate"] * len(AGGREGATES))
            for index, row in enumerate(rows[:2]):
                self.assertEqual([row["name"], row["repetitions"], row["repetition_index"]], [row["run_name"], 2, index])
                self.assertEqual([row["family_index"], "label" in row], [0, False])  # each warm compile was a hit
                self.assertGreater(row["real_time"], 0)
                self.assertGreaterEqual(row["cpu_time"], 0)
                self.assertEqual(row["iterations"] > 1, figure == "run")
                self.assertEqual(row.get("peak_bytes", 0) > 1 << 20, figure in ("run", "cold_compile"))
            for name, row in zip(AGGREGATES, rows[2:]):
                self.assertEqual([row["name"], row["aggregate_name"]], [f"{row['run_name']}_{name}", name])
                self.assertEqual(row["aggregate_unit"], "percentage" if name == "cv" else "time")
                self.assertEqual(row["time_unit"], rows[0]["time_unit"])
            times = sorted(row["real_time"] for row in rows[:2])
            self.assertAlmostEqual(rows[3]["real_time"], sum(times) / 2, delta=1e-6 * times[1])
            self.assertAlmostEqual(rows[6]["real_time"], times[0] + (times[1] - times[0]) / 4, delta=1e-6 * times[1])
            self.assertEqual(rows[0]["per_family_instance_index"] > 0, place > 0)
        self.assertEqual([told["failures"], told["differences"], "against" in told], [[], [], False])

    def test_kernels_have_the_bytes_of_the_size_and_their_share_of_the_roof(self):
        told = self.bench(self.write_graph(ROWS), "--vary", "n=3,5")
        self.assertEqual(variants(told), ["graph.json/n:3", "graph.json/n:5"])
        self.assertEqual([kernel["bytes"] for kernel in told["kernels"]], [n * 1024 * 4 * 2 for n in (3, 5)])
        for kernel in told["kernels"]:
            self.assertGreater(kernel["roof_share"], 0)
            self.assertIn("of 'y' [neg]", kernel["kernel"])

    def test_an_artifact_is_opened_and_run(self):
        path, artifact = self.write_graph(LINEAR), self.file("a.kiln")
        self.call(KILN, "compile", path, "-o", artifact)
        told = self.bench(path, artifact, "--size", "n=2", "--vary", "fuse=true,false")
        self.assertEqual(variants(told), ["graph.json/fuse:true", "graph.json/fuse:false", "a.kiln"])
        self.assertEqual([name for name in run_names(told) if name.startswith("a.kiln")],
                         ["a.kiln/open", "a.kiln/first_run", "a.kiln/run"])

    def test_the_table_shows_each_variant_below_each_figure(self):
        text = self.table(*self.chain(), "--vary", "fuse=true,false")
        for title in ("cold compile", "warm compile", "lookup", "first run", "steady run", "peak memory"):
            self.assertRegex(text, rf"\n{title}.*\n  graph.json/fuse:true +[0-9.]+ [a-zA-Z]+   .* to .*\n"
                                   r"  graph.json/fuse:false +[0-9.]+ .* x [0-9.]+ \([0-9.]+ to [0-9.]+\)\n")
        self.assertIn("\nsteps of a run of graph.json/fuse:true\n", text)

    def test_a_warm_compile_that_is_no_hit_is_told(self):
        words = [*self.chain(), "--option", "dump=" + self.file("dump")]
        row = next(row for row in self.bench(*words)["benchmarks"] if row["run_name"].endswith("warm_compile"))
        self.assertEqual(row["label"], "BYPASS: dump")
        self.assertIn("the warm compile of graph.json was no hit: BYPASS: dump\n", self.table(*words))


class VariantsTest(Bench):
    def test_several_are_the_product(self):
        told = self.bench(self.write_graph(CHAIN), "--vary", "threads=1,2", "--vary", "n=1,7", "--vary", "cpu=x86-64")
        self.assertEqual(variants(told), [f"graph.json/threads:{t}/n:{n}/cpu:x86-64" for t in (1, 2) for n in (1, 7)])
        for row in told["benchmarks"]:
            self.assertEqual(row["threads"], int(re.search("threads:(.)", row["name"])[1]))

    def test_a_list_has_colons(self):
        told = self.bench(*self.chain(), "--vary", "disable_passes=none,cse:merge_views")
        self.assertEqual(variants(told)[1], "graph.json/disable_passes:cse:merge_views")
        self.assertEqual(told["failures"], [])

    def test_plugins_are_loaded_or_not_and_outputs_compared(self):
        path = self.write_graph(PAIR)
        good, wrong = self.bad_plugin("NONE"), self.bad_plugin("WRONG")
        told = self.bench(path, "--vary", f"plugin=none,{good}", "--vary", "rounding=strict,relaxed")
        self.assertEqual(variants(told), [f"graph.json/plugin:{plugin}/rounding:{rounding}"
                                          for plugin in ("none", "NONE.so") for rounding in ("strict", "relaxed")])
        self.assertEqual(told["differences"], [])
        told = self.bench(path, "--vary", f"plugin=none,{good},{wrong}", code=1)
        (found,) = told["differences"]
        self.assertEqual([found["name"], found["beyond"]], ["graph.json/plugin:WRONG.so", True])
        self.assertRegex(found["difference"], r"^'y' by [0-9.]+, relative [0-9.]+, at \[\d\]$")
        self.assertIn("graph.json/plugin:WRONG.so differ from the first's: 'y' by", self.table(
            path, "--vary", f"plugin=none,{wrong}", code=1))

    def test_a_plugins_backend_beside_kilns(self):
        doubled = graph([f32("x", 2, 3)], [node("y", "add", ["x", "x"])], ["y"])
        told = self.bench(self.write_graph(doubled), "--plugin", PLUGINS / "backend_template.so",
                          "--vary", "backend=cpu,template")
        self.assertEqual([variants(told), told["failures"], told["differences"]],
                         [["graph.json/backend:cpu", "graph.json/backend:template"], [], []])
        # The template's own step is no kernel of Kiln's.
        self.assertEqual({kernel["run_name"] for kernel in told["kernels"]}, {"graph.json/backend:cpu/run"})

    def test_what_is_drawn_is_the_same_for_equal_sizes_alone(self):
        told = self.bench(self.write_graph(CHAIN), "--vary", "n=2,3", "--vary", "backend=cpu,reference")
        self.assertEqual([told["failures"], [row["name"] for row in told["differences"] if "cpu" in row["name"]]], [[], []])

    def test_one_that_fails_is_told_and_the_others_go_on(self):
        crash, slow = self.bad_plugin("CRASH"), self.bad_plugin("SLOW")
        told = self.bench(self.write_graph(PAIR), "--vary", f"plugin={crash},none,{slow}", "--limit", "5", code=1)
        self.assertEqual(variants(told), ["graph.json/plugin:none"])
        self.assertEqual([failure["name"] for failure in told["failures"]],
                         ["graph.json/plugin:CRASH.so", "graph.json/plugin:SLOW.so"])
        self.assertRegex(told["failures"][0]["error"], "it was ended by signal [0-9]+")
        self.assertIn("it did not end within 5 s", told["failures"][1]["error"])
        rows = [row for row in told["benchmarks"] if row.get("error_occurred")]
        self.assertEqual([row["error_message"] for row in rows], [failure["error"] for failure in told["failures"]])

    def test_a_value_that_is_none_is_a_variant_that_fails(self):
        text = self.table(*self.chain(), "--vary", "cpu=x86-64,v9", code=1)
        self.assertRegex(text, "\ngraph.json/cpu:v9 failed: cpu 'v9' is unknown")
        self.assertRegex(text, r"\n  graph.json/cpu:x86-64 +[0-9]")

    def test_what_all_fail_with_is_an_error_like_any_other(self):
        self.assertEqual(self.kiln("bench", self.file("no.json"), code=1), self.file("no.json") + ": No such file or directory")
        self.assertIn("the size of 'x' f32 [n, 3] is not known; give --size NAME=N", self.refused(self.write_graph(CHAIN)))


class UsageTest(Bench):
    def test_a_name_that_nothing_has(self):
        message = self.refused(self.write_graph(CHAIN), "--vary", "fuze=true")
        self.assertEqual(message, "--vary: 'fuze' is neither threads, plugin, an option of a compile (kiln options lists them) nor a "
                                  "symbol (n) (did you mean 'fuse'?)")

    def test_what_cannot_be_varied(self):
        for name in "cache", "code", "require_hit":
            self.assertIn(f"--vary: '{name}' cannot be varied", self.refused(*self.chain(), "--vary", f"{name}=true"))

    def test_values(self):
        path = self.write_graph(CHAIN)
        self.assertEqual(self.refused(path, "--vary", "n"), "--vary: 'n' is not NAME=VALUE")
        self.assertEqual(self.refused(path, "--vary", "n=1,"), "--vary n: a value is missing beside a comma")
        self.assertEqual(self.refused(path, "--vary", "n=1,2,1"), "--vary n: '1' is there twice")
        self.assertIn("--vary n: 'x' is not an integer from 0", self.refused(path, "--vary", "n=x"))
        self.assertIn("--vary threads: '0' is not an integer from 1", self.refused(path, "--vary", "threads=0"))

    def test_what_a_flag_says_too(self):
        path = self.write_graph(CHAIN)
        for given in ["--threads", "2"], ["--size", "n=2"], ["--cpu", "v3"], ["--option", "fuse=true"], ["--disable-passes", "cse"]:
            name = given[1].partition("=")[0] if "=" in given[1] else given[0][2:].replace("-", "_")
            self.assertRegex(self.refused(path, "--vary", f"{name}=1", *given), f"^--vary {name}: {given[0]}.* is given, too$")

    def test_too_many(self):
        many = ",".join(map(str, range(1, 10)))
        self.assertEqual(self.refused(self.write_graph(CHAIN), "--vary", f"n={many}", "--vary", f"threads={many}"),
                         "--vary asks for more than 64 variants")

    def test_options_of_a_compile_for_artifacts_alone(self):
        self.call(KILN, "compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"))
        self.assertIn("--vary fuse is of a compile", self.refused(self.file("a.kiln"), "--vary", "fuse=true"))
        self.assertIn("--cpu applies to a graph", self.refused(self.file("a.kiln"), "--size", "n=1", "--cpu", "v3"))

    def test_an_operand_twice(self):
        path = self.write_graph(CHAIN)
        self.assertEqual(self.refused(path, path), f"'{path}' is given twice")


class AgainstTest(Bench):
    def setUp(self):
        super().setUp()
        self.before = self.bench(*self.chain())

    def against(self, factors, *words, code=0):
        """Figures of now against those of before, whose rounds are these multiples of the first one's times."""
        first = [row for row in self.before["benchmarks"] if row.get("repetition_index") == 0]
        before = {"benchmarks": [{**row, "real_time": row["real_time"] * factor} for row in first for factor in factors]}
        path = self.file("before.json")
        pathlib.Path(path).write_text(json.dumps(before))
        return self.bench(*self.chain(), "--against", path, *words, code=code)["against"], path

    def times(self, rows):
        return {row["change"] for row in rows if row["unit"] == "s"}

    def test_slower_is_exit_code_3(self):
        rows, path = self.against([1e-6, 1e-6], code=3)
        self.assertEqual(self.times(rows), {"slower"})
        self.assertEqual([row["name"] for row in rows if row["unit"] == "s"], run_names(self.before))
        text = self.table(*self.chain(), "--against", path, code=3)
        for figure in COMPILED:
            self.assertRegex(text, f"\n  slower   graph.json/{figure} +[0-9.]+ .*   x [0-9]+")

    def test_faster_and_noise_are_success(self):
        rows, _ = self.against([1e6, 1e6])
        self.assertEqual(self.times(rows), {"faster"})
        rows, path = self.against([1e-6, 1e-6, 1e6, 1e6])  # the quartiles reach over all that it may take
        self.assertEqual(self.times(rows), {"noise"})
        self.assertRegex(self.table(*self.chain(), "--against", path), r"\n  [5-7] of 7 figures are within noise\n")

    def test_medians_that_differ_by_no_more_than_noise_are_no_change(self):
        rows, _ = self.against([1e6, 1e6], "--noise", "100")  # nothing gets faster by more than all of its time
        self.assertEqual(self.times(rows), {"noise"})

    def test_a_slower_memory_does_not_count(self):
        for row in self.before["benchmarks"]:
            if "peak_bytes" in row:
                row["peak_bytes"] = 1
        rows, path = self.against([1e6, 1e6])
        self.assertEqual({row["change"] for row in rows if row["unit"] == "bytes"}, {"larger"})
        self.assertRegex(self.table(*self.chain(), "--against", path), r"\n  larger   graph.json/run peak memory +0.001 KiB")

    def test_names_of_one_side_are_told(self):
        _, path = self.against([1e6, 1e6])
        text = self.table(self.write_graph(CHAIN), "--vary", "n=5", "--against", path)
        self.assertIn("\n  7 are there alone, as graph.json/cold_compile\n", text)
        self.assertIn("\n  7 are here alone, as graph.json/n:5/cold_compile\n", text)

    def test_what_is_no_file_of_figures(self):
        for text, expected in (("{\"benchmarks\": [1, }", "at byte 19 is no JSON, expected a value"),
                               ("[" * 100000, "expected fewer values in each other"), ("{}", "has no figures")):
            pathlib.Path(self.file("f.json")).write_text(text)
            self.assertIn(expected, self.kiln("bench", *self.chain(), *QUICK, "--against", self.file("f.json"), code=1))
        self.assertIn("--noise is for --against", self.refused(*self.chain(), "--noise", "1"))


class InterruptTest(Bench):
    def test_nothing_is_left_behind(self):
        for number in signal.SIGINT, signal.SIGTERM:
            bench = subprocess.Popen([KILN, "bench", *self.chain(), "--rounds", "1000"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, env={**os.environ, **self.environment})
            while not any(self.temporary.glob("kiln-*/cache/*")):  # a cache is in use: it measures
                self.assertIsNone(bench.poll())
                time.sleep(.01)
            bench.send_signal(number)
            told, error = bench.communicate(timeout=60)
            self.assertEqual([bench.returncode, told, error], [-number, b"", b"kiln: interrupted\n"])
            self.assertEqual(os.listdir(self.temporary), [])


if __name__ == "__main__":
    main()
