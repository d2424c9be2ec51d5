"""Runs the host of one language on a fresh folder: run.py python|rust|julia. CTest sets the variables that it reads.

Exits 77, with the reason in one line that begins with "SKIP:", where the language is missing.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HOSTS = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
LIBRARIES = BUILD / "lib"
PLUGIN = BUILD / os.environ["KILN_PLUGIN_DIR"] / "fuse_rms_norm.so"
SANITIZE = os.environ["KILN_SANITIZE"]


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def python(_):
    return [sys.executable, "-B", HOSTS / "host.py"]


def rust(folder):
    if not shutil.which("rustc"):
        skip("rust: no rustc on PATH")
    program = folder / "host"
    subprocess.run(["rustc", "--edition", "2021", "-O", "-D", "warnings", HOSTS / "host.rs", "-L", LIBRARIES,
                    "-C", f"link-arg=-Wl,-rpath,{LIBRARIES}", "-o", program], check=True)
    return [program]


def julia(_):
    if SANITIZE:
        skip("julia: it opens libraries with RTLD_DEEPBIND, which sanitizers refuse")
    found = subprocess.run([HOSTS / "install_julia.sh", "--find"], capture_output=True, text=True, check=False)
    if found.returncode:
        skip(found.stderr.strip().removeprefix("SKIP: "))
    return [found.stdout.strip(), "--startup-file=no", HOSTS / "host.jl"]


def environment(language):
    """What a program that is not instrumented needs to open a library that is: the sanitizer's runtime, first of all."""
    variables = {"KILN_LIBRARY": str(LIBRARIES / "libkiln.so")}
    runtime = {"address": "libasan.so", "thread": "libtsan.so"}.get(SANITIZE.split(",")[0])
    if not runtime:
        return variables
    found = subprocess.run([os.environ["KILN_CXX"], f"-print-file-name={runtime}"], capture_output=True, text=True,
                           check=True)
    variables["LD_PRELOAD"] = str(pathlib.Path(found.stdout.strip()).resolve())
    if language == "python":  # which leaves memory to the end of its process
        variables["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
    return variables


def main():
    language = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="kiln-host-") as folder:
        folder = pathlib.Path(folder)
        command = {"python": python, "rust": rust, "julia": julia}[language](folder)
        done = subprocess.run([*command, PLUGIN, HOSTS / "graph.json", folder, HOSTS / "element_type.json",
                               HOSTS / "function.json", HOSTS / "op.json"],
                              env={**os.environ, **environment(language)}, check=False)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


main()
