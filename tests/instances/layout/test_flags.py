"""Flags say the layout that they run: read by the framework's own code where it is installed."""

from __future__ import annotations

import shlex
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import InstanceError, verify
from gangplan.instances.layout import LayoutPlan, LayoutProblem, Transformer, gpu_pool
from gangplan.instances.layout.flags import READ_BY, flags, layout_string

LLAMA = Transformer("llama", 16, 1024, 16, 8, 64, 32000, 4096)
PROBLEM = LayoutProblem(LLAMA, (gpu_pool("H100", 4),), 64, 2048)
MIXTURE = Transformer("mixture", 8, 1024, 16, 8, 64, 32000, 0, experts=16, active=2, expert_feedforward=1024)


def plan(
    blocks: list[int], stages: int, selective: list[int] | None = None, full: list[int] | None = None, **more: Any
) -> LayoutPlan:
    """Return a layout on the first pool with TP 2."""
    none = [0] * stages
    sizes = {"pool": none, "tensor": [2] * stages, "selective": selective or none, "full": full or none, **more}
    return LayoutPlan(blocks=blocks, **sizes)  # type: ignore[arg-type]


def unrolled(text: str) -> list[tuple[int, bool, bool]]:
    """Return layers, embedding and loss of each part of a layout string without repetition by hand."""
    while "(" in text:
        head, rest = text.split("(", 1)
        inner, rest = rest.split(")*", 1)
        digits = next(i for i, x in enumerate(f"{rest}.") if not x.isdigit())
        text = head + inner * int(rest[:digits]) + rest[digits:]
    parts = []
    for part in text.split("|"):
        bare = part.removeprefix("E").removesuffix("L")
        count = int(bare[2:]) if bare.startswith("t*") else bare.count("t")
        parts.append((count, part.startswith("E"), part.endswith("L")))
    return parts


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_layout_string(inner: list[int]) -> None:
    """Megatron's string has the layers of each chunk in their order, the embedding first and the loss last."""
    blocks = [*inner]
    blocks[0] += 1
    blocks[-1] += 1
    made = plan(blocks, len(blocks))
    found = unrolled(layout_string(made))
    last = len(blocks) - 1
    assert found == [(n, i == 0, i == last) for i, n in enumerate(made.layers.tolist())]


def test_chunks_without_layers() -> None:
    """The embedding and the head may be chunks of their own."""
    assert layout_string(plan([1, 8, 8, 1], 4)) == "E|(t*8|)*2L"
    assert layout_string(plan([18], 1)) == "Et*16L"


def test_megatron() -> None:
    """Degrees, sharding, precision and stages that differ are flags; equal ones need no layout string."""
    found = flags(PROBLEM, plan([5, 4, 4, 5], 4, data=4, virtual=1), "megatron")
    assert "--tensor-model-parallel-size 2 --sequence-parallel" in found.text
    assert "--pipeline-model-parallel-size 4" in found.text and "layout" not in found.text
    assert "--use-distributed-optimizer" in found.text and "--bf16" in found.text and found.words == ()
    unequal = flags(PROBLEM, plan([4, 5, 5, 4], 4, data=4), "megatron")
    assert '--pipeline-model-parallel-layout "Ettt|(t*5|)*2tttL"' in unequal.text
    looped = flags(PROBLEM, plan([3, 2, 2, 2, 2, 2, 2, 3], 4, data=4, virtual=2), "megatron")
    assert "--num-layers-per-virtual-pipeline-stage 2" in looped.text
    fp8 = replace(PROBLEM, precision="fp8", optimizer="adam_16", gradient_bytes=2.0)
    more = flags(fp8, plan([9, 9], 2, data=2, context=4, zero=3), "megatron").text
    for flag in ("--fp8-format hybrid", "--exp-avg-dtype bf16", "--grad-reduce-in-bf16", "--context-parallel-size 4"):
        assert flag in more
    assert "--data-parallel-sharding-strategy optim_grads_params" in more
    experts = flags(replace(PROBLEM, model=MIXTURE), plan([5, 5], 2, data=4, expert=8), "megatron").text
    assert "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in experts


def test_zero_bubble() -> None:
    """A backward pass that is cut in two is a schedule of torchtitan."""
    made = plan([5, 4, 4, 5], 4, data=4, zero_bubble=True)
    text = flags(replace(PROBLEM, zero_bubble=True), made, "torchtitan").text
    assert 'pipeline_parallel_schedule = "InterleavedZeroBubble"' in text


