"""VGG, Inception, GNMT, DLRM, mixtures of experts, series-parallel graphs: counted, compared with profiles, solved."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gangplan
from gangplan.instances import DeviceType, InstanceError, OpGraph, dump
from gangplan.instances.generators import ELEMENT_BYTES, GENERATORS, generate

SLOW = DeviceType("slow", flops=1.0, memory_bandwidth=1e30)
EXPERT = 2 * 768 * 3072 + 3072 + 768


@pytest.mark.parametrize(
    ("kind", "options", "parameters"),
    [
        # torchvision's counts; the VGG paper rounds them to 133, 133, 138 and 144 million
        ("vgg", {"depth": 11}, 132_863_336),
        ("vgg", {"depth": 13}, 133_047_848),
        ("vgg", {}, 138_357_544),
        ("vgg", {"depth": 19}, 143_667_240),
        ("vgg", {"image": 64}, 138_357_544),
        ("inception", {}, 27_161_264),
        ("inception", {"auxiliary": False}, 23_834_568),
        # sums of parameter_size / 4 in PipeDream's gnmt_large and gnmt
        ("gnmt", {}, 277_717_568),
        ("gnmt", {"layers": 4}, 193_765_952),
        # MLPerf's: 187,767,399 rows, networks 13-512-256-128 and 479-1024-1024-512-256-1
        ("dlrm", {"rows": 40_000_000}, 187_767_399 * 128 + 171_392 + 2_197_505),
        ("dlrm", {"tables": 1, "rows": 5, "dimension": 2, "bottom": "3", "top": "4"}, 10 + (14 * 3 + 4 * 2) + (16 + 5)),
        (
            "dlrm",
            {"tables": 27, "rows": 4, "dimension": 1},
            (26 * 4 - 1 + 4) + (138_496 + 257) + (2_197_505 - 100 * 1024),
        ),
        # GPT-2 small with 7 experts more and a router in 6 of its layers
        ("moe", {}, 124_439_808 + 6 * (7 * EXPERT + 8 * 768)),
        ("moe", {"experts": 1, "top_k": 1}, 124_439_808 + 6 * 768),
    ],
)
def test_parameter_counts(kind: str, options: dict[str, Any], parameters: int) -> None:
    """A network has as many parameters as the published one, with and without backward ops."""
    for training in (True, False):
        graph = generate(kind, training=training, batch=1, **options).graph
        assert graph.parameter_bytes.sum() / ELEMENT_BYTES == parameters


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


@pytest.mark.parametrize(("kind", "options", "gmacs"), [("vgg", {}, 15.47), ("inception", {"auxiliary": False}, 5.713)])
def test_image_flops(kind: str, options: dict[str, Any], gmacs: float) -> None:
    """Convolutions and dense layers take as many multiply-adds an image as torchvision publishes."""
    graph = GENERATORS[kind](batch=1, **options).graph(SLOW, training=False, efficiency=1.0)
    heavy = [i for i, name in enumerate(graph.names) if re.search(r"/(conv|dense)\d*$", name)]
    assert graph.time[0, heavy].sum() / 2 == pytest.approx(gmacs * 1e9, rel=1e-3)


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


def test_auxiliary_classifier() -> None:
    """The auxiliary classifier adds ops and changes none, and its backward pass waits for the loss too."""
    with_it, without = (generate("inception", auxiliary=choice).graph for choice in (True, False))
    assert set(without.names) < set(with_it.names)
    added = [name for name in with_it.names if name not in without.names]
    assert all(name.startswith("auxiliary/") for name in added)
    for graph in (with_it, without):
        heads = set(range(graph.n_ops)) - set(graph.target.tolist())
        assert {graph.names[i] for i in heads} == {"stem/1/conv"}


@settings(max_examples=40)
@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 99))
def test_series_parallel_graphs_are(ops: int, series: float, seed: int) -> None:
    """Reductions in series and in parallel take the graph back to one edge."""
    graph = generate("series_parallel", ops=ops, series=series, seed=seed, training=False).graph
    assert graph.n_ops == ops
    edges = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    assert len(set(edges)) == len(edges)
    assert reduced(edges) == ([(0, ops - 1)] if ops > 1 else [])


def reduced(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what is left of the edges when series and parallel reductions are done."""
    left = set(edges)
    while True:
        into, out = Counter(v for _, v in left), Counter(u for u, _ in left)
        w = next((w for w in into if into[w] == out[w] == 1), None)
        if w is None:
            return sorted(left)
        u, v = next(u for u, x in left if x == w), next(v for x, v in left if x == w)
        left = (left - {(u, w), (w, v)}) | {(u, v)}


def test_reduction_finds_what_is_not_series_parallel() -> None:
    """The smallest graph that is not series-parallel, a bridge between two branches, stays as it is."""
    bridge = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert reduced(bridge) == bridge


def test_series_parallel_extremes() -> None:
    """Steps in series alone make a chain; none in series leaves an edge from end to end."""
    chain = generate("series_parallel", ops=30, series=1, training=False).graph
    assert chain.source.tolist() == list(range(29))
    assert chain.target.tolist() == list(range(1, 30))
    wide = generate("series_parallel", ops=30, series=0, training=False).graph
    assert wide.n_edges == 2 * 28 + 1
    assert (0, 29) in set(zip(wide.source.tolist(), wide.target.tolist(), strict=True))


