"""Say a layout in the flags of Megatron-LM or in the TOML of torchtitan, and which layout these then run.

What a framework cannot say, such as recomputation that differs by stage, is said in words beside the flags; the nearest
layout that it runs is the fastest that fits of those that differ in nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..arrays import IntArray, require_choice
from ..errors import InstanceError
from ..verify import verify
from .problem import LayoutPlan, LayoutProblem
from .transformer import Transformer

READ_BY = {
    "megatron": "megatron-core 0.16.1 takes layout string, degrees and recomputation; nobody has read the rest",
    "torchtitan": "torchtitan 0.2.2 reads it (0.3.0 has these names as arguments, and no TOML)",
}
"""What has read such flags, see `tests/instances/layout/test_flags.py`."""


class Flags(NamedTuple):
    """Flags of a framework.

    Attributes:
        text: to be pasted.
        words: what the framework cannot say of the layout, a sentence each.
        plan: the layout that the flags run.
    """

    text: str
    words: tuple[str, ...]
    plan: LayoutPlan


def flags(problem: LayoutProblem, plan: LayoutPlan, framework: str) -> Flags:
    """Return a layout in the flags of a framework, ``megatron`` or ``torchtitan``.

    Raises:
        InstanceError: if there is no such framework, or the layout does not answer the problem.
    """
    require_choice(framework, "flags", READ_BY)
    if not isinstance(problem.model, Transformer):
        raise InstanceError("flags", "measured layers are of no model that a framework knows")
    if violations := verify(problem, plan).violations:
        raise InstanceError("plan", violations[0])
    equal, words = _one_tensor(problem, plan)
    if framework == "megatron" and plan.zero_bubble:
        equal = replace(equal, zero_bubble=False)
        words.append("megatron cuts no backward pass in two: the flags run 1F1B")
    nearest = _fastest(problem, _runs(equal, framework))
    if nearest.zero != plan.zero:
        beside = "without" if len(plan.pool) == 1 else "beside"
        words.append(f"{framework} has no ZeRO {plan.zero} {beside} pipeline stages: the flags run ZeRO {nearest.zero}")
    if (nearest.full != plan.full).any() or (nearest.selective != plan.selective).any():
        words.append(f"{framework} computes again {_again(nearest)}; the layout, by stage, {_again(plan)}")
    if framework == "megatron" and nearest.zero > 1 and len(plan.pool) > 1:
        words.append(f"nobody has tried Megatron's FSDP (ZeRO {nearest.zero}) beside pipeline stages here")
    if len(set(plan.pool.tolist())) > 1:
        stages = [f"{s}: {problem.pools[k].gpu}" for s, k in enumerate(plan.pool.tolist())]
        words.append(f"ranks have to be ordered so that stages are on their GPUs ({', '.join(stages)})")
    words += [f"the nearest layout does not fit: {x}" for x in verify(problem, nearest).violations[:1]]
    text = (_megatron_flags if framework == "megatron" else _torchtitan_toml)(problem, nearest)
    return Flags(text, tuple(words), nearest)


def fastest_flags(problem: LayoutProblem, plans: Sequence[LayoutPlan], framework: str) -> Flags:
    """Return those flags of some layouts that run fastest: a framework may run a slower one as it is."""
    return min((flags(problem, x, framework) for x in plans), key=lambda x: verify(problem, x.plan).objective or np.inf)


def layers_of(plan: LayoutPlan) -> IntArray:
    """Return how many layers each chunk has, without embedding and head, int (virtual p,)."""
    layers = plan.blocks.copy()
    layers[0] -= 1
    layers[-1] -= 1
    return layers


def _by_stage(plan: LayoutPlan, layers: IntArray) -> IntArray:
    """Return the sum over the chunks of each stage."""
    return np.asarray(layers.reshape(plan.virtual, -1).sum(axis=0), dtype=np.int32)


def _one_tensor(problem: LayoutProblem, plan: LayoutPlan) -> tuple[LayoutPlan, list[str]]:
    """Return the layout with one degree of tensor parallelism, and what was changed in words."""
    degrees = sorted(set(plan.tensor.tolist()))
    if len(degrees) == 1:
        return plan, []
    same = [replace(plan, tensor=np.full_like(plan.tensor, t)) for t in degrees]
    found = _fastest(problem, iter(same))
    return found, [f"stages share layers by {degrees} GPUs, the flags know one degree: {found.tensor[0]}"]


def _fastest(problem: LayoutProblem, plans: Iterator[LayoutPlan]) -> LayoutPlan:
    """Return the fastest layout that fits; of none that does the one that needs least memory."""

    def worth(plan: LayoutPlan) -> tuple[float, float]:
        verdict = verify(problem, plan)
        most = float(verdict.memory.sum(axis=0).max())
        return (np.inf, most) if verdict.objective is None else (verdict.objective, most)

    return min(plans, key=worth)


def _runs(plan: LayoutPlan, framework: str) -> Iterator[LayoutPlan]:
    """Yield the layouts that a framework runs: what is computed again is the same in all stages.

    All of a layer is computed again in the first n layers of each chunk by Megatron, in each n-th layer by torchtitan.
    Norms and activation functions alone are computed again by neither: of Megatron only norms that no product is fused
    with are, and torchtitan's way of choosing ops takes every second product too.
    Beside pipeline stages FSDP keeps weights and gradients whole until the last micro-batch, which is ZeRO 1.
    """
    chunk = layers_of(plan)
    every, none = _by_stage(plan, chunk), np.zeros_like(plan.full)
    known = (0, 1, 2, 3) if framework == "megatron" else (0, 1) if len(plan.pool) > 1 else (0, 2, 3)
    for zero in (plan.zero,) if plan.zero in known else known:
        shared = replace(plan, zero=zero)
        yield replace(shared, selective=none, full=none)
        for n in range(1, int(every.max()) + 1):
            full = _by_stage(plan, np.minimum(chunk, n)) if framework == "megatron" else every // n
            yield replace(shared, selective=none, full=full)


def _again(plan: LayoutPlan) -> str:
    """Return what is computed again in words."""

    def told(counts: IntArray) -> str:
        runs = [(n, len(list(same))) for n, same in groupby(counts.tolist())]
        texts = [f"{n}" if times == 1 else f"{n} x {times}" for n, times in runs]
        return f"{runs[0][0]}" if len(runs) == 1 else f"[{', '.join(texts)}]"

    parts = [f"all of {told(plan.full)} layers"] * bool(plan.full.any())
    parts += [f"norms and activation functions of {told(plan.selective)}"] * bool(plan.selective.any())
    return " and ".join(parts) or "nothing"


def layout_string(plan: LayoutPlan) -> str:
    """Return the chunks as Megatron has them: ``Ett|(ttt|)*6t*4L``, E embedding, t a layer, L head and loss."""
    *chunks, last = ["t" * n if n < 4 else f"t*{n}" for n in layers_of(plan).tolist()]
    if not chunks:
        return f"E{last}L"
    runs = [(text, len(list(same))) for text, same in groupby(chunks)]
    return "E" + "".join(f"({x}|)*{count}" if count > 1 else f"{x}|" for x, count in runs) + f"{last}L"


def _megatron_flags(problem: LayoutProblem, plan: LayoutPlan) -> str:
    tensor, layers = int(plan.tensor[0]), layers_of(plan)
    experts = isinstance(problem.model, Transformer) and problem.model.experts
    said = [f"--tensor-model-parallel-size {tensor}" + " --sequence-parallel" * (tensor > 1)]
    said.append(f"--pipeline-model-parallel-size {len(plan.pool)}")
    if len(set(layers.tolist())) > 1:
        said.append(f'--pipeline-model-parallel-layout "{layout_string(plan)}"')
    elif plan.virtual > 1:
        said.append(f"--num-layers-per-virtual-pipeline-stage {layers[0]}")
    said.append(f"--context-parallel-size {plan.context}" * (plan.context > 1))
    said.append(f"--expert-model-parallel-size {plan.expert} --expert-tensor-parallel-size 1" * bool(experts))
    said += [f"--micro-batch-size {plan.micro_batch} --global-batch-size {problem.batch}"]
    said += [f"--seq-length {problem.sequence}"]
    if plan.zero:
        said.append("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather")
    if plan.zero > 1:
        strategy = "optim_grads" if plan.zero == 2 else "optim_grads_params"
        said.append(f"--use-megatron-fsdp --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy {strategy}")
    if plan.full.any():
        most = int(layers.max())
        same = (n for n in range(1, most) if (_by_stage(plan, np.minimum(layers, n)) == plan.full).all())
        said.append("--recompute-granularity full --recompute-method block")
        said.append(f"--recompute-num-layers {next(same, most)}")
    moments = "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"
    said.append({"bf16": "--bf16", "fp8": "--bf16 --fp8-format hybrid", "fp32": ""}[problem.precision])
    said.append({"adam": "", "adam_16": moments, "sgd": "--optimizer sgd"}[problem.optimizer])
    said.append("--grad-reduce-in-bf16" * (problem.gradient_bytes <= 2))
    return " \\\n".join(filter(None, said))


def _torchtitan_toml(problem: LayoutProblem, plan: LayoutPlan) -> str:
    p, layers = len(plan.pool), layers_of(plan)
    local = problem.batch // plan.data if p > 1 else plan.micro_batch
    shared = plan.data if plan.zero else 1
    parts: dict[str, dict[str, Any]] = {
        "training": {"local_batch_size": local, "global_batch_size": problem.batch, "seq_len": problem.sequence},
        "parallelism": {
            "data_parallel_replicate_degree": plan.data // shared,
            "data_parallel_shard_degree": shared,
            "fsdp_reshard_after_forward": "always" if plan.zero == 3 else "never",
            "tensor_parallel_degree": int(plan.tensor[0]),
            "context_parallel_degree": plan.context,
            "expert_parallel_degree": plan.expert,
            "pipeline_parallel_degree": p,
        },
        "activation_checkpoint": {"mode": "none"},
    }
    if p > 1:
        parts["parallelism"] |= {
            "pipeline_parallel_schedule": _schedule(plan),
            "pipeline_parallel_microbatch_size": plan.micro_batch,
            "module_fqns_per_model_part": _modules(layers),
        }
    if plan.full.any():
        some = plan.full > 0
        each = int((_by_stage(plan, layers)[some] // plan.full[some]).min())
        way = {"mode": "full"} if each == 1 else {"mode": "selective", "selective_ac_option": f"{each}"}
        parts["activation_checkpoint"] = way
    kind = "float32" if problem.precision == "fp32" else "bfloat16"
    parts["training"] |= {"mixed_precision_param": kind}
    if problem.precision == "fp8":
        parts["model"] = {"converters": ["quantize.linear.float8"]}
    # of TOML and JSON, words, numbers and lists of words are the same
    rows = {head: [f"{name} = {json.dumps(value)}" for name, value in of.items()] for head, of in parts.items()}
    return "\n\n".join("\n".join([f"[{head}]", *lines]) for head, lines in rows.items())


def _schedule(plan: LayoutPlan) -> str:
    """Return the name that `torch.distributed.pipelining` has for the order of passes."""
    return "InterleavedZeroBubble" if plan.zero_bubble else "Interleaved1F1B" if plan.virtual > 1 else "1F1B"


def _modules(layers: IntArray) -> list[list[str]]:
    """Return the modules of each chunk by torchtitan's names."""
    ends = np.cumsum(layers).tolist()
    parts = [[f"layers.{i}" for i in range(end - n, end)] for n, end in zip(layers.tolist(), ends, strict=True)]
    return [["tok_embeddings", *parts[0]], *parts[1:-1], [*parts[-1], "norm", "output"]]
