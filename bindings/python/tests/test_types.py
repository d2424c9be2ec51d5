"""The package is typed: stubs hold what there is, and mypy is content with all of it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import kiln
import pytest

PACKAGE = Path(kiln.__file__).parent


@pytest.mark.fast
def test_the_stub_of_ops_is_what_the_registry_says():
    from kiln._stubs import stub
    assert (PACKAGE / "ops.pyi").read_text() == stub(), "python -m kiln._stubs writes it anew"


def test_mypy_finds_nothing_in_the_package(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed in this environment")
    # What is of torch's types can be checked only where these are.
    without = [] if importlib.util.find_spec("torch") else ["--exclude", "kiln/torch/"]
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, *without, "-p", "kiln"],
                         capture_output=True, text=True, cwd=PACKAGE.parent)
    assert run.returncode == 0, run.stdout


def test_the_extensions_stub_has_what_the_extension_has():
    from kiln import _kiln
    stub = (PACKAGE / "_kiln.pyi").read_text()
    for name, of in vars(_kiln).items():
        if not name.startswith("_"):
            assert name in stub, name
        for member in vars(of) if isinstance(of, type) else ():
            if not member.startswith("_"):
                assert f"def {member}(" in stub, f"{name}.{member}"
