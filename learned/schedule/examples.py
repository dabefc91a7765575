"""What the policy learns from: states of instances, and what every candidate of each is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers import Run
from gangplan.solvers.method import suite_of
from gangplan.solvers.schedule.decode import list_of
from gangplan.solvers.schedule.prepare import Ints, Prepared, prepare

from ..gnn import collate
from ..gnn.encoding import Encoding
from ..training.ragged import expected_regret, soft_cross_entropy
from .build import Net
from .builder import Builder, Steps, gumbel, plans
from .policy import SAMPLES, Network, compiled

_CAP = 4.0
"""Regrets beyond this, in units, are as bad."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """Some states of one instance with what their candidates are worth; a candidates in all.

    Attributes:
        graph: of the instance.
        x: features, float32 (a, f).
        job, option: of each candidate, int64 (a,).
        state: of each candidate, int64 (a,).
        regret: in units, see `Builder`, float64 (a,).
        states: how many.
    """

    graph: Encoding
    x: FloatArray
    job: FloatArray
    option: FloatArray
    state: FloatArray
    regret: FloatArray
    states: int


def example_of(graph: Encoding, steps: Steps, which: Sequence[int], regrets: Sequence[FloatArray]) -> Example:
    """Return the example of the states `which` of `steps`, given the regrets of their candidates."""
    jobs, parts = steps.jobs(), [slice(int(steps.count[t])) for t in which]
    return Example(
        graph,
        np.concatenate([steps.x[t, s] for t, s in zip(which, parts, strict=True)]),
        np.concatenate([jobs[t, s] for t, s in zip(which, parts, strict=True)]),
        np.concatenate([steps.cands[t, s, 1] for t, s in zip(which, parts, strict=True)]),
        np.repeat(np.arange(len(which)), steps.count[np.asarray(which)]),
        np.concatenate(regrets),
        len(which),
    )


def joined(examples: Sequence[Example]) -> Example:
    """Return the states of several examples of one instance as one."""
    first = np.concatenate([[0], np.cumsum([e.states for e in examples])])
    x, job, option, regret = (
        np.concatenate([getattr(e, name) for e in examples]) for name in ("x", "job", "option", "regret")
    )
    state = np.concatenate([e.state + first[i] for i, e in enumerate(examples)])
    return Example(examples[0].graph, x, job, option, state, regret, int(first[-1]))


def rated(network: Network, examples: Sequence[Example]) -> tuple[Tensor, Tensor, int]:
    """Return the scores of all candidates of some examples, the state of each, and how many states there are."""
    batch = collate([e.graph for e in examples])
    jobs, options = batch.first["jobs"].tolist(), batch.first["options"].tolist()
    first = np.concatenate([[0], np.cumsum([e.states for e in examples])])
    job = np.concatenate([e.job + jobs[i] for i, e in enumerate(examples)])
    option = np.concatenate([np.where(e.option < 0, -1, e.option + options[i]) for i, e in enumerate(examples)])
    state = np.concatenate([e.state + first[i] for i, e in enumerate(examples)])
    x = np.concatenate([e.x for e in examples])
    scores = network(batch, torch.from_numpy(x), torch.from_numpy(job), torch.from_numpy(option))
    return scores, torch.from_numpy(state), int(first[-1])


def loss_of(network: Network, examples: Sequence[Example], *, one_label: bool = False) -> Tensor:
    """Return what a choice drawn from the network costs on average: the gradient is that of the policy's value.

    With `one_label`, the cross-entropy to the best candidates alone, as if nothing were known of the others.
    """
    scores, state, n = rated(network, examples)
    regret = torch.from_numpy(np.concatenate([e.regret for e in examples])).float()
    if one_label:
        return soft_cross_entropy(scores, state, regret, n, temperature=1e-4)
    return expected_regret(scores, state, regret, n, cap=_CAP)


def solve(problem: Any, seconds: float, methods: tuple[str, ...] = ("starts", "cpsat"), seed: int = 0) -> Run:
    """Run some methods of the suite one after the other, each for at most 60% of the time left but the last."""
    run = Run(problem, time_limit=seconds, seed=seed)
    suite = suite_of(problem)
    prepared = suite.prepare(run)
    for i, name in enumerate(methods):
        if not run.stopped and suite.methods[name].suits(prepared):
            with run.share(1.0 if i == len(methods) - 1 else 0.6):
                suite.methods[name].run(run, prepared)
    return run


def best_list(p: Prepared, seconds: float) -> tuple[Ints, float] | None:
    """Return (job, option or -1) in the order of starts, int64 (n, 2), and the goal; None if there is no such list."""
    run = solve(p.problem, seconds)
    if run.plan is None or run.objective is None:
        return None
    order, wish = list_of(p, run.plan.degree, run.plan.start)
    if (wish < -1).any():
        return None  # at a degree that is no faster than a smaller one
    return np.stack([order, wish[order]], axis=1).astype(np.int64), float(run.objective)


_MOST = 50.0
"""Regrets are cut off here, in units."""


def builder_of(split: str, index: int, jobs: int) -> Builder:
    """Return an instance of the family moldable of up to so many jobs."""
    return Builder(prepare(make("schedule", "moldable", seed_of(split, index), jobs)))


def by_rollouts(
    builder: Builder,
    graph: Encoding,
    walk: Net,
    rollout: Net,
    rng: np.random.Generator,
    *,
    states: int,
    noise: float = 0.0,
) -> Example | None:
    """Walk by one policy and label some states of the way by rollouts of another; None if none has a choice.

    Args:
        builder: the instance.
        graph: of it.
        walk: chooses, with noise on its scores.
        rollout: goes on from each candidate.
        rng: draws states and noise.
        states: to label at most.
        noise: scale of the noise.
    """
    added = gumbel(builder.p.n, builder.most, noise, rng) if noise else np.empty((0, 1))
    _, steps = builder.record(walk, added)
    open_steps = np.flatnonzero(steps.count > 1)
    if not len(open_steps):
        return None
    which = np.sort(rng.choice(open_steps, min(states, len(open_steps)), replace=False)).tolist()
    return example_of(graph, steps, which, [_regret(builder, builder.values(rollout, steps, t)) for t in which])


def by_solver(
    builder: Builder, graph: Encoding, rollout: Net, rng: np.random.Generator, *, states: int, seconds: float
) -> Example | None:
    """Solve an instance, and label states on the way to its best schedule: the next step on it is worth the optimum.

    All others are worth what a rollout after them comes to.
    """
    found = best_list(builder.p, seconds)
    if found is None:
        return None
    taken, cost = found
    made = []
    for t in np.sort(rng.choice(len(taken), min(states, len(taken)), replace=False)).tolist():
        _, steps = builder.record(rollout, follow=taken[:t])
        if len(steps.count) <= t or steps.count[t] < 2:
            continue
        worth = builder.values(rollout, steps, t)
        jobs, options = steps.jobs()[t, : len(worth)], steps.cands[t, : len(worth), 1]
        worth = np.where((jobs == taken[t, 0]) & (options == taken[t, 1]), np.minimum(worth, cost), worth)
        made.append(example_of(graph, steps, [t], [_regret(builder, worth)]))
    return joined(made) if made else None


def _regret(builder: Builder, worth: FloatArray) -> FloatArray:
    least = worth.min()
    if not np.isfinite(least):
        return np.zeros(len(worth))
    return np.asarray(np.minimum((worth - least) / builder.unit, _MOST))


class Validation:
    """Mean costs on validation instances, as shares of the base's: greedy and of 16 schedules.

    Args:
        builders: the instances.
    """

    def __init__(self, builders: Sequence[Builder]) -> None:
        self.builders = builders
        self.graphs = [x.graph() for x in builders]

    def __call__(self, network: Any) -> dict[str, float]:
        """Return ``greedy`` and ``sampled``, and ``score``, which is half of each."""
        greedy, sampled = [], []
        for builder, net in zip(self.builders, compiled(network, self.graphs), strict=True):
            costs = [cost for _, cost in zip(range(SAMPLES), plans(builder, net), strict=False)]
            greedy.append(costs[0] / builder.base.cost)
            sampled.append(min(costs) / builder.base.cost)
        a, b = float(np.mean(greedy)), float(np.mean(sampled))
        return {"score": (a + b) / 2, "greedy": a, "sampled": b}
