"""One case of wrong use of the program: cli_test.py CASE.txt KILN.

The case is a dialogue with a shell: lines of "$ kiln …" that succeed, then one that fails, its exit code, and what it
says on stderr. It is held in a folder of its own with the files of cli/files in it.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def hold(case, program):
    """The dialogue as it went."""
    commands = [line for line in case.read_text().splitlines() if line.startswith("$ ")]
    with tempfile.TemporaryDirectory(prefix="kiln-error-") as folder:
        shutil.copytree(case.parent / "files", folder, dirs_exist_ok=True)
        path = os.pathsep.join([os.path.dirname(os.path.abspath(program)), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "KILN_CACHE": str(pathlib.Path(folder) / "cache")}
        for command in commands:
            done = subprocess.run(["sh", "-c", command[2:]], cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=300, check=False)
            if done.returncode and command is not commands[-1]:
                return f"{command}\n{done.returncode}\n{done.stderr}"
    return "".join(command + "\n" for command in commands) + f"{done.returncode}\n{done.stderr}"


def main(case, program):
    actual = hold(case, program)
    if actual == case.read_text():
        return 0
    print(f"{case} differs; what was said:\n{actual}", end="")
    return 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
