"""Generated problems: published parameter counts, the same graph for the same arguments, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gangplan
from gangplan.instances import InstanceError, dump
from gangplan.instances.generators import ELEMENT_BYTES, GENERATORS, defaults, generate

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
EXPERT = 2 * 768 * 3072 + 3072 + 768


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
    """A network has as many parameters as the published one, counted once though backward ops use them too."""
    for training in (True, False):
        graph = generate(kind, training=training, batch=1, **options).graph
        assert graph.parameter_bytes.sum() / ELEMENT_BYTES == parameters


def test_five_thousand_ops() -> None:
    """The documented call gives a GPT graph of 4,996 ops."""
    graph = generate("gpt", layers=178, devices=64).graph
    assert graph.n_ops == 4996
    assert (graph.twin >= 0).all()


@pytest.mark.parametrize("kind", GENERATORS)
def test_same_arguments_same_graph(kind: str) -> None:
    """A problem is the same to the last bit when made twice."""
    assert dump(generate(kind, **SMALL[kind])) == dump(generate(kind, **SMALL[kind]))


@pytest.mark.parametrize("kind", ["layered", "fork_join", "series_parallel", "pipeline"])
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


SOLVED: dict[str, dict[str, Any]] = {
    "vgg": {"depth": 11, "batch": 4},
    "inception": {"auxiliary": False, "image": 75, "batch": 4},
    "gnmt": {"layers": 2, "hidden": 64, "vocabulary": 1000},
    "dlrm": {"tables": 4, "rows": 1000},
    "moe": {"layers": 2, "experts": 3, "hidden": 64, "heads": 4, "context": 32, "vocabulary": 1000},
    "series_parallel": {"ops": 20},
}


@pytest.mark.parametrize("kind", SOLVED)
def test_generated_graphs_solve(kind: str) -> None:
    """A small graph of the kind is solved, and the verifier agrees."""
    problem = generate(kind, devices=2, **SOLVED[kind])
    result = gangplan.solve(problem, time_limit=0.5, workers=1)
    assert result.plan is not None
    verdict = gangplan.verify(problem, result.plan)
    assert verdict.ok
    assert verdict.objective == pytest.approx(result.objective)


WRONG: dict[str, dict[str, tuple[Any, ...]]] = {
    "bert": {"layers": (0,), "batch": (1.5, 10**300), "hidden": (770,), "sequence": (513,), "depth": (3,)},
    "gpt": {"context": (0,)},
    "moe": {
        **{"layers": (1,), "hidden": (770,), "heads": (0,), "vocabulary": (0,), "context": (0,), "batch": ("8",)},
        **{"experts": (0,), "top_k": (0, 9), "capacity": (0, float("nan"))},
    },
    "gnmt": {
        **{"layers": (1, 0), "hidden": ("wide",), "source": (0,), "target": (2.5,), "batch": (10**300, -1)},
        "vocabulary": (0,),
    },
    "resnet": {"depth": (49,), "image": ("large",)},
    "vgg": {"depth": (12,), "image": (31,), "batch": (0,), "classes": (1.5,)},
    "inception": {"auxiliary": (1,), "image": (298,), "batch": (True,), "classes": (-1,)},
    "dlrm": {
        **{
            "tables": (0,),
            "rows": (1e6,),
            "dimension": (0,),
            "batch": (float("inf"),),
            "bottom": ("", 512, "512-\u00b2"),
        },
        "top": ("512--1", "512-0", "9" * 5000),
    },
    "layered": {"seed": (-1,), "layers": (101,), "degree": (float("nan"), 0.5)},
    "fork_join": {
        **{"intensity": (0,), "efficiency": (1.5,), "training": (1,), "devices": (0,), "device_type": ("K80",)},
        "variant": ("x",),
    },
    "series_parallel": {"ops": (0,), "series": (1.1, -0.1), "seed": (0.5,), "flops": (0,), "intensity": (-1,)},
    "pipeline": {
        **{"stages": (0,), "micro_batches": (1.5,), "flops": (0,), "intensity": (-1,), "spread": (-0.1,)},
        "seed": (0.5,),
    },
}


@pytest.mark.parametrize(
    ("kind", "field", "options"),
    [(kind, name, {name: x}) for kind, known in WRONG.items() for name, values in known.items() for x in values]
    + [
        ("transformer", "kind", {}),
        (["bert"], "kind", {}),
        ("fork_join", "device_type", {"device_type": "K80", "bandwidth": 1e9}),
        ("inception", "image", {"image": 74, "auxiliary": False}),
        ("moe", "capacity", {"batch": 2**60, "context": 2**60}),
    ],
)
def test_wrong_arguments_are_named(kind: Any, field: str, options: dict[str, Any]) -> None:
    """A wrong argument is an error that names it, and is never ignored."""
    with pytest.raises(InstanceError) as caught:
        generate(kind, **options)
    assert caught.value.field == field


def test_options_are_listed_with_defaults() -> None:
    """What a command line lists is what the functions take, and None is as if not given."""
    assert defaults("resnet") == {"depth": 50, "image": 224, "batch": 32, "classes": 1000}
    assert dump(generate("resnet", depth=18, image=None)) == dump(generate("resnet", depth=18))


@pytest.mark.parametrize("kind", ["bert", "gpt", "moe", "gnmt", "resnet", "vgg", "inception", "dlrm"])
def test_documented_parameters(kind: str) -> None:
    """The table of generators in the documentation has the default's parameters, and a row for every kind."""
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    section = page.split("## Generated graphs")[1]
    assert set(GENERATORS) <= set(re.findall(r"`(\w+)`", section))
    row = next(line for line in section.splitlines() if line.startswith(f"| `{kind}`"))
    assert f"{generate(kind).graph.parameter_bytes.sum() / ELEMENT_BYTES:,.0f}" in row.split("|")[3]
