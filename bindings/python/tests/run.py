"""Builds the extension against a build of Kiln, in an environment of its own, and tests it: run.py BUILD [FLAGS…].

--fast: the tests of `./dev test` alone. --torch: with torch and what else requirements-torch.txt has, which is large.
--build: no tests. Others are pytest's.
Exits 77, with the reason in one line that begins with "SKIP:", where the environment cannot be made.
"""

import os
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1]
OWN, TORCH = FOLDER / "requirements.txt", FOLDER / "requirements-torch.txt"


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def environment(build, files):
    """The environment's Python; made anew when the pins have changed."""
    home = build / "python-env"
    python, made_of = home / "bin/python", home / "made-of.txt"
    pins, all_ = ("".join(file.read_text() for file in each) for each in (files, (OWN, TORCH)))
    if python.exists() and made_of.exists() and made_of.read_text() in (pins, all_):
        return python
    done = subprocess.run([sys.executable, "-m", "venv", home], capture_output=True, text=True, check=False)
    if done.returncode:
        skip(f"no virtual environment; python3-venv makes one: {(done.stderr or done.stdout).strip()[-200:]}")
    wanted = [word for file in files for word in ("-r", file)]
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        skip(f"packages of Python's cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    made_of.write_text(pins)
    return python


def build_extension(build, python):
    """Into kiln/, beside the Python files."""
    where = build / "python"
    made_for = where / "made-for.txt"
    if made_for.exists() and made_for.read_text() != str(python.resolve()):
        shutil.rmtree(where)
    subprocess.run(["cmake", "-S", FOLDER, "-B", where, "-G", "Ninja", f"-DKILN_BUILD={build}",
                    f"-DPython_EXECUTABLE={python}"], check=True, stdout=subprocess.DEVNULL)
    made_for.write_text(str(python.resolve()))
    subprocess.run(["ninja", "-C", where, "--quiet"], check=True)


def main():
    build, *flags = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    if sys.version_info < (3, 11):
        skip(f"Python {sys.version.split()[0]}, 3.11 or later was expected")
    own = {"--fast", "--torch", "--build"}
    python = environment(build, [OWN, TORCH] if "--torch" in flags else [OWN])
    build_extension(build, python)
    if "--build" in flags:
        return 0
    chosen = ["-m", "fast"] if "--fast" in flags else []
    variables = {**os.environ, "PYTHONPATH": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
    rest = [flag for flag in flags if flag not in own]
    return subprocess.run([python, "-m", "pytest", FOLDER / "tests", "-rs", "-p", "no:cacheprovider", *chosen, *rest],
                          env=variables, check=False).returncode


sys.exit(main())
