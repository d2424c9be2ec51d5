"""What docs/python.md and the README show runs as it stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.fast


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_every_block_of_python_runs(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    scope = {"__name__": "page"}
    for block in blocks:
        exec(compile(block.replace("/tmp/", f"{tmp_path}/"), page, "exec"), scope)
