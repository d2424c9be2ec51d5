"""Sizes and offsets of every public struct against layout.txt, which is permanent: lines are only ever added.
Usage: layout_test.py ROOT COMPILER [--update]"""

import pathlib
import subprocess
import sys
import tempfile

import headers


def measured(root, compiler):
    lines = ["#include <stddef.h>", "#include <stdio.h>", *(f'#include "kiln/{name}"' for name in headers.HEADERS),
             "int main(void) {"]
    for name, fields in headers.structs(root).items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in fields:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "layout"
        source = program.with_suffix(".c")
        source.write_text("\n".join(lines))
        subprocess.run([compiler, "-I", f"{root}/abi/include", "-o", str(program), str(source)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def main(root, compiler, *flags):
    golden = pathlib.Path(__file__).with_name("layout.txt")
    now = measured(root, compiler)
    if "--update" in flags:
        golden.write_text(now)
    expected = golden.read_text()
    for was, is_now in zip(expected.splitlines() + [""] * 999, now.splitlines() + [""] * 999):
        if was != is_now:
            print(f"layout.txt says '{was}', the headers '{is_now}'")
            return 1
        if not was:
            break
    print(f"{len(expected.splitlines())} sizes and offsets agree")
    return 0


sys.exit(main(*sys.argv[1:]))
