"""Each public header compiles alone, without a warning, in every C and C++ standard, and so does each with what it needs
of DLPack from a header that came before. Usage: compile_test.py ROOT
A compiler that is missing is skipped, and said so; without any, the test is skipped (exit code 77)."""

import pathlib
import shutil
import subprocess
import sys

import headers

C = {"gcc": "gcc", "clang": "clang-19"}
CXX = {"g++": "g++", "clang++": "clang++-19"}
CXX_HEADERS = ("attr.hpp", "pattern.hpp", "pass.hpp", "op.hpp")  # of C++17
WARNINGS = ["-Wall", "-Wextra", "-Wpadded", "-Wpedantic", "-Werror", "-fsyntax-only"]


def older_dlpack(root):
    """Upstream's header as a host may have it of an older version: without the exchange API, its latest part."""
    text = pathlib.Path(root, "abi/include/kiln/dlpack.h").read_text()
    declarations, added = text.split("//" + "-" * 70 + "\n// DLPack `__dlpack_c_exchange_api__`", 1)
    end = added[added.rindex("#ifdef __cplusplus"):]
    return (declarations + end).replace("#define DLPACK_MINOR_VERSION 3", "#define DLPACK_MINOR_VERSION 1")


def main(root):
    own = older_dlpack(root)

    def sources(header):
        return [f'{before}#include "kiln/{header}"\n' for before in ("", own)]

    jobs, missing = [], []
    for compilers, language, standards in ((C, "c", ("c99", "c11", "c17")),
                                           (CXX, "c++", ("c++11", "c++14", "c++17", "c++20"))):
        for name, versioned in compilers.items():
            compiler = shutil.which(versioned) or shutil.which(name)
            if not compiler:
                missing.append(name)
                continue
            jobs += [(compiler, language, standard, header, text) for standard in standards for header in headers.HEADERS
                     for text in sources(header)]
            if language == "c++":  # templates and implicit types of the standard library are padded
                jobs += [(compiler, language, standard, header, text) for standard in ("c++17", "c++20")
                         for header in CXX_HEADERS for text in sources(header)]
    for name in missing:
        print(f"SKIP {name}: not installed")
    if not jobs:
        return 77
    failures = 0
    for compiler, language, standard, header, text in jobs:
        warnings = [flag for flag in WARNINGS if not (header in CXX_HEADERS and flag == "-Wpadded")]
        command = [compiler, f"-std={standard}", f"-I{root}/abi/include", *warnings, "-x", language, "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            failures += 1
            print(f"{compiler} -std={standard}: {header}\n{done.stderr}")
    print(f"{len(jobs)} compilations, {failures} failures")
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
