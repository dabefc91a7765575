"""Search with the true distribution: policies that look ahead on sampled futures, to compare the learned one with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.simulator.ramp import Case, Choice, JobType, State, arrivals, search
from gangplan.simulator.ramp.step import Units

POOL = 20_000
"""Jobs of which futures are drawn."""

SEEDS = 3_000_000
"""Where the seeds of these begin: neither those of tests nor those of training."""


class Rollouts:
    """Plays on from each of the best blocks, by the teacher's table of values, on the same futures for all.

    The table is fitted to the distribution first. See `gangplan.learned.ramp.teacher`.

    Args:
        profiles: folder of the published models.
        units: of the case.
        distribution: of the case.
        seed: of the futures.
    """

    def __init__(self, profiles: Path, units: Units, distribution: str, seed: int) -> None:
        from gangplan.learned.ramp.features import MOST, scratch_of
        from gangplan.learned.ramp.scenarios import published
        from gangplan.learned.ramp.values import value_table

        self._world = scenario = published(profiles, [units])
        rng = np.random.default_rng([SEEDS, seed])

        def draw(rng: np.random.Generator) -> Any:
            return scenario.draw(units, distribution, SEEDS + int(rng.integers(2**30)), 4000)

        self._table = value_table(scenario, draw, rng)
        self._future = scenario.draw(units, distribution, SEEDS + seed, POOL)
        self._desks = scratch_of(scenario.tables), scratch_of(scenario.tables)
        self._value = np.zeros(MOST)

    def decide(self, state: State) -> Choice | None:
        """Return the block that most jobs are accepted after."""
        from gangplan.learned.ramp.teacher import look_ahead
        from gangplan.learned.ramp.values import weigh

        scenario, (own, ahead), value = self._world, self._desks, self._value
        turn = _gap(state.case) * scenario.tables.n / 32
        kind = int(state.case.model[state.index])
        k = weigh(
            state.ends, state.now, turn, scenario.tables, scenario.times.jct[kind], state.limit, self._table, own, value
        )
        if k > 1:
            future = self._future
            look_ahead(
                k, state.ends, state.now, turn, kind, future.kind, future.beta, scenario.tables, scenario.times,
                self._table, own, ahead, value,
            )  # fmt: skip
        block = int(own.block[int(np.argmax(value[:k]))])
        return None if block < 0 else Choice(int(state.blocks.degree[block]), block)


class SampledBeam:
    """Plans each of some futures as if it were known, and takes the block that is best over all of them.

    This is hindsight optimisation: Chong, Givan and Chang, A framework for simulation-based network control via
    hindsight optimization, CDC 2000.

    Args:
        types: what arrives.
        distribution: of what users accept.
        seed: of the futures.
        futures: of each decision.
        horizon: jobs in a future.
        width: of the beam.
    """

    def __init__(
        self,
        types: Sequence[JobType],
        distribution: str,
        seed: int,
        *,
        futures: int = 16,
        horizon: int = 24,
        width: int = 60,
    ) -> None:
        self._futures, self._horizon, self._width = futures, horizon, width
        self._rng = np.random.default_rng([SEEDS, seed])
        self._pool = arrivals(types, distribution, SEEDS + seed, n=POOL)

    def decide(self, state: State) -> Choice | None:
        """Return the block after which most is accepted, in the mean over the futures."""
        found = np.flatnonzero(state.acceptable)
        if not len(found):
            return None
        case, pool = state.case, self._pool
        submit = state.now + _gap(case) * np.arange(self._horizon + 1)
        ends = np.maximum(state.ends, 0.0)
        total: dict[int, float] = {}
        plans = []
        for _ in range(self._futures):
            drawn = self._rng.integers(0, POOL, self._horizon)
            model = np.concatenate([case.model[state.index : state.index + 1], pool.model[drawn]])
            beta = np.concatenate([case.fraction[state.index : state.index + 1], pool.fraction[drawn]])
            future = Case(case.types, submit, model, beta, float(submit[-1]))
            plans.append(search(future, width=self._width, ends=ends, seed=int(self._rng.integers(2**31))).first)
        for first in plans:
            least = min(first.values()) - 1  # what the beam dropped early was worse than all that it kept
            for block in {b for plan in plans for b in plan}:
                total[block] = total.get(block, 0.0) + first.get(block, least)
        block = max(sorted(total), key=lambda b: total[b])
        return None if block < 0 else Choice(int(state.blocks.degree[block]), block)


def _gap(case: Case) -> float:
    """Return the time between arrivals, which a search knows."""
    return float(case.submit[1] - case.submit[0]) if case.n_jobs > 1 else 1.0
