"""The installed tree: a C program of a user builds against it in both usual ways and runs; a moved tree still works."""

import os
import pathlib
import re
import shutil
import subprocess

from harness import BUILD, SOURCE, Case, main

EXAMPLE = SOURCE / "bindings" / "c" / "examples" / "readme.c"
EXPECTED = "-0.2689 0.0000 0.7311 1.7616\n"

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(example C)
find_package(kiln REQUIRED)
add_executable(example readme.c)
target_link_libraries(example PRIVATE kiln::kiln)
if(NOT IS_DIRECTORY "${kiln_PLUGIN_DIR}")
  message(FATAL_ERROR "no plugins in ${kiln_PLUGIN_DIR}")
endif()
"""


class InstallTest(Case):
    def setUp(self):
        super().setUp()
        first = self.folder / "first"
        self.call("cmake", "--install", BUILD, "--prefix", first)
        self.prefix = self.folder / "moved"
        first.rename(self.prefix)
        self.libdir = next(self.prefix.rglob("libkiln.so")).parent

    def flags(self, *words):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.libdir / "pkgconfig")}
        done = subprocess.run(["pkg-config", *words, "kiln"], capture_output=True, text=True, env=environment, check=True)
        return done.stdout.split()

    def test_pkg_config_builds_the_readmes_example(self):
        self.call("cc", "-std=c11", "-Wall", "-Werror", EXAMPLE, *self.flags("--cflags", "--libs"), "-o", self.file("a"),
                  f"-Wl,-rpath,{self.libdir}")
        self.assertEqual(self.call(self.file("a")).stdout, EXPECTED)

    def test_cmake_builds_the_readmes_example(self):
        project = self.folder / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(EXAMPLE, project)
        self.call("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.call("cmake", "--build", project / "build")
        self.assertEqual(self.call(project / "build" / "example").stdout, EXPECTED)

    def test_the_docs_are_installed_and_the_pass_and_the_op_in_them_build_and_load(self):
        docs = self.prefix / "share" / "doc" / "kiln"
        self.assertIn('"kiln": 1', (docs / "graph-json.md").read_text())
        for page, name, brings in (("write-a-pass.md", "drop_neg", "pass drop_neg"),
                                   ("patterns.md", "fuse_silu", "pass fuse_silu"),
                                   ("write-an-op.md", "mine", "op mine.cube")):
            code = re.search(r"```cpp\n(.*?)```", (docs / page).read_text(), re.DOTALL)[1]
            source, plugin = self.folder / f"{name}.cpp", self.folder / f"{name}.so"
            source.write_text(code)
            self.call("g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC",
                      *self.flags("--cflags"), source, "-o", plugin)
            self.assertIn(brings, self.call(self.prefix / "bin" / "kiln", "plugin", "inspect", plugin).stdout)
        graph = self.write_graph(
            {"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
             "nodes": [{"name": "y", "op": "mine.swish", "inputs": ["x"], "attrs": {"by": 2}}],
             "outputs": [{"name": "y", "value": "y"}]})
        told = self.call(self.prefix / "bin" / "kiln", "run", graph, "--plugin", plugin, "--random", 1, "--size", "n=5",
                         "--compare", "reference", "--mode", "none").stdout
        self.assertIn("differs from reference by", told)
        for installed in self.libdir.rglob("plugins/*.so"):
            self.assertNotIn("RUNPATH", self.call("readelf", "-d", installed).stdout)

    def test_the_pages_link_to_what_is_there(self):
        docs = self.prefix / "share" / "doc" / "kiln"
        links = [(page, link) for page in docs.glob("*.md")
                 for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text())]
        self.assertGreater(len(links), 20)
        self.assertEqual([(page.name, link) for page, link in links if not (docs / link).exists()], [])

    def test_the_plugins_to_copy_build_as_their_pages_say(self):
        docs = self.prefix / "share" / "doc" / "kiln"
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.libdir / "pkgconfig")}
        for page, name in ("write-an-op.md", "op_template"), ("write-a-backend.md", "backend_template"):
            command = re.search(r"^    (gcc .*)$", (docs / page).read_text(), re.MULTILINE)[1]
            folder = self.folder / name
            shutil.copytree(docs / "plugins" / name, folder)
            subprocess.run(command, shell=True, check=True, cwd=folder, env=environment)
            told = self.call(self.prefix / "bin" / "kiln", "plugin", "inspect", folder / f"{name}.so").stdout
            self.assertIn("backend template  version '1'" if name == "backend_template" else "op template.logit", told)

    def test_a_copy_of_the_plugin_template_builds_and_loads(self):
        project = self.folder / "template"
        shutil.copytree(self.prefix / "share" / "doc" / "kiln" / "plugins" / "template", project)
        self.call("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.call("cmake", "--build", project / "build")
        plugin = project / "build" / "template.so"
        self.assertNotIn("kiln", self.call("readelf", "-d", plugin).stdout.replace(str(plugin), ""))
        self.assertIn("post_grad", self.call(self.prefix / "bin" / "kiln", "plugin", "inspect", plugin).stdout)

    def test_a_new_plugin_goes_through_the_commands_of_its_readme(self):
        spaced = self.folder / "with a space"
        self.prefix = self.prefix.rename(spaced)
        kiln = self.prefix / "bin" / "kiln"
        environment = {**os.environ, "KILN_CACHE": str(self.cache), "PATH": f"{kiln.parent}:{os.environ['PATH']}"}
        for lang, kind in ("cpp", "pass"), ("rust", "backend"):
            with self.subTest(lang=lang, kind=kind):
                if lang == "rust" and not shutil.which("rustc"):
                    self.skipTest("rust: no rustc on PATH")
                folder = spaced / f"{lang}_{kind}"
                self.call(kiln, "plugin", "new", folder, "--lang", lang, "--kind", kind)
                commands = re.findall(r"^    (.*)$", (folder / "README.md").read_text(), re.MULTILINE)
                self.assertEqual(len(commands), 5)
                for command in commands:
                    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")

    def test_the_installed_program_finds_its_library_and_module(self):
        text = self.call(self.prefix / "bin" / "kiln", "inspect", self.write_graph(
            {"kiln": 1, "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n"]}}],
             "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}], "outputs": [{"name": "y", "value": "y"}]}), "--llvm")
        self.assertIn("define", text.stdout)

    def test_headers_and_plugins_are_there(self):
        headers = {path.name for path in (self.prefix / "include" / "kiln").iterdir()}
        self.assertEqual(headers, {path.name for path in (SOURCE / "abi" / "include" / "kiln").glob("*.h*")})
        plugins = pathlib.Path(self.flags("--variable=plugindir")[0])
        self.assertEqual({path.name for path in plugins.iterdir()} >= {"fuse_rms_norm.so", "fold_batch_norm.so"}, True)

    def test_libraries_keep_their_promises(self):
        needed = self.call("readelf", "-d", self.libdir / "libkiln.so").stdout
        self.assertIn("[libkiln.so.1]", needed)
        self.assertIsNone(re.search(r"NEEDED.*(LLVM|cuda|nvrtc)", needed))
        self.assertLess((self.libdir / "libkiln.so").resolve().stat().st_size, 6_000_000)
        self.assertIsNone(re.search(r"NEEDED.*(LLVM|z3|xml2)", self.call("readelf", "-d", self.libdir / "libkiln_llvm.so").stdout))
        self.assertLess((self.libdir / "libkiln_llvm.so").stat().st_size, 45 << 20)
        cuda = self.libdir / "libkiln_cuda.so"
        self.assertIsNone(re.search(r"NEEDED.*(LLVM|cuda|nvrtc)", self.call("readelf", "-d", cuda).stdout))
        exported = self.call("nm", "-D", "--defined-only", cuda).stdout.split()
        self.assertEqual([word for word in exported if word.startswith(("kiln", "_ZN"))], ["kiln_codegen_entry"])


class ReadmeTest(Case):
    def test_the_readme_shows_the_example_as_it_is(self):
        shown = re.search(r"```c\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL).group(1)
        self.assertEqual(shown, EXAMPLE.read_text())
        self.assertLessEqual(shown.count("\n"), 20)


if __name__ == "__main__":
    main()
