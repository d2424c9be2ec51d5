"""`python -m kiln`, and the program `kiln`: the packaged program, but for what Python does: ONNX files."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program() -> Path:
    """The packaged program; of a package that is developed, the one of the build that its library is from."""
    packaged = Path(__file__).parent / "bin" / "kiln"
    if packaged.exists():
        return packaged
    import kiln  # noqa: F401  # maps the library
    with open("/proc/self/maps") as maps:
        library = next(line.split()[-1] for line in maps if "/libkiln.so" in line)
    return Path(library).parent.parent / "bin" / "kiln"


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["import"] or any(argument.endswith(".onnx") for argument in arguments):
        try:
            from kiln.onnx import main as onnx  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            print(f"kiln: reading ONNX needs more of Python: {error}; pip install 'kiln[onnx]'", file=sys.stderr)
            return 1
        return int(onnx(arguments))
    path = program()
    sys.stdout.flush()
    os.execv(path, ["kiln", *arguments])


if __name__ == "__main__":
    sys.exit(main())
