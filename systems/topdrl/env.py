"""TopDRL's environment: jobs are chosen by their image, an allocator gives them the closest GPUs."""

from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np

from gangplan.instances import InstanceError
from gangplan.simulator.engine import POLICIES, Scheduler
from gangplan.simulator.envs.episode import Case, Reward, Throughput
from gangplan.simulator.envs.single import SelectEnv

from .picture import Picture
from .place import Close
from .suites import TRAINING, Suite, suite


def topdrl(on: str | Suite = "small", allocator: str = "closest", reward: Reward | None = None) -> SelectEnv:
    """Return the environment of a suite (Ayadi et al., JPDC 204, 2025), on seeds to learn from.

    `gangplan.systems.topdrl.Batch` plays many episodes of it at once, in compiled code.

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

    def cases(rng: np.random.Generator) -> Case:
        return Case(of.draw(TRAINING + int(rng.integers(2**31)))[0])

    scheduler = Scheduler((POLICIES["fifo"](), Close(allocator)))
    image = partial(Picture, width=of.width, step=of.step, backlog=of.backlog)
    paid = reward or Throughput()
    return SelectEnv(of.fleet, cases, scheduler, slots=of.slots, image=image, speeds=of.proximity, reward=paid)


gymnasium.register("gangplan/TopDRL-v0", entry_point="gangplan.systems.topdrl.env:topdrl")
