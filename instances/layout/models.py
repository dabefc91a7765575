"""Transformers by name, with the sizes that their makers published."""

from __future__ import annotations

from .transformer import Transformer

_NAMED = (
    # meta-llama/Meta-Llama-3-8B and -70B, config.json; Grattafiori et al., arXiv 2407.21783, table 3
    Transformer("llama-3-8b", 32, 4096, 32, 8, 128, 128256, 14336),
    Transformer("llama-3-70b", 80, 8192, 64, 8, 128, 128256, 28672),
    Transformer("llama-3.1-405b", 126, 16384, 128, 8, 128, 128256, 53248),
    # deepseek-ai/DeepSeek-V3, config.json; DeepSeek-AI, arXiv 2412.19437, section 4.2; no multi-token prediction
    Transformer("deepseek-v3", 61, 7168, 128, 128, 192, 129280, 18432, experts=256, active=8, expert_feedforward=2048,
                shared_feedforward=2048, first_dense=3, query_rank=1536, kv_rank=512, rope=64, value_head=128),
    # openai/gpt-oss-120b, config.json; OpenAI, arXiv 2508.10925
    Transformer("gpt-oss-120b", 36, 2880, 64, 8, 64, 201088, experts=128, active=4, expert_feedforward=2880, window=128,
                windowed=18),
    # Qwen/Qwen3-30B-A3B and Qwen3-235B-A22B, config.json; Qwen Team, arXiv 2505.09388, table 2
    Transformer("qwen3-30b-a3b", 48, 2048, 32, 4, 128, 151936, experts=128, active=8, expert_feedforward=768),
    Transformer("qwen3-235b-a22b", 94, 4096, 64, 4, 128, 151936, experts=128, active=8, expert_feedforward=1536),
    # mistralai/Mixtral-8x22B-v0.1, config.json
    Transformer("mixtral-8x22b", 56, 6144, 48, 8, 128, 32000, experts=8, active=2, expert_feedforward=16384),
    # EleutherAI/gpt-neo-2.7B, config.json
    Transformer("gpt-neo-2.7b", 32, 2560, 20, 20, 128, 50257, 10240, gated=False, tied=True, window=256, windowed=16),
)  # fmt: skip
MODELS = {model.name: model for model in _NAMED}
"""Models whose layers can be split without a file of their own."""
