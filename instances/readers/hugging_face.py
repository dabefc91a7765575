"""Read a Hugging Face ``config.json``: the sizes of a decoder-only transformer.

Names of fields are those of the `transformers` library, whose defaults hold where a field is optional there.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import PurePath
from typing import Any

from ..arrays import plain, require_number
from ..errors import InstanceError, brief, in_file, unknown
from ..intake import file_name, read_json
from ..layout.transformer import Transformer

NAMES = {
    "layers": ("num_hidden_layers", "n_layer"),
    "width": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "vocabulary": ("vocab_size",),
}
"""What files call a field of `Transformer` that all models have."""
_WIDE = "intermediate_size", "ffn_dim", "n_inner"
_EXPERTS = {
    "experts": ("n_routed_experts", "num_local_experts", "num_experts"),
    "active": ("num_experts_per_tok", "experts_per_token"),
}
_LATENT = {
    "head": ("qk_nope_head_dim",),
    "rope": ("qk_rope_head_dim",),
    "value_head": ("v_head_dim",),
    "kv_rank": ("kv_lora_rank",),
}
DENSE = ("llama", "mistral", "olmo2", "phi3", "qwen2", "qwen3")
NARROW = ("mixtral", "gpt_oss")
"""All their layers have experts, as wide as other models' feed-forward networks."""
EXPERTS = ("qwen2_moe", "qwen3_moe", "glm4_moe", *NARROW)
LATENT = ("deepseek_v2", "deepseek_v3", "kimi_k2")
PLAIN = ("gpt2", "gpt_neox", "opt")
"""Their feed-forward networks have two matrices; GPT-2 and OPT share that of the head with the embedding."""
KNOWN = (*DENSE, *EXPERTS, *LATENT, *PLAIN)
"""The model types that are read."""


def read_transformer(path: str | PathLike[str], name: str = "") -> Transformer:
    """Read the model in a ``config.json``.

    Args:
        path: the file.
        name: what reports call the model; by default what the file or its folder says.

    Raises:
        InstanceError: naming the file, the field and the value found.
    """
    source = file_name(path)
    data = read_json(source)
    with in_file(source):
        parts = PurePath(source)
        return from_config(data, name or (parts.stem if parts.stem != "config" else parts.parent.name))


def from_config(config: Any, name: str = "") -> Transformer:
    """Return the model of a parsed ``config.json``; see `read_transformer`."""
    if not isinstance(config, Mapping):
        raise InstanceError("config", f"{brief(config)} is not a JSON object")
    kind = config.get("model_type")
    if kind is None:
        raise InstanceError("model_type", f"is missing; known are {', '.join(KNOWN)}")
    if kind not in KNOWN:
        raise InstanceError("model_type", f"{unknown(kind, KNOWN)}; gangplan.Transformer(...) takes sizes of any")
    sizes = {field: _size(config, names) for field, names in NAMES.items()}
    wide = _size(config, ("n_inner",), 0) or 4 * sizes["width"] if kind == "gpt2" else _size(config, _WIDE)
    if kind in LATENT:
        sizes |= {field: _size(config, names) for field, names in _LATENT.items()}
        sizes |= {"head": sizes["head"] + sizes["rope"], "query_rank": _size(config, ("q_lora_rank",), 0)}
    elif not (head := _size(config, ("head_dim",), 0)) and sizes["width"] % sizes["heads"]:
        words = f"is missing, and {sizes['heads']} heads do not divide hidden_size, {sizes['width']}"
        raise InstanceError("head_dim", words)
    else:
        sizes["head"] = head or sizes["width"] // sizes["heads"]
    sizes["kv_heads"] = _size(config, ("num_key_value_heads",), 0) or sizes["heads"]
    sizes |= _window(config, kind, sizes["layers"])
    if kind in EXPERTS or (kind in LATENT and config.get("n_routed_experts") is not None):
        sizes |= _experts(config, kind, wide, sizes["layers"])
    else:
        sizes["feedforward"] = wide
    tied = config.get("tie_word_embeddings", kind in ("gpt2", "opt"))
    title = str(name or config.get("_name_or_path") or kind)
    return Transformer(title, **sizes, gated=kind not in PLAIN, tied=tied)


def _size(config: Mapping[str, Any], names: tuple[str, ...], default: int | None = None) -> int:
    """Return a whole number by the first of its names that is there; the default where none is, or it is null."""
    name = next((x for x in names if config.get(x) is not None), None)
    if name is None:
        if default is None:
            there = any(x in config for x in names)
            raise InstanceError(" or ".join(names), "None is not a whole number" if there else "is missing")
        return default
    value = plain(config[name])
    require_number(value, name, whole=True, positive=default is None)
    return int(value)


def _window(config: Mapping[str, Any], kind: str, layers: int) -> dict[str, int]:
    """Return the window of attention and how many layers have it."""
    window = _size(config, ("sliding_window",), 0)
    if not window or not config.get("use_sliding_window", not kind.startswith(("qwen", "glm"))):
        return {}
    kinds = config.get("layer_types")
    if kinds is None:
        first = _size(config, ("max_window_layers",), 0) if kind.startswith("qwen") else 0
        return {"window": window, "windowed": -(-layers // 2) if kind == "gpt_oss" else max(0, layers - first)}
    known = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise InstanceError("layer_types", f"{brief(kinds)} is not a list of {layers}, one a layer")
    for i, x in enumerate(kinds):
        if x not in known:
            raise InstanceError(f"layer_types[{i}]", unknown(x, known))
    return {"window": window, "windowed": kinds.count(known[1])}


def _experts(config: Mapping[str, Any], kind: str, wide: int, layers: int) -> dict[str, int]:
    """Return the sizes of experts; `wide` is the width of a layer without."""
    for name in ("decoder_sparse_step", "moe_layer_freq"):
        if (step := config.get(name, 1)) != 1:
            raise InstanceError(name, f"{brief(step)}: layers with experts only in turns are not modelled")
    sizes = {field: _size(config, names) for field, names in _EXPERTS.items()}
    if kind in NARROW:
        return {**sizes, "expert_feedforward": wide}
    narrow = _size(config, ("moe_intermediate_size",))
    shared = _size(config, ("shared_expert_intermediate_size",), 0)
    first = _size(config, ("first_k_dense_replace",), 0)
    dense = config.get("mlp_only_layers") or []
    if dense != list(range(len(dense) if isinstance(dense, list) else 0)):
        raise InstanceError("mlp_only_layers", f"{brief(dense)} are not the first layers, others are not modelled")
    return {
        **sizes,
        "feedforward": wide,
        "expert_feedforward": narrow,
        "shared_feedforward": shared or _size(config, ("n_shared_experts",), 0) * narrow,
        "first_dense": min(first or len(dense), layers),
    }
