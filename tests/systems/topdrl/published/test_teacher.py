"""The teacher starts the job in sight with the least work, or waits for it."""

from __future__ import annotations

import numpy as np

from gangplan.systems.topdrl.published.episodes import Picking
from gangplan.systems.topdrl.published.recipe import Settings
from gangplan.systems.topdrl.published.teacher import labelled, least_work
from gangplan.systems.topdrl.rules import rule
from gangplan.systems.topdrl.simulate import simulate

SETTINGS = Settings(slots=150, lanes=2, channels=4, width=16)


def test_it_is_the_rule() -> None:
    """With all jobs in sight the teacher makes the schedules of least work first, where the first job blocks."""
    works = [SETTINGS.mix.draw(seed) for seed in range(2)]
    episodes = Picking(SETTINGS, 0, draw=works, count=2)
    while episodes.mask.any():
        regret = least_work(episodes)
        assert ((regret == 0).sum(axis=1)[episodes.mask.any(axis=1)] == 1).all()
        assert (np.isfinite(regret) == episodes.mask)[episodes.mask.any(axis=1)].all()
        episodes.take(regret.argmin(axis=1))
    alone = [simulate(x, SETTINGS.fleet, rule("least_work", "head")) for x in works]
    assert {x.seed: x.mean_jct for x in episodes.batch.finished} == {
        i: float((x.finish - x.workload.submit).mean()) for i, x in enumerate(alone)
    }


def test_labels() -> None:
    """There are as many labels as were asked for, each with an allowed action to take, and the same for a seed."""
    settings = Settings(slots=6, lanes=4, labels=40)
    labels, again = labelled(settings, 3), labelled(settings, 3)
    assert labels.regret.shape == labels.mask.shape == (40, 7)
    assert ((labels.regret == 0) & labels.mask).any(dim=1).all()
    assert all((x == y).all() for x, y in zip(labels, again, strict=True))
