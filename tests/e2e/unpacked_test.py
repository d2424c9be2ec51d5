"""Unpacked artifacts: folders that are read and edited."""

import hashlib
import json
import os
import pathlib
import shutil

from cuda_test import STANDIN, needs_compiler
from harness import CHAIN, KILN, MODELS, Case, f32, graph, main, node, read_npy, typed, write_npy

# Two kernels, one of which is a product with a constant that is too large for the graph's text.
LARGE = graph([f32("x", "n", 16)], [node("p", "matmul", ["x", "c"]), node("y", "softmax", ["p"], dim=1)], ["y"],
              constants=[{**f32("c", 16, 16), "data": [i % 7 / 7 for i in range(256)]}])
# One of a type that NumPy lacks.
NARROW = graph([f32("x", "n", 16)],
               [node("w", "convert", ["c"], dtype="f32"), node("y", "matmul", ["x", "w"])], ["y"],
               constants=[{**typed("bf16", "c", 16, 16), "data": [i % 7 for i in range(256)]}])


# What adds 1 in CHAIN's kernel, and what takes it away instead.
LAST_ADD = ('"op": "add", "type": "f32", "args": [6, 3]', '"op": "sub", "type": "f32", "args": [6, 3]')


class Unpacked(Case):
    def unpacked(self, value=CHAIN, *words, name="folder"):
        folder = self.folder / name
        self.kiln("compile", self.write_graph(value), "-o", folder, "--unpacked", *words)
        return folder

    def run_folder(self, folder, values=(1, 2, 3), code=0):
        write_npy(self.file("x.npy"), [len(values) // 3, 3], values)
        done = self.call(KILN, "run", folder, "--input", "x=" + self.file("x.npy"), "--output",
                         "y=" + self.file("y.npy"), "--stats", "-", code=code)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def output(self):
        return read_npy(self.file("y.npy"))[1]

    def edit(self, folder, member, old, new):
        text = (folder / member).read_text()
        self.assertIn(old, text)
        (folder / member).write_text(text.replace(old, new))

    def forge(self, folder, change):
        """Another artifact.json that says what it is, as if Kiln had written it."""
        path = folder / "artifact.json"
        body = path.read_text().rpartition(',\n  "digest"')[0]
        value = json.loads(body + "}")
        change(value)
        body = json.dumps(value, indent=2)[:-2]
        digest = hashlib.blake2b(body.encode(), digest_size=32).hexdigest()
        path.write_text(f'{body},\n  "digest": "{digest}"\n}}\n')

    def refused(self, folder, *words):
        line = self.kiln("run", folder, "--random", 1, "--size", "n=1", code=1)
        for word in words:
            self.assertIn(word, line)

    def warned(self, folder, text):
        done = self.call(KILN, "inspect", folder)
        self.assertEqual(done.stderr, f"kiln: warning: the artifact was edited: {text}\n")
        return done.stdout

    def files(self, folder):
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class WholeTest(Unpacked):
    def test_a_folder_has_the_graph_the_plan_and_the_kernels_as_text(self):
        folder = self.unpacked()
        self.assertEqual(set(self.files(folder)), {"artifact.json", "graph.json", "plan.json", "kernels/0.json",
                                                   "images/0.bin", "report.json"})
        self.assertEqual([n["name"] for n in json.loads((folder / "graph.json").read_text())["nodes"]], ["s", "y"])
        self.assertEqual(json.loads((folder / "plan.json").read_text())["plan"]["inputs"][0]["name"], "x")
        kernel = json.loads((folder / "kernels/0.json").read_text())
        self.assertIn({"op": "constant", "type": "f32", "immediate": 1}, kernel["stages"][0]["body"]["values"])
        self.assertEqual(kernel["stages"][0]["stores"],
                         [{"to": {"buffer": 1, "index": ["i0"]}, "mode": "plain"}])

    def test_a_folder_runs_without_a_compiler(self):
        stats = self.run_folder(self.unpacked())
        self.assertFalse(stats["llvm_loaded"])
        self.assertEqual(self.output(), self.run_chain([1, 2, 3]))

    def test_a_large_constant_is_a_file_of_numpys(self):
        folder = self.unpacked(LARGE)
        shape, values = read_npy(folder / "constants/0.npy")
        self.assertEqual(shape, [16, 16])
        self.assert_close(values, [i % 7 / 7 for i in range(256)])
        self.assertIn('"apart"', (folder / "graph.json").read_text())
        self.kiln("run", folder, "--random", 1, "--size", "n=2")

    def test_packed_and_unpacked_again_it_is_the_same(self):
        for value, words in [(CHAIN, ()), (LARGE, ()), (NARROW, ()), (CHAIN, ("--specialize", "n=1")),
                             (CHAIN, ("--backend", "reference"))]:
            with self.subTest(words):
                shutil.rmtree(self.folder / "folder", ignore_errors=True)
                shutil.rmtree(self.folder / "again", ignore_errors=True)
                folder = self.unpacked(value, *words)
                self.kiln("pack", folder, "-o", self.file("packed.kiln"))
                self.kiln("unpack", self.file("packed.kiln"), "-o", self.file("again"))
                self.assertEqual(self.files(folder), self.files(self.folder / "again"))

    def test_what_is_for_several_targets_is_not_cut_down_to_one(self):
        folder = self.unpacked(CHAIN, "--cpu", "x86-64,v3")
        told = self.kiln("pack", folder, "-o", self.file("packed.kiln"), code=1)
        self.assertIn("it is for several targets, of which only what fits this machine was loaded", told)
        self.assertFalse((self.folder / "packed.kiln").exists())

    def test_a_folder_with_programs_for_some_sizes_has_a_folder_for_each(self):
        folder = self.unpacked(CHAIN, "--specialize", "n=1")
        self.assertTrue((folder / "entries/0/plan.json").exists())
        self.assertEqual(self.run_folder(folder)["entry"], "n=1")

    def test_a_folder_for_several_targets_runs_by_what_fits(self):
        folder = self.unpacked(CHAIN, "--cpu", "x86-64,v3")
        self.run_folder(folder)
        self.assertEqual(self.output(), self.run_chain([1, 2, 3], "--cpu", "v3"))
        self.assertRegex(self.kiln("inspect", folder), r"target v3\ntargets x86-64, v3\n")

    def test_the_folder_of_an_artifact_for_the_reference_is_its_graph(self):
        folder = self.unpacked(CHAIN, "--backend", "reference")
        self.edit(folder, "graph.json", '"silu"', '"neg"')
        self.run_folder(folder)
        self.assertEqual(self.output(), [0, -1, -2])

    def test_the_models_run_by_their_folders(self):
        for model, sizes in [("chars", {"batch": 1, "length": 16}), ("digits", {"batch": 2})]:
            words = ["--weights", MODELS / model / "weights.safetensors", "--random", 1]
            for name, size in sizes.items():
                words += ["--size", f"{name}={size}"]
            source = MODELS / model / "graph.json"
            self.kiln("compile", source, "-o", self.file(model), "--unpacked")
            self.assertEqual(self.kiln("run", self.file(model), *words), self.kiln("run", source, *words))

    def test_what_is_there_already_stays(self):
        folder = self.unpacked()
        before = self.files(folder)
        line = self.kiln("compile", self.write_graph(LARGE), "-o", folder, "--unpacked", code=1)
        self.assertIn("is there already, and not empty", line)
        self.assertEqual(self.files(folder), before)
        self.assertFalse([p for p in self.folder.iterdir() if p.name.startswith(".kiln")])
        pathlib.Path(self.file("a file")).write_text("mine")
        self.assertIn("is there already, and no folder",
                      self.kiln("compile", self.write_graph(LARGE), "-o", self.file("a file"), "--unpacked", code=1))

    def test_an_empty_folder_is_taken(self):
        os.mkdir(self.folder / "folder")
        self.run_folder(self.unpacked())


class EditedTest(Unpacked):
    def test_an_edited_graph_is_compiled_and_says_so(self):
        folder = self.unpacked()
        self.edit(folder, "graph.json", '"silu"', '"neg"')
        self.run_folder(folder)
        self.assertEqual(self.output(), [0, -1, -2])
        shown = self.warned(folder, "graph.json")
        self.assertIn("key none: no cache keeps it\nedited graph.json\n", shown)

    def test_an_edited_graph_may_have_other_inputs(self):
        folder = self.unpacked()
        self.edit(folder, "graph.json", '"x"', '"renamed"')
        done = self.call(KILN, "run", folder, "--random", 1, "--size", "n=1", code=0)
        self.assertIn("y  f32[1, 3]", done.stdout.replace("f32 [", "f32["))

    def test_an_edited_constant_is_compiled_with_the_graph(self):
        folder = self.unpacked(LARGE)
        write_npy(folder / "constants/0.npy", [16, 16], [0.0] * 256)
        write_npy(self.file("x.npy"), [1, 16], [1.0] * 16)
        self.call(KILN, "run", folder, "--input", "x=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"))
        self.assertEqual(self.output(), [1 / 16] * 16)
        self.warned(folder, "constants/0.npy")
        write_npy(folder / "constants/0.npy", [8, 32], [0.0] * 256)
        self.refused(folder, "constants/0.npy: ", "[16, 16]")

    def test_the_programs_for_some_sizes_of_an_edited_graph_are_made_again(self):
        folder = self.unpacked(CHAIN, "--specialize", "n=1")
        self.edit(folder, "graph.json", '"silu"', '"neg"')
        self.assertEqual(self.run_folder(folder)["entry"], "n=1")
        self.assertEqual(self.output(), [0, -1, -2])

    def test_an_edited_graph_is_compiled_with_the_options_of_its_first_compile(self):
        folder = self.unpacked(CHAIN, "--option", "fuse=false")
        self.assertIn('"options":{"fuse":false}', (folder / "report.json").read_text())
        self.edit(folder, "graph.json", '"silu"', '"neg"')
        self.assertGreater(self.warned(folder, "graph.json").count("\nstep "), 1)  # fused it is one kernel

    def test_an_edited_kernel_is_compiled_alone(self):
        folder = self.unpacked()
        self.edit(folder, "kernels/0.json", *LAST_ADD)
        expected = [value - 2 for value in self.run_chain([1, 2, 3])]
        self.run_folder(folder)
        self.assert_close(self.output(), expected)
        self.warned(folder, "kernels/0.json")

    def test_a_kernel_of_other_arrays_is_refused(self):
        folder = self.unpacked()
        self.edit(folder, "kernels/0.json", '"space": "out"', '"space": "row_local"')
        self.refused(folder, "kernels/0.json: ")

    def test_an_edited_plan_runs(self):
        folder = self.unpacked()
        self.edit(folder, "plan.json", '"name": "x"', '"name": "renamed"')
        write_npy(self.file("x.npy"), [1, 3], [1, 2, 3])
        self.call(KILN, "run", folder, "--input", "renamed=" + self.file("x.npy"), "--output", "y=" + self.file("y.npy"))
        self.assertEqual(self.output(), self.run_chain([1, 2, 3]))
        self.warned(folder, "plan.json")

    def test_a_plan_that_would_touch_what_is_not_there_is_refused(self):
        folder = self.unpacked()
        plan = json.loads((folder / "plan.json").read_text())
        plan["plan"]["steps"][0]["slots"][0] = 9
        (folder / "plan.json").write_text(json.dumps(plan))
        self.refused(folder, "plan.json: ", "slot 9")

    def test_the_graph_decides_what_else_is_edited(self):
        for member in ["plan.json", "kernels/0.json"]:
            folder = self.unpacked(name=member.replace("/", "."))
            self.edit(folder, "graph.json", '"silu"', '"neg"')
            (folder / member).write_text((folder / member).read_text() + "\n")
            self.refused(folder, f"graph.json and {member} are edited", "made of the graph")

    def test_what_others_are_made_of_is_not_edited_itself(self):
        for member, words in [("images/0.bin", "made of the kernels"), ("report.json", "a compile that has been"),
                              ("artifact.json", "edited or damaged")]:
            folder = self.unpacked(name=member.replace("/", "."))
            whole = (folder / member).read_bytes()
            (folder / member).write_bytes(b" " + whole[1:] if member.endswith(".bin") else whole + b"\n")
            self.refused(folder, f"{member}: ", words)

    def test_the_mark_stays_through_packing(self):
        folder = self.unpacked()
        self.edit(folder, "kernels/0.json", *LAST_ADD)
        self.call(KILN, "pack", folder, "-o", self.file("packed.kiln"))
        self.assertIn("edited kernels/0.json\n", self.warned(self.file("packed.kiln"), "kernels/0.json"))
        self.call(KILN, "unpack", self.file("packed.kiln"), "-o", self.file("again"))
        self.assertIn("edited kernels/0.json\n", self.warned(self.file("again"), "kernels/0.json"))
        described = json.loads(self.call(KILN, "inspect", self.file("again"), "--json").stdout)
        self.assertEqual((described["edited"], described["key"]), (["kernels/0.json"], ""))

    def test_nothing_edited_enters_the_cache(self):
        folder = self.unpacked()
        listed = self.kiln("cache", "ls")
        for number, edit in enumerate([("kernels/0.json", *LAST_ADD), ("graph.json", '"silu"', '"neg"')]):
            edited = self.folder / f"edited{number}"
            shutil.copytree(folder, edited)
            self.edit(edited, *edit)
            self.run_folder(edited)
        self.assertEqual(self.kiln("cache", "ls"), listed)


class DamagedTest(Unpacked):
    def test_a_missing_member_is_named(self):
        whole = self.unpacked()
        for member in self.files(whole):
            folder = self.folder / "less"
            shutil.copytree(whole, folder)
            (folder / member).unlink()
            self.refused(folder, f"member '{member}' is missing")
            shutil.rmtree(folder)

    def test_broken_text_is_told_with_its_place(self):
        folder = self.unpacked()
        self.edit(folder, "kernels/0.json", '"op": "add"', '"op": "plus"')
        self.refused(folder, "kernels/0.json: stages[0].body.values[", "].op: expected one of constant, ", "'plus'")
        (folder / "kernels/0.json").write_text('{"symbols": ["s0"]')
        self.refused(folder, "kernels/0.json: ", "line 1")
        (folder / "kernels/0.json").write_text('{"sizes": []}')
        self.refused(folder, "kernels/0.json: ", "unknown member 'sizes'; known are symbols, buffers")

    def test_a_broken_graph_is_told_with_its_place(self):
        folder = self.unpacked()
        self.edit(folder, "graph.json", '"silu"', '"sillu"')
        self.refused(folder, "graph", "nodes[0]", "sillu")

    def test_links_are_not_followed(self):
        folder = self.unpacked()
        os.rename(folder / "plan.json", self.folder / "plan.json")
        os.symlink(self.folder / "plan.json", folder / "plan.json")
        self.refused(folder, "member 'plan.json' is no file of the folder's")
        folder = self.unpacked(name="other")
        os.rename(folder / "kernels", self.folder / "kernels")
        os.symlink(self.folder / "kernels", folder / "kernels")
        self.refused(folder, "member 'kernels/0.json' is no file of the folder's")

    def test_no_path_is_taken_from_a_file(self):
        folder = self.unpacked()

        def lead_out(value):
            value["members"][-1]["path"] = "../graph.json"

        self.forge(folder, lead_out)
        self.refused(folder, "artifact.json: it does not tell of member 'report.json'")

    def test_numbers_of_members_are_checked(self):
        for name, value, words in [("codes", 2**32 - 1, "members, expected"), ("graph_constants", 1, "fewer constants"),
                                   ("backend", "tpu", "tpu"), ("codes", -1, "codes: -1 is out of its range"),
                                   ("shape", 1, "unknown member 'shape'")]:
            folder = self.unpacked(name=f"{name}{value}")
            self.forge(folder, lambda all, name=name, value=value: all.update({name: value}))
            self.refused(folder, "artifact.json: ", words)

    def test_a_folder_of_another_build_is_incompatible(self):
        folder = self.unpacked()
        self.forge(folder, lambda all: all.update(build_id="0123456789abcdef"))
        self.refused(folder, "the artifact is of build 0123456789abcdef, this is build ")
        self.forge(folder, lambda all: all.update(format=2))
        self.refused(folder, "the artifact has format 2, expected 1")

    def test_a_member_that_is_larger_than_it_was_is_not_read(self):
        folder = self.unpacked()
        os.truncate(folder / "images/0.bin", 2**40)
        self.refused(folder, "member 'images/0.bin' has 1099511627776 bytes, expected at most ")
        os.truncate(folder / "plan.json", 2**40)
        self.refused(folder, "member 'plan.json' has 1099511627776 bytes, expected at most 1073741824")

    def test_a_folder_of_something_else_names_what_it_lacks(self):
        os.mkdir(self.folder / "empty")
        self.refused(self.folder / "empty", "member 'artifact.json' is missing")


@needs_compiler
class CudaTest(Unpacked):
    """On the stand-in for a GPU."""

    def test_an_edited_kernel_is_compiled_for_the_gpu_that_it_was_for(self):
        self.environment = STANDIN
        folder = self.unpacked(CHAIN, "--backend", "cuda", "--arch", "sm_90")
        self.run_folder(folder)
        before = self.output()
        self.edit(folder, "kernels/0.json", *LAST_ADD)
        self.run_folder(folder)
        self.assert_close(self.output(), [value - 2 for value in before])
        self.assertIn("target sm_90\n", self.warned(folder, "kernels/0.json"))


if __name__ == "__main__":
    main()
