"""kiln ops, cache, plugin and version."""

import json
import pathlib

from harness import CHAIN, KILN, PLUGINS, Case, main


class OpsTest(Case):
    def test_every_op_has_a_line(self):
        ops = {line.split()[0]: line for line in self.kiln("ops").splitlines()}
        self.assertGreaterEqual(len(ops), 50)
        for name in ("add", "matmul", "conv2d", "rms_norm", "attention"):
            self.assertGreater(len(ops[name].split()), 1, f"{name} has no doc")

    def test_one_op_is_explained(self):
        text = self.kiln("ops", "conv2d")
        for word in ("weight", "stride", "padding", "groups", "through the decomposition for x, weight, bias"):
            self.assertIn(word, text)
        self.assertIn("by a rule for x; equal elements share it", self.kiln("ops", "max"))
        self.assertIn("zero: constant between integers", self.kiln("ops", "floor"))
        self.assertIn("none: results are indices", self.kiln("ops", "argmax"))

    def test_json_lists_the_same_ops(self):
        listed = json.loads(self.kiln("ops", "--json"))
        self.assertEqual([op["name"] for op in listed], [line.split()[0] for line in self.kiln("ops").splitlines()])
        self.assertEqual(json.loads(self.kiln("ops", "--json", "add")), next(op for op in listed if op["name"] == "add"))

    def test_samples_are_told_if_asked_for(self):
        add = json.loads(self.kiln("ops", "--json", "--samples", "add"))
        samples = {sample["name"]: sample for sample in add.pop("samples")}
        self.assertEqual(add, json.loads(self.kiln("ops", "--json", "add")))
        self.assertEqual(samples["row"]["inputs"],
                         [{"type": {"dtype": "f32", "shape": [9, 33]}, "stream": "add/row/0"},
                          {"type": {"dtype": "f32", "shape": [33]}, "stream": "add/row/1"}])
        self.assertEqual(samples["symbolic"]["inputs"][0]["type"]["shape"], [17, 3])
        self.assertEqual(samples["edges"]["inputs"][1]["data"], [0, -0, 1, -2.5, "inf", "-inf", "nan"])
        self.assertIn("bf16", samples["row"]["other_types"])

    def test_ops_are_chosen_by_family_and_text(self):
        pooling = {line.split()[0] for line in self.kiln("ops", "--family", "pooling").splitlines()}
        self.assertEqual(pooling, {op["name"] for op in json.loads(self.kiln("ops", "--json")) if op["family"] == "pooling"})
        self.assertIn("max_pool2d", pooling)
        found = {line.split()[0] for line in self.kiln("ops", "--search", "INVERSE", "--family", "loss").splitlines()}
        self.assertEqual(found, set())
        found = {line.split()[0] for line in self.kiln("ops", "--search", "LOGARITHM", "--family", "pointwise").splitlines()}
        self.assertEqual(found, {"log", "log2", "log10"})

    def test_an_unknown_family_is_told_which_there_are(self):
        self.assertIn("there are activation, attention, ", self.kiln("ops", "--family", "poling", code=2))

    def test_the_documentation_is_that_of_the_records(self):
        page = (pathlib.Path(__file__).parents[2] / "docs" / "ops.md").read_text()
        self.assertEqual(page, self.kiln("ops", "--markdown"), "run: ./dev docs")

    def test_options_are_listed_with_what_keys_them(self):
        options = {option["name"]: option for option in json.loads(self.kiln("options", "--json"))["compile"]}
        self.assertTrue(options["fuse"]["keyed"])
        self.assertEqual((options["fuse"]["kind"], options["fuse"]["default"]), ("bool", "true"))
        self.assertFalse(options["strict"]["keyed"])
        self.assertEqual((options["passes"]["kind"], options["passes"]["list"]), ("text", True))
        for option in options.values():
            self.assertNotEqual(option["keyed"], bool(option["unkeyed"]), option["name"])
            self.assertIn(option["name"] + " ", self.kiln("options"))

    def test_the_documentation_is_that_of_the_options(self):
        page = (pathlib.Path(__file__).parents[2] / "docs" / "options.md").read_text()
        self.assertEqual(page, self.kiln("options", "--markdown"), "run: ./dev docs")

    def test_an_unknown_op_gets_the_nearest(self):
        self.assertIn("matmul", self.kiln("ops", "matmull", code=2))


