"""What trains the network: imitation of a teacher, then PPO, in episodes of clusters side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.ppo import Observed, Ppo
from gangplan.learned.training.ragged import soft_cross_entropy
from gangplan.learned.training.trainer import Trainer
from gangplan.simulator.gangs.arrays import WAITING
from gangplan.simulator.gangs.mixes import TRAINING, VALIDATION

from ..batch import Batch
from .policy import Halves, ImageCritic, ImageNetwork, observe, set_aside
from .recipe import TopdrlSettings


class Picking:
    """The jobs of queues are picked: see `gangplan.learned.training.ppo.Episodes`.

    Args:
        first: the seed of the first workload.
        given: other arguments of `Batch` than those of training.
    """

    def __init__(self, settings: TopdrlSettings, seed: int, first: int = TRAINING, **given: Any) -> None:
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
        return observe(self.batch.episodes, self.settings)

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

    def __init__(self, settings: TopdrlSettings, seed: int, **given: Any) -> None:
        super().__init__(settings, seed, slots=1, **given)
        self._aside = np.zeros((self.count, settings.gpus), dtype=bool)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which GPUs may be picked, bool (B, GPUs): those that are idle."""
        idle = np.stack([state.holder < 0 for _, state in self.batch.episodes])
        return idle & ~self._aside & self.batch.mask.any(axis=1, keepdims=True)

    def see(self) -> Halves:
        """Return what the network is shown: the GPUs picked are marked, and the job shrinks by them."""
        return set_aside(super().see(), self._aside, self.settings)

    def take(self, action: NDArray[np.int64]) -> FloatArray:
        """Take an action of each episode, and return the rewards; a job starts with its last GPU."""
        batch, every = self.batch, np.arange(self.count)
        self._aside[every, action] = True
        full = self._aside.sum(axis=1) == [jobs.gpus[state.queue[:1]].sum() for jobs, state in batch.episodes]
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


TEMPERATURE = 0.05
"""Of the teacher's regrets, as shares of the mean JCT or so."""


class TopdrlTraining(Trainer[TopdrlSettings]):
    """Imitation of a teacher, then PPO."""

    make, values = ImageNetwork, ImageCritic

    def validate(self, network: ImageNetwork) -> dict[str, float]:
        """Return the mean JCT in seconds in workloads of validation seeds, by the best action, as ``score``."""
        of = self.settings
        seeds = range(VALIDATION, VALIDATION + of.validation_seeds)
        episodes = kind(of)(of, 0, draw=[of.mix.draw(x) for x in seeds], count=len(seeds))
        with torch.inference_mode():
            while (mask := episodes.mask).any():
                scores = network(torch.from_numpy(episodes.see())).numpy()
                episodes.take(np.where(mask, scores, -np.inf).argmax(axis=1))
        return {"score": float(np.mean([x.mean_jct for x in episodes.batch.finished]))}

    def imitation(self, network: ImageNetwork) -> Imitation:
        """Return what trains a network on the teacher's decisions."""
        of, labels = self.settings, labelled(self.settings, self.seed)

        def draw(rng: np.random.Generator) -> Tensor:
            chosen = torch.from_numpy(rng.integers(0, len(labels.rows), of.minibatch))
            mask = labels.mask[chosen]
            scores, regret = network(labels.rows[chosen])[mask], labels.regret[chosen][mask]
            index = mask.nonzero()[:, 0]
            return soft_cross_entropy(scores, index, regret, len(chosen), temperature=TEMPERATURE)

        rate, updates = of.imitation_rate, of.imitation_updates
        return Imitation(network, draw, self.validate, rate=rate, updates=updates, seed=self.seed)

    def rl(self, network: ImageNetwork) -> Ppo:
        """Return what trains a network by PPO."""
        episodes = kind(self.settings)(self.settings, self.seed)
        stagger(episodes)
        return Ppo(self, network, episodes, pay=self.settings.pay)


def kind(settings: TopdrlSettings) -> type[Picking]:
    """Return the episodes of what is decided."""
    return Picking if settings.decides == "job" else Placing


LANES = 8
"""Episodes side by side that are labelled: few, so that they are played to their ends."""


class TaughtLabels(NamedTuple):
    """D decisions that were taught.

    Attributes:
        rows: what the network is shown, (D, width).
        mask: which actions are allowed, bool (D, actions).
        regret: how much worse each is than the best, 0 for that, infinite where it is forbidden, float32 (D, actions).
    """

    rows: Tensor
    mask: Tensor
    regret: Tensor


def labelled(settings: TopdrlSettings, seed: int) -> TaughtLabels:
    """Return decisions along episodes that the teacher plays, straying now and then."""
    import torch

    episodes = Picking(settings, seed, first=TRAINING + 5_000_000, count=min(settings.lanes, LANES))
    rows, masks, regrets = [], [], []
    for _ in range(-(-settings.labels // episodes.count)):
        rows.append(torch.from_numpy(episodes.see()))
        masks.append(torch.from_numpy(episodes.mask.copy()))
        regret = least_work(episodes)
        regrets.append(torch.from_numpy(regret))
        noise = np.where(episodes.mask, episodes.rng.random(regret.shape), np.inf)
        strays = episodes.rng.random(len(regret)) < settings.strays
        episodes.take(np.where(strays, noise.argmin(axis=1), regret.argmin(axis=1)))
    return TaughtLabels(torch.cat(rows), torch.cat(masks), torch.cat(regrets))


def stagger(episodes: Picking) -> None:
    """Play the episodes by the teacher, each a while longer than the one before, so that not all are at one time."""
    for step in range(2 * episodes.settings.mix.jobs):
        plays = step < np.linspace(0, 2 * episodes.settings.mix.jobs, episodes.count)
        episodes.batch.act(np.where(plays, least_work(episodes).argmin(axis=1), -1))


def least_work(episodes: Picking) -> NDArray[np.float32]:
    """Return the regrets 0 of the job with the least work, or of waiting if that does not fit, and 1 of others."""
    batch, slots = episodes.batch, episodes.settings.slots
    regret = np.where(batch.mask, 1.0, np.inf).astype(np.float32)
    for row, mask, (jobs, state) in zip(regret, batch.mask, batch.episodes, strict=True):
        queue = state.queue[: min(slots, state.count[WAITING])]
        first = int((jobs.expected[queue] * jobs.gpus[queue]).argmin()) if len(queue) else 0
        row[first if mask[first] else slots] = 0.0
    return regret
