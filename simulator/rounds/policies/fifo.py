"""First come, first served: on a type drawn at random, on the fastest, and as Gavel's published simulator has it."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..jobs import Index, RoundJobs, RoundsCluster


class FifoRandom:
    """In order of arrival, a job gets a random type with room and keeps it; who is without room blocks others."""

    in_order = False
    strict = True

    def __init__(self, jobs: RoundJobs, cluster: RoundsCluster, seed: int) -> None:
        self.gpus, self.speed, self.cluster = jobs.gpus.tolist(), jobs.speed, cluster
        self.random = random.Random(seed)
        # of two equally fast types, the first by name
        self.by_name = sorted(range(len(cluster.types)), key=lambda j: cluster.types[j])
        self.kind: dict[int, int] = {}

    def shares(self, active: Index, left: NDArray[np.int64], age: FloatArray) -> FloatArray:
        """Return the shares of `active`; see `RoundsPolicy`."""
        there = active.tolist()
        self._assign(there, list(self.cluster.count))
        found = np.zeros((len(there), len(self.cluster.count)))
        for row, job in enumerate(there):
            if job in self.kind:
                found[row, self.kind[job]] = 1.0
        return found

    def _assign(self, active: list[int], free: list[int]) -> None:
        """Enter the type of each job that gets one, by how many GPUs of each type are free without the active jobs."""
        self.kind = {job: self.kind[job] for job in active if job in self.kind}
        for job, kind in self.kind.items():
            free[kind] -= self.gpus[job]
        for job in active:
            if job not in self.kind:
                runs = (np.array(free) >= self.gpus[job]) & (self.speed[job] > 0)
                if not runs.any():
                    break
                self.kind[job] = self.random.choice(np.flatnonzero(runs).tolist())
                free[self.kind[job]] -= self.gpus[job]


class Fifo(FifoRandom):
    """FIFO as Gavel's published simulator runs it (Narayanan et al., OSDI 2020), which is not what its name says.

    A type is drawn at random for a waiting job, but what the job gets is the last open type by name. A type is closed
    when its free GPUs come to exactly 0, and then it is the drawn one that closes; free GPUs may fall below 0. With
    V100, P100 and K80 most jobs end up taking turns on the V100s while the others idle. `FifoRandom` does what was
    meant. A job keeps its type; one that ends hands it to the first that waits, if that has room.
    """

    def _assign(self, active: list[int], free: list[int]) -> None:
        gpus, speed, here = self.gpus, self.speed, set(active)
        waiting = [job for job in reversed(active) if job not in self.kind]
        for job, kind in sorted(self.kind.items()):
            if job in here:
                free[kind] -= gpus[job]
                continue
            del self.kind[job]
            if waiting and gpus[waiting[-1]] <= free[kind] and speed[waiting[-1], kind] > 0:
                heir = waiting.pop()
                self.kind[heir] = kind
                free[kind] -= gpus[heir]
        still_open = [kind for kind in self.by_name if free[kind] > 0]
        while waiting and still_open:
            job = waiting.pop()
            fits = [i for i, kind in enumerate(still_open) if free[kind] >= gpus[job]]
            if not fits:
                break
            drawn = fits[self.random.randrange(len(fits))]
            last = next((kind for kind in reversed(still_open) if speed[job, kind] > 0), None)
            if last is not None:
                self.kind[job] = last
                free[last] -= gpus[job]
                if free[last] == 0:
                    still_open.pop(drawn)


class FifoPerf(FifoRandom):
    """In order of arrival, a job gets the fastest type with room (section 4.2); who fits nowhere blocks the others.

    All are assigned anew each time, so a job may move to a faster type that has come free.
    """

    in_order = True

    def _assign(self, active: list[int], free: list[int]) -> None:
        self.kind = {}
        for job in active:
            fits = [kind for kind in self.by_name if free[kind] >= self.gpus[job]]
            if not fits:
                break
            kind = max(fits, key=lambda j: self.speed[job, j])
            if self.speed[job, kind] > 0:
                self.kind[job] = kind
                free[kind] -= self.gpus[job]
