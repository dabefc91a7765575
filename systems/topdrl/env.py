"""TopDRL's environment: jobs are chosen by their image, an allocator gives them the closest GPUs."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.engine import POLICIES, EngineScheduler
from gangplan.simulator.engine.jobs import Long
from gangplan.simulator.engine.rates import ApartRates
from gangplan.simulator.engine.state import ClusterState
from gangplan.simulator.envs.episode import EpisodeCase, Reward, Throughput
from gangplan.simulator.envs.observe import MOST_JOBS, Float32
from gangplan.simulator.envs.single import SelectEnv
from gangplan.simulator.gangs.allocate import Close
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.mixes import TRAINING

from .image import require_frame
from .kernels import draw
from .suites import ClusterSuite, suite


class Picture:
    """Draws states of one fleet: `Image` as a dictionary.

    Attributes:
        spaces: the bounds of `cluster`, `queue` and `scalars`, see `Image`.

    Args:
        speeds: how much gangs pay for being apart.
        slots: jobs of the queue in sight.
        rows, width, step, backlog: as of `gangplan.systems.topdrl.image`.

    Raises:
        InstanceError: if `speeds` are others, or one of the numbers is not positive.
    """

    def __init__(
        self, fleet: Fleet, speeds: Any, slots: int, rows: int = 30, width: int = 8, step: float = 1.0, backlog: int = 5
    ) -> None:
        if not isinstance(speeds, Proximity):
            raise InstanceError("image", "is of a cluster whose speeds are a Proximity")
        require_frame(rows, width, step, backlog)
        self._proximity, self._cluster = speeds, cluster_of(fleet, speeds)
        self._step, self._backlog = float(step), backlog
        self._of: ClusterState | None = None
        scalars = np.array([1, 1, 1, MOST_JOBS, MOST_JOBS, 1], dtype=np.float32)
        self.spaces = {
            "cluster": Box(0, 1, (rows, int(self._cluster.first[-1])), np.float32),
            "queue": Box(0, 1, (slots, rows, width), np.float32),
            "scalars": Box(np.zeros_like(scalars), scalars, dtype=np.float32),
        }

    def observe(self, state: ClusterState, queue: Long, arrived: int) -> dict[str, Float32]:
        """Return the image of a state with that queue, after so many arrivals."""
        if self._of is not state:
            jobs = jobs_of(state.workload, self._proximity)
            self._of, self._jobs, self._state = state, jobs, begin(jobs, self._cluster)
        assert isinstance(state.rates, ApartRates)
        now, order = self._state, state.order
        now.clock[NOW] = state.now
        now.count[[ARRIVED, WAITING, RUNNING]] = arrived, len(queue), state.running.size
        now.queue[: len(queue)] = state.rank[queue]
        now.holder[:] = -1
        for job in state.running.jobs.tolist():
            rows = state.log.rows(job)
            if (rows.gpu < 0).any():
                raise InstanceError("scheduler", "does not tell GPUs apart, as an image does: add a `Close`")
            now.holder[self._cluster.first[rows.node] + rows.gpu] = state.rank[job]
        now.start[:], now.cost[:] = state.since[order], state.rates.cost[order]
        made = {name: np.zeros((1, *space.shape), dtype=np.float32) for name, space in self.spaces.items()}
        draw([(self._jobs, now)], self._step, self._backlog, *made.values())
        return {name: np.minimum(made[name][0], space.high) for name, space in self.spaces.items()}


def topdrl(on: str | ClusterSuite = "small", allocator: str = "closest", reward: Reward | None = None) -> SelectEnv:
    """Return the environment of a suite (Ayadi et al., JPDC 204, 2025), on seeds to learn from.

    `gangplan.systems.topdrl.batch.Batch` plays many episodes of it at once, in compiled code.

    Args:
        on: a suite or its name.
        allocator: see `Close`.
        reward: by default `Throughput`.

    Raises:
        InstanceError: if there is no such suite or allocator, or policies are not told its durations.
    """
    of = suite(on) if isinstance(on, str) else on
    if of.draw(TRAINING)[1] is not None:
        raise InstanceError("on", f"{of.name!r} does not tell durations, which the engine shows: play it in a Batch")

    def cases(rng: np.random.Generator) -> EpisodeCase:
        return EpisodeCase(of.draw(TRAINING + int(rng.integers(2**31)))[0])

    scheduler = EngineScheduler((POLICIES["fifo"](), Close(allocator)))
    image = partial(Picture, width=of.width, step=of.step, backlog=of.backlog)
    paid = reward or Throughput()
    return SelectEnv(of.fleet, cases, scheduler, slots=of.slots, image=image, speeds=of.proximity, reward=paid)


gymnasium.register("gangplan/TopDRL-v0", entry_point="gangplan.systems.topdrl.env:topdrl")
