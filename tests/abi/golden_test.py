"""What was built against a release of the ABI runs with today's library (abi/golden).
Usage: golden_test.py ROOT COMPILER LIBRARY KILN PLUGIN, of which KILN is today's program and PLUGIN a plugin of today;
       golden_test.py ROOT --update writes the candidate anew: its headers, layout and exports."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers

CANDIDATE = "1.0-rc"
# Those that a release keeps: dlpack.h is upstream's, and taken from where it is; layout.txt holds it. pass.hpp and op.hpp
# are no part of the ABI.
HEADERS = [name for name in headers.HEADERS if name != "dlpack.h"]


def measured(root, compiler):
    """Sizes and offsets of every public struct, as its compiler lays it out."""
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
        subprocess.run([compiler, "-I", str(headers.include(root)), "-o", str(program), str(source)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def exported(library):
    """Name and version of each function of the library."""
    nm = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return sorted(line.split()[2] for line in nm.splitlines() if "@@" in line)


def lines_of(path):
    return path.read_text().splitlines()


def layout_problems(golden, root, compiler):
    """Offsets and sizes stay; a struct that begins with struct_size may have grown."""
    now = dict(line.split(" ", 1) for line in measured(root, compiler).splitlines())
    was = dict(line.split(" ", 1) for line in lines_of(golden / "layout.txt"))
    for name, value in was.items():
        if now.get(name) == value:
            continue
        grew = "." not in name and f"{name}.struct_size" in was and name in now and int(now[name]) >= int(value)
        if not grew:
            yield f"layout: {name} was {value}, it is {now.get(name, 'no more')}"


def export_problems(golden, library):
    now = set(exported(library))
    return [f"exports: {name} is no more" for name in lines_of(golden / "exports.txt") if name not in now]


def numbers(root):
    """Name -> value of each number that a header defines, but the minor version, which rises."""
    found = {}
    for name in HEADERS:
        text = (headers.include(root) / "kiln" / name).read_text()
        found.update(re.findall(r"(?m)^#define (KILN_(?!ABI_MINOR)\w+) (0?x?[0-9a-f]+)[uUlL]*\b", text))
    return found


def number_problems(golden, root):
    now = numbers(root)
    return [f"numbers: {name} was {value}, it is {now.get(name, 'no more')}"
            for name, value in numbers(golden / "include").items() if now.get(name) != value]


def members(root):
    """Name -> declarations of its members, callbacks and slots with their arguments, of each public struct."""
    found = {}
    for name in HEADERS:
        for body, alias in re.findall(r"typedef struct \w* ?\{([^{}]*)\} (\w+);", headers.source(root, name)):
            found[alias] = [part.strip() for part in body.split(";") if part.strip()]
    return found


def member_problems(golden, root):
    now = members(root)
    for name, was in members(golden / "include").items():
        for before, after in zip(was, now.get(name, []) + [None] * len(was)):
            if before != after:
                yield f"members: {name} had '{before}', it has '{after}' there"
                break


def stubs(root):
    """A library of all exported functions, of which the debug information tells the types."""
    text = ['#include "kiln/kiln.h"', '#include "kiln/plugin.h"']
    for name in HEADERS:
        for result, function, arguments in re.findall(r"KILN_EXPORT ([^;]*?)\b(kiln_\w+)\(([^;]*?)\);",
                                                      headers.source(root, name)):
            text.append(f"{result}{function}({arguments}) {{ __builtin_trap(); }}")
    return "\n".join(text)


def type_problems(golden, root, compiler, folder):
    """What abidiff says of the two headers' functions, numbers and structs."""
    if not shutil.which("abidiff"):
        print("SKIP abidiff: not installed")
        return []
    libraries = []
    for which, include in (("was", golden / "include"), ("is", headers.include(root))):
        library = folder / f"lib{which}.so"
        source = library.with_suffix(".c")
        source.write_text(stubs(include))
        subprocess.run([compiler, "-g", "-fno-eliminate-unused-debug-types", "-fPIC", "-shared", "-w", f"-I{include}",
                        f"-I{headers.include(root)}", str(source), "-o", str(library)], check=True)
        libraries.append(str(library))
    found = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", str(golden / "growth.suppr"), *libraries],
                           capture_output=True, text=True)
    return [] if found.returncode == 0 else [f"abidiff, which ends with {found.returncode}:\n{found.stdout}{found.stderr}"]


def run(command, expected, what):
    done = subprocess.run(command, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip()
    return [] if done.returncode == 0 and expected in said else [f"{what}: exit code {done.returncode}, {said}"]


def program_problems(golden, root, compiler, library, kiln, plugin, folder):
    """The old host with the old plugin, cold and from the cache; each of them with what there is today."""
    own, host = folder / "golden.so", folder / "host"
    build = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{golden}/include", f"-I{headers.include(root)}"]
    subprocess.run([*build, "-shared", "-fPIC", str(golden / "plugin.c"), "-o", str(own)], check=True)
    subprocess.run([*build, str(golden / "host.c"), "-o", str(host), library,
                    f"-Wl,-rpath,{pathlib.Path(library).parent}"], check=True)
    cache = folder / "cache"
    for lookup in "MISS", "HIT":
        yield from run([str(host), str(own), str(cache), lookup], "ok", f"old host and plugin, {lookup}")
    yield from run([kiln, "plugin", "inspect", str(own)], "golden.negates", "today's program, old plugin")
    yield from run([kiln, "ops", "--plugin", str(own), "golden.twice"], "x + x", "today's program, old plugin's op")
    yield from run([kiln, "plugin", "inspect", plugin], "op_template", "today's plugin")


def update(root):
    golden = pathlib.Path(root, "abi/golden", CANDIDATE)
    shutil.rmtree(golden / "include", ignore_errors=True)
    (golden / "include/kiln").mkdir(parents=True)
    for name in HEADERS:
        shutil.copy(headers.include(root) / "kiln" / name, golden / "include/kiln")
    (golden / "layout.txt").write_text(measured(root, "cc"))
    names = re.findall(r"\b(kiln_\w+);", pathlib.Path(root, "abi/src/exports.map").read_text())
    (golden / "exports.txt").write_text("".join(f"{name}@@KILN_1.0\n" for name in sorted(names)))
    return 0


def main(root, compiler, library, kiln, plugin):
    problems = []
    for golden in sorted(path for path in pathlib.Path(root, "abi/golden").iterdir() if path.is_dir()):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            problems += [f"{golden.name}: {problem}" for problem in (
                *layout_problems(golden, root, compiler), *member_problems(golden, root),
                *export_problems(golden, library), *number_problems(golden, root),
                *type_problems(golden, root, compiler, folder),
                *program_problems(golden, root, compiler, library, kiln, plugin, folder))]
    print("\n".join(problems) or "what was built against each release runs")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(update(sys.argv[1]) if sys.argv[2:] == ["--update"] else main(*sys.argv[1:]))
