"""Say why a layout loses against another or does not fit, and find the best of those with a given degree."""

from __future__ import annotations

from collections.abc import Sequence
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
from .wish import Wish, contradiction, wish

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

    Args:
        problem: what is split.
        plan: a good layout of it.
        time_limit: seconds.
        degrees: of TP, PP, CP, EP, VP, DP, MB and ZERO.

    Raises:
        InstanceError: naming the degree that is unknown, or its value.
    """
    return Explainer(problem).compare(plan, [wish(degrees)] if degrees else [], time_limit)[1]


def best_flags(problem: LayoutProblem, framework: str, time_limit: float = 10.0, **degrees: int) -> tuple[Flags, Best]:
    """Return flags of the fastest layout that a framework runs, and that layout with its bound; see `explain`.

    Raises:
        InstanceError: if it runs none that fits, or none was found in time.
    """
    return Explainer(problem).flags(framework, wish(degrees), time_limit)


class Explainer:
    """Find the best layouts with given degrees.

    Args:
        problem: what is split.
    """

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem, self.space = problem, Space(problem)

    def compare(self, best: LayoutPlan, wanted: Sequence[Wish], seconds: float) -> tuple[LayoutPlan, list[Rival]]:
        """Return the best layouts with wanted degrees, or by default with each degree of the best changed.

        Before them comes the best of all, which is one of them if that was not proved.
        """
        rivals = wanted or self.rivals(best)
        every = [self.best(rival, seconds / len(rivals), best) for rival in rivals]
        best = min([best, *(x.plan for x in every if x.plan is not None)], key=self._seconds)
        found = []
        for rival, (plan, objective, _, proved) in zip(rivals, every, strict=True):
            if plan is not None:
                words = differences(self.problem, plan, best)
                if words or wanted:
                    found.append(Rival(rival, plan, proved, objective, tuple(words)))
            elif proved:
                near = nearest(self.problem, wish=rival)
                short = near and not near.fits and differences(self.problem, near.plan, best)
                why = tuple(short or [self.refusal(rival).problem])
                found.append(Rival(rival, None, proved, None, why, near.plan if short and near else None))
            else:
                found.append(Rival(rival, None, proved, None, ("nothing was found in time",)))
        return best, found

    def _seconds(self, plan: LayoutPlan) -> float:
        """Return the seconds of a step, infinite of a layout that does not fit."""
        return verify(self.problem, plan).objective or inf

    def best(self, wish: Wish, seconds: float, near: LayoutPlan | None = None, framework: str = "") -> Best:
        """Return the fastest layout with such degrees that a framework runs, or the fastest found.

        Args:
            wish: the degrees.
            seconds: to look for it.
            near: a good layout without these degrees: what is like it is looked at first.
            framework: nothing of it matters if it is empty.
        """
        run = Run(self.problem, time_limit=seconds)
        with in_time(run):
            if near is not None or framework:
                size, zero = (near.micro_batch, near.zero) if near else (1, 1)
                like = wish._replace(MB=wish.MB or size, ZERO=zero if wish.ZERO is None else wish.ZERO)
                dive(run, self.space.within(like, framework))
            branch(run, self.space.within(wish, framework))
        proved = run.infeasible or (run.gap is not None and run.gap <= OPTIMAL_GAP)
        return Best(run.plan, run.objective, None if run.infeasible else run.bound, proved)

    def flags(self, framework: str, wish: Wish, seconds: float) -> tuple[Flags, Best]:
        """Return flags of the fastest layout that a framework runs, see `best_flags`."""
        require_choice(framework, "flags", READ_BY)
        found = self.best(wish, seconds, framework=framework)
        if found.plan is None:
            words = (
                f"runs no layout that fits: {self.refusal(wish).problem}" if found.proved else "nothing found in time"
            )
            raise InstanceError("flags", f"{framework}: {words}")
        return flags(self.problem, found.plan, framework), found

    def refusal(self, wish: Wish) -> InstanceError:
        """Return why no layout with such degrees fits: what the nearest needs and what helps, or what contradicts."""
        near = nearest(self.problem, wish=wish)
        if near is None or near.fits:
            return contradiction(self.problem, wish)
        words = f"{wish}: {near.words()}".replace(": memory: ", ": ").removeprefix(": ")
        return InstanceError("memory", f"{words}; what helps: {', or '.join(remedies(self.problem, wish))}")

    def rivals(self, plan: LayoutPlan) -> list[Wish]:
        """Return the degrees beside which a layout has to stand: each of its own changed to others near it."""
        nodes = max(pool.levels[0].span for pool in self.problem.pools)
        known = {"TP": {t for degrees in self.space.tensors for t in degrees if t <= 2 * nodes}}
        known |= {"PP": set(range(1, self.space.count)), "CP": {*self.space.contexts}, "EP": {*self.space.experts}}
        own = {"TP": set(plan.tensor.tolist()), "PP": {len(plan.pool)}, "CP": {plan.context}, "EP": {plan.expert}}
        found = []
        for name, values in known.items():
            at = max(own[name])
            near = {1, at // 4, at // 2, 2 * at, 4 * at} if name != "TP" else {2**k for k in range(6)}
            found += [Wish(**{name: x}) for x in sorted(values & near - own[name])]
        return found


def differences(problem: LayoutProblem, plan: LayoutPlan, best: LayoutPlan) -> list[str]:
    """Return why a layout does not fit, or what it takes longer with than another, in words, most first."""
    verdict, other = verify(problem, plan), verify(problem, best)
    if not verdict.ok:
        return _shortage(problem, plan, verdict)
    lost = _parts(plan, verdict) - _parts(best, other)
    if lost.sum() <= 0:
        return []
    order = np.argsort(-lost)[:_MOST].tolist()
    return [
        _told(problem, plan, verdict, part, float(lost[part])) for part in order if lost[part] > _WEIGHS * lost.sum()
    ]


def _shortage(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> list[str]:
    """Return what is short on the fullest stage and what takes most of it, or what else is wrong."""
    total = verdict.memory.sum(axis=0)
    limit = np.array([problem.pools[k].memory for k in plan.pool.tolist() if k < len(problem.pools)])
    others = [x for x in verdict.violations if not x.startswith("memory")]
    if others or len(limit) < len(total):
        return others
    stage = int((total - limit).argmax())
    part = int(verdict.memory[:, stage].argmax())
    need, most = quantity(float(total[stage]), "B", 3), quantity(float(limit[stage]), "B", 3)
    of = quantity(float(verdict.memory[part, stage]), "B", 3)
    return [f"needs {need} of {most} on stage {stage}, {of} of it {Memory._fields[part]}"]


_COMPUTING, _BUBBLE = SECONDS.index("backward"), SECONDS.index("bubble")


def _parts(plan: LayoutPlan, verdict: LayoutVerdict) -> FloatArray:
    """Return the seconds of a step by parts in the mean of all GPUs; forward passes count as computing."""
    found = verdict.seconds @ (plan.tensor / plan.tensor.sum())
    found[_COMPUTING] += found[0]
    found[0] = 0.0
    return np.asarray(found)


def _told(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict, part: int, lost: float) -> str:
    """Return a part of a step in words, with the seconds that it takes more than elsewhere."""
    name, more = SECONDS[part], f"(+{quantity(lost, 's', 2)})"
    micro_batches = problem.batch // (plan.data * plan.micro_batch)
    layers = plan.blocks.reshape(plan.virtual, -1).sum(axis=0)
    each = quantity(float((verdict.seconds[part] / layers).max()) / micro_batches, "s", 2)
    near, tensor = min(problem.pools[k].levels[0].span for k in plan.pool.tolist()), int(plan.tensor.max())
    reach = {"tensor": tensor, "context": tensor * plan.context, "expert": plan.expert}
    across = " across nodes" if reach.get(name, 0) > near else ""
    words = {
        "backward": f"computes longer, in pieces of TP {tensor}, CP {plan.context}, micro-batch {plan.micro_batch}",
        "recomputation": "computes more again to fit",
        "tensor": f"TP {tensor}{across} costs {each} a layer",
        "context": f"CP {plan.context}{across} costs {each} a layer",
        "expert": f"EP {plan.expert}{across} costs {each} a layer",
        "sharding": f"ZeRO {plan.zero} gathers and scatters {each} a layer",
        "point-to-point": f"{len(layers)} stages send on {plan.virtual} times",
        "bubble": f"{len(layers)} stages wait, with {micro_batches} micro-batches",
        "reduction": f"gradients are reduced over {plan.data * plan.context} GPUs",
        "update": "the optimizer has more to do",
    }
    return f"{words[name]} {more}"
