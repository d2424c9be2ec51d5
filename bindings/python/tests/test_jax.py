"""JAX's arrays: read without a copy, given back as JAX's, and never written."""

import kiln
import pytest
from conftest import compiled

jnp = pytest.importorskip("jax.numpy", reason="jax is not installed in this environment")


def test_results_are_jaxs_and_out_is_refused():
    x = jnp.arange(4, dtype=jnp.float32)
    add = compiled(lambda a, b: a + b, ("f32", ["n"]), ("f32", ["n"]))
    for _ in range(4):
        result = add(x, x)
        assert isinstance(result, type(x)) and result.tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="'output0' is written, but its array is read-only"):
        add(x, x, out=x)
    assert x.tolist() == [0, 1, 2, 3] and kiln.jit(lambda v: v * 2)(x).tolist() == [0, 2, 4, 6]
