"""What an agent sees: arrays of fixed sizes with real bounds, in seconds, GPUs, cores and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity

from ..engine.jobs import Long
from ..engine.state import ClusterState
from ..fit import occupants

Float32 = NDArray[np.float32]

NODE = ("gpus", "free", "cores", "memory", "gpu_type", "rack", "jobs", "until", "staged")
"""Columns of a node: GPUs; GPUs, cores and bytes that nobody holds; index of the GPU type; group of the topology's
lowest level; jobs that run there; seconds until the first of them ends, 0 without any; GPUs set aside for the gang in
hand."""

JOB = ("there", "gpus", "left", "duration", "waited", "cores", "memory", "model")
"""Columns of a job: 1, 0 in an empty slot; GPUs asked for; GPUs still to be placed; seconds at what it asked for;
seconds since it was submitted; cores and bytes; index of the model, -1 if
unknown."""

BACKLOG = ("waiting", "gpus", "work", "running")
"""Jobs that wait and are not shown one by one, the GPUs they asked for, their GPU seconds; jobs that run."""

MOST_JOBS = 1e6
"""Upper bound of numbers of jobs; more are shown as so many."""


class Observer:
    """Turns states into observations of one fleet; times beyond `horizon` seconds are shown as that."""

    def __init__(self, fleet: Fleet, speeds: SpeedModel | Proximity | None, horizon: float) -> None:
        names = sorted(speeds.intensity) if isinstance(speeds, Proximity) else () if speeds is None else speeds.models
        self._index = {name: k for k, name in enumerate(names)}
        m, gpus = fleet.n_nodes, fleet.gpus.astype(float)
        there = np.where(np.asarray(fleet.usable), gpus, 0.0)
        rack = fleet.topology.group[0].astype(float)
        self._blank = np.zeros((m, len(NODE)))
        self._blank[:, 0], self._blank[:, 4], self._blank[:, 5] = there, np.where(gpus > 0, fleet.gpu_type, 0), rack
        ones = np.ones(m)
        types, racks = (ones * v for v in (max(len(fleet.gpu_types) - 1, 1), max(rack.max(), 1)))
        self._node_high = np.stack(
            [gpus, gpus, fleet.cpu, fleet.memory, types, racks, gpus, ones * horizon, gpus], axis=1
        )
        total = max(float(gpus.sum()), 1.0)
        models = max(len(self._index) - 1, 0)
        self._job_low = np.array([0.0] * 7 + [-1.0])
        self._job_high = np.array(
            [1, total, total, horizon, horizon, max(fleet.cpu.sum(), 1), max(fleet.memory.sum(), 1), models]
        )
        self._backlog_high = np.array([MOST_JOBS, MOST_JOBS * total, MOST_JOBS * total * horizon, total])

    def spaces(self, slots: int) -> dict[str, Box]:
        """Return the bounds of `nodes`, (m, len(NODE)), `jobs`, (slots, len(JOB)), and `backlog`, (len(BACKLOG),)."""
        jobs = _box(*(np.tile(x, (slots, 1)) for x in (self._job_low, self._job_high)))
        backlog = _box(np.zeros(len(BACKLOG)), self._backlog_high)
        return {"nodes": _box(np.zeros_like(self._node_high), self._node_high), "jobs": jobs, "backlog": backlog}

    def observe(
        self, state: ClusterState, jobs: Long, slots: int, staged: Long | None = None, left: int | None = None
    ) -> dict[str, Float32]:
        """Return nodes, the first of `jobs`, and what waits behind those."""
        shown = self.jobs(state, jobs, slots, left)
        return {"nodes": self.nodes(state, staged), "jobs": shown, "backlog": self.backlog(state, len(jobs))}

    def nodes(self, state: ClusterState, staged: Long | None = None) -> Float32:
        """Return the nodes; `staged` GPUs of them are set aside."""
        out = self._blank.copy()
        out[:, 1:4] = state.spare()
        out[:, 6:8] = occupants(state.running.jobs, state.log.held, state.end, state.now, len(out)).T
        if staged is not None:
            out[:, 8] = staged
        return _within(out, 0.0, self._node_high)

    def jobs(self, state: ClusterState, jobs: Long, slots: int, left: int | None = None) -> Float32:
        """Return up to `slots` of `jobs`; `left` GPUs of the first are still to be placed, by default all."""
        out = np.zeros((slots, len(JOB)))
        k = min(len(jobs), slots)
        jobs, work = jobs[:k], state.workload
        out[:k, 0] = 1.0
        out[:k, 1] = out[:k, 2] = work.gpus[jobs]
        if left is not None and k:
            out[0, 2] = left
        out[:k, 3] = work.duration[jobs]
        out[:k, 4] = state.now - work.submit[jobs]
        out[:k, 5], out[:k, 6] = np.asarray(work.cpu)[jobs], np.asarray(work.memory)[jobs]
        out[:k, 7] = [self._index.get(work.model[j], -1) for j in jobs.tolist()] if self._index else -1.0
        return _within(out, self._job_low, self._job_high)

    def backlog(self, state: ClusterState, shown: int) -> Float32:
        """Return what waits behind the first `shown` jobs of the queue."""
        behind, work = state.queue.jobs[shown:], state.workload
        gpus = work.gpus[behind].astype(float)
        out = np.array([len(behind), gpus.sum(), gpus @ work.duration[behind], state.running.size])
        return _within(out, 0.0, self._backlog_high)


def _within(values: NDArray[np.float64], low: Any, high: NDArray[np.float64]) -> Float32:
    return np.asarray(np.minimum(np.maximum(values, low), high), dtype=np.float32)


def _box(low: NDArray[np.float64], high: NDArray[np.float64]) -> Box:
    return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
