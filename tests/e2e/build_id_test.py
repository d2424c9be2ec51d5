"""The build id differs when anything does that can change what is compiled: sources, compiler, flags, LLVM."""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["KILN_SOURCE_DIR"]) / "jit/base/build_id.cmake"


class BuildId(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "jit").mkdir()
        (self.root / "jit/a.cpp").write_text("int a;\n")

    def id(self, compiler="GNU 12", flags="Release -O2", llvm="19.1.7"):
        config = self.root / "llvm-config"
        config.write_text(f"#!/bin/sh\necho {llvm} $*\n")
        config.chmod(0o755)
        out = self.root / "build_id.cpp"
        subprocess.run(["cmake", f"-DSOURCE_DIR={self.root}", f"-DOUT={out}", f"-DCOMPILER={compiler}",
                        f"-DFLAGS={flags}", f"-DLLVM_CONFIG={config}", "-P", SCRIPT], check=True)
        return out.read_text()

    def test_each_part_changes_it(self):
        ids = [self.id(), self.id(compiler="GNU 13"), self.id(flags="Release -O3"), self.id(llvm="19.1.8")]
        (self.root / "jit/a.cpp").write_text("int b;\n")
        ids.append(self.id())
        self.assertEqual(len(set(ids)), len(ids), ids)

    def test_the_same_parts_give_the_same(self):
        self.assertEqual(self.id(), self.id())

    def test_the_build_hands_over_the_flags_of_its_type(self):
        commands = (pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "build.ninja").read_text()
        line = next(line for line in commands.splitlines() if "build_id.cmake" in line and "-DFLAGS=" in line)
        given = dict(word[2:].split("=", 1) for word in shlex.split(line) if word.startswith("-D"))
        kind = given["FLAGS"].split()[0]
        cache = (pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "CMakeCache.txt").read_text()
        flags = next(entry for entry in cache.splitlines() if entry.startswith(f"CMAKE_CXX_FLAGS_{kind.upper()}:"))
        self.assertIn(flags.split("=", 1)[1], given["FLAGS"])
        self.assertIn("llvm-config", given["LLVM_CONFIG"])


if __name__ == "__main__":
    unittest.main()
