"""TopDRL's compiled searches and episodes do to the bit what numba's did, and what they do as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.gangs import allocate, arrays, listing, step
from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.simulator.gangs.mixes import Mix
from gangplan.solvers import native
from gangplan.solvers.placement.online import closest
from gangplan.systems.topdrl import batch, image, kernels, oracle, rollout, rules
from gangplan.systems.topdrl.rules import DISCIPLINES, FEATURES, SCORES, Rule, TopdrlPatient

from ...simulator.gangs.test_arrays import digest, world
from ...solvers.uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of `KINDS`."""


def hashed(*values: Any) -> str:
    """Return a short name of values."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:10]


def by_rule(seed: int) -> str:
    """Run by rules that are drawn, of all disciplines and allocators, and as the lists that they are."""
    rng, jobs, place = world(seed)
    found = []
    for i in range(8):
        weights = tuple(zip(FEATURES, rng.normal(size=len(FEATURES)).tolist(), strict=True)) if i % 2 else ()
        if i % 4 == 0:
            weights = [*SCORES.values()][seed % len(SCORES)]
        of = Rule(weights[: 6 + i % 3], DISCIPLINES[i % 3], ALLOCATORS[(seed + i) % 4], seed)
        state = arrays.begin(jobs, place)
        of.finish(jobs, place, state)
        plan = of.listing(jobs, place)
        found.append((digest(state), plan and plan.key.tolist()))
    return hashed(found)


def by_oracle(seed: int) -> str:
    """Search for the best plan, from the beginning and from an instant in the midst."""
    _, jobs, place = world(seed)
    state, found = arrays.begin(jobs, place), []
    policies = (rules.rule("sjf"), rules.rule("fcfs", "easy", "sized"), TopdrlPatient())
    for _ in range(2):
        end = state.copy()
        if len(jobs.submit):
            oracle.Oracle(8, 1e9, policies, seed).finish(jobs, place, end)
        found.append(digest(end))
        for _ in range(len(jobs.submit) // 3):
            step.advance(jobs, place, state)
    return hashed(found)


def by_rollout(seed: int) -> str:
    """Decide by futures that are played."""
    _, jobs, place = world(seed)
    jobs = arrays.first_jobs(jobs, min(len(jobs.submit), 12))
    state = arrays.begin(jobs, place)
    rollout.Rollout(futures=3, ahead=4, width=3, seed=seed).finish(jobs, place, state)
    return digest(state)


def in_batches(seed: int) -> str:
    """Act at random in episodes of several lengths, and look at their images."""
    rng, text = np.random.default_rng(seed), []
    fleet, apart, reward = Fleet.regular(2, 3, 2), Proximity(0.3, 0.5, 1.5), batch.REWARDS[seed % 2]

    def draw(number: int) -> Any:
        work = Mix(jobs=3 + number % 9, gpus=12).draw(number)
        return (work, work.duration * 0.8) if number % 2 else work

    drawn = draw if seed % 3 else [draw(i) for i in range(1 + seed % 5)]
    episodes = batch.Batch(drawn, fleet, apart, count=3, seed=seed, slots=4, reward=reward, hold=0.7)
    for turn in range(40):
        choice = np.where(episodes.mask, rng.random(episodes.mask.shape), -1.0).argmax(axis=1)
        if turn == 20:
            kept = episodes.arrays()
        text += [x.tolist() for x in episodes.act(choice, rng.integers(4, size=3) if turn % 2 else None)]
        text += [x.tolist() for x in image.image(episodes, rows=7, width=3, step=1.5, backlog=2)]
        text += [episodes.mask.tolist()]
    episodes.restore(kept)
    return hashed(text, episodes.finished, [x.tolist() for x in image.image(episodes)])


KINDS: dict[str, Callable[[int], str]] = {x.__name__: x for x in (by_rule, by_oracle, by_rollout, in_batches)}
MODULES = (native, closest, arrays, step, allocate, listing)
SEEDS = 44


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_as_recorded(kind: str) -> None:
    """Rules, searches, futures and episodes come to what numba's kernels made of them."""
    assert [KINDS[kind](seed) for seed in range(SEEDS)] == json.loads(GOLDEN.read_text())[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_does_what_is_compiled(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from the source as plain Python all comes to the same."""
    compiled = [KINDS[kind](seed) for seed in (1, 2)]
    source, listed = uncompiled(*MODULES, kernels), uncompiled(*MODULES)
    for module in (batch, image, oracle, rollout, rules):
        for name in ("play", "draw", "anneal", "try_each", "run", "write_keys", "Scoring"):
            monkeypatch.setattr(module, name, getattr(source, name), raising=False)
    for module in (rules, oracle):
        monkeypatch.setattr(module, "run_list", listed.run_list)
    assert [KINDS[kind](seed) for seed in (1, 2)] == compiled


def test_arrays_of_another_size_are_refused() -> None:
    """What does not fit is not read or written beyond its end."""
    _, jobs, place = world(8)
    state, n, m = arrays.begin(jobs, place), len(jobs.submit), len(place.rack)
    take, zeros, costs = np.zeros((2, m), np.int64), np.zeros(3), np.zeros((len(place.node) + 1, 2))
    plan, other = TopdrlPatient().listing(jobs, place), arrays.begin(arrays.first_jobs(jobs, 5), place)
    s, few = kernels.Scoring(np.zeros(7), np.zeros(n), m), kernels.Scoring(np.zeros(7), zeros, m)
    tried, short, at = np.full(3, -1), TopdrlPatient().listing(arrays.first_jobs(jobs, 5), place), (1, 1.0, 1.0, 0)
    lanes, choice, paid = [(jobs, state)], np.full(1, -1), np.zeros((1, 2))
    mask, one, frame = np.zeros((1, 5), np.uint8), take[:1], (np.zeros((1, 3, len(place.node)), np.float32),)
    frame = *frame, np.zeros((1, 4, 3, 2), np.float32), np.zeros((1, 6), np.float32)
    for call in (
        lambda: kernels.Scoring(np.zeros(6), zeros, m),
        lambda: kernels.run(jobs, place, state, few, 0, 0),
        lambda: kernels.run(jobs, place, state, kernels.Scoring(np.zeros(7), np.zeros(n), m - 1), 0, 0),
        lambda: kernels.write_keys(jobs, place, s, np.zeros(n - 1)),
        lambda: kernels.write_keys(jobs, place, few, np.zeros(n)),
        lambda: kernels.anneal(jobs, place, state, other, plan, plan.copy(), costs, 0, 9, *at),
        lambda: kernels.anneal(jobs, place, state, state.copy(), short, plan, costs, 0, 9, *at),
        lambda: kernels.anneal(jobs, place, state, state.copy(), plan, short, costs, 0, 9, *at),
        lambda: kernels.anneal(jobs, place, state, state.copy(), plan, plan.copy(), costs, 9, 9, *at),
        lambda: kernels.anneal(jobs, place, state, state.copy(), plan, plan.copy(), costs[1:].copy(), 0, 9, *at),
        lambda: kernels.try_each(jobs, place, state, other, plan, tried, take, zeros),
        lambda: kernels.try_each(jobs, place, state, state.copy(), plan, tried, take, zeros[:2].copy()),
        lambda: kernels.try_each(jobs, place, state, state.copy(), plan, tried, take[:, 1:].copy(), zeros),
        lambda: kernels.play(lanes, place, choice, choice, take, 0.0, mask, paid),
        lambda: kernels.play(lanes, place, choice, choice, one[:, 1:].copy(), 0.0, mask, paid),
        lambda: kernels.play(lanes, place, choice, choice, one, 0.0, mask, paid[:, 1:].copy()),
        lambda: kernels.play(lanes, place, choice + 2, choice, one, 0.0, mask, paid),
        lambda: kernels.draw(lanes * 2, 1.0, 1, *frame),
        lambda: kernels.draw(lanes, 0.0, 1, *frame),
        lambda: kernels.draw(lanes, 1.0, 1, frame[0][:, :, 1:].copy(), *frame[1:]),
        lambda: kernels.draw(lanes, 1.0, 1, *frame[:2], frame[2][:, 1:].copy()),
    ):
        with pytest.raises(ValueError, match=r"\d"):
            call()
