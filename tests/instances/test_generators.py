"""Generated networks: published parameter counts, FLOPs by hand, and the same graph for the same arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import DeviceType, InstanceError, dump
from gangplan.instances.devices import LINK_BANDWIDTH, catalogue, roofline, server
from gangplan.instances.generators import ELEMENT_BYTES, GENERATORS, GraphBuilder, defaults, generate

SMALL: dict[str, dict[str, Any]] = {
    "bert": {"layers": 2},
    "gpt": {"layers": 2},
    "moe": {"layers": 2, "experts": 3},
    "gnmt": {"layers": 2},
    "resnet": {"depth": 18},
    "vgg": {"depth": 11},
    "inception": {"auxiliary": False},
    "dlrm": {"tables": 4},
    "layered": {"ops": 40, "layers": 8},
    "fork_join": {"stages": 4},
    "series_parallel": {"ops": 40},
    "pipeline": {"stages": 6, "micro_batches": 1},
}


@pytest.mark.parametrize(
    ("kind", "options", "parameters"),
    [
        # torchvision's counts; the papers round them to 11.7, 21.8, 25.6, 44.5 and 60.2 million
        ("resnet", {"depth": 18}, 11_689_512),
        ("resnet", {"depth": 34}, 21_797_672),
        ("resnet", {"depth": 50}, 25_557_032),
        ("resnet", {"depth": 101}, 44_549_160),
        ("resnet", {"depth": 152}, 60_192_808),
        # BERT-base and BERT-large, uncased, with pooler
        ("bert", {}, 109_482_240),
        ("bert", {"layers": 24, "hidden": 1024, "heads": 16}, 335_141_888),
        # GPT-2 small and XL, the output head tied to the token embedding
        ("gpt", {}, 124_439_808),
        ("gpt", {"layers": 48, "hidden": 1600, "heads": 25}, 1_557_611_200),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_parameter_counts(kind: str, options: dict[str, Any], parameters: int, training: bool) -> None:
    """A network has as many parameters as the published one, counted once though backward ops use them too."""
    graph = generate(kind, training=training, batch=1, **options).graph
    assert graph.parameter_bytes.sum() / ELEMENT_BYTES == parameters


def test_resnet50_flops() -> None:
    """ResNet-50's convolutions and dense layer take 4.089 GMAC an image, as torchvision publishes."""
    slow = DeviceType("slow", flops=1.0, memory_bandwidth=1e30)
    graph = GENERATORS["resnet"](batch=1).graph(slow, training=False, efficiency=1.0)
    heavy = [i for i, name in enumerate(graph.names) if "conv" in name or "dense" in name or name.endswith("shortcut")]
    assert graph.time[0, heavy].sum() / 2 == pytest.approx(4.089e9, rel=1e-3)


def test_gpt_flops() -> None:
    """A training step costs 6 FLOPs per parameter and token, plus attention (Kaplan et al., 2020, section 2.1)."""
    slow = DeviceType("slow", flops=1.0, memory_bandwidth=1e30)
    graph = GENERATORS["gpt"](batch=1).graph(slow, efficiency=1.0)
    # weights that multiply: all but the two embeddings, plus the tied head; attention 12 * layers * hidden * context
    weights = 124_439_808 - 1024 * 768
    expected = (6 * weights + 12 * 12 * 768 * 1024) * 1024
    assert graph.time.sum() == pytest.approx(expected, rel=0.01)


def test_five_thousand_ops() -> None:
    """The documented call gives a GPT graph of 4,996 ops."""
    graph = generate("gpt", layers=178, devices=64).graph
    assert graph.n_ops == 4996
    assert (graph.twin >= 0).all()


@pytest.mark.parametrize("kind", GENERATORS)
def test_same_arguments_same_graph(kind: str) -> None:
    """A problem is the same to the last bit when made twice."""
    assert dump(generate(kind, **SMALL[kind])) == dump(generate(kind, **SMALL[kind]))


@pytest.mark.parametrize("kind", ["layered", "fork_join"])
def test_seeds_matter(kind: str) -> None:
    """Another seed gives another graph, and global random state none."""
    np.random.seed(1)  # noqa: NPY002 - what must have no effect
    first = dump(generate(kind, seed=1))
    np.random.seed(2)  # noqa: NPY002
    assert dump(generate(kind, seed=1)) == first
    assert dump(generate(kind, seed=2)) != first


@pytest.mark.parametrize("kind", GENERATORS)
def test_training_graph_mirrors_the_forward_graph(kind: str) -> None:
    """Each forward op has a twin on its device, each forward edge a reversed one, and one edge joins the two."""
    forward = generate(kind, training=False, **SMALL[kind]).graph
    graph = generate(kind, **SMALL[kind]).graph
    n, m = forward.n_ops, forward.n_edges
    assert (graph.n_ops, graph.n_edges) == (2 * n, 2 * m + 1)
    assert graph.names[:n] == forward.names
    assert graph.names[n:] == tuple(f"{name}/backward" for name in forward.names[::-1])
    assert graph.backward.tolist() == [False] * n + [True] * n
    assert (graph.colocation == graph.colocation[graph.twin]).all()
    assert len(set(graph.colocation.tolist())) == n
    pairs = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    crossing = [(u, v) for u, v in pairs if u < n <= v]
    assert crossing == [(n - 1, n)]
    assert {(int(graph.twin[v]), int(graph.twin[u])) for u, v in pairs} == pairs


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_network_fits_its_default_server(kind: str) -> None:
    """The problem that `generate` makes by default is not infeasible for memory."""
    problem = generate(kind)
    memory = problem.cluster.device_types[0].memory
    assert memory is not None
    assert problem.graph.memory.sum() < 0.9 * memory * problem.cluster.n_devices
    assert problem.graph.memory.max() < memory


