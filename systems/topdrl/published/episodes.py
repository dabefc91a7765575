"""Episodes for PPO: jobs picked from queues, or the GPUs of their heads one by one, in clusters side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.ppo import Observed

from ..batch import Batch
from ..suites import TRAINING
from .policy import Halves, observe, set_aside
from .recipe import Settings


class Picking:
    """The jobs of queues are picked: see `gangplan.learned.training.ppo.Episodes`.

    Args:
        first: the seed of the first workload.
        given: other arguments of `Batch` than those of training.
    """

    def __init__(self, settings: Settings, seed: int, first: int = TRAINING, **given: Any) -> None:
        usual: dict[str, Any] = {
            "draw": settings.mix.draw, "fleet": settings.fleet, "count": settings.lanes, "slots": settings.slots,
            "seed": first, "allocator": settings.allocator, "reward": settings.reward, "hold": settings.hold,
        }  # fmt: skip
        self.settings, self.rng, self.batch = settings, np.random.default_rng(seed), Batch(**usual | given)
        self.count = len(self.batch)
        self._ended = np.ones(self.count, dtype=bool)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which actions are allowed, bool (B, actions)."""
        return self.batch.mask

    def see(self) -> Halves:
        """Return what the network is shown."""
        return observe(self.batch.jobs, self.batch.state, self.batch.size, self.settings)

    def look(self) -> Observed:
        """Return what there is to decide in every episode."""
        return Observed(self.see(), self.mask.copy(), self._ended)

    def take(self, action: NDArray[np.int64]) -> FloatArray:
        """Take an action of each episode, and return the rewards."""
        earned, self._ended = self.batch.act(action)
        return earned

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes, but the generator."""
        return {**self.batch.arrays(), "ended": self._ended}

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""
        self.batch.restore(state)
        self._ended = state["ended"]


class Placing(Picking):
    """The queue goes first come first served, and the GPUs of its head are picked one by one (Proximity-DRL)."""

    def __init__(self, settings: Settings, seed: int, **given: Any) -> None:
        super().__init__(settings, seed, slots=1, **given)
        self._aside = np.zeros((self.count, settings.gpus), dtype=bool)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which GPUs may be picked, bool (B, GPUs): those that are idle."""
        idle: NDArray[np.bool_] = self.batch.state.holder < 0
        return idle & ~self._aside & self.batch.mask.any(axis=1, keepdims=True)

    def see(self) -> Halves:
        """Return what the network is shown: the GPUs picked are marked, and the job shrinks by them."""
        return set_aside(super().see(), self._aside, self.settings)

    def take(self, action: NDArray[np.int64]) -> FloatArray:
        """Take an action of each episode, and return the rewards; a job starts with its last GPU."""
        batch, every = self.batch, np.arange(self.count)
        self._aside[every, action] = True
        full = self._aside.sum(axis=1) == batch.jobs.gpus[every, batch.state.queue[:, 0]]
        take = np.add.reduceat(self._aside, batch.cluster.first[:-1], axis=1, dtype=np.int64)
        earned, self._ended = batch.act(np.where(full, 0, -1), take=take)
        self._aside[full] = False
        return earned

    def state(self) -> dict[str, FloatArray]:
        """Return all that changes, but the generator."""
        return {**super().state(), "aside": self._aside}

    def load(self, state: dict[str, FloatArray]) -> None:
        """Go back to what `state` returned."""
        super().load(state)
        self._aside = state["aside"]
