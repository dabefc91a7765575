"""Compiled decisions, teachers, plans, rules and first fit say to the bit what numba's said before them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.arrays import FloatArray
from gangplan.solvers import native
from gangplan.solvers.native import Random
from gangplan.systems.pacml.arrivals import arrivals
from gangplan.systems.pacml.learned.features import DegreeDecision, Past
from gangplan.systems.pacml.learned.guard import RULES, WIDE_RULES
from gangplan.systems.pacml.learned.hindsight import Futures, PastPlans
from gangplan.systems.pacml.learned.learners import run_episode
from gangplan.systems.pacml.learned.tables import BlockTables, Clusters
from gangplan.systems.pacml.learned.teacher import label
from gangplan.systems.pacml.learned.values import Scenario, watch
from gangplan.systems.pacml.learned.worth import MOST, SHAPE, Plans, Teacher, add_equations
from gangplan.systems.pacml.published.learners import Arriving
from gangplan.systems.pacml.simulate import simulate

from ....solvers.uncompiled import uncompiled
from .test_guard import Fixed, Rule
from .test_hindsight import Largest
from .test_learners_episodes import network

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of the same."""
CLUSTERS: dict[str, tuple[Any, ...]] = {
    "published": ((4, 4, 2), 0, "physical", 3), "small": ((4, 2, 2), 1, "as-published", 2),
    "wide": ((8, 8, 2), 2, "physical", 2),
}  # fmt: skip
"""Size, seed, units and types of scenarios."""


def digest(*arrays: Any) -> str:
    """Return a digest of arrays."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()[:16]


def moments(w: Scenario) -> Iterator[tuple[list[tuple[float, int, float]], float, FloatArray]]:
    """Yield jobs so far as share, type and gap, the time, and when servers are free: none, some, all, some never."""
    rng, n = np.random.default_rng(5), w.tables.n
    for busy in (0.0, 0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0):
        for jobs in (1, 2, 5):
            gap = float(rng.uniform(0.3, 3.0)) * np.mean(w.times.sequential) / n
            past = [
                (float(rng.uniform(0.03, 1.0)), int(rng.integers(len(w.types))), gap * rng.uniform(0.5, 1.5) * (i > 0))
                for i in range(jobs)
            ]
            now = sum(x[2] for x in past)
            left = np.where(rng.random(n) < 0.3, rng.integers(0, 26, n), rng.uniform(0, 30, n))
            left[rng.random(n) < 0.1] = np.inf
            yield past, now, np.where(rng.random(n) < busy, now + left * gap, -1.0)


def rows(w: Scenario, choose: bool) -> Iterator[str]:
    """Yield rows and candidates; where blocks are chosen, the type of the job is behind each row."""
    d = w.decision(choose=choose)
    for jobs, now, end in moments(w):
        past = Past()
        for beta, m, gap in jobs:
            past.add(beta, w.times.sequential[m], *w.times.efficiency[m], gap)
        k = d.look(end, now, past.turn(w.tables.n), w.times, m, beta, past)
        d.write(k)
        seen = np.asarray(d.row[:k])
        if choose:
            seen = np.hstack([seen, np.eye(len(w.types), dtype=np.float32)[[m]].repeat(k, axis=0)])
        yield f"{k} {digest(seen, d.choice[:k], d.block[:k], d.time[1:k])}"


def watched(w: Scenario, choose: bool) -> Iterator[str]:
    """Yield states, rewards and equations of episodes, played by random values."""
    (name,), table = w.sets, np.random.default_rng(1).normal(size=SHAPE)
    for seed in (-1, 0, 7):
        episode = w.draw(name, "ABCD"[seed % 4], seed + 10, 300, load=1.3)
        columns, reward = watch(episode, w.times, table, w.decision(choose=choose), seed)
        a, b = np.zeros((table.size + 1, table.size + 1)), np.zeros(table.size + 1)
        add_equations(columns, reward, a, b)
        yield digest(columns, reward, a, b)


def labelled(w: Scenario, choose: bool, how: str) -> Iterator[str]:
    """Yield labels by a table of random values, by playing on, by plans, and of states that a student comes to."""
    (name,), table = w.sets, np.random.default_rng(1).normal(size=SHAPE) * 0.1
    episode, ahead = (w.draw(name, "D", seed, 60, load=1.4) for seed in (0, 1))
    jobs = (ahead.kind, ahead.beta) if how in ("rollouts", "plans") else ()
    knows = Teacher(w.tables, w.times, table, *jobs, planned=how == "plans", choose=choose, seed=3)
    x = label(w, episode, knows, 0.8, network().weights() if how == "student" else None)
    yield f"{len(x.first)} {digest(x.rows, x.first, x.value)}"


def played(w: Scenario, choose: bool) -> Iterator[str]:
    """Yield when jobs end that a network accepts."""
    (name,), net = w.sets, network(3)
    for seed in range(3):
        episode = w.draw(name, "ABCD"[seed], seed, 200, load=1.2)
        finish = run_episode(episode, w.times, net.weights(), w.decision(choose=choose))
        yield f"{np.isfinite(finish).sum()} {digest(finish)}"


def planned(w: Scenario) -> Iterator[str]:
    """Yield the blocks that plans of past arrivals choose, of 16 futures, of 2, and behind a policy."""
    case = arrivals(w.types, "D", 1_000_950, n=60, load=1.5)
    for policy in (PastPlans(3), PastPlans(4, 2), Largest(guarded=False, futures=Futures(1))):
        yield digest(simulate(case, policy).block)


def valued(w: Scenario) -> Iterator[str]:
    """Yield what plans say of candidates."""
    rng, d, plans = np.random.default_rng(3), w.decision(choose=True), Plans(w.tables, w.times, Random(11), 3)
    plans.draw_from(rng.integers(len(w.types), size=30), rng.uniform(0.05, 1.0, 30))
    for past, now, forever in moments(w):
        end = np.minimum(forever, 1e9)
        beta, m, _ = past[-1]
        gap = np.mean(w.times.sequential) / w.tables.n
        k = d.look(end, now, gap, w.times, m, beta, Past())
        if k > 1:
            yield f"{k} {digest(plans.values(end, now, gap, m, np.asarray(d.block)[:k]))}"


def ruled(w: Scenario) -> Iterator[str]:
    """Yield the blocks that rules choose."""
    case = arrivals(w.types, "A", 2, n=150, load=1.3)
    for rule in (*RULES.tolist(), *WIDE_RULES.tolist()):
        yield digest(simulate(case, Rule(case, rule)).block)


def guarded(w: Scenario) -> Iterator[str]:
    """Yield the blocks of policies with and without a guard, which looks back or, on the wide cluster, ahead."""
    case = arrivals(w.types, "A", 2, n=100, load=1.2)
    for rejects in (True, False):
        for guard in (True, False):
            yield digest(simulate(case, Fixed(rejects=rejects, guarded=guard)).block)


def arriving(w: Scenario) -> Iterator[str]:
    """Yield what the published learner's episodes come to by random actions."""
    episodes, rng = Arriving(w, "D", 7, 6, apart=True), np.random.default_rng(0)
    for i in range(300):
        seen = episodes.look()
        action = np.where(rng.random(6) < 0.2, 0, rng.integers(0, 7, 6))
        if i % 3:
            action = np.where(seen.mask, rng.random(seen.mask.shape), -1).argmax(axis=1)
        reward, x = episodes.take(action), episodes
        if i % 20 == 19:
            yield digest(seen.rows, seen.mask, seen.over, reward, x.end, x.timely, x.at)


