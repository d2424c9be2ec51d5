"""Each public header compiles alone, without a warning, in every C and C++ standard. Usage: compile_test.py ROOT
A compiler that is missing is skipped, and said so; without any, the test is skipped (exit code 77)."""

import shutil
import subprocess
import sys

import headers

C = {"gcc": "gcc", "clang": "clang-19"}
CXX = {"g++": "g++", "clang++": "clang++-19"}
WARNINGS = ["-Wall", "-Wextra", "-Wpadded", "-Wpedantic", "-Werror", "-fsyntax-only"]


def main(root):
    jobs, missing = [], []
    for compilers, language, standards in ((C, "c", ("c99", "c11", "c17")),
                                           (CXX, "c++", ("c++11", "c++14", "c++17", "c++20"))):
        for name, versioned in compilers.items():
            compiler = shutil.which(versioned) or shutil.which(name)
            if not compiler:
                missing.append(name)
                continue
            jobs += [(compiler, language, standard, header) for standard in standards for header in headers.HEADERS]
            if language == "c++":  # templates and implicit types of the standard library are padded
                jobs += [(compiler, language, standard, "pass.hpp") for standard in ("c++17", "c++20")]
    for name in missing:
        print(f"SKIP {name}: not installed")
    if not jobs:
        return 77
    failures = 0
    for compiler, language, standard, header in jobs:
        warnings = [flag for flag in WARNINGS if not (header == "pass.hpp" and flag == "-Wpadded")]
        command = [compiler, f"-std={standard}", f"-I{root}/abi/include", *warnings, "-x", language, "-"]
        done = subprocess.run(command, input=f'#include "kiln/{header}"\n', capture_output=True, text=True)
        if done.returncode:
            failures += 1
            print(f"{compiler} -std={standard}: {header}\n{done.stderr}")
    print(f"{len(jobs)} compilations, {failures} failures")
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
