"""What the learned policy is compared with: its teachers as policies, and random scores in its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.systems.pacml.learned.features import MOST, Past
from gangplan.systems.pacml.learned.hindsight import Futures
from gangplan.systems.pacml.learned.policy import RampDecider, RampObservation
from gangplan.systems.pacml.learned.teacher import AHEAD
from gangplan.systems.pacml.learned.values import ArrivalEpisode, published, value_table
from gangplan.systems.pacml.learned.worth import SHAPE, Teacher
from gangplan.systems.pacml.simulate import Acceptance, RampState
from gangplan.systems.pacml.step import Units

SEEDS = 3_000_000
"""Where the seeds of these begin: neither those of tests nor those of training."""


class RandomScores(RampDecider):
    """What ships, guard and all, with random scores instead of a network's.

    Args:
        seed: of the scores.
        plans: choose between the two best by plans.
    """

    def __init__(self, seed: int, *, plans: bool = False) -> None:
        super().__init__(futures=Futures(seed) if plans else None)
        self._rng = np.random.default_rng([SEEDS, seed])

    def rate(self, observation: RampObservation) -> FloatArray:
        """Return standard normal numbers."""
        return self._rng.normal(size=len(observation.rows))


class Searched:
    """Takes the candidate that a teacher values most, see `gangplan.systems.pacml.learned.teacher`.

    Args:
        profiles: folder of the published models.
        units, distribution: of the case.
        seed: of the futures.
        planned: whether futures are planned; else played on by a table that is fitted to the distribution first.
        blocks: whether it chooses the block; else a degree, and published first fit places each op.
    """

    def __init__(
        self, profiles: Path, units: Units, distribution: str, seed: int, *, planned: bool, blocks: bool
    ) -> None:
        self._world = world = published(profiles, [units])
        rng = np.random.default_rng([SEEDS, seed])

        def draw(rng: np.random.Generator) -> ArrivalEpisode:
            return world.draw(units, distribution, SEEDS + int(rng.integers(2**30)), 4000)

        # plans do without a table
        table = np.zeros(SHAPE) if planned else value_table(world, draw, rng, choose=blocks)
        ahead = world.draw(units, distribution, SEEDS + seed, AHEAD)
        jobs = world.tables, world.times, table, ahead.kind, ahead.beta
        self._teacher = Teacher(*jobs, planned=planned, choose=blocks, seed=seed)
        self._decision, self._value = world.decision(choose=blocks), np.zeros(MOST)
        self._blocks = blocks

    def decide(self, state: RampState) -> Acceptance | None:
        """Return the block or degree after which most jobs are accepted."""
        case, world, decision, value = state.case, self._world, self._decision, self._value
        gap = float(case.submit[1] - case.submit[0]) if case.n_jobs > 1 else 1.0
        turn, m = gap * world.tables.n / 32, int(case.model[state.index])
        k = decision.look(state.ends, state.now, turn, world.times, m, state.fraction, Past())
        self._teacher.judge(decision, k, value)
        choice = int(decision.choice[int(np.argmax(value[:k]))])
        if choice < 0:
            return None
        return Acceptance(int(state.blocks.degree[choice]), choice) if self._blocks else Acceptance(choice)
