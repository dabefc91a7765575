"""The verifier of layouts: what each stage takes and needs, from the problem and the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from ..layout.costs import COMMUNICATION, Degrees, block_costs
from ..layout.problem import LayoutPlan, LayoutProblem
from ..layout.stage import Memory, handovers, stage_memory, stage_reduction, under_way, waiting
from ..layout.transformer import Transformer
from ..quantities import quantity
from .verdict import TOLERANCE, Judgement

SECONDS = ("forward", "backward", "recomputation", *COMMUNICATION, "point-to-point", "bubble", "reduction", "update")
"""The parts of a step of a GPU, in the order of the rows of `LayoutVerdict.seconds`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LayoutVerdict(Judgement):
    """What the verifier found of a layout; its objective is seconds a step.

    Attributes:
        seconds: of each part of a step, see `SECONDS`, on a GPU of each stage, float64 (11, p).
        hidden: seconds of communication behind computing, of each kind, float64 (4, p).
        memory: bytes on a GPU of each stage, by the fields of `Memory`, float64 (5, p).
        tokens: tokens a second and GPU in use.
        utilisation: FLOP/s of the model over the peak in 16 bits of the GPUs in use; `None` of measured layers.
    """

    seconds: FloatArray
    hidden: FloatArray
    memory: FloatArray
    tokens: float = 0.0
    utilisation: float | None = None

    @property
    def parts(self) -> dict[str, dict[str, FloatArray]]:
        """``memory`` and ``seconds`` by the names of their parts, float64 (p,) each."""
        rows = ("memory", Memory._fields, self.memory), ("seconds", SECONDS, self.seconds)
        return {name: dict(zip(names, table, strict=True)) for name, names, table in rows}


def verify_layout(problem: LayoutProblem, plan: LayoutPlan) -> LayoutVerdict:
    """Check `plan` and recompute the seconds of a step (docs/layout.md)."""
    p = len(plan.pool)
    nothing = np.zeros((len(SECONDS), p)), np.zeros((4, p)), np.zeros((5, p))
    if words := misfits(problem, plan):
        return LayoutVerdict(tuple(words), None, *nothing)
    chunk, kinds = plan.chunks(), problem.model.chain()
    m = problem.batch // (plan.data * plan.micro_batch)
    seconds, hidden, memory = nothing
    busy, once, stages = np.zeros(p), np.zeros(p), []
    for s in range(p):
        pool, at = problem.pools[plan.pool[s]], degrees(plan, s)
        if (costs := block_costs(problem, pool, at)) is None:
            return LayoutVerdict((f"stage {s}: {pool.gpu} was not measured with {plan.summary()}",), None, *nothing)
        stages.append((pool, at, costs))
    handed = handovers([costs.handed for *_, costs in stages], plan.virtual)
    for s, (pool, at, costs) in enumerate(stages):
        mine = kinds[chunk % p == s]
        level = _again(problem, plan, s, chunk)
        forward, backward = (costs.compute + costs.shown.sum(axis=0))[:, mine].sum(axis=1)
        again = costs.again[level, mine].sum()
        busy[s] = forward + backward + again + handed[s]
        kept = under_way(p, s, m, plan.virtual) * costs.kept[level, mine].sum()
        own, experts = costs.weights[mine].sum(), costs.expert_weights[mine].sum()
        memory[:, s] = stage_memory(problem, at, own, experts, kept, costs.working[mine].max())
        reduction, update = stage_reduction(problem, pool, at, own, experts), costs.update[mine].sum()
        once[s] = reduction + update
        shown, sent = costs.shown[:, :, mine].sum(axis=(1, 2)), costs.sent[:, :, mine].sum(axis=(1, 2))
        each = [*costs.compute[:, mine].sum(axis=1), again, *shown, handed[s]]
        seconds[:, s] = [*(m * x for x in each), 0.0, reduction, update]
        hidden[:, s] = m * (sent - shown)
    slowest = busy.max()
    step = m * slowest + (busy.sum() - slowest) * waiting(plan.virtual, plan.zero_bubble) + once.max()
    seconds[8] = step - seconds.sum(axis=0)
    words = [
        f"memory: a GPU of stage {s} needs {quantity(need, 'B', 4)}, {problem.pools[plan.pool[s]].gpu} has "
        f"{quantity(problem.pools[plan.pool[s]].memory, 'B', 4)}"
        for s, need in enumerate(memory.sum(axis=0))
        if need > problem.pools[plan.pool[s]].memory * (1 + TOLERANCE)
    ]
    used = int((plan.tensor * plan.context * plan.data).sum())
    tokens = problem.batch * problem.sequence / step
    rate = None
    if isinstance(problem.model, Transformer):
        peak = sum(problem.pools[k].flops * t for k, t in zip(plan.pool, plan.tensor.tolist(), strict=True))
        rate = problem.model.flops(problem.sequence) * tokens / (peak * plan.context * plan.data)
    return LayoutVerdict(tuple(words), None if words else float(step), seconds, hidden, memory, tokens / used, rate)


