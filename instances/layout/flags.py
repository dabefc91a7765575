"""Say a layout in the flags of Megatron-LM or in the TOML of torchtitan, and which layouts these run."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import IntArray, require_choice
from ..errors import InstanceError
from ..verify import verify
from ..verify.layout import degrees as stage_degrees
from .costs import Degrees
from .problem import LayoutPlan, LayoutProblem
from .transformer import Transformer

READ_BY = {
    "megatron": "megatron-core 0.16.1 takes layout string, degrees and recomputation; nobody has read the rest",
    "torchtitan": "torchtitan 0.2.2 reads it (0.3.0 has these names as arguments, and no TOML)",
}
"""What has read such flags, see `tests/instances/layout/test_flags.py`."""
LEFT_OUT = {
    "megatron": "# of degrees alone: arguments of model, optimizer and data are left out",
    "torchtitan": "# of degrees alone: model flavor, optimizer and data are left out",
}
"""A comment before them."""


class Flags(NamedTuple):
    """Flags of a framework.

    Attributes:
        text: to be pasted.
        words: what the framework cannot say of the layout, a sentence each.
    """

    text: str
    words: tuple[str, ...]


def flags(problem: LayoutProblem, plan: LayoutPlan, framework: str) -> Flags:
    """Return a layout in the flags of a framework, ``megatron`` or ``torchtitan``.

    `gangplan.solvers.layout.explain.best_flags` finds the fastest layout that a framework runs.

    Raises:
        InstanceError: if there is no such framework, or it does not run the layout, or that answers no such problem.
    """
    require_choice(framework, "flags", READ_BY)
    if not isinstance(problem.model, Transformer):
        raise InstanceError("flags", "measured layers are of no model that a framework knows")
    if wrong := verify(problem, plan).violations or _unsaid(problem, plan, framework):
        raise InstanceError("plan", wrong[0])
    words = []
    if framework == "megatron" and plan.zero > 1 and len(plan.pool) > 1:
        words.append(f"nobody has tried Megatron's FSDP (ZeRO {plan.zero}) beside pipeline stages here")
    if len(set(plan.pool.tolist())) > 1:
        stages = [f"{s}: {problem.pools[k].gpu}" for s, k in enumerate(plan.pool.tolist())]
        words.append(f"ranks have to be ordered so that stages are on their GPUs ({', '.join(stages)})")
    text = (_megatron_flags if framework == "megatron" else _torchtitan_toml)(problem, plan)
    return Flags(f"{LEFT_OUT[framework]}\n{text}", tuple(words))


def shares(framework: str, stages: int, context: int) -> tuple[int, ...]:
    """Return which ZeRO stages a framework has.

    Beside pipeline stages FSDP keeps weights and gradients whole until the last micro-batch, which is ZeRO 1. With
    context parallelism torchtitan shares weights over it, which is not ZeRO 0.
    """
    own = (0, 1) if stages > 1 else (0, 2, 3)
    return (0, 1, 2, 3) if framework == "megatron" else own[context > 1 :]


def experts_placed(framework: str, model: Any, at: Degrees) -> bool:
    """Return whether a framework shares experts so: torchtitan by whole groups of TP and CP that share weights."""
    group, every = at.tensor * at.context, at.ranks if at.zero else at.tensor * at.context
    runs = at.expert % group == 0 == every % at.expert if at.expert > 1 else at.tensor == 1  # else it cuts each expert
    return runs or framework != "torchtitan" or not getattr(model, "experts", 0)


def recomputed(framework: str, layers: NDArray[Any], number: int, wide: Any = None) -> IntArray:
    """Return how many layers of a stage compute all again, int (...,).

    They are the first `number` of each chunk in Megatron, each one of so many in torchtitan; none if it is 0. Norms and
    activation functions alone are computed again by neither: of Megatron only norms that no product is fused with are,
    and torchtitan's way of choosing ops takes every second product too.

    Args:
        framework: ``megatron`` or ``torchtitan``.
        layers: of each chunk of the stage, int (..., virtual).
        number: the same in all stages.
        wide: of the layers of the stage, how many are of the kind that comes first, int (...,); where others than the
            first layers would be computed again, by kind, more are returned than there are.
    """
    if framework == "megatron" or not number:
        found = np.minimum(layers, number).sum(axis=-1)
    else:
        found = layers.sum(axis=-1) // number
    if wide is None:
        return np.asarray(found)
    first = np.clip(wide[..., None] - layers.cumsum(axis=-1) + layers, 0, layers)
    alike = recomputed(framework, first, number) == np.minimum(wide, found)
    return np.asarray(np.where(alike, found, layers.sum(axis=-1) + 1))


def again(problem: LayoutProblem, plan: LayoutPlan, framework: str) -> int | None:
    """Return the number with which a framework computes again what a plan says, if there is one; see `recomputed`."""
    layers, kinds = plan.layers.reshape(plan.virtual, -1).T, problem.model.chain()
    wide = np.bincount(plan.chunks()[kinds == kinds[1]] % len(layers), minlength=len(layers))
    numbers = range(int(layers.sum(axis=1).max()) + 1)
    return next((n for n in numbers if (recomputed(framework, layers, n, wide) == plan.full).all()), None)


def _unsaid(problem: LayoutProblem, plan: LayoutPlan, framework: str) -> list[str]:
    """Return what a framework cannot say of a layout, in words."""
    degrees = sorted(set(plan.tensor.tolist()))
    experts = experts_placed(framework, problem.model, stage_degrees(plan, 0))
    zeros = shares(framework, len(plan.pool), plan.context)
    cases = (
        (len(degrees) > 1, f"its stages share layers by {degrees} GPUs, {framework} knows one degree"),
        (plan.zero_bubble and framework == "megatron", "its backward passes are cut in two, megatron cuts none"),
        (plan.zero not in zeros, f"{framework} has no ZeRO {plan.zero} with its stages and CP {plan.context}"),
        (not experts, f"{framework} shares no experts by EP {plan.expert} with TP {degrees[0]}, CP {plan.context}"),
        (plan.selective.any(), f"norms and activation functions alone are not computed again by {framework}"),
        (again(problem, plan, framework) is None, f"{framework} computes again as much in each stage, it does not"),
    )
    return [words for wrong, words in cases if wrong]


def layout_string(plan: LayoutPlan) -> str:
    """Return the chunks as Megatron has them: ``Ett|(ttt|)*6t*4L``, E embedding, t a layer, L head and loss."""
    *chunks, last = ["t" * n if n < 4 else f"t*{n}" for n in plan.layers.tolist()]
    if not chunks:
        return f"E{last}L"
    runs = [(text, len(list(same))) for text, same in groupby(chunks)]
    return "E" + "".join(f"({x}|)*{count}" if count > 1 else f"{x}|" for x, count in runs) + f"{last}L"


def _megatron_flags(problem: LayoutProblem, plan: LayoutPlan) -> str:
    tensor, layers = int(plan.tensor[0]), plan.layers
    experts = isinstance(problem.model, Transformer) and problem.model.experts
    said = [f"--tensor-model-parallel-size {tensor}" + " --sequence-parallel" * (tensor > 1)]
    said.append(f"--pipeline-model-parallel-size {len(plan.pool)}")
    if len(set(layers.tolist())) > 1:
        said.append(f'--pipeline-model-parallel-layout "{layout_string(plan)}"')
    elif plan.virtual > 1:
        said.append(f"--num-layers-per-virtual-pipeline-stage {layers[0]}")
    said.append(f"--context-parallel-size {plan.context}" * (plan.context > 1))
    said.append(f"--expert-model-parallel-size {plan.expert} --expert-tensor-parallel-size 1" * bool(experts))
    said.append(f"--micro-batch-size {plan.micro_batch} --global-batch-size {problem.batch}")
    said.append(f"--seq-length {problem.sequence}")
    said += ["--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"] * (plan.zero > 0)
    if plan.zero > 1:
        said.append("--use-megatron-fsdp --ckpt-format fsdp_dtensor")
        said.append(f"--data-parallel-sharding-strategy optim_grads{'_params' * (plan.zero == 3)}")
    if number := again(problem, plan, "megatron"):
        said.append("--recompute-granularity full --recompute-method block")
        said.append(f"--recompute-num-layers {number}")
    moments = "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"
    said.append({"bf16": "--bf16", "fp8": "--bf16 --fp8-format hybrid", "fp32": ""}[problem.precision])
    said.append({"adam": "", "adam_16": moments, "sgd": "--optimizer sgd"}[problem.optimizer])
    said.append("--grad-reduce-in-bf16" * (problem.gradient_bytes <= 2))
    return " \\\n".join(filter(None, said))


def _torchtitan_toml(problem: LayoutProblem, plan: LayoutPlan) -> str:
    p, layers = len(plan.pool), plan.layers
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
        every = ["tok_embeddings", *(f"layers.{i}" for i in range(layers.sum())), "norm", "output"]
        ends = [0, *np.cumsum(layers)[:-1] + 1, len(every)]
        looped = "Interleaved1F1B" if plan.virtual > 1 else "1F1B"
        parts["parallelism"] |= {
            "pipeline_parallel_schedule": "InterleavedZeroBubble" if plan.zero_bubble else looped,
            "pipeline_parallel_microbatch_size": plan.micro_batch,
            "module_fqns_per_model_part": [every[a:b] for a, b in pairwise(ends)],
        }
    if number := again(problem, plan, "torchtitan"):
        way = {"mode": "full"} if number == 1 else {"mode": "selective", "selective_ac_option": f"{number}"}
        parts["activation_checkpoint"] = way
    kind = "float32" if problem.precision == "fp32" else "bfloat16"
    parts["training"] |= {"mixed_precision_param": kind}
    if problem.precision == "fp8":
        parts["model"] = {"converters": ["quantize.linear.float8"]}
    # of TOML and JSON, words, numbers and lists of words are the same
    rows = {head: [f"{name} = {json.dumps(value)}" for name, value in of.items()] for head, of in parts.items()}
    return "\n\n".join("\n".join([f"[{head}]", *lines]) for head, lines in rows.items())
