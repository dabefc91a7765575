"""Rollouts, compiled: the jobs that are there, played through by one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cython
import numpy as np
from cython import bint, cclass, declare, final, nogil

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Sorting

from ..settings import EXPENSIVE

if TYPE_CHECKING:
    from .lookahead import RolloutStart
if not cython.compiled:
    from gangplan.solvers.native import Float, Int

NEVER = declare(Float, float("inf"))
WORTH = declare(Float, EXPENSIVE)
OVER = declare(Float, 1e-6)
"""Seconds left with which a job is done."""


def rollout(scene: RolloutStart, reserve: bint, order: Float) -> FloatArray:
    """Return in how many seconds each job is done if nobody else comes, 0 if it never has room, float64 (n,).

    Whenever a job is done, as many jobs as have room together run, those first that have least left times their GPUs
    to the power `order`, counted in GPUs as if jobs could always be moved. A running job keeps its GPUs unless it has
    more left than another and `EXPENSIVE` times its price.

    Args:
        scene: the jobs.
        reserve: whether jobs that may not be stopped start only if they do not delay the first that does not fit.
        order: the exponent.
    """
    played = PlayedJobs(scene, order)
    with nogil:
        played.play(reserve)
    return np.asarray(played.done)


@final
@cclass
class PlayedJobs:
    """The n jobs of a `RolloutStart` as they are played.

    Attributes:
        rest: seconds that each still has, float64 (n,); runs: whether it runs, bool (n,); need, price: as given.
        weight: GPUs to the power of the order, float64 (n,).
        done: in how many seconds each was done, float64 (n,).
        jobs, count: those that are not, int64 (n,), and how many.
        first, ends: room to sort them by their turn, and by their end.
        shadow, spare: when the first that does not fit will, and the GPUs that it leaves then.
    """

    def __init__(self, scene: RolloutStart, order: Float) -> None:
        n = len(scene.left)
        if not n == len(scene.need) == len(scene.price) == len(scene.running):
            raise ValueError(f"{len(scene.need)} needs, {len(scene.price)} prices are not of {n} jobs")
        self.gpus, self.count, self.rest, self.need = scene.gpus, n, np.array(scene.left), scene.need
        self.price, self.runs, self.jobs = scene.price, np.array(scene.running).view(np.uint8), np.arange(n)
        self.weight, self.done = np.zeros((2, n))
        for j in range(n):
            self.weight[j] = (1.0 * self.need[j]) ** order
        self.first, self.ends = Sorting(n), Sorting(n)

    def play(self, reserve: bint) -> None:
        """Run jobs until all that ever have room are done."""
        time: Float = 0.0
        while self.count:
            step = self.step(reserve)
            if step == NEVER:
                break
            time += step
            kept: Int = 0
            for i in range(self.count):
                j = self.jobs[i]
                if self.runs[j]:
                    self.rest[j] -= step
                    if self.rest[j] <= OVER:
                        self.done[j] = time
                        continue
                self.jobs[kept] = j
                kept += 1
            self.count = kept

    def step(self, reserve: bint) -> Float:
        """Choose who runs now; return in how many seconds the first of them is done, infinite if nobody runs."""
        for i in range(self.count):
            j = self.jobs[i]
            key: Float = self.rest[j]
            if self.runs[j] and self.price[j] < NEVER:
                key = max(key - WORTH * self.price[j], 0.0)
            self.first.keys[i] = -1.0 if self.runs[j] and self.price[j] == NEVER else key * self.weight[j]
        self.first.sort(self.count, False)
        room: Int = self.gpus
        step: Float = NEVER
        self.shadow, self.spare = NEVER, self.gpus
        for i in range(self.count):
            j = self.jobs[self.first.order[i]]
            late: bint = not self.runs[j] and self.price[j] == NEVER and self.rest[j] > self.shadow
            if self.need[j] <= room and not (late and self.need[j] > self.spare):
                room -= self.need[j]
                self.runs[j] = True
                step = min(step, self.rest[j])
                if late:
                    self.spare -= self.need[j]
            elif self.runs[j]:
                self.runs[j] = False
                self.rest[j] += self.price[j]
            elif self.shadow == NEVER and reserve:
                self.reserve(self.need[j], room)
        return step

    def reserve(self, asked: Int, room: Int) -> None:
        """Find in how many seconds `asked` GPUs are free if nobody else starts, and how many more there are then."""
        for i in range(self.count):
            self.ends.keys[i] = self.rest[self.jobs[i]]
        self.ends.sort(self.count, False)
        for i in range(self.count):
            j = self.jobs[self.ends.order[i]]
            if self.runs[j]:
                room += self.need[j]
                if room >= asked:
                    self.shadow, self.spare = self.rest[j], room - asked
                    return
        self.shadow, self.spare = NEVER, room