def degrees(plan: LayoutPlan, stage: int) -> Degrees:
    """Return the degrees of a stage."""
    return Degrees(int(plan.tensor[stage]), plan.context, plan.expert, plan.data, plan.micro_batch, plan.zero)


def _again(problem: LayoutProblem, plan: LayoutPlan, stage: int, chunk: IntArray) -> IntArray:
    """Return what each block of a stage computes again, index into `LEVELS`; embedding and head nothing."""
    blocks = np.flatnonzero(chunk % len(plan.pool) == stage)
    layer = (blocks > 0) & (blocks < len(chunk) - 1)
    nth = np.cumsum(layer) - 1
    full, selective = plan.full[stage], plan.selective[stage]
    return np.where(~layer, 0, np.where(nth < full, 2, np.where(nth < full + selective, 1, 0))).astype(np.int32)


def misfits(problem: LayoutProblem, plan: LayoutPlan) -> list[str]:
    """Return why a plan is none of its problem, in words."""
    words, p, d = [], len(plan.pool), plan.data
    if (plan.pool >= len(problem.pools)).any():
        return [f"stages are on pool {plan.pool.max()}, there are {len(problem.pools)}"]
    if plan.blocks.sum() != (blocks := len(problem.model.chain())):
        words.append(f"the chunks have {plan.blocks.sum()} blocks, the model has {blocks}")
    layers = plan.layers.reshape(-1, p).sum(axis=0)
    for s in np.flatnonzero(plan.full + plan.selective > np.maximum(layers, 0)).tolist():
        words.append(f"stage {s} computes {plan.full[s] + plan.selective[s]} layers again, it has {layers[s]}")
    if (np.diff(plan.pool) != 0).sum() >= len({*plan.pool.tolist()}):
        words.append("the stages on a pool do not follow one another")
    for k, pool in enumerate(problem.pools):
        if len(several := {*plan.tensor[plan.pool == k].tolist()}) > 1:
            words.append(f"the stages on {pool.gpu} have several degrees of tensor parallelism: {sorted(several)}")
        if (used := int(plan.tensor[plan.pool == k].sum()) * plan.context * d) > pool.count:
            words.append(f"the stages on {pool.gpu} take {used} GPUs, there are {pool.count}")
    m, rest = divmod(problem.batch, d * plan.micro_batch)
    if rest:
        words.append(f"{d} replicas of micro-batches of {plan.micro_batch} do not divide a batch of {problem.batch}")
    elif plan.virtual > 1 and (p == 1 or m % p):
        words.append(f"{m} micro-batches in turns of {p} stages: interleaving needs a multiple of several stages")
    if plan.zero_bubble and (not problem.zero_bubble or plan.virtual > 1 or p == 1):
        words.append("backward passes are cut in two: the problem forbids it, or stages are one or interleaved")
    if isinstance(problem.model, Transformer):
        return words + _undivided(problem, problem.model, plan)
    if plan.virtual * plan.context * plan.expert > 1 or plan.selective.any():
        words.append("layers with measured seconds have neither chunks nor experts nor parts of a sequence")
    return words


def _undivided(problem: LayoutProblem, model: Transformer, plan: LayoutPlan) -> list[str]:
    """Return what degrees do not divide, in words."""
    words, e, c = [], plan.expert, plan.context
    for t in sorted({*plan.tensor.tolist()}):
        words += [f"tensor parallelism of {t}: {why}" for why in undivided(model, t)]
        if e > 1 and (not model.experts or model.experts % e or (t * c * plan.data) % e):
            words.append(f"expert parallelism of {e}: {model.experts} experts, {t * c * plan.data} GPUs a stage")
    if c > 1 and problem.sequence % (2 * c):
        words.append(f"context parallelism of {c}: a sequence of {problem.sequence} has no {2 * c} equal parts")
    return words


def undivided(model: Transformer, tensor: int) -> list[str]:
    """Return what of a model a degree of tensor parallelism does not divide, in words."""
    sizes = {"heads": model.heads, "feedforward": model.feedforward, "shared_feedforward": model.shared_feedforward}
    words = [f"it does not divide {name}, {size}" for name, size in sizes.items() if size % tensor]
    if model.kv_heads % tensor and tensor % model.kv_heads:
        words.append(f"kv_heads, {model.kv_heads}, and it do not divide one another")
    return words