def questions() -> Iterator[tuple[str, str, Callable[..., Iterator[str]], tuple[Any, ...]]]:
    """Yield a name, a cluster, what is asked of it, and more arguments."""
    for cluster in CLUSTERS:
        few = cluster != "wide"
        for choose in (True, False):
            yield f"rows {cluster} {choose}", cluster, rows, (choose,)
            if few:
                yield f"played all {cluster} {choose}", cluster, played, (choose,)
            yield f"watched {cluster} {choose}", cluster, watched, (choose,)
            for how in ("table", "rollouts", "student", *["plans"] * choose) if few else ():
                yield f"labelled {how} {cluster} {choose}", cluster, labelled, (choose, how)
        for ask in (*[planned, valued] * few, ruled, guarded, arriving):
            yield f"{ask.__name__} {cluster}", cluster, ask, ()


@pytest.mark.parametrize(("name", "cluster", "ask", "more"), [*questions()])
def test_outcomes_are_those_recorded(
    name: str, cluster: str, ask: Callable[..., Iterator[str]], more: tuple[Any, ...],
    make_scenario: Callable[..., Scenario],
) -> None:  # fmt: skip
    """Rows, labels, equations, plans, choices and episodes are those of numba's kernels."""
    assert [*ask(make_scenario(*CLUSTERS[cluster]), *more)] == json.loads(GOLDEN.read_text())[name]


SOURCES = (
    *(
        f"learned.{x}"
        for x in (
            "tables",
            "features",
            "worth",
            "parts",
            "values",
            "guard",
            "hindsight",
            "policy",
            "learners",
            "teacher",
        )
    ),
    "published.learners",
)
"""Modules that kernels are in and that use them."""


