"""Short annealing after the decoder: never worse, feasible, the same for a seed, and nothing on small graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.policy.weights import find
from gangplan.learned.throughput import refine
from gangplan.learned.throughput.decode import Draft, decoder
from gangplan.learned.throughput.policy import ThroughputPolicy
from gangplan.learned.throughput.refine import refined
from gangplan.solvers.method import suite


def _draft(made: Any, seed: int = 0) -> Draft | None:
    return None if made is None else made.sample(np.random.default_rng(seed).standard_normal((2, made.q.n_groups)))


def test_small_graphs_are_left_alone() -> None:
    """Up to 100 ops the draft itself comes back, beyond that a better one."""
    for size, small in ((100, True), (300, False)):
        problem: Any = make("throughput", "layered", seed_of("validation", 804), size)
        made = decoder(problem)
        draft = _draft(made)
        assert made is not None and draft is not None
        assert (problem.graph.n_ops <= refine.SMALL) == small
        found = refined(made, draft)
        assert (found is draft) if small else (found.load < draft.load)


@pytest.mark.parametrize("family", ["layered", "fork_join", "series_parallel", "pipeline"])
def test_never_worse_feasible_and_the_same_for_a_seed(family: str) -> None:
    """On larger graphs of each family the verifier finds the load that is said, no greater than the draft's."""
    problem: Any = make("throughput", family, seed_of("validation", 803), 300)
    made = decoder(problem)
    draft = _draft(made)
    assert made is not None and draft is not None
    before = [(t, groups.copy()) for t, groups in draft.stages]
    found, again = refined(made, draft), refined(made, draft)
    verdict = verify(problem, made.plan(found))
    assert verdict.ok and verdict.objective == pytest.approx(found.load, rel=1e-9)
    assert found.load <= draft.load and found.load == again.load
    assert (made.plan(found).device == made.plan(again).device).all()
    assert all(t == s and (a == b).all() for (t, a), (s, b) in zip(before, draft.stages, strict=True))


def test_types_memory_and_hosts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """On tiny problems of all variants, with what makes plans infeasible, plans fit, and some are better."""
    monkeypatch.setattr(refine, "SMALL", 0)
    tools, better, seen = suite("throughput"), 0, 0
    for seed in range(60):
        problem: Any = tools.random_problem(seed, tools.variants[seed % 3])
        made = decoder(problem)
        draft = _draft(made, seed)
        if made is None or draft is None:
            continue
        found = refined(made, draft)
        verdict = verify(problem, made.plan(found))
        assert verdict.ok and verdict.objective == pytest.approx(found.load, rel=1e-9)
        assert found.load <= draft.load
        better, seen = better + (found.load < draft.load), seen + 1
    assert seen > 20 and better


def test_memory_that_just_holds_the_draft_holds_what_comes_back() -> None:
    """With devices of no more bytes than the fullest stage has, the plan still fits."""
    problem: Any = make("throughput", "layered", seed_of("validation", 804), 200)
    made = decoder(problem)
    draft = _draft(made)
    assert made is not None and draft is not None
    most = max(made.q.memory[groups].sum() for _, groups in draft.stages)
    kinds = tuple(replace(x, memory=float(most)) for x in problem.cluster.device_types)
    tight: Any = replace(problem, cluster=replace(problem.cluster, device_types=kinds))
    made = decoder(tight)
    draft = _draft(made)
    assert made is not None and draft is not None
    found = refined(made, draft)
    assert verify(tight, made.plan(found)).ok and found.load <= draft.load


def test_the_policy_offers_the_better_plan() -> None:
    """On a graph of 300 ops the policy's plan is better than what its scores are decoded to."""
    from gangplan.learned.throughput.drafts import greedy

    policy = ThroughputPolicy.load(find("throughput"))
    made = decoder(make("throughput", "layered", seed_of("validation", 804), 300))  # type: ignore[arg-type]
    assert made is not None
    own, found = greedy(made, policy.scores(made)), policy.draft(made)
    sampled = policy.draft(made, 16)
    assert own is not None and found is not None and sampled is not None
    assert found.load < own.load * (1 - 1e-3) and sampled.load < own.load
