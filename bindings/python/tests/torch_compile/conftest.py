"""What all tests of the backend have in common."""

import pytest


@pytest.fixture(autouse=True)
def fresh():
    """No compiled frames, no reports, and the same random numbers."""
    import kiln.torch  # where torch is not installed, the files of tests say so and skip
    import torch
    torch._dynamo.reset()
    kiln.torch.clear_reports()
    torch.manual_seed(0)
