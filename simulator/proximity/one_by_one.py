"""GPUs picked one by one: a rule says whose turn it is, each action adds an idle GPU to the gang in hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray

from .batch import Batch

ORDERS = ("fcfs", "sjf")


class OneByOne:
    """Episodes of a batch in which the first job in an order that fits is placed GPU by GPU, and nobody waits else.

    Args:
        batch: of B episodes on G GPUs; only this acts in them.
        order: ``fcfs`` or ``sjf``, of the jobs in sight.

    Attributes:
        slot: of the job in hand in each episode, int64 (B,).
        left: GPUs that it still needs, int64 (B,); 0 in an episode that is over for good.
        picked: GPUs that it has, bool (B, G). It starts on as many of these nodes, on the first idle ones of each.
        mask: GPUs that may be picked, bool (B, G).
    """

    def __init__(self, batch: Batch, order: str = "fcfs") -> None:
        if order not in ORDERS:
            raise InstanceError("order", f"{order!r} is not one of {', '.join(ORDERS)}")
        self.batch, self._sjf = batch, order == "sjf"
        first = batch.cluster.first
        self._node = np.repeat(np.arange(len(first) - 1), np.diff(first))
        self.slot, self.left = np.zeros(len(batch), dtype=np.int64), np.zeros(len(batch), dtype=np.int64)
        self.picked = np.zeros((len(batch), len(self._node)), dtype=bool)
        self.mask = self.picked.copy()
        self._take_in_hand(np.ones(len(batch), dtype=bool))

    def act(self, gpu: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Pick a GPU in each episode; a gang that has all starts, and the episode goes on to its next decision.

        Args:
            gpu: int64 (B,); of an episode that is over for good it does not matter.

        Returns:
            What the actions earned, float64 (B,), and which episodes ended by them, bool (B,).

        Raises:
            InstanceError: if a GPU is not idle, or picked already.
        """
        gpu, every = np.asarray(gpu, dtype=np.int64), np.arange(len(self.batch))
        live = self.left > 0
        inside = (gpu >= 0) & (gpu < len(self._node))
        wrong = live & ~(inside & self.mask[every, np.where(inside, gpu, 0)])
        if wrong.any():
            b = int(np.argmax(wrong))
            raise InstanceError(f"gpu[{b}]", f"{gpu[b]} is not idle")
        self.picked[every[live], gpu[live]], self.mask[every[live], gpu[live]] = True, False
        self.left -= live
        whole = live & (self.left == 0)
        if not whole.any():
            return np.zeros(len(gpu)), np.zeros(len(gpu), dtype=bool)
        take = np.stack([self.picked[:, self._node == n].sum(axis=1) for n in range(self._node[-1] + 1)], axis=1)
        earned, ended = self.batch.act(np.where(whole, self.slot, -1), take=take)
        self._take_in_hand(whole)
        return earned, ended

    def _take_in_hand(self, anew: NDArray[np.bool_]) -> None:
        """Choose the next job in these episodes."""
        batch = self.batch
        shown = min(batch.slots, batch.state.queue.shape[1])
        queue, fits = batch.state.queue[:, :shown], batch.mask[:, :shown]
        key = np.take_along_axis(batch.jobs.expected if self._sjf else batch.jobs.submit, queue, axis=1)
        slot = np.argmin(np.where(fits, key, np.inf), axis=1)
        need = np.take_along_axis(batch.jobs.gpus, np.take_along_axis(queue, slot[:, None], axis=1), axis=1)[:, 0]
        self.slot[anew] = slot[anew]
        some: NDArray[np.bool_] = np.any(fits, axis=1)
        self.left[anew] = np.where(some, need, 0)[anew]
        self.picked[anew] = False
        self.mask[anew] = (batch.state.holder < 0)[anew] & some[anew, None]
