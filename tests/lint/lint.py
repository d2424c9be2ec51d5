"""Repository rules that no compiler checks. Usage: lint.py ROOT [RULE…]; prints one line per offence, exits 1 if any."""

import pathlib
import re
import subprocess
import sys

# Who may include whom. A folder may include itself and, of the parts of the library, those that it names.
PARTS = {
    "jit/base": [],
    "jit/kernel": ["jit/base"],
    "jit/llvm": ["jit/base", "jit/kernel"],
    "jit/cuda": ["jit/base", "jit/kernel"],
    "runtime/graph": ["jit/base"],
    "runtime/io": ["jit/base", "runtime/graph"],
    "runtime/ops": ["jit/base", "jit/kernel", "runtime/graph", "runtime/io"],
}
# From here on each part may include all that come before it.
UPPER = ["functions", "patterns", "passes", "backends", "regions", "plan", "cache", "unpacked", "exec", "plugin"]
below = ["jit/base", "jit/kernel", "runtime/graph", "runtime/io", "runtime/ops"]
for upper in UPPER:
    PARTS[f"runtime/{upper}"] = list(below)
    below.append(f"runtime/{upper}")
PARTS["runtime"] = list(below)  # compile.h and compile.cpp
PARTS["abi/src"] = below + ["runtime"]

# Clients of the library see the installed headers alone, and what lies in their own folder.
CLIENTS = ["plugins", "bindings"]

# Headers of a dependency that only one folder may know.
EXCLUSIVE = {"llvm/": ["jit/llvm"], "llvm-c/": ["jit/llvm"], "cuda": [], "nvrtc": [],
             "ffi.h": ["runtime/functions"]}

SOURCE = {".h", ".hpp", ".c", ".cpp", ".def"}
TEXT = SOURCE | {".py", ".md", ".txt", ".cmake", ".json", ".sh", ".map", ".in", ""}
LONGEST = 600
AS_UPSTREAM = {"abi/include/kiln/dlpack.h"}  # another's file, as it is there
SKIPPED = re.compile(r"^(\.git|\.cache|build[^/]*|__pycache__)$")

# The first level of the tree; what begins with a dot may lie there, too.
TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "abi",
             "bench", "bindings", "cmake", "dev", "docs", "jit", "plugins", "runtime", "tests"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
LEFT_OVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
ENVIRONMENT = re.compile(r"\b(secure_)?getenv\s*\(")


def walk(folder):
    for path in sorted(folder.iterdir()):
        if SKIPPED.match(path.name) or path.is_symlink():
            continue
        if path.is_dir():
            yield from walk(path)
        else:
            yield path


def first_level(root):
    """The names in the root: those that git keeps or would add, so that a build or a crash may leave what is ignored
    there; without git, all but build folders."""
    if (root / ".git").exists():
        git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout
            return sorted({name.partition("/")[0] for name in listed.split("\0") if name})
        except (OSError, subprocess.CalledProcessError):
            pass  # no git here, or none that trusts this folder
    return sorted(path.name for path in root.iterdir() if not SKIPPED.match(path.name))


def part_of(name):
    """The part of the library that the file or header `name` belongs to, or None."""
    folder = name.rpartition("/")[0]
    while folder:
        if folder in PARTS:
            return folder
        folder = folder.rpartition("/")[0]
    return None


def includes(root):
    """Each file includes only what the table allows, by its path from the root."""
    for path in walk(root):
        name = path.relative_to(root).as_posix()
        if path.suffix not in SOURCE or name.startswith(("tests/", "bench/")):
            continue
        client = next((folder for folder in CLIENTS if name.startswith(folder + "/")), None)
        part = part_of(name)
        for bracket, header in INCLUDE.findall(path.read_text()):
            owner = part_of(header)
            only = next((folders for start, folders in EXCLUSIVE.items() if header.startswith(start)), None)
            if only is not None and part not in only:
                yield f"{name}: includes {header}, which only {' and '.join(only) or 'no folder'} may"
            elif client and (owner or bracket == '"' and not header.startswith("kiln/")
                             and not (path.parent / header).exists()):
                yield f"{name}: includes {header}; {client}/ may include the installed headers and its own folder only"
            elif name.startswith("abi/include/") and (bracket == '"' and not header.startswith("kiln/")):
                yield f"{name}: includes {header}; an installed header may include C standard headers only"
            elif part and owner and owner != part and owner not in PARTS[part]:
                yield f"{name}: includes {header}; {part} may not include {owner}"
            elif part and bracket == '"' and not owner and not header.startswith("kiln/"):
                yield f"{name}: includes {header}, which is not a path from the root"
            elif part and owner and not (root / header).exists():
                yield f"{name}: includes {header}, which does not exist"


def length(root):
    """No file is longer than a reader's patience."""
    for path in walk(root):
        name = path.relative_to(root).as_posix()
        if path.suffix in SOURCE | {".py", ".rs", ".jl"} and name not in AS_UPSTREAM:
            lines = path.read_text().count("\n")
            if lines > LONGEST:
                yield f"{name}: {lines} lines, at most {LONGEST} are allowed"


def readmes(root):
    """Each folder with sources explains itself; a test folder's own folders mirror others and need no words."""
    folders = set()
    for path in walk(root):
        parents = path.relative_to(root).parent.parts
        if path.suffix in SOURCE | {".py"} and parents:
            folders.add(parents[0])
            folders.add("/".join(parents[:2]))
    for folder in sorted(folders - {"abi/include", "bench/programs"}):
        if not (root / folder / "README.md").exists():
            yield f"{folder}: no README.md"


def left_over(root):
    """Nothing is left to be done later in a comment."""
    for path in walk(root):
        if path.suffix in TEXT and path.stat().st_size < 1 << 20:
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if LEFT_OVER.search(line):
                    yield f"{path.relative_to(root).as_posix()}:{number}: {line.strip()[:80]}"


def environment(root):
    """Only jit/base reads the environment: env.def lists every variable."""
    for folder in ("abi", "jit", "runtime", "plugins", "bindings/cli"):
        for path in walk(root / folder) if (root / folder).is_dir() else ():
            name = path.relative_to(root).as_posix()
            if path.suffix in SOURCE and not name.startswith("jit/base/") and ENVIRONMENT.search(path.read_text()):
                yield f"{name}: reads the environment; add the variable to jit/base/env.def and ask there"


def top_level(root):
    """Nothing strays into the root: a core file was once committed there."""
    for name in first_level(root):
        if name not in TOP_LEVEL and not name.startswith("."):
            yield f"{name}: has no place in the first level of the tree"


RULES = {"includes": includes, "length": length, "readmes": readmes, "left_over": left_over, "environment": environment,
         "top_level": top_level}


def main(root, *names):
    offences = [f"{name}: {offence}" for name in names or RULES for offence in RULES[name](pathlib.Path(root))]
    print("\n".join(offences) if offences else "no offence")
    return bool(offences)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