def test_builder_by_hand() -> None:
    """Times, memory and edges of two ops follow from their definitions."""
    b = GraphBuilder()
    first = b.op("first", flops=100.0, output=10.0, parameters=5.0)
    b.op("second", first, flops=7.0, output=3.0)
    kind = DeviceType("gpu", flops=10.0, memory_bandwidth=2.0)
    graph = b.graph(kind, efficiency=0.5)
    # first: 100 FLOP at 5 a second; backward twice that. second: 10 in + 3 out = 26 bytes at 2 a second, 7 FLOP less;
    # backward reads 3 + 10 and writes 10 gradients = 46 bytes
    assert graph.time.tolist() == [[20.0, 13.0, 23.0, 40.0]]
    # 16 bytes a parameter and 2 an activation; without training 2 bytes for either
    assert graph.memory.tolist() == [100.0, 6.0, 0.0, 0.0]
    assert b.graph(kind, training=False).memory.tolist() == [30.0, 6.0]
    assert graph.edge_bytes.tolist() == [20.0, 20.0, 6.0]
    with pytest.raises(InstanceError, match="'first' is a duplicate"):
        b.op("first", flops=0, output=0)


def test_tied_weights_are_kept_twice_and_counted_once() -> None:
    """GPT's output head keeps a copy of the embedding that takes memory and no parameters."""
    graph = generate("gpt", layers=1, batch=1).graph
    head = graph.names.index("head/logits")
    assert graph.parameter_bytes[head] == 0
    assert graph.memory[head] == 50257 * 768 * 16 + 1024 * 50257 * 2


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 10), st.floats(1, 3), st.integers(0, 99))
def test_layered_shape(ops: int, layers: int, degree: float, seed: int) -> None:
    """A layered graph has its ops, and its longest path is one op of each layer."""
    if layers > ops or degree > ops:
        with pytest.raises(InstanceError):
            generate("layered", ops=ops, layers=layers, degree=degree)
        return
    graph = generate("layered", ops=ops, layers=layers, degree=degree, seed=seed, training=False).graph
    assert graph.n_ops == ops
    depth = np.ones(ops, dtype=int)
    for u, v in sorted(zip(graph.source.tolist(), graph.target.tolist(), strict=True), key=lambda e: e[1]):
        depth[v] = max(depth[v], depth[u] + 1)
    assert depth.max() == layers


def test_roofline_takes_the_slower_bound() -> None:
    """Arithmetic binds one op, memory the other."""
    kind = DeviceType("gpu", flops=100.0, memory_bandwidth=10.0)
    assert roofline(kind, np.array([100.0, 1.0]), np.array([1.0, 50.0]), 0.5).tolist() == [2.0, 5.0]
    with pytest.raises(InstanceError, match="'bare' has no FLOP/s"):
        roofline(DeviceType("bare"), np.zeros(1), np.zeros(1))


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("transformer", {}, "kind"),
        (["bert"], {}, "kind"),
        ("bert", {"layers": 0}, "layers"),
        ("bert", {"batch": 1.5}, "batch"),
        ("bert", {"batch": 10**300}, "batch"),
        ("bert", {"hidden": 770}, "hidden"),
        ("bert", {"sequence": 513}, "sequence"),
        ("bert", {"depth": 3}, "depth"),
        ("gpt", {"context": 0}, "context"),
        ("resnet", {"depth": 49}, "depth"),
        ("resnet", {"image": "large"}, "image"),
        ("layered", {"seed": -1}, "seed"),
        ("layered", {"layers": 101}, "layers"),
        ("layered", {"degree": float("nan")}, "degree"),
        ("layered", {"degree": 0.5}, "degree"),
        ("fork_join", {"intensity": 0}, "intensity"),
        ("fork_join", {"efficiency": 1.5}, "efficiency"),
        ("fork_join", {"training": 1}, "training"),
        ("fork_join", {"devices": 0}, "devices"),
        ("fork_join", {"device_type": "K80"}, "device_type"),
        ("fork_join", {"device_type": "K80", "bandwidth": 1e9}, "device_type"),
        ("fork_join", {"variant": "x"}, "variant"),
    ],
)
def test_wrong_arguments_are_named(kind: Any, options: dict[str, Any], field: str) -> None:
    """A wrong argument is an error that names it, and is never ignored."""
    with pytest.raises(InstanceError) as caught:
        generate(kind, **options)
    assert caught.value.field == field


def test_options_are_listed_with_defaults() -> None:
    """What a command line lists is what the functions take, and None is as if not given."""
    assert defaults("resnet") == {"depth": 50, "image": 224, "batch": 32, "classes": 1000}
    assert dump(generate("resnet", depth=18, image=None)) == dump(generate("resnet", depth=18))


@pytest.mark.parametrize("name", catalogue)
def test_catalogue(name: str) -> None:
    """Every device type can be generated for and has a link; newer ones are no worse (they are listed by age)."""
    kind = catalogue[name]
    assert kind.name == name
    cluster = server(2, name)
    assert cluster.topology.slowest_link() == (LINK_BANDWIDTH[name], 0.0)
    older = list(catalogue.values())[list(catalogue).index(name) - 1] if name != "P100" else kind
    for field in ("flops", "memory", "memory_bandwidth"):
        assert getattr(kind, field) >= getattr(older, field)
    assert LINK_BANDWIDTH[name] >= LINK_BANDWIDTH[older.name]
