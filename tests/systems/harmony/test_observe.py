"""What is seen and allowed: the environment's own state and masks, gangs placed to their ends, and bad input named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.systems.harmony.observe import Lane, widths
from gangplan.systems.harmony.recipe import HarmonySettings
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.environment import Environment

PUBLISHED, TUNED = HarmonySettings(), HarmonySettings(form="tuned")


@pytest.mark.parametrize("settings", [PUBLISHED, TUNED])
def test_random_actions(settings: HarmonySettings) -> None:
    """Random allowed actions place whole gangs to the end of a case, and only the tuned form may wait for nothing."""
    lane, rng, waited = Lane(Environment(poisson(TRAINING, jobs=25)), settings), np.random.default_rng(0), 0
    while not lane.env.done:
        tasks = lane.mask[:-1].reshape(settings.slots, 2, -1)
        for at, job in enumerate(lane.sight):
            assert (tasks[at] == lane.env.mask(job)).all()
        action = int(rng.choice(np.flatnonzero(lane.mask)))
        if action == len(lane.mask) - 1:
            assert lane.env.current < 0  # gangs are whole before anything else happens
            waited += bool(tasks.any())
            lane.env.end_interval()
        else:
            lane.place(action)
        lane.look()
    assert (waited > 0) == settings.waits
    assert np.isfinite(lane.env.outcome().finish).all()


def test_what_is_seen() -> None:
    """The row holds what is free, the tasks of the begun job, and those of running ones, each in its place."""
    settings = HarmonySettings(slots=3, running=2)
    env = Environment(poisson(TRAINING + 1, jobs=30))
    lane = Lane(env, settings)
    while len(env.running) < 3 or env.current < 0:
        action = int(np.flatnonzero(lane.mask)[0])
        env.end_interval() if action == len(lane.mask) - 1 else lane.place(action)
        lane.look()
    v, waiting, d = np.split(lane.seen[:-3], np.cumsum(widths(settings))[:-1])
    kind, one_hot = env.case.jobs.kind, np.eye(8)
    placed, held = (np.zeros((len(some), 6, 2)) for some in (env.waiting, env.running))
    for some, found in ((env.waiting, placed), (env.running, held)):
        now = env.snapshot(some)
        found[now.job, now.server] = np.stack([now.workers, now.ps], axis=1)
    assert v == pytest.approx((env.free / env.size).ravel())
    jobs = waiting.reshape(3, -1)[: len(lane.sight)]
    assert (jobs[:, :8] == one_hot[kind[env.waiting[: len(jobs)]]]).all()
    tasks = jobs[:, 12:24].reshape(len(jobs), 6, 2) * 4
    assert tasks == pytest.approx(placed[: len(jobs)])
    assert tasks.sum() > 0
    running = d.reshape(2, -1)  # the youngest two
    assert (running[:, :8] == one_hot[kind[env.running[-2:]]]).all()
    assert running[:, 8:].reshape(2, 6, 2) * 4 == pytest.approx(held[-2:])
    assert lane.seen[-3] == pytest.approx((len(env.waiting) - len(lane.sight)) / 10)


def test_explored() -> None:
    """Packing puts the next task beside another, balancing load on an empty server; both are allowed."""
    env = Environment(poisson(TRAINING + 1, jobs=5))
    lane = Lane(env, PUBLISHED)
    first = lane.explored("lb")
    lane.place(first)
    lane.look()
    if env.current < 0:
        env.end_interval()
        lane.look()
    used = int(np.flatnonzero((env.free < env.case.capacity).any(axis=1))[0])
    packed, spread = lane.explored("best"), lane.explored("lb")
    assert lane.mask[packed] and lane.mask[spread]
    assert packed % 6 == used != spread % 6


def test_bad_input() -> None:
    """Settings outside their limits, and an environment of another size, are errors that name them."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"slots": 11}, "slots: 11 is more than 10"),
        ({"case": "far"}, "case: 'far' is not one of"),
        ({"case": "philly"}, "data: is empty"),
        ({"reward_model": "none"}, "reward_model: 'none' is not one of off"),
        ({"width": 50}, "width: 50 is not divisible"),
    ]
    for given, words in wrong:
        with pytest.raises(InstanceError, match=words):
            HarmonySettings(**given)
    with pytest.raises(InstanceError, match="case: has 8 types and 4 servers; the policy is for 8 and 6"):
        Lane(Environment(poisson(0, jobs=3, servers=4)), PUBLISHED)
