"""Architectures of others, in reduced configurations, beside eager: `python zoo.py [--train] [NAME…]`.

Needs what the names say: transformers, torchvision, timm. A line a model: graphs, ops in Kiln and in how many programs,
ops that stayed and why, the largest error beside the largest element, seconds from ATen's graphs to programs.
"""

import collections
import copy
import sys

import torch
from torch.utils._pytree import tree_leaves

import kiln
import kiln.torch

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "vocab_size": 100, "max_position_embeddings": 64}


def transformer(name, suffix, **config):
    def make():
        import transformers
        said = getattr(transformers, name + "Config")(**config)
        said.use_cache = False
        return getattr(transformers, name + suffix)(said)
    return make


def vision(name, **arguments):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **arguments)
    return make


def timm_model(name, **arguments):
    def make():
        import timm
        return timm.create_model(name, **arguments)
    return make


def tokens(length=7):
    return torch.randint(3, 90, (2, length))


def image(size):
    return lambda: (torch.randn(2, 3, size, size),)


def words():
    return {"input_ids": tokens()}


def both():
    return {"input_ids": tokens(), "decoder_input_ids": tokens(5)}


GROUPED = {"num_key_value_heads": 2, **SMALL}
MODELS = {
    "bert": (transformer("Bert", "Model", **SMALL), words),
    "gpt2": (transformer("GPT2", "LMHeadModel", n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64,
                         bos_token_id=1, eos_token_id=2), words),
    "llama": (transformer("Llama", "ForCausalLM", **GROUPED), words),
    "qwen3": (transformer("Qwen3", "ForCausalLM", head_dim=8, **GROUPED), words),
    "gemma2": (transformer("Gemma2", "ForCausalLM", head_dim=8, **GROUPED), words),
    "mixtral": (transformer("Mixtral", "ForCausalLM", num_local_experts=4, **GROUPED), words),
    "t5": (transformer("T5", "ForConditionalGeneration", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                       vocab_size=100), both),
    "mamba": (transformer("Mamba", "ForCausalLM", hidden_size=32, num_hidden_layers=2, vocab_size=100, state_size=4),
              words),
    "whisper": (transformer("Whisper", "Model", d_model=32, encoder_layers=2, decoder_layers=2, vocab_size=100,
                            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                            decoder_ffn_dim=64, max_source_positions=20, num_mel_bins=8, pad_token_id=0,
                            bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
                lambda: {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": tokens(5)}),
    "vit": (transformer("ViT", "Model", hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=64, image_size=32, patch_size=8), image(32)),
    **{name: (vision(name, num_classes=5), image(size)) for name, size in
       (("resnet18", 64), ("mobilenet_v3_small", 64), ("efficientnet_b0", 64), ("convnext_tiny", 48), ("swin_t", 64),
        ("shufflenet_v2_x0_5", 64), ("densenet121", 64))},
    "lraspp": (vision("lraspp_mobilenet_v3_large", weights_backbone=None, num_classes=4), image(48)),
    "mixer": (timm_model("mixer_s32_224", img_size=64, num_classes=5), image(64)),
    "regnet": (timm_model("regnetx_002", num_classes=5), image(64)),
}


def tensors(result):
    return [x for x in tree_leaves(result.to_tuple() if hasattr(result, "to_tuple") else result)
            if isinstance(x, torch.Tensor)]


def run(function, model, data, train):
    """Results, and gradients of a weighed sum of them."""
    torch.manual_seed(1)  # of dropout
    with torch.set_grad_enabled(train):
        results = tensors(function(**data) if isinstance(data, dict) else function(*data))
    if not train:
        return results
    torch.manual_seed(2)
    sum((x * torch.randn_like(x)).mean() for x in results if x.requires_grad).backward()
    return [x.detach() for x in results] + [p.grad for p in model.parameters() if p.grad is not None]


def trial(name, train):
    torch._dynamo.reset()
    kiln.torch.clear_reports()
    torch.manual_seed(0)
    make, data = MODELS[name]
    model, given = make().train(train), data()
    other = copy.deepcopy(model)
    mine = run(torch.compile(model, backend=kiln.torch.backend), model, given, train)
    theirs = run(other, other, given, train)
    assert len(mine) == len(theirs)
    error = max(float((a.double() - b.double()).abs().max() / (b.double().abs().max() + 1e-3))
                for a, b in zip(mine, theirs) if a.numel())
    reports = kiln.torch.reports()
    left = collections.Counter(each.op for report in reports for each in report.left)
    print(f"{name:20} {'train' if train else 'eval':5} {len(reports)} graphs {sum(r.ops for r in reports):4} ops "
          f"{sum(r.parts for r in reports):2} programs {sum(left.values()):2} left  error {error:.0e}  "
          f"{sum(r.compiled for r in reports):.2f} s  {dict(left) or ''}", flush=True)


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name != "--train"]
    with kiln.Context(cache="off") as context:
        kiln.set_default_context(context)
        for each in chosen or MODELS:
            trial(each, "--train" in sys.argv)
