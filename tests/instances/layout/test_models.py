"""Named models have the sizes that were published."""

from __future__ import annotations

import pytest

from gangplan.instances.layout.models import MODELS

PUBLISHED = {
    "llama-3-8b": (8.03, 8.03),
    "llama-3-70b": (70.6, 70.6),
    "llama-3.1-405b": (405.9, 405.9),
    "deepseek-v3": (671.0, 37.0),
    "gpt-oss-120b": (116.8, 5.13),
    "qwen3-30b-a3b": (30.5, 3.3),
    "qwen3-235b-a22b": (235.0, 22.0),
    "mixtral-8x22b": (141.0, 39.0),
    "gpt-neo-2.7b": (2.65, 2.65),
}
"""Billions of parameters, and of those that a token is multiplied with (embedding or not, as each counts)."""


def test_every_model_is_held() -> None:
    """Each named model has published counts, and is called what it is found by."""
    assert PUBLISHED.keys() == MODELS.keys()
    assert all(model.name == name for name, model in MODELS.items())


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters(name: str) -> None:
    """Parameters are as published to a hundredth, active ones to a twelfth."""
    whole, active = PUBLISHED[name]
    assert MODELS[name].parameters / 1e9 == pytest.approx(whole, rel=0.01)
    assert MODELS[name].active_parameters / 1e9 == pytest.approx(active, rel=0.08)


def test_published_flops() -> None:
    """FLOPs a token are those of NVIDIA's summary, to a hundredth: TFLOP/s over tokens/s of GB300 and H100 rows."""
    for name, sequence, tokens, flops in (
        ("llama-3-8b", 8192, 37556, 1933),
        ("llama-3.1-405b", 8192, 292, 737),
        ("deepseek-v3", 4096, 3848, 961),
        ("qwen3-30b-a3b", 4096, 28934, 666),
        ("qwen3-235b-a22b", 4096, 4916, 728),
    ):
        assert MODELS[name].flops(sequence) * tokens / 1e12 == pytest.approx(flops, rel=0.01), name
