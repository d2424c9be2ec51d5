"""What others made, in reduced configurations with random weights: nothing is fetched.

`MODELS` has a row a model: how it is made, and arguments for a batch of n, whose sequences are longer for a larger one.
"""

from typing import Callable, NamedTuple

import torch

from . import by_hand

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "vocab_size": 100, "max_position_embeddings": 64}
GROUPED = {"num_key_value_heads": 2, **SMALL}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
          "image_size": 32, "patch_size": 8}
CODED = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}


class Model(NamedTuple):
    kind: str
    source: str  # the package that it is of
    make: Callable[[], torch.nn.Module]
    data: Callable[[int], dict | tuple]


def of_transformers(name, suffix="Model", experts=None, **config):
    def make():
        import transformers
        said = getattr(transformers, name + "Config")(**config)
        said.use_cache = False
        if experts:
            said._experts_implementation = experts
        return getattr(transformers, name + suffix)(said)
    return "transformers", make


def of_torchvision(name, **arguments):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **arguments)
    return "torchvision", make


def of_timm(name, **arguments):
    def make():
        import timm
        return timm.create_model(name, num_classes=5, **arguments)
    return "timm", make


def tokens(n, length):
    return torch.randint(3, 90, (n, length))


def words(n):
    return {"input_ids": tokens(n, n + 5)}


def both(n):
    return {"input_ids": tokens(n, n + 5), "decoder_input_ids": tokens(n, n + 3)}


def sound(n):
    return {"input_features": torch.randn(n, 8, 40), "decoder_input_ids": tokens(n, n + 3)}


def waves(n):
    return {"input_values": torch.randn(n, 400)}


def seen(n):
    return {"input_ids": tokens(n, n + 5), "pixel_values": torch.randn(n, 3, 32, 32)}


def image(size):
    return lambda n: (torch.randn(n, 3, size, size),)


def photographs(n):
    return ([torch.rand(3, 64, 64) for _ in range(n)],)


