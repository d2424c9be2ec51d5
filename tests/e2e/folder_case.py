"""What tests of plugins' folders share: kiln plugin new, and building what it writes without CMake."""

import shutil
import subprocess

from harness import KILN, SOURCE, Case

ENDINGS = {"c": "c", "cpp": "cpp", "rust": "rs"}
COMPILERS = {"c": ["gcc", "-std=c99"], "cpp": ["g++", "-std=c++17"]}


class FolderCase(Case):
    def begin(self, name, lang, kind):
        self.kiln("plugin", "new", self.file(name), "--lang", lang, "--kind", kind)
        return self.folder / name

    def build(self, folder, lang):
        (folder / "build").mkdir(exist_ok=True)
        plugin = folder / "build" / f"{folder.name}.so"
        source = folder / f"{folder.name}.{ENDINGS[lang]}"
        if lang == "rust":
            if not shutil.which("rustc"):
                self.skipTest("rust: no rustc on PATH")
            command = ["rustc", "--edition", "2021", "-O", "-D", "warnings", "--crate-name", "plugin", "--crate-type", "cdylib"]
        else:
            command = [*COMPILERS[lang], "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", SOURCE / "abi" / "include"]
        subprocess.run([*command, source, "-o", plugin, *([] if lang == "rust" else ["-lm"])], check=True)
        return plugin

    def failures(self, folder):
        """What `kiln plugin test` writes when it fails."""
        done = self.call(KILN, "plugin", "test", folder, code=1)
        return done.stdout
