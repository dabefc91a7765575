"""Language models, counted by hand and compared with PipeDream's profiles."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gangplan.instances import DeviceType, OpGraph
from gangplan.instances.generators import ELEMENT_BYTES, GENERATORS, generate

SLOW = DeviceType("slow", flops=1.0, memory_bandwidth=1e30)
EXPERT = 2 * 768 * 3072 + 3072 + 768


def test_gpt_flops() -> None:
    """A training step costs 6 FLOPs per parameter and token, plus attention (Kaplan et al., 2020, section 2.1)."""
    graph = GENERATORS["gpt"](batch=1).graph(SLOW, efficiency=1.0)
    # weights that multiply: all but the two embeddings, plus the tied head; attention 12 * layers * hidden * context
    weights = 124_439_808 - 1024 * 768
    expected = (6 * weights + 12 * 12 * 768 * 1024) * 1024
    assert graph.time.sum() == pytest.approx(expected, rel=0.01)


def test_tied_weights_are_kept_twice_and_counted_once() -> None:
    """GPT's output head keeps a copy of the embedding that takes memory and no parameters."""
    graph = generate("gpt", layers=1, batch=1).graph
    head = graph.names.index("head/logits")
    assert graph.parameter_bytes[head] == 0
    assert graph.memory[head] == 50257 * 768 * 16 + 1024 * 50257 * 2


@pytest.mark.parametrize(("hidden", "billions", "dense"), [(1024, 13, 0.35), (2048, 52, 1.3)])
def test_mixtures_of_experts_as_published(hidden: int, billions: int, dense: float) -> None:
    """350M+MoE-128 and 1.3B+MoE-128 hold 13 and 52 billion, and a token uses the dense model's (DeepSpeed-MoE)."""
    options = {"layers": 24, "hidden": hidden, "heads": 16, "context": 2048, "experts": 128, "top_k": 1}
    graph = generate("moe", training=False, batch=1, **options).graph
    assert round(graph.parameter_bytes.sum() / ELEMENT_BYTES / 1e9) == billions
    assert active(graph, top_k=1) / 1e9 == pytest.approx(dense, rel=0.03)


def test_active_parameters() -> None:
    """Of the default mixture a token uses 2 of 8 experts in 6 layers, as many parameters as the docstring says."""
    graph = generate("moe", training=False).graph
    used = active(graph, top_k=2)
    assert used == graph.parameter_bytes.sum() / ELEMENT_BYTES - 6 * 6 * EXPERT
    text = GENERATORS["moe"].__doc__ or ""
    assert f"{graph.parameter_bytes.sum() / ELEMENT_BYTES:,.0f} parameters" in text
    assert f"{used:,.0f}:" in text


def active(graph: OpGraph, top_k: int) -> float:
    """Return the parameters outside experts, and those of the first `top_k` experts of each layer."""
    weights = graph.parameter_bytes / ELEMENT_BYTES
    expert = [re.search(r"/expert(\d+)/", name) for name in graph.names]
    return sum(w for w, e in zip(weights.tolist(), expert, strict=True) if e is None or int(e.group(1)) < top_k)


def test_gnmt_flops() -> None:
    """A training step of GNMT costs 6 FLOPs per weight it multiplies with and token, but for what attention adds."""
    graph = GENERATORS["gnmt"](batch=1).graph(SLOW, efficiency=1.0)
    weights = 277_717_568 - 2 * 32320 * 1024
    assert graph.time.sum() == pytest.approx(6 * weights * 25, rel=0.01)


def test_experts_share_the_work() -> None:
    """All experts of a layer together cost top_k dense blocks, times the room they have, and send as much back."""
    small: dict[str, Any] = {"layers": 2, "hidden": 64, "heads": 4, "context": 32, "batch": 2, "vocabulary": 100}

    def cost(pattern: str, **options: Any) -> tuple[float, float]:
        graph = GENERATORS["moe"](**small, **options).graph(SLOW, training=False, efficiency=1.0)
        chosen = [i for i, name in enumerate(graph.names) if re.search(pattern, name)]
        ends = [i for i in chosen if graph.names[i].endswith("down")]
        return graph.time[0, chosen].sum(), graph.activation_bytes[ends].sum()

    flops, sent = cost("layer0/(up|gelu|down)")
    for experts, top_k, capacity, times in ((8, 2, 1.0, 2), (4, 4, 1.0, 4), (8, 2, 1.5, 3), (8, 1, 0.5, 0.5)):
        assert cost("expert", experts=experts, top_k=top_k, capacity=capacity) == (times * flops, times * sent)
    # 64 tokens over 3 experts: 21 and a third, so that there is room for 22
    assert cost("expert", experts=3, top_k=1)[1] == 3 * 22 * 64 * ELEMENT_BYTES