CAUSAL = "ForCausalLM"
DETECTOR = {"weights_backbone": None, "min_size": 64, "max_size": 64}
ROWS = {
    "encoder": {
        "bert": (of_transformers("Bert", **SMALL), words),
        "albert": (of_transformers("Albert", embedding_size=16, **SMALL), words),
        "deberta_v2": (of_transformers("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"],
                                       position_buckets=8, **SMALL), words),
        "modernbert": (of_transformers("ModernBert", global_attn_every_n_layers=2, local_attention=4, pad_token_id=0,
                                       bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, **SMALL), words),
        "funnel": (of_transformers("Funnel", block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64,
                                   vocab_size=100), words),
        "xlnet": (of_transformers("XLNet", d_model=32, n_layer=2, n_head=4, d_inner=64, vocab_size=100), words),
        "fnet": (of_transformers("FNet", hidden_size=32, num_hidden_layers=2, intermediate_size=64, vocab_size=100,
                                 max_position_embeddings=64), words),
        "perceiver": (of_transformers("Perceiver", num_latents=4, d_latents=16, d_model=24, num_blocks=1,
                                      num_self_attends_per_block=2, num_self_attention_heads=2,
                                      num_cross_attention_heads=2), lambda n: {"inputs": torch.randn(n, 6, 24)}),
        "wav2vec2": (of_transformers("Wav2Vec2", conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3),
                                     num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                                     num_conv_pos_embedding_groups=2, apply_spec_augment=False, hidden_size=32,
                                     num_hidden_layers=2, num_attention_heads=4, intermediate_size=64), waves),
        "patchtst": (of_transformers("PatchTST", "ForPrediction", num_input_channels=2, context_length=32,
                                     patch_length=8, patch_stride=8, d_model=16, num_hidden_layers=2,
                                     num_attention_heads=2, ffn_dim=32, prediction_length=4),
                     lambda n: {"past_values": torch.randn(n, 32, 2)}),
    },
    "decoder": {
        "gpt2": (of_transformers("GPT2", "LMHeadModel", n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64,
                                 bos_token_id=1, eos_token_id=2), words),
        "llama": (of_transformers("Llama", CAUSAL, **GROUPED), words),
        "qwen3": (of_transformers("Qwen3", CAUSAL, head_dim=8, **GROUPED), words),
        "gemma2": (of_transformers("Gemma2", CAUSAL, head_dim=8, **GROUPED), words),
        "gpt_neox": (of_transformers("GPTNeoX", CAUSAL, **SMALL), words),
        "bloom": (of_transformers("Bloom", CAUSAL, hidden_size=32, n_layer=2, n_head=4, vocab_size=100), words),
        "falcon": (of_transformers("Falcon", CAUSAL, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                   vocab_size=100), words),
        "mistral": (of_transformers("Mistral", CAUSAL, sliding_window=4, **GROUPED), words),
    },
    "encoder and decoder": {
        "t5": (of_transformers("T5", "ForConditionalGeneration", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                               vocab_size=100), both),
        "bart": (of_transformers("Bart", vocab_size=100, max_position_embeddings=64, **CODED), both),
        "whisper": (of_transformers("Whisper", vocab_size=100, max_source_positions=20, num_mel_bins=8, pad_token_id=0,
                                    bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **CODED), sound),
        "clip": (of_transformers("CLIP", text_config={**SMALL, "eos_token_id": 2}, vision_config=VISION,
                                 projection_dim=16), seen),
    },
    "mixture of experts": {
        "mixtral": (of_transformers("Mixtral", CAUSAL, num_local_experts=4, **GROUPED), words),
        "qwen3_moe": (of_transformers("Qwen3Moe", CAUSAL, experts="batched_mm", head_dim=8, num_experts=4,
                                      num_experts_per_tok=2, moe_intermediate_size=16, **GROUPED), words),
        "gpt_oss": (of_transformers("GptOss", CAUSAL, head_dim=8, num_local_experts=4, num_experts_per_tok=2,
                                    layer_types=["sliding_attention", "full_attention"], sliding_window=4, **GROUPED),
                    words),
        "deepseek_v3": (of_transformers("DeepseekV3", CAUSAL, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8,
                                        qk_nope_head_dim=8, v_head_dim=8, n_routed_experts=8, num_experts_per_tok=2,
                                        n_group=2, topk_group=1, first_k_dense_replace=1, moe_intermediate_size=16,
                                        num_key_value_heads=4, **SMALL), words),
    },
    "state space": {
        "mamba": (of_transformers("Mamba", CAUSAL, hidden_size=32, num_hidden_layers=2, vocab_size=100, state_size=4),
                  words),
        "mamba2": (of_transformers("Mamba2", CAUSAL, hidden_size=32, num_hidden_layers=2, vocab_size=100, state_size=8,
                                   num_heads=8, head_dim=8, n_groups=2, chunk_size=4), words),
        "jamba": (of_transformers("Jamba", CAUSAL, num_experts=2, attn_layer_period=2, attn_layer_offset=1,
                                  expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False,
                                  mamba_d_state=4, mamba_dt_rank=4, **GROUPED), words),
    },
    "recurrent": {
        "recurrent_gemma": (of_transformers("RecurrentGemma", CAUSAL, lru_width=32, attention_window_size=8, head_dim=8,
                                            block_types=["recurrent", "attention"], **GROUPED), words),
        "rwkv": (of_transformers("Rwkv", CAUSAL, hidden_size=32, num_hidden_layers=2, vocab_size=100, context_length=16,
                                 attention_hidden_size=32, intermediate_size=64), words),
        "lstm": (("", lambda: by_hand.Tagger(torch.nn.LSTM)), lambda n: (tokens(n, 7),)),
        "gru": (("", lambda: by_hand.Tagger(torch.nn.GRU)), lambda n: (tokens(n, 7),)),
    },
    "images by attention": {
        "vit": (of_transformers("ViT", **VISION), image(32)),
        "dinov2": (of_transformers("Dinov2", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                                   patch_size=8), image(48)),
        "swinv2": (of_transformers("Swinv2", image_size=32, patch_size=2, embed_dim=16, depths=[1, 2], num_heads=[2, 4],
                                   window_size=4), image(32)),
        "swin_t": (of_torchvision("swin_t", num_classes=5), image(64)),
        "mixer": (of_timm("mixer_s32_224", img_size=64), image(64)),
        "xcit": (of_timm("xcit_nano_12_p16_224", img_size=64), image(64)),
        "coat": (of_timm("coat_tiny", img_size=64), image(64)),
    },
    "images by convolution": {
        "resnet18": (of_torchvision("resnet18", num_classes=5), image(64)),
        "mobilenet_v3": (of_torchvision("mobilenet_v3_small", num_classes=5), image(64)),
        "efficientnet": (of_torchvision("efficientnet_b0", num_classes=5), image(64)),
        "convnext": (of_torchvision("convnext_tiny", num_classes=5), image(48)),
        "shufflenet": (of_torchvision("shufflenet_v2_x0_5", num_classes=5), image(64)),
        "densenet": (of_torchvision("densenet121", num_classes=5), image(64)),
        "googlenet": (of_torchvision("googlenet", num_classes=5, aux_logits=False, init_weights=True), image(64)),
        "regnet": (of_timm("regnetx_002"), image(64)),
        "ghostnet": (of_timm("ghostnet_050"), image(64)),
        "nfnet": (of_timm("nfnet_l0"), image(64)),
        "r3d": (of_torchvision("r3d_18", num_classes=5), lambda n: (torch.randn(n, 3, 8, 32, 32),)),
    },
    "segmentation and flow": {
        "u_net": (("", by_hand.UNet), lambda n: (torch.randn(n, 3, 24, 40),)),
        "segformer": (of_transformers("Segformer", "ForSemanticSegmentation", hidden_sizes=[8, 16, 24, 32],
                                      depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
                      image(64)),
        "lraspp": (of_torchvision("lraspp_mobilenet_v3_large", weights_backbone=None, num_classes=4), image(48)),
        "deeplabv3": (of_torchvision("deeplabv3_mobilenet_v3_large", weights_backbone=None, num_classes=4), image(64)),
        "raft": (of_torchvision("raft_small"), lambda n: (*torch.randn(2, n, 3, 128, 128), 2)),
    },
    "detection": {
        "yolos": (of_transformers("Yolos", "ForObjectDetection", num_detection_tokens=5,
                                  **{**VISION, "image_size": [32, 32]}), image(32)),
        "retinanet": (of_torchvision("retinanet_resnet50_fpn", num_classes=4, score_thresh=0.0, topk_candidates=20,
                                     detections_per_img=5, **DETECTOR), photographs),
        "fasterrcnn": (of_torchvision("fasterrcnn_mobilenet_v3_large_320_fpn", num_classes=4, box_score_thresh=0.0,
                                      box_detections_per_img=5, rpn_post_nms_top_n_test=20, **DETECTOR), photographs),
        "ssdlite": (of_torchvision("ssdlite320_mobilenet_v3_large", weights_backbone=None, num_classes=4,
                                   score_thresh=0.0, topk_candidates=20, detections_per_img=5), photographs),
    },
}
MODELS = {name: Model(kind, *made, data) for kind, rows in ROWS.items() for name, (made, data) in rows.items()}
# A training step, gradients beside eager's.
TRAINED = ("bert", "modernbert", "gpt2", "llama", "gemma2", "t5", "mixtral", "mamba", "lstm", "gru", "vit", "swin_t",
           "resnet18", "convnext", "u_net", "segformer", "yolos", "whisper")
# Three sizes, one compilation.
DYNAMIC = ("bert", "gpt2", "llama", "gemma2", "t5", "qwen3_moe", "vit", "mixer", "resnet18", "convnext", "u_net",
           "bart")
# Without a package of others, and quick: a part of `./dev test`, where torch is installed.
FAST = ("lstm", "gru", "u_net")