class CacheTest(Case):
    def fill(self):
        self.stats(self.write_graph(CHAIN), "--random", 1, "--size", "n=2")

    def test_an_empty_cache(self):
        self.assertEqual(self.kiln("cache", "ls"), "")
        self.assertIn("0 entries", self.kiln("cache", "stats"))

    def test_a_compile_leaves_entries_that_are_sound(self):
        self.fill()
        entries = json.loads(self.kiln("cache", "ls", "--json"))["entries"]
        self.assertEqual({entry["kind"] for entry in entries}, {"artifact", "kernel"})
        self.assertEqual(len(self.kiln("cache", "ls").splitlines()), len(entries))
        for entry in entries:
            self.assertEqual(pathlib.Path(entry["path"]).stat().st_size, entry["bytes"])
        self.assertIn(" 0 problems", self.kiln("cache", "verify"))

    def test_the_folder_is_the_users_alone(self):
        self.fill()
        self.assertEqual(self.cache.stat().st_mode & 0o777, 0o700)

    def test_verify_names_a_damaged_record(self):
        self.fill()
        for entry in json.loads(self.kiln("cache", "ls", "--json"))["entries"]:
            path = pathlib.Path(entry["path"])
            whole = bytearray(path.read_bytes())
            whole[len(whole) // 2] ^= 1
            path.chmod(0o600)
            path.write_bytes(whole)
            self.assertIn(str(path), self.call(KILN, "cache", "verify", code=1).stdout)

    def test_a_damaged_record_is_compiled_again(self):
        self.fill()
        for entry in json.loads(self.kiln("cache", "ls", "--json"))["entries"]:
            path = pathlib.Path(entry["path"])
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:-7])
        stats = self.stats(self.write_graph(CHAIN), "--random", 1, "--size", "n=2")
        self.assertIn(stats["lookup"], ("MISS", "REJECT"))
        self.assertGreater(stats["kernels_compiled"], 0)
        self.assertEqual(self.stats(self.write_graph(CHAIN), "--random", 1, "--size", "n=2")["lookup"], "HIT")

    def test_clear_removes_everything(self):
        self.fill()
        self.kiln("cache", "clear")
        self.assertEqual(self.kiln("cache", "ls"), "")

    def test_an_unwritable_folder_costs_only_the_warm_start(self):
        self.cache.write_text("a file where the folder should be")
        done = self.call(KILN, "run", self.write_graph(CHAIN), "--random", 1, "--size", "n=2", "--stats", "-")
        self.assertNotEqual(json.loads(done.stdout)["lookup"], "HIT")  # on stderr, a warning is welcome


class PluginTest(Case):
    def test_a_plugin_shows_its_passes_and_their_identity(self):
        for name in ("fuse_rms_norm", "fold_batch_norm"):
            text = self.kiln("plugin", "inspect", PLUGINS / f"{name}.so")
            self.assertIn(f"pass {name}", text)
            report = json.loads(self.kiln("plugin", "inspect", PLUGINS / f"{name}.so", "--json"))
            self.assertEqual(report["passes"][0]["name"], name)
            self.assertRegex(report["passes"][0]["uuid"], "^[0-9a-f-]{32,36}$")

    def test_what_is_no_plugin_is_refused(self):
        self.assertIn("text.so", self.kiln("plugin", "inspect", self.write_graph("no library", "text.so"), code=1))
        self.assertIn("absent.so", self.kiln("plugin", "inspect", self.file("absent.so"), code=1))


class VersionTest(Case):
    def test_version_and_build(self):
        report = json.loads(self.kiln("version", "--json"))
        self.assertEqual(report["abi"]["major"], 1)
        self.assertIn(report["build_id"], self.kiln("version"))


if __name__ == "__main__":
    main()