def test_every_expert_is_apart() -> None:
    """Experts depend on the gate and on no other expert, so that each can have a device of its own."""
    graph = generate("moe", layers=2, experts=4, training=False).graph
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        ends = [re.search(r"/expert\d+/", graph.names[i]) for i in (u, v)]
        if all(ends):
            assert len({end.group() for end in ends if end}) == 1
    assert sum(name.endswith("/dispatch") for name in graph.names) == 4


PROFILES: dict[str, tuple[str, dict[str, Any]]] = {
    "vgg16": ("vgg", {"batch": 128}),
    "inception_v3": ("inception", {"batch": 128}),
    "gnmt": ("gnmt", {"layers": 4, "source": 48, "target": 47, "batch": 32}),
    "gnmt_large": ("gnmt", {}),
}


@pytest.mark.parametrize("name", PROFILES)
def test_layers_match_profiles(data: Path, name: str) -> None:
    """Each layer with weights has as many, and an output of the same size, as the one PipeDream profiled."""
    kind, options = PROFILES[name]
    graph = generate(kind, training=False, **options).graph
    ours: Counter[tuple[float, float]] = Counter()
    for layer, ops in layers(kind, graph).items():
        weights = graph.parameter_bytes[ops].sum()
        if weights:
            first = next(i for i in ops if graph.parameter_bytes[i])
            # a profile has one op for both directions of the first encoder layer
            output = graph.activation_bytes[first] * (2 if layer == "encoder/layer0" else 1)
            ours[2 * weights, 0.0 if layer.endswith("embedding") else 2 * output] += 1
    theirs: Counter[tuple[float, float]] = Counter()
    for line in (data / "pipedream" / f"{name}.txt").read_text().splitlines():
        found = re.search(r"activation_size=\[?([\d.]+)[^=]*parameter_size=([\d.]+)", line)
        if found and float(found.group(2)):
            # gnmt's embeds 48 tokens of a target sentence, of which the decoder reads 47
            theirs[float(found.group(2)), 0.0 if "Embedding" in line else float(found.group(1))] += 1
    assert len(theirs) > 5
    assert ours == theirs


def layers(kind: str, graph: OpGraph) -> dict[str, list[int]]:
    """Return the ops of each layer: of GNMT what shares the first two parts of a name, else each op alone."""
    found: dict[str, list[int]] = {}
    for i, name in enumerate(graph.names):
        found.setdefault("/".join(name.split("/")[:2]) if kind == "gnmt" else name, []).append(i)
    return found


def test_attention_sizes(data: Path) -> None:
    """GNMT's attention weights are as many as PipeDream's profile has among the outputs of the same layer."""
    graph = generate("gnmt", training=False).graph
    text = (data / "pipedream" / "gnmt_large.txt").read_text()
    found = re.search(r"RecurrentAttention.*activation_size=\[(.*)\]", text)
    assert found is not None
    outputs = [float(size) for size in found.group(1).split(";")]
    names = ("lstm", "context", "softmax")
    ours = [graph.activation_bytes[graph.names.index(f"decoder/layer0/{name}")] * 2 for name in names]
    assert ours == [outputs[0], outputs[3], outputs[4]]


@pytest.mark.parametrize("name", ["gnmt", "gnmt_large"])
def test_residuals_and_contexts(data: Path, name: str) -> None:
    """GNMT has the profile's residual connections, and the context goes into every decoder layer but the first."""
    graph = generate("gnmt", training=False, **PROFILES[name][1]).graph
    text = (data / "pipedream" / f"{name}.txt").read_text()
    assert sum(op.endswith("/add") for op in graph.names) == text.count("-- Add --")
    context = graph.names.index("decoder/layer0/context")
    readers = [graph.names[v] for u, v in zip(graph.source, graph.target, strict=True) if u == context]
    assert len(readers) == text.count("-- Concat(2) --")
    assert readers == [f"decoder/layer{i}/concat" for i in range(1, len(readers) + 1)]
