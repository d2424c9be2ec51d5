"""GPT-2's forward pass in JAX, on the weights of transformers' module."""

from __future__ import annotations

from typing import Any

import torch

from peers import as_jax, jax, jnp

HEADS = 12


def parameters(module: torch.nn.Module) -> dict[str, Any]:
    """By their names in the module, without what comes before the first that tells one from another."""
    return {name.rpartition("transformer.")[2]: as_jax(weight.detach()) for name, weight in module.named_parameters()}


def forward(weights: dict[str, Any], tokens: Any) -> Any:
    """Logits of [batch, length]."""
    def norm(name: str, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def dense(name: str, x: Any) -> Any:
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)

    batch, length = tokens.shape
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][:length]
    for layer in range(sum(name.endswith("ln_1.weight") for name in weights)):
        at = f"h.{layer}"
        q, k, v = (each.reshape(batch, length, HEADS, -1)
                   for each in jnp.split(dense(f"{at}.attn.c_attn", norm(f"{at}.ln_1", x)), 3, -1))
        x = x + dense(f"{at}.attn.c_proj", attention(q, k, v).reshape(x.shape))
        inner = jax.nn.gelu(dense(f"{at}.mlp.c_fc", norm(f"{at}.ln_2", x)))  # by tanh, as GPT-2's is
        x = x + dense(f"{at}.mlp.c_proj", inner)
    return norm("ln_f", x) @ weights["wte.weight"].T
