"""Say why a layout loses against another or does not fit, and find the best of those with a given degree."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.instances.errors import InstanceError
from gangplan.instances.layout.flags import READ_BY, Flags, flags
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import Memory
from gangplan.instances.quantities import quantity
from gangplan.instances.verify import verify
from gangplan.instances.verify.layout import SECONDS, LayoutVerdict

from ..run import OPTIMAL_GAP, Run, in_time
from .nearest import nearest, remedies
from .search import branch, dive
from .space import Space
from .wish import ANY, Wish, contradiction, wish

_WEIGHS = 0.1
"""Share of a difference from which on a part of it is told."""
_MOST = 3
"""Parts that are told."""


class Best(NamedTuple):
    """The fastest layout found within some limits.

    Attributes:
        plan: `None` if none was found.
        objective: its seconds a step.
        bound: no layout within the limits takes less.
        proved: whether it is the fastest, or that none fits.
    """

    plan: LayoutPlan | None
    objective: float | None
    bound: float | None
    proved: bool


class Rival(NamedTuple):
    """The best layout with some degrees, beside the best of all.

    Attributes:
        wish: the degrees.
        plan: `None` if none fits.
        proved: whether none with these degrees is faster, or fits.
        objective: its seconds a step.
        why: what it loses by, or what does not fit, in words.
        nearest: where none fits, the layout that needs least memory.
    """

    wish: Wish
    plan: LayoutPlan | None
    proved: bool
    objective: float | None
    why: tuple[str, ...]
    nearest: LayoutPlan | None = None


def explain(problem: LayoutProblem, plan: LayoutPlan, time_limit: float = 10.0, **degrees: int) -> list[Rival]:
    """Return the best layouts with given degrees, or with each degree of a plan changed, and what they lose by.

    They lose against the best of all that is known, which may be one of them.

    Args:
        problem: what is split.
        plan: a good layout of it.
        time_limit: seconds.
        degrees: of TP, PP, CP, EP, VP, DP, MB and ZERO.

    Raises:
        InstanceError: naming the degree that is unknown, or its value.
    """
    space, wanted = Space(problem), [wish(degrees)] if degrees else []
    wishes = wanted or _beside(space, plan)
    every = [fastest(space, x, time_limit / len(wishes), plan) for x in wishes]
    plans = [plan, *(x.plan for x in every if x.plan is not None)]
    best, found = min(plans, key=lambda x: verify(problem, x).objective or inf), []
    for rival, (other, objective, _, proved) in zip(wishes, every, strict=True):
        words, near = ["nothing was found in time"], None
        if other is not None:
            words = ["nothing: it is the fastest known"] if other is best else differences(problem, other, best)
        elif proved:
            near = nearest(problem, wish=rival)
            near = None if near is None or near.fits else near
            words = differences(problem, near.plan, best) if near else [refusal(problem, rival).problem]
        if words or wanted:
            found.append(Rival(rival, other, proved, objective, tuple(words), near and near.plan))
    return found


def best_flags(problem: LayoutProblem, framework: str, time_limit: float = 10.0, **degrees: int) -> tuple[Flags, Best]:
    """Return flags of the fastest layout that a framework runs, and that layout with its bound; see `explain`.

    Raises:
        InstanceError: if it runs none that fits, or none was found in time.
    """
    require_choice(framework, "flags", READ_BY)
    wanted = wish(degrees)
    found = fastest(Space(problem), wanted, time_limit, framework=framework)
    if found.plan is None:
        words = (
            f"runs no layout that fits: {refusal(problem, wanted).problem}" if found.proved else "found none in time"
        )
        raise InstanceError("flags", f"{framework} {words}")
    return flags(problem, found.plan, framework), found


def fastest(space: Space, wish: Wish, seconds: float, near: LayoutPlan | None = None, framework: str = "") -> Best:
    """Return the fastest layout with such degrees that a framework runs, or the fastest found.

    Args:
        space: of the problem.
        wish: the degrees.
        seconds: to look for it.
        near: a good layout without these degrees: what is like it is looked at first.
        framework: that has to run the layout, any or none if it is empty.
    """
    run = Run(space.problem, time_limit=seconds)
    with in_time(run):
        likely = [(near.micro_batch, near.zero)] if near else [(size, 1) for size in (1, 2) if framework]
        for size, zero in likely:
            like = wish._replace(MB=wish.MB or size, ZERO=zero if wish.ZERO is None else wish.ZERO)
            dive(run, space.within(like, framework))
        branch(run, space.within(wish, framework))
    proved = run.infeasible or (run.gap is not None and run.gap <= OPTIMAL_GAP)
    return Best(run.plan, run.objective, None if run.infeasible else run.bound, proved)


def refusal(problem: LayoutProblem, wish: Wish = ANY) -> InstanceError:
    """Return why no layout with such degrees fits: what the nearest needs and what helps, or what contradicts what."""
    near = nearest(problem, wish=wish)
    if near is None or near.fits:
        return contradiction(problem, wish)
    words = f"{wish}: {near.words()}".replace(": memory: ", ": ").removeprefix(": ")
    return InstanceError("memory", f"{words}; what helps: {', or '.join(remedies(problem, wish))}")


def _beside(space: Space, plan: LayoutPlan) -> list[Wish]:
    """Return the degrees beside which a layout has to stand: each of its own changed to others near it."""
    nodes = max(pool.levels[0].span for pool in space.problem.pools)
    known = {"TP": {t for degrees in space.tensors for t in degrees if t <= 2 * nodes}}
    known |= {"PP": set(range(1, space.count)), "CP": {*space.contexts}, "EP": {*space.experts}}
    own = {"TP": set(plan.tensor.tolist()), "PP": {len(plan.pool)}, "CP": {plan.context}, "EP": {plan.expert}}
    found = []
    for name, values in known.items():
        at = max(own[name])
        near = {1, at // 4, at // 2, 2 * at, 4 * at} if name != "TP" else {2**k for k in range(6)}
        found += [Wish(**{name: x}) for x in sorted(values & near - own[name])]
    return found


def differences(problem: LayoutProblem, plan: LayoutPlan, best: LayoutPlan) -> list[str]:
    """Return why a layout does not fit, or what it takes longer with than another, in words, most first."""
    verdict = verify(problem, plan)
    if not verdict.ok:
        return _shortage(problem, plan, verdict)
    lost = _parts(plan, verdict) - _parts(best, verify(problem, best))
    if lost.sum() <= 0:
        return []
    most = [part for part in np.argsort(-lost)[:_MOST].tolist() if lost[part] > _WEIGHS * lost.sum()]
    return [f"{_told(problem, plan, verdict, part)} (+{quantity(float(lost[part]), 's', 2)})" for part in most]


def _shortage(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> list[str]:
    """Return what is short on the fullest stage and what takes most of it, or what else is wrong."""
    if others := [x for x in verdict.violations if not x.startswith("memory")]:
        return others
    total, limit = verdict.memory.sum(axis=0), np.array([problem.pools[k].memory for k in plan.pool.tolist()])
    stage = int((total - limit).argmax())
    part = int(verdict.memory[:, stage].argmax())
    need, most, of = (quantity(float(x[stage]), "B", 3) for x in (total, limit, verdict.memory[part]))
    return [f"needs {need} of {most} on stage {stage}, {of} of it {Memory._fields[part]}"]


def _parts(plan: LayoutPlan, verdict: LayoutVerdict) -> FloatArray:
    """Return the seconds of a step by parts in the mean of all GPUs; forward passes count as computing."""
    found = verdict.seconds @ (plan.tensor / plan.tensor.sum())
    found[SECONDS.index("backward")] += found[0]
    found[0] = 0.0
    return np.asarray(found)


def _told(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict, part: int) -> str:
    """Return a part of a step in words."""
    name, tensor = SECONDS[part], int(plan.tensor.max())
    micro_batches = problem.batch // (plan.data * plan.micro_batch)
    layers = plan.blocks.reshape(plan.virtual, -1).sum(axis=0)
    each = quantity(float((verdict.seconds[part] / layers).max()) / micro_batches, "s", 2)
    near = min(problem.pools[k].levels[0].span for k in plan.pool.tolist())
    reach = {"tensor": tensor, "context": tensor * plan.context, "expert": plan.expert}
    cost = f"{' across nodes' if reach.get(name, 0) > near else ''} costs {each} a layer"
    words = {
        "backward": f"computes longer, in pieces of TP {tensor}, CP {plan.context}, micro-batch {plan.micro_batch}",
        "recomputation": "computes more again to fit",
        "tensor": f"TP {tensor}{cost}",
        "context": f"CP {plan.context}{cost}",
        "expert": f"EP {plan.expert}{cost}",
        "sharding": f"ZeRO {plan.zero} gathers and scatters {each} a layer",
        "point-to-point": f"{len(layers)} stages send on {plan.virtual} times",
        "bubble": f"{len(layers)} stages wait, with {micro_batches} micro-batches",
        "reduction": f"gradients are reduced over {plan.data * plan.context} GPUs",
        "update": "the optimizer has more to do",
    }
    return words[name]
