"""Why a layout loses is what the verifier says of two; the best with given degrees is that of all that have them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import gangplan
from gangplan.instances import InstanceError, verify
from gangplan.instances.layout import LayoutProblem, Transformer, gpu_pool
from gangplan.instances.layout.flags import flags, recomputed
from gangplan.solvers.layout.explain import best_flags, differences, explain, fastest, refusal
from gangplan.solvers.layout.nearest import nearest
from gangplan.solvers.layout.space import Space
from gangplan.solvers.layout.split import split
from gangplan.solvers.layout.wish import Wish, wish

MODEL = Transformer("small", 6, 2048, 16, 8, 128, 32000, 8192)
MIXTURE = Transformer("mixture", 6, 1024, 16, 8, 64, 32000, experts=8, active=2, expert_feedforward=1024)
PROBLEM = LayoutProblem(MODEL, (gpu_pool("H100", 4, 2),), 8, 2048)
SPACE = Space(PROBLEM)


def optimum(problem: LayoutProblem, wanted: Wish) -> float:
    """Return the least seconds of all families with wanted degrees, each split without any bound."""
    space = Space(problem)
    found = [np.inf]
    for x in space.combinations():
        for _, family in space.families(x, np.inf) if wanted.allows(x) else ():
            if wanted.is_met(family) and (plan := split(space, family)[0]) is not None:
                found.append(verify(problem, plan).objective or np.inf)
    return min(found)


@pytest.mark.parametrize("wanted", [Wish(), Wish(PP=2, VP=2), Wish(TP=1, CP=2, MB=2), Wish(DP=1, ZERO=1)])
def test_best_with_degrees(wanted: Wish) -> None:
    """It is as fast as the best of all families that have the degrees, from a layout near it or not."""
    least, near = optimum(PROBLEM, wanted), fastest(SPACE, Wish(), 60).plan
    for start in (None, near):
        plan, objective, bound, proved = fastest(SPACE, wanted, 60, start)
        assert plan is not None and objective is not None and proved and bound == pytest.approx(objective)
        assert verify(PROBLEM, plan).objective == pytest.approx(least)
        assert wanted.TP in (None, int(plan.tensor[0])) and wanted.PP in (None, len(plan.pool))


def test_rivals() -> None:
    """Each degree of the best is changed, no rival is faster, and each says what it loses by."""
    problem = replace(PROBLEM, model=MIXTURE)
    result = gangplan.solve(problem, 30)
    step, rivals = result.objective, explain(problem, result.plan, 60)  # type: ignore[arg-type]
    assert step is not None and len(rivals) > 5
    for rival in rivals:
        assert rival.why and (rival.objective is None or rival.objective >= step * (1 - 1e-9)), rival
    assert {f"{x.wish}".split()[0] for x in rivals} == {"TP", "PP", "CP", "EP"}


def test_a_rival_may_be_better() -> None:
    """A plan that is not the best is not held to be, once one with another degree is found."""
    slow = fastest(SPACE, Wish(TP=8), 60).plan
    assert slow is not None
    rivals = explain(PROBLEM, slow, 60)
    best = min(x.objective for x in rivals if x.objective is not None)
    assert best < (verify(PROBLEM, slow).objective or 0)
    (first,) = [x for x in rivals if x.objective == best]
    assert first.why == ("nothing: it is the fastest known",)
    assert all(x.why != first.why for x in rivals if x is not first)


def test_differences() -> None:
    """What is said of a layout are its own parts that take longer; of one that does not fit, what it needs."""
    best, wide = (fastest(SPACE, x, 60).plan for x in (Wish(), Wish(TP=8)))
    assert best is not None and wide is not None
    words = differences(PROBLEM, wide, best)
    assert any(x.startswith("TP 8 across nodes costs ") and " a layer (+" in x for x in words)
    assert differences(PROBLEM, best, best) == []
    tight = replace(PROBLEM, pools=(replace(PROBLEM.pools[0], memory=4e9),))
    (short,) = differences(tight, best, best)
    assert short.startswith("needs ") and "of 4 GB on stage 0" in short
    short = "; ".join(differences(PROBLEM, replace(best, data=3), best))
    assert "do not divide a batch of 8" in short


@pytest.mark.parametrize(
    ("wanted", "field", "words"),
    [
        (Wish(DP=3), "explain", "3 replicas of micro-batches of 1 do not divide a batch of 8"),
        (Wish(TP=3), "explain", "tensor parallelism of 3: it does not divide heads, 16"),
        (Wish(PP=40), "explain", "the model has 8 blocks"),
        (Wish(EP=2), "explain", "expert parallelism of 2: 0 experts"),
        (Wish(TP=8, DP=2), "explain", "take 16 GPUs, there are 8"),
        (Wish(PP=3, VP=2), "explain", "interleaving needs a multiple of several stages"),
    ],
)
def test_no_layout_has_these_degrees(wanted: Wish, field: str, words: str) -> None:
    """Degrees that contradict the problem are told with what contradicts them."""
    assert fastest(SPACE, wanted, 60) == (None, None, None, True)
    error = refusal(PROBLEM, wanted)
    assert error.field == field and words in error.problem and f"{wanted}" in error.problem


def test_nothing_fits() -> None:
    """Of a model that fits nowhere it is told what the nearest layout needs; with degrees that are asked for, its."""
    tight = replace(PROBLEM, pools=(replace(PROBLEM.pools[0], memory=3.5e9),))
    for wanted in (Wish(), Wish(TP=2)):
        assert fastest(Space(tight), wanted, 60) == (None, None, None, True)
        error = refusal(tight, wanted)
        assert error.field == "memory" and "comes nearest and needs" in error.problem and "3.5 GB" in error.problem
    assert refusal(tight, Wish(TP=2)).problem.startswith("TP 2: TP 2, ")


def test_explain() -> None:
    """From Python, degrees are named as in the shell; where none fits, the nearest layout comes with what it needs."""
    best = fastest(SPACE, Wish(), 60).plan
    assert best is not None
    (wide,) = explain(PROBLEM, best, 60, TP=8, pp=1)
    assert wide.plan is not None and wide.objective == pytest.approx(optimum(PROBLEM, Wish(TP=8, PP=1)))
    tight = replace(PROBLEM, pools=(replace(PROBLEM.pools[0], memory=3.55e9),))
    (none,) = explain(tight, best, 60, TP=2, PP=1, CP=1)
    assert none.plan is None and none.nearest is not None and "needs" in none.why[0]
    with pytest.raises(InstanceError, match="'TQ' is not one of TP, PP"):
        explain(PROBLEM, best, 60, TQ=2)


def test_what_helps() -> None:
    """What would make a model fit does: degrees, optimizer, so many GPUs and no fewer, or so much memory."""
    tight = replace(PROBLEM, pools=(replace(PROBLEM.pools[0], memory=4.1e9),))
    words = refusal(tight).problem.partition("; what helps: ")[2]
    assert words == "optimizer adam_16, or optimizer sgd, or 2 times as many GPUs, or GPUs of 4.226 GB"
    for change in ({"optimizer": "sgd"}, {"pools": (gpu_pool("H100", 8, 2, memory=4.1e9),)}):
        assert gangplan.solve(replace(tight, **change), 30).plan is not None
    large = replace(tight, pools=(replace(PROBLEM.pools[0], memory=4.226e9),))
    assert gangplan.solve(large, 30).plan is not None and nearest(large).fits
    words = refusal(large, Wish(TP=2, CP=1)).problem
    assert "what helps: other degrees (TP 8, DP 1, micro-batch 1, ZeRO 1), or " in words


@pytest.mark.parametrize("framework", ["megatron", "torchtitan"])
def test_best_that_a_framework_runs(framework: str) -> None:
    """Flags are of the fastest of all layouts that a framework runs: enumerated where stages compute again."""
    model = replace(MODEL, heads=1, kv_heads=1, head=2048)
    problem = LayoutProblem(model, (gpu_pool("H100", 1, 3, memory=8e9),), 8, 8191, optimizer="sgd")
    (text, _), found = best_flags(problem, framework, 60)
    assert found.plan is not None and found.proved and flags(problem, found.plan, framework).text == text
    space, least = Space(problem).within(framework=framework), np.inf
    for _, family in (pair for x in space.combinations() for pair in space.families(x, np.inf)):
        for cuts in combinations(range(1, 8), family.stages - 1) if family.virtual == 1 else ():
            blocks = np.diff([0, *cuts, 8])
            layers = blocks - np.bincount([0, family.stages - 1], minlength=family.stages)
            for number in range(7):
                plan = family.plan(blocks, 0 * blocks, recomputed(framework, layers[:, None], number))
                seconds = verify(problem, plan).objective or np.inf
                with suppress(InstanceError):
                    least = min(least, seconds) if seconds < least and flags(problem, plan, framework) else least
    assert found.plan.full.any() and found.objective == pytest.approx(least)


def test_wish() -> None:
    """Degrees are named in capitals or not; unknown ones and broken values are refused."""
    assert wish({"tp": 8, "PP": 4}) == Wish(TP=8, PP=4)
    with pytest.raises(InstanceError, match="'TPP' is not one of TP, PP"):
        wish({"tpp": 8})
    for value in (0, 2.5, -1):
        with pytest.raises(InstanceError, match="explain TP: "):
            wish({"TP": value})  # type: ignore[dict-item]
    assert wish({"ZERO": 0}).ZERO == 0
    with pytest.raises(InstanceError, match="explain ZERO: 7 is not one of 0, 1, 2, 3"):
        wish({"ZERO": 7})
    with pytest.raises(InstanceError, match="zero: 4 is not 0, 1, 2 or 3"):
        refusal(PROBLEM, Wish(ZERO=4))
