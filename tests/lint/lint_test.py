"""Each rule finds what it is for, and nothing in a tree that keeps it."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import lint


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("jit/base/status.h", "")
        self.write("jit/llvm/emit.h", "#include <llvm/IR/IRBuilder.h>\n")
        self.write("runtime/graph/graph.h", '#include "jit/base/status.h"\n')
        self.write("runtime/compile.h", '#include "runtime/graph/graph.h"\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def offences(self, rule):
        return list(lint.RULES[rule](self.root))

    def test_downward_includes_are_allowed(self):
        self.assertEqual(self.offences("includes"), [])

    def test_an_upward_include_is_found(self):
        self.write("jit/base/bad.cpp", '#include "runtime/graph/graph.h"\n')
        self.assertEqual(self.offences("includes"),
                         ["jit/base/bad.cpp: includes runtime/graph/graph.h; jit/base may not include runtime/graph"])

    def test_compile_is_above_every_part(self):
        self.write("runtime/plan/plan.cpp", '#include "runtime/compile.h"\n')
        self.assertEqual(len(self.offences("includes")), 1)

    def test_only_the_llvm_module_knows_llvm(self):
        self.write("runtime/plan/plan.cpp", "#include <llvm/IR/IRBuilder.h>\n")
        self.assertEqual(len(self.offences("includes")), 1)

    def test_a_client_sees_the_installed_headers_only(self):
        self.write("bindings/cli/args.h", "")
        self.write("bindings/cli/main.cpp", '#include <kiln/kiln.h>\n#include "args.h"\n#include <string>\n')
        self.assertEqual(self.offences("includes"), [])
        self.write("bindings/cli/main.cpp", '#include "jit/base/status.h"\n')
        self.assertEqual(len(self.offences("includes")), 1)

    def test_an_include_by_a_relative_path_is_found(self):
        self.write("runtime/graph/graph.cpp", '#include "graph.h"\n')
        self.assertEqual(len(self.offences("includes")), 1)

    def test_a_long_file_is_found(self):
        self.write("jit/base/long.cpp", "\n" * 601)
        self.assertEqual(self.offences("length"), ["jit/base/long.cpp: 601 lines, at most 600 are allowed"])

    def test_a_stray_file_in_the_root_is_found(self):
        self.write("build-asan/stray.o", "")
        self.write(".gitignore", "")
        self.assertEqual(self.offences("top_level"), [])
        self.write("core", "")
        self.assertEqual(self.offences("top_level"), ["core: has no place in the first level of the tree"])

    @unittest.skipUnless(shutil.which("git"), "SKIP: there is no git")
    def test_in_a_repository_only_what_git_ignores_may_stray(self):
        def git(*words):
            subprocess.run(["git", "-C", str(self.root), *words], check=True, capture_output=True)

        git("init")
        self.write(".gitignore", "/core\n/out*/\n")
        self.write("core", "")
        self.write("out/stray.o", "")
        self.assertEqual(self.offences("top_level"), [])
        self.write("stray.txt", "")
        self.assertEqual(self.offences("top_level"), ["stray.txt: has no place in the first level of the tree"])
        git("add", "--force", "core")
        (self.root / "stray.txt").unlink()
        self.assertEqual(self.offences("top_level"), ["core: has no place in the first level of the tree"])

    def test_a_folder_without_readme_is_found(self):
        for folder in ("jit", "jit/base", "jit/llvm", "runtime", "runtime/graph"):
            self.write(f"{folder}/README.md", "")
        self.assertEqual(self.offences("readmes"), [])
        (self.root / "jit/llvm/README.md").unlink()
        self.assertEqual(self.offences("readmes"), ["jit/llvm: no README.md"])

    def test_a_note_of_work_left_is_found(self):
        self.write("jit/base/later.cpp", "// " + "TO" + "DO: more\n")
        self.assertEqual(len(self.offences("left_over")), 1)

    def test_reading_the_environment_outside_base_is_found(self):
        self.write("runtime/plan/plan.cpp", 'auto x = getenv("HOME");\n')
        self.assertEqual(len(self.offences("environment")), 1)


if __name__ == "__main__":
    unittest.main()