def test_torchtitan() -> None:
    """The TOML has degrees, batch, chunks by modules and schedule."""
    found = flags(PROBLEM, plan([4, 5, 5, 4], 4, data=4, virtual=1), "torchtitan")
    data = tomllib.loads(found.text)
    ways = data["parallelism"]
    assert data["training"]["local_batch_size"] == 16 and data["training"]["global_batch_size"] == 64
    assert (ways["tensor_parallel_degree"], ways["pipeline_parallel_degree"]) == (2, 4)
    assert (ways["data_parallel_shard_degree"], ways["pipeline_parallel_microbatch_size"]) == (4, 1)
    modules = ways["module_fqns_per_model_part"]
    assert modules[0] == ["tok_embeddings", "layers.0", "layers.1", "layers.2"] and modules[-1][-2:] == [
        "norm",
        "output",
    ]
    assert [x for part in modules for x in part if x.startswith("layers")] == [f"layers.{i}" for i in range(16)]
    assert found.words == ()
    alone = flags(PROBLEM, plan([18], 1, data=8, zero=2), "torchtitan")
    assert "pipeline_parallel_schedule" not in alone.text


@pytest.mark.parametrize(
    ("degrees", "runs"),
    [
        ({"tensor": [2], "expert": 2, "zero": 2}, True),
        ({"tensor": [2], "expert": 4, "zero": 2}, True),
        ({"tensor": [4], "expert": 2, "zero": 2}, False),  # half a group of TP
        ({"tensor": [2], "context": 2, "expert": 2, "zero": 2}, False),
        ({"tensor": [1], "expert": 2, "zero": 0}, False),  # replicas have all weights
        ({"tensor": [2], "expert": 1, "zero": 2}, False),  # each expert would be cut
        ({"tensor": [1], "expert": 1, "zero": 2}, True),
    ],
)
def test_experts_of_torchtitan(degrees: dict[str, Any], runs: bool) -> None:
    """Whole groups of TP and CP share experts, replicas only if they share weights: as torchtitan asserts."""
    problem, made = replace(PROBLEM, model=MIXTURE), plan([10], 1, data=4, **degrees)
    assert "--expert-model-parallel-size" in flags(problem, made, "megatron").text
    if runs:
        assert f"expert_parallel_degree = {made.expert}\n" in flags(problem, made, "torchtitan").text
    else:
        with pytest.raises(InstanceError, match="plan: torchtitan shares no experts by EP"):
            flags(problem, made, "torchtitan")


def test_torchtitan_shares_weights_over_parts_of_a_sequence() -> None:
    """So ZeRO 0 beside context parallelism is another layout there."""
    made = plan([18], 1, data=2, context=2, zero=0)
    assert "--context-parallel-size 2" in flags(PROBLEM, made, "megatron").text
    with pytest.raises(InstanceError, match="plan: torchtitan has no ZeRO 0 with its stages and CP 2"):
        flags(PROBLEM, made, "torchtitan")


@pytest.mark.parametrize("framework", READ_BY)
def test_what_cannot_be_said(framework: str) -> None:
    """Recomputation that differs by stage, norms alone, unequal TP and schedules that there are not are refused."""
    two = replace(PROBLEM, pools=(*PROBLEM.pools, gpu_pool("A100", 1)), zero_bubble=True)
    sizes = [5, 4, 4, 5]
    for made, words in (
        (plan(sizes, 4, data=4, tensor=[2, 2, 2, 1], pool=[0, 0, 0, 1]), "by \\[1, 2\\] GPUs"),
        (plan(sizes, 4, None, [2, 1, 0, 0], data=4), "computes again as much in each stage"),
        (plan(sizes, 4, [1, 0, 0, 0], data=4), "norms and activation functions alone"),
        (plan([18], 1, data=4, zero=1), "has no ZeRO 1" if framework == "torchtitan" else ""),
        (plan(sizes, 4, data=4, zero_bubble=True), "cut in two" if framework == "megatron" else ""),
    ):
        if words:
            with pytest.raises(InstanceError, match=f"plan: .*{words}"):
                flags(two, made, framework)
    words = flags(two, plan(sizes, 4, data=4, pool=[0, 0, 0, 1]), framework).words
    assert words == ("ranks have to be ordered so that stages are on their GPUs (0: H100, 1: H100, 2: H100, 3: A100)",)


def test_recomputation() -> None:
    """The first layers of each chunk compute again by Megatron, each one of so many by torchtitan."""
    chunks = plan([5, 4, 4, 5], 2, None, [6, 6], data=8, virtual=2)
    assert "--recompute-method block \\\n--recompute-num-layers 3" in flags(PROBLEM, chunks, "megatron").text
    every = tomllib.loads(flags(PROBLEM, plan([5, 4, 4, 5], 4, None, [2, 2, 2, 2], data=4), "torchtitan").text)
    assert every["activation_checkpoint"] == {"mode": "selective", "selective_ac_option": "2"}
    uneven = plan([5, 6, 6, 1], 4, None, [2, 3, 3, 0], data=4)
    assert 'selective_ac_option = "2"' in flags(PROBLEM, uneven, "torchtitan").text
    whole = tomllib.loads(flags(PROBLEM, plan([5, 4, 4, 5], 4, None, [4] * 4, data=4), "torchtitan").text)
    assert whole["activation_checkpoint"] == {"mode": "full"}