def test_series_parallel_seeds() -> None:
    """A seed decides the graph; another gives another one."""
    first = dump(generate("series_parallel", seed=1))
    np.random.seed(2)  # noqa: NPY002 - what must have no effect
    assert dump(generate("series_parallel", seed=1)) == first
    assert dump(generate("series_parallel", seed=2)) != first


SMALL: dict[str, dict[str, Any]] = {
    "vgg": {"depth": 11, "batch": 4},
    "inception": {"auxiliary": False, "image": 75, "batch": 4},
    "gnmt": {"layers": 2, "hidden": 64, "vocabulary": 1000},
    "dlrm": {"tables": 4, "rows": 1000},
    "moe": {"layers": 2, "experts": 3, "hidden": 64, "heads": 4, "context": 32, "vocabulary": 1000},
    "series_parallel": {"ops": 20},
}


@pytest.mark.parametrize("kind", SMALL)
def test_generated_graphs_solve(kind: str) -> None:
    """A small graph of the kind is solved, and the verifier agrees."""
    problem = generate(kind, devices=2, **SMALL[kind])
    result = gangplan.solve(problem, time_limit=5)
    assert result.plan is not None
    verdict = gangplan.verify(problem, result.plan)
    assert verdict.ok
    assert verdict.objective == pytest.approx(result.objective)


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("vgg", {"depth": 12}, "depth"),
        ("vgg", {"image": 31}, "image"),
        ("vgg", {"batch": 0}, "batch"),
        ("vgg", {"classes": 1.5}, "classes"),
        ("inception", {"auxiliary": 1}, "auxiliary"),
        ("inception", {"image": 298}, "image"),
        ("inception", {"image": 74, "auxiliary": False}, "image"),
        ("inception", {"batch": True}, "batch"),
        ("inception", {"classes": -1}, "classes"),
        ("gnmt", {"layers": 1}, "layers"),
        ("gnmt", {"layers": 0}, "layers"),
        ("gnmt", {"hidden": "wide"}, "hidden"),
        ("gnmt", {"source": 0}, "source"),
        ("gnmt", {"target": 2.5}, "target"),
        ("gnmt", {"batch": 10**300}, "batch"),
        ("gnmt", {"batch": -1}, "batch"),
        ("gnmt", {"vocabulary": 0}, "vocabulary"),
        ("dlrm", {"tables": 0}, "tables"),
        ("dlrm", {"rows": 1e6}, "rows"),
        ("dlrm", {"dimension": 0}, "dimension"),
        ("dlrm", {"batch": float("inf")}, "batch"),
        ("dlrm", {"bottom": ""}, "bottom"),
        ("dlrm", {"bottom": 512}, "bottom"),
        ("dlrm", {"bottom": "512-²"}, "bottom"),
        ("dlrm", {"top": "512--1"}, "top"),
        ("dlrm", {"top": "512-0"}, "top"),
        ("dlrm", {"top": "9" * 5000}, "top"),
        ("moe", {"layers": 1}, "layers"),
        ("moe", {"hidden": 770}, "hidden"),
        ("moe", {"heads": 0}, "heads"),
        ("moe", {"vocabulary": 0}, "vocabulary"),
        ("moe", {"context": None, "batch": "8"}, "batch"),
        ("moe", {"context": 0}, "context"),
        ("moe", {"experts": 0}, "experts"),
        ("moe", {"top_k": 0}, "top_k"),
        ("moe", {"top_k": 9}, "top_k"),
        ("moe", {"capacity": 0}, "capacity"),
        ("moe", {"capacity": float("nan")}, "capacity"),
        ("moe", {"batch": 2**60, "context": 2**60}, "capacity"),
        ("series_parallel", {"ops": 0}, "ops"),
        ("series_parallel", {"series": 1.1}, "series"),
        ("series_parallel", {"series": -0.1}, "series"),
        ("series_parallel", {"seed": 0.5}, "seed"),
        ("series_parallel", {"flops": 0}, "flops"),
        ("series_parallel", {"intensity": -1}, "intensity"),
    ],
)
def test_wrong_arguments_are_named(kind: str, options: dict[str, Any], field: str) -> None:
    """A wrong argument is an error that names it."""
    with pytest.raises(InstanceError) as caught:
        generate(kind, **options)
    assert caught.value.field == field


@pytest.mark.parametrize("kind", ["bert", "gpt", "moe", "gnmt", "resnet", "vgg", "inception", "dlrm"])
def test_documented_parameters(kind: str) -> None:
    """The table of generators in the documentation has the default's parameters, and a row for every kind."""
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    section = page.split("## Generated graphs")[1]
    assert set(GENERATORS) <= set(re.findall(r"`(\w+)`", section))
    row = next(line for line in section.splitlines() if line.startswith(f"| `{kind}`"))
    assert f"{generate(kind).graph.parameter_bytes.sum() / ELEMENT_BYTES:,.0f}" in row.split("|")[3]