def test_the_source_does_what_is_compiled(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from the sources as plain Python all of it says the same, by playing on a little."""
    here = [sys.modules[__name__.replace("kernels", x)] for x in ("guard", "hindsight", "kernels")]
    source = uncompiled(native, *(sys.modules[f"gangplan.systems.pacml.{x}"] for x in SOURCES), *here)
    for parts in (vars(sys.modules[Teacher.__module__]), source.Teacher.__init__.__globals__):
        for name, fewer in (("TRIED", 2), ("PLAYED", 2), ("HORIZON", 3), ("KEPT", 4)):
            monkeypatch.setitem(parts, name, fewer)
    asked: list[tuple[str, int, tuple[Any, ...]]] = [
        ("rows", 5, (True,)), ("rows", 5, (False,)), ("watched", 1, (False,)), ("labelled", 1, (True, "rollouts")),
        ("labelled", 1, (True, "plans")), ("valued", 2, ()), ("ruled", 12, ()), ("arriving", 2, ()),
    ]  # fmt: skip
    for name, count, more in asked:
        told = (getattr(module, name)(world, *more) for module, world in (
            (here[-1], small), (source, source.Scenario(small.topology, small.sets))
        ))  # fmt: skip
        first, second = ([*islice(x, count)] for x in told)
        assert first == second != [], name


def test_arrays_of_another_shape_are_refused(small: Scenario, scenario: Scenario) -> None:
    """What does not fit is not read or written beyond its end, and neither is a block, a type or a degree of none."""
    of, times, n = small.tables, small.times, small.tables.n
    servers, degree, shape, fast = (np.asarray(x) for x in (of.servers, of.degree, of.shape, of.fast))
    other = scenario.times
    end, block, rules = np.zeros(n), np.zeros(3, np.int64), np.zeros((2, 2), np.int64)
    clusters, decision, plans, far = (
        Clusters(of, 3),
        DegreeDecision(of),
        Plans(of, times, Random(0)),
        np.full(3, len(shape)),
    )
    plans.draw_from(np.zeros(1), np.ones(1))
    table, out = np.zeros(SHAPE), np.zeros(MOST)
    one = Teacher(of, times, table)
    decision.begin(times)
    for call in (
        lambda: BlockTables(servers, degree[1:], shape, fast, n),
        lambda: BlockTables(servers, degree, shape, fast, n - 1),
        lambda: BlockTables(servers[:, ::-1], degree, shape, fast, n),
        lambda: BlockTables(servers, degree + 5, shape, fast, n),
        lambda: BlockTables(servers, degree, shape - 1, fast, n),
        lambda: clusters.fit(3, 0.0, 0, times, 0, 1.0),
        lambda: clusters.fit(0, 0.0, 6, times, 0, 1.0),
        lambda: clusters.fit(0, 0.0, 0, times, 2, 1.0),
        lambda: clusters.fit(-1, 0.0, 0, times, 0, 1.0),
        lambda: clusters.go_on(block, 0.0, other, 0, 1.0, rules),
        lambda: clusters.go_on(block[1:], 0.0, times, 0, 1.0, rules),
        lambda: clusters.go_on(block, 0.0, times, 0, 1.0, rules[1:]),
        lambda: clusters.go_on(far, 0.0, times, 0, 1.0, rules),
        lambda: decision.arrive(2, 1.0, 0.0),
        lambda: decision.look(end[1:], 0.0, 1.0, times, 0, 1.0, Past()),
        lambda: decision.look(end, 0.0, 1.0, other, 0, 1.0, Past()),
        lambda: decision.write(MOST + 1),
        lambda: decision.accept(MOST),
        lambda: decision.accept(0),
        lambda: DegreeDecision(of).write(1),
        lambda: DegreeDecision(of).accept(1),
        lambda: Teacher(of, times, table[1:]),
        lambda: one.judge(decision, 3, out[:2]),
        lambda: one.judge(DegreeDecision(of, choose=False), 1, out),
        lambda: Teacher(of, times, table, np.full(1, 2), np.ones(1)),
        lambda: Plans(BlockTables(servers, degree, shape, fast, 65), times, Random(0)),
        lambda: Plans(of, other, Random(0)),
        lambda: plans.draw_from(np.zeros(2), np.ones(1)),
        lambda: plans.values(end[1:], 0.0, 1.0, 0, block),
        lambda: plans.values(end, 0.0, 1.0, 2, block),
        lambda: plans.values(end, 0.0, 1.0, 0, far),
        lambda: plans.values(end, 0.0, 1.0, 0, block - 1),
        lambda: add_equations(rules, end[:2], np.zeros((3, 2)), end[:3]),
        lambda: add_equations(rules, end[:3], np.zeros((3, 3)), end[:3]),
        lambda: add_equations(rules + 2, end[:2], np.zeros((3, 3)), end[:3]),
    ):
        with pytest.raises(ValueError, match=r"\d"):
            call()