def test_recomputation_of_two_kinds() -> None:
    """The layers that the framework computes again are of the kinds that the plan says, or it does not run it."""
    problem = replace(PROBLEM, model=replace(MIXTURE, feedforward=4096, first_dense=2))
    for blocks, full, framework in (
        ([3, 2, 3, 2], [2, 2], "megatron"),  # chunks of stage 0: two wide layers, three with experts
        ([6, 4], [2, 1], "torchtitan"),  # each second layer of stage 0: one wide, one with experts
    ):
        made = plan(blocks, 2, None, full, data=4, virtual=len(blocks) // 2, expert=2)
        with pytest.raises(InstanceError, match=f"plan: {framework} computes again as much in each stage"):
            flags(problem, made, framework)
        assert flags(replace(problem, model=MIXTURE), made, framework).text
    alike = plan([3, 2, 3, 2], 2, None, [5, 3], data=4, virtual=2, expert=2)
    assert "--recompute-num-layers 3" in flags(problem, alike, "megatron").text


def test_flags_of_nothing() -> None:
    """An unknown framework and a layout that does not fit are named."""
    with pytest.raises(InstanceError, match="flags: 'nemo' is not one of megatron, torchtitan"):
        flags(PROBLEM, plan([9, 9], 2), "nemo")
    with pytest.raises(InstanceError, match="plan: the chunks have 17 blocks, the model has 18"):
        flags(PROBLEM, plan([9, 8], 2), "megatron")


def test_megatron_reads_the_string() -> None:
    """Megatron's own parser has the same layers on each stage and chunk, where megatron-core is installed."""
    pytest.importorskip("megatron.core", exc_type=ImportError)
    from megatron.core.transformer.enums import LayerType
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout

    for blocks, stages in (
        ([4, 5, 5, 4], 4),
        ([1, 2, 2, 3, 3, 2, 3, 2], 4),
        ([1, 8, 8, 1], 4),
        ([2] * 9, 9),
        ([18], 1),
    ):
        made = plan(blocks, stages, virtual=len(blocks) // stages)
        read = PipelineParallelLayerLayout(layout_string(made), stages)
        read.validate_layer_layout(16, 0)
        count = [[x.count(LayerType.decoder) for x in row] for row in read.layout]
        assert np.array(count).T.ravel().tolist() == made.layers.tolist()


def test_megatron_takes_the_sizes() -> None:
    """Megatron's configuration takes degrees and recomputation as the flags say, where megatron-core is installed."""
    pytest.importorskip("megatron.core", exc_type=ImportError)
    import torch
    from megatron.core.transformer.transformer_config import TransformerConfig

    known = {x.name: x for x in fields(TransformerConfig)}
    for made in (plan([4, 5, 5, 4], 4, None, [2] * 4, data=4), plan([4, 5, 5, 4], 4, [3, 5, 5, 3], data=4)):
        need = float(verify(PROBLEM, made).memory.sum(axis=0).max())
        tight = replace(PROBLEM, pools=(replace(PROBLEM.pools[0], memory=need),))
        words = shlex.split(flags(tight, made, "megatron").text.replace("\\\n", " "))
        given: dict[str, Any] = {}
        for name, *values in (x.split() for x in " ".join(words).split("--")[1:]):
            value = values if name == "recompute-modules" else values[0] if values else True
            given[name.replace("-", "_")] = int(value) if isinstance(value, str) and value.isdigit() else value
        taken = {name: value for name, value in given.items() if name in known}
        config = TransformerConfig(
            num_layers=16, hidden_size=1024, num_attention_heads=16, pipeline_dtype=torch.bfloat16, **taken
        )
        assert {"tensor_model_parallel_size", "sequence_parallel", "recompute_granularity"} <= {*taken}
        assert config.pipeline_model_parallel_size == 4


def test_torchtitan_reads_the_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchtitan's own parser has the degrees, where a version that reads TOML is installed."""
    config = pytest.importorskip("torchtitan.config.job_config", exc_type=ImportError)
    from torchtitan.config.manager import ConfigManager

    del config
    file = tmp_path / "layout.toml"
    fp8 = replace(PROBLEM, precision="fp8")
    file.write_text(flags(fp8, plan([4, 5, 5, 4], 4, None, [2] * 4, data=4), "torchtitan").text)
    monkeypatch.setattr(sys, "argv", ["x"])
    read = ConfigManager().parse_args(["--job.config_file", str(file)])
    assert read.parallelism.pipeline_parallel_degree == 4 and read.training.global_batch_size == 64
    assert read.parallelism.module_fqns_per_model_part[0][0] == "tok_embeddings"
