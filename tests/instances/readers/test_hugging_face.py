"""A config.json as published gives the model of its paper: sizes, parameters; what is missing or unknown is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan.instances import InstanceError
from gangplan.instances.readers.hugging_face import KNOWN, from_config, read_transformer


def llama(layers: int, width: int, heads: int, wide: int, **more: Any) -> dict[str, Any]:
    """Return a config by the sizes of table 3 of "The Llama 3 Herd of Models" (arXiv 2407.21783)."""
    sizes = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads, "intermediate_size": wide}
    return {"model_type": "llama", "num_key_value_heads": 8, "vocab_size": 128256, **sizes, **more}


def mixture(kind: str, layers: int, width: int, heads: tuple[int, int], wide: int, **more: Any) -> dict[str, Any]:
    """Return a config of a model with experts."""
    sizes = llama(layers, width, heads[0], wide)
    return {**sizes, "model_type": kind, "num_key_value_heads": heads[1], **more}


LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1}
QWEN = {"vocab_size": 151936, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1}
QWEN |= {"sliding_window": None, "mlp_only_layers": []}
TURNS = ["sliding_attention", "full_attention"]
CONFIGS: dict[str, tuple[dict[str, Any], float, float]] = {
    # arXiv 2407.21783, table 3; all parameters are active
    "Llama-3.1-8B": (llama(32, 4096, 32, 14336), 8.03e9, 7.5e9),
    "Llama-3.1-70B": (llama(80, 8192, 64, 28672), 70.6e9, 69.5e9),
    "Llama-3.1-405B": (llama(126, 16384, 128, 53248), 405.9e9, 403.8e9),
    # mistral.ai/news/mixtral-8x22b: 141B, 39B active
    "Mixtral-8x22B": (
        mixture("mixtral", 56, 6144, (48, 8), 16384, vocab_size=32768, num_local_experts=8, num_experts_per_tok=2),
        *(140.6e9, 39.1e9),
    ),
    # arXiv 2412.19437, section 4.2: 671B, 37B active, without the head that predicts a second token
    "DeepSeek-V3": (
        mixture("deepseek_v3", 61, 7168, (128, 128), 18432, vocab_size=129280, q_lora_rank=1536, n_routed_experts=256)
        | {"n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3}
        | LATENT,
        *(671e9, 37e9),
    ),
    # arXiv 2405.04434, section 3.1.2: 236B, 21B active; appendix B: 15.7B, 2.4B active
    "DeepSeek-V2": (
        mixture("deepseek_v2", 60, 5120, (128, 128), 12288, vocab_size=102400, q_lora_rank=1536, n_routed_experts=160)
        | {"n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1536, "first_k_dense_replace": 1}
        | LATENT,
        *(236e9, 21e9),
    ),
    "DeepSeek-V2-Lite": (
        mixture("deepseek_v2", 27, 2048, (16, 16), 10944, vocab_size=102400, q_lora_rank=None, n_routed_experts=64)
        | {"n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1}
        | LATENT,
        *(15.7e9, 2.45e9),
    ),
    # arXiv 2508.10925, table 1: 116.83B, 5.13B active without the embedding
    "gpt-oss-120b": (
        mixture("gpt_oss", 36, 2880, (64, 8), 2880, vocab_size=201088, num_local_experts=128, num_experts_per_tok=4)
        | {"head_dim": 64, "sliding_window": 128, "layer_types": TURNS * 18},
        *(116.83e9, 5.13e9),
    ),
    # arXiv 2505.09388, tables 1 and 2
    "Qwen3-30B-A3B": (
        mixture("qwen3_moe", 48, 2048, (32, 4), 6144, moe_intermediate_size=768, **QWEN),
        *(30.5e9, 3.0e9),
    ),
    "Qwen3-235B-A22B": (
        mixture("qwen3_moe", 94, 4096, (64, 4), 12288, moe_intermediate_size=1536, **QWEN),
        *(235e9, 21.6e9),
    ),
    "Qwen3-8B": (
        mixture("qwen3", 36, 4096, (32, 8), 12288, vocab_size=151936, head_dim=128, use_sliding_window=False),
        *(8.19e9, 7.57e9),
    ),
    # Radford et al. 2019, table 2, corrected since: 1.56B with 1.6M of positions; arXiv 2204.06745: 20.55B
    "gpt2-xl": (
        {"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "vocab_size": 50257, "n_inner": None},
        *(1.556e9, 1.556e9),
    ),
    "gpt-neox-20b": (
        {"model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144, "num_attention_heads": 64}
        | {"vocab_size": 50432, "intermediate_size": 24576, "tie_word_embeddings": False},
        *(20.55e9, 20.2e9),
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_as_published(name: str) -> None:
    """Parameters are within 1% of those published, those that a token is multiplied with within 3%."""
    config, count, active = CONFIGS[name]
    model = from_config(config, name)
    assert model.name == name
    assert model.parameters == pytest.approx(count, rel=0.01)
    assert model.active_parameters == pytest.approx(active, rel=0.03)


def test_windows() -> None:
    """A window holds for the layers that a file says, for every other of GPT-OSS, and for none where it is off."""
    oss, qwen = CONFIGS["gpt-oss-120b"][0], CONFIGS["Qwen3-8B"][0]
    assert (from_config(oss).window, from_config(oss).windowed) == (128, 18)
    assert from_config({k: v for k, v in oss.items() if k != "layer_types"}).windowed == 18
    assert from_config({**qwen, "sliding_window": 4096}).window == 0
    some = from_config({**qwen, "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28})
    assert (some.window, some.windowed) == (4096, 8)
    assert from_config({**llama(4, 64, 8, 128), "model_type": "mistral", "sliding_window": 32}).windowed == 4


def test_a_file_names_its_model(tmp_path: Path) -> None:
    """The model is called as the file, or the folder of a config.json; another name can be given."""
    (tmp_path / "Llama-3.1-8B").mkdir()
    for path in (tmp_path / "Llama-3.1-8B" / "config.json", tmp_path / "small.json"):
        path.write_text(json.dumps(CONFIGS["Llama-3.1-8B"][0]))
    assert gangplan.read_transformer(tmp_path / "Llama-3.1-8B" / "config.json").name == "Llama-3.1-8B"
    assert read_transformer(tmp_path / "small.json").name == "small"
    assert read_transformer(tmp_path / "small.json", "mine").name == "mine"


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"model_type": "mamba"}, "model_type", "'mamba' is not one of llama"),
        ({"model_type": "qwen3_mo"}, "model_type", "did you mean qwen3_moe?"),
        ({"model_type": None}, "model_type", "is missing; known are llama"),
        ({"model_type": ["llama"]}, "model_type", "is not one of"),
        ({"num_hidden_layers": None}, "num_hidden_layers", "is not a whole number"),
        ({"num_hidden_layers": 0}, "num_hidden_layers", "0 is not positive"),
        ({"vocab_size": "128k"}, "vocab_size", "'128k' is not a whole number"),
        ({"num_attention_heads": 7, "head_dim": None}, "head_dim", "7 heads do not divide hidden_size, 2048"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step", "2: layers with experts only in turns"),
        ({"mlp_only_layers": [3]}, "mlp_only_layers", "[3] are not the first layers"),
        ({"moe_intermediate_size": None}, "moe_intermediate_size", "is not a whole number"),
        ({"sliding_window": 9, "use_sliding_window": True, "layer_types": ["x"] * 48}, "layer_types[0]", "'x' is not"),
        ({"num_experts_per_tok": 200}, "active", "200 of 128 experts"),
        ({"tie_word_embeddings": "no"}, "tied", "'no' is not true or false"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str, words: str) -> None:
    """An unknown architecture or a wrong field is an error with its name, the value and what is known."""
    with pytest.raises(InstanceError) as caught:
        from_config({**CONFIGS["Qwen3-30B-A3B"][0], **change})
    assert field in caught.value.field.split(" or ") and words in caught.value.problem


@pytest.mark.parametrize("name", ["hidden_size", "num_experts", "num_experts_per_tok"])
def test_what_is_missing_is_named(name: str) -> None:
    """A field without which the sizes are unknown is not guessed."""
    config = {k: v for k, v in CONFIGS["Qwen3-30B-A3B"][0].items() if k != name}
    with pytest.raises(InstanceError, match=rf"{name}.*: is missing"):
        from_config(config)
    for config in ([], "llama", None):
        with pytest.raises(InstanceError, match=r"config: .* is not a JSON object"):
            from_config(config)


def test_every_type_is_read() -> None:
    """Each model type that is known is read from a config with all fields."""
    every = {k: v for config, _, _ in CONFIGS.values() for k, v in config.items() if k != "layer_types"}
    for kind in KNOWN:
        assert from_config({**every, "model_type": kind, "n_inner": 100}).parameters > 0
