"""The allow-list, the library, the headers and the plugin tables name the same functions.
Usage: exports_test.py ROOT LIBRARY"""

import re
import subprocess
import sys

import headers

# What plugins alone may call: a slot without an export.
PLUGIN_ONLY = {"context": {"add_pass", "add_op", "add_file", "add_function", "add_backend"}}


def main(root, library):
    problems = []

    def same(what, left, right, left_name, right_name):
        for name in sorted(left - right):
            problems.append(f"{what}: {name} is in {left_name} and not in {right_name}")
        for name in sorted(right - left):
            problems.append(f"{what}: {name} is in {right_name} and not in {left_name}")

    declared = {**headers.exports(root, "graph.h"), **headers.exports(root, "function.h"), **headers.exports(root, "backend.h"),
                **headers.exports(root, "kiln.h")}
    listed = set(re.findall(r"\b(kiln_\w+);", open(f"{root}/abi/src/exports.map").read()))
    nm = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[2].split("@")[0] for line in nm.splitlines()} - {"KILN_1.0"}
    same("exports", set(declared), listed, "the headers", "exports.map")
    same("exports", listed, exported, "exports.map", "the library")
    for line in nm.splitlines():
        name = line.split()[2]
        if name != "KILN_1.0" and not name.endswith("@@KILN_1.0"):
            problems.append(f"exports: {name} has no version KILN_1.0")

    shared = headers.exports(root, "graph.h")
    shared.update((name, signature) for name, signature in headers.exports(root, "backend.h").items()
                  if not name.endswith("register"))
    slots = {}
    for group, table in headers.host_tables(root).items():
        for slot, signature in table.items():
            if slot not in PLUGIN_ONLY.get(group, ()):
                slots[f"kiln_{group}_{slot}"] = signature
    same("tables", set(shared), set(slots), "graph.h and backend.h", "the tables of plugin.h")
    for name in sorted(set(shared) & set(slots)):
        if shared[name] != slots[name]:
            problems.append(f"tables: {name} is {shared[name]} in graph.h, its slot is {slots[name]}")

    print("\n".join(problems) or f"{len(declared)} functions, {len(slots)} slots agree")
    return 1 if problems or len(slots) < 40 else 0


sys.exit(main(*sys.argv[1:]))
