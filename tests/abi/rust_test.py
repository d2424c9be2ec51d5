"""The C interface as `kiln plugin new --lang rust` writes it down (templates/rust/kiln/abi.rs) is that of the headers: numbers,
members, what functions take, and, by programs in both languages, sizes and offsets. Usage: rust_test.py ROOT COMPILER

Exits 77, with the reason in a line that begins with "SKIP:", where there is no rustc to lay structs out.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import golden_test
import headers

MODULE = "bindings/cli/plugin/templates/rust/kiln"
# Structs inside of DLTensor, which Rust has member by member.
FLAT = {"device_type": "device.device_type", "device_id": "device.device_id", "code": "dtype.code", "bits": "dtype.bits",
        "lanes": "dtype.lanes"}
PLAIN = {"uint32_t": "u32", "int32_t": "i32", "uint64_t": "u64", "int64_t": "i64", "double": "f64", "kiln_node": "Node",
         "kiln_value": "Value", "kiln_op": "OpId", "kiln_dtype": "u32"}
POINTED = {"constchar*": "*const u8", "constvoid*": "*const u8",
           "constDLTensor**": "*mut *const DLTensor", "constDLTensor*const*": "Arrays"}


def block(text, macro):
    """What stands between the braces of `macro! { ... }`."""
    begin = text.index(f"\n{macro}! {{") + len(macro) + 4
    return re.sub(r"//.*", "", text[begin:text.index("\n}", begin)])


def c_name(name):
    if name == "DLTensor":
        return name
    return "kiln_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name.removeprefix("Raw")).lower()


def c_member(name, member):
    member = member.removeprefix("r#")
    return FLAT.get(member, member) if name == "DLTensor" else member


def structs_of(text):
    """Rust's name -> {member: type}."""
    bodies = re.findall(r"^ +(\w+) \{(.*?)\}", block(text, "structs"), re.MULTILINE | re.DOTALL)
    return {name: dict(re.findall(r"(\S+): ((?:Option<.*?>(?=,)|[^,])+),", " ".join(body.split()))) for name, body in bodies}


def tables_of(text):
    """Rust's name -> {slot: "(arguments) -> result"}."""
    return {name: dict(re.findall(r"(\S+)(\(.*?\)[^;]*);", body))
            for name, body in re.findall(r"(\w+) \{(.*?)\}", block(text, "tables"), re.DOTALL)}


def rust_type(declared, known):
    """What a C type without spaces is in Rust. What only the host knows is a Handle."""
    if declared in PLAIN or declared in POINTED:
        return PLAIN.get(declared) or POINTED[declared]
    base = declared.removeprefix("const").rstrip("*")
    if declared.endswith("**"):
        return "*mut Handle"
    target = PLAIN.get(base) or next((name for name in known if c_name(name) == base), None)
    return f"*{'const' if declared.startswith('const') else 'mut'} {target}" if target else "Handle"


def signature(result, arguments, known):
    text = "(" + ", ".join(rust_type(argument, known) for argument in arguments) + ")"
    return text if result == "void" else f"{text} -> {rust_type(result, known)}"


def callbacks(root):
    """C's name of a struct -> {member: (result, argument types)} of those that are functions."""
    found = {}
    for name, members in golden_test.members(root).items():
        functions = [re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", member) for member in members]
        found[name] = {match[2]: (match[1].replace(" ", ""), headers.types_of(match[3])) for match in functions if match}
        found[name].update({"destroy": ("void", ["void*"]) for member in members if member == "kiln_destroy_fn destroy"})
    return found


def declaration_problems(root, structs, tables):
    known, fields = [*structs, *tables], headers.structs(root)
    for name, members in structs.items():
        own = list(dict.fromkeys(c_member(name, member).split(".")[0] for member in members))
        if own != fields[c_name(name)]:
            yield f"{name} has {own}, {c_name(name)} has {fields[c_name(name)]}"
        for member, (result, arguments) in callbacks(root).get(c_name(name), {}).items():
            expected = f'Option<extern "C" fn{signature(result, arguments, known)}>'
            if members[member] != expected:
                yield f"{name}.{member} is {members[member]}, in C {expected}"
    for group, slots in headers.host_tables(root).items():
        name = next((name for name in tables if c_name(name) == f"kiln_host_{group}"), None)
        own = {slot.removeprefix("r#"): declared for slot, declared in tables.get(name, {}).items()}
        if list(own) != list(slots):
            yield f"table {group}: Rust has {list(own)}, C {list(slots)}"
            continue
        for slot, (result, arguments) in slots.items():
            expected = signature(result, arguments, known)
            if own[slot] != expected:
                yield f"{name}.{slot} is {own[slot]}, in C {expected}"


def number_problems(root, text):
    of_c = {name: int(value, 0) for name, value in golden_test.numbers(root).items()}
    for name, value in re.findall(r"(\w+) = (\w+)", block(text, "numbers")):
        if of_c.get(f"KILN_{name}") != int(value, 0):
            yield f"{name} is {value}, KILN_{name} is {of_c.get(f'KILN_{name}', 'nothing')}"


def laid_out(command, source, folder):
    program = folder / source.stem
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def layout_problems(root, compiler, layouts):
    """A line a struct and a member, by either compiler."""
    c = ["#include <stddef.h>", "#include <stdio.h>", '#include "kiln/plugin.h"', "int main(void) {"]
    rust = [f'#[path = "{root.resolve() / MODULE / "abi.rs"}"]', "mod kiln;", "use std::{mem, ptr};", "fn main() { unsafe {"]
    for name, members in layouts.items():
        of_c = c_name(name)
        c.append(f'printf("{of_c} %zu\\n", sizeof({of_c}));')
        rust.append(f'let made: mem::MaybeUninit<kiln::{name}> = mem::MaybeUninit::uninit(); let at = made.as_ptr();'
                    f'println!("{of_c} {{}}", mem::size_of_val(&made));')
        for member in members:
            path = c_member(name, member)
            c.append(f'printf("{of_c}.{path} %zu\\n", offsetof({of_c}, {path}));')
            rust.append(f'println!("{of_c}.{path} {{}}", ptr::addr_of!((*at).{member}) as usize - at as usize);')
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "c.c").write_text("\n".join([*c, "return 0; }"]))
        (folder / "rust.rs").write_text("\n".join([*rust, "} }"]))
        ours = laid_out([compiler, "-I", str(headers.include(root))], folder / "c.c", folder)
        theirs = laid_out(["rustc", "--edition", "2021", "-A", "warnings"], folder / "rust.rs", folder)
    print(f"{len(ours)} sizes and offsets")
    return [f"in C {a}, in Rust {b}" for a, b in zip(ours, theirs, strict=True) if a != b]


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = (root / MODULE / "abi.rs").read_text()
    structs, tables = structs_of(text), tables_of(text)
    problems = [*declaration_problems(root, structs, tables), *number_problems(root, text)]
    if not problems and not shutil.which("rustc"):
        print("SKIP: rust: no rustc on PATH")
        sys.exit(77)
    head = ["struct_size", "reserved0"]
    layouts = {**structs, **{name: [*head, *slots] for name, slots in tables.items()}}
    problems = problems or layout_problems(root, compiler, layouts)
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


main()
