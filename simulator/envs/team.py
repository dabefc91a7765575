"""Agents that put gangs on nodes of their own: one that owns them all, or many that pass jobs on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError

from ..engine.jobs import Long
from .episode import Episode
from .gang import Gang

Mask = NDArray[np.int8]


class Team:
    """K agents, each with a part of the nodes, and the job that each has in hand.

    Args:
        episode: that is played.
        parts: the nodes of each agent, bool (m,).
        rng: says whose each job is, of those who could hold it if nothing else ran.
        single: a node takes one GPU at a time.

    Attributes:
        nodes: indices of the nodes of each agent.
        owner: whose each job is, int64 (n,).
        firsts: the job that each agent decides on, -1 where there is none.
        masks: what each may do: use one of its nodes, pass the job on to one of the agents, wait.
    """

    def __init__(
        self, episode: Episode, parts: list[NDArray[np.bool_]], rng: np.random.Generator, single: bool = False
    ) -> None:
        self._episode, self._parts, self._single = episode, parts, single
        self.nodes = [np.flatnonzero(part) for part in parts]
        self._width = max(len(nodes) for nodes in self.nodes)
        self._holds = self._who_holds()
        self.owner: Long = np.argmax(np.where(self._holds, rng.random(self._holds.shape), -1.0), axis=1)
        self._passed_on = np.zeros(len(self._holds), dtype=bool)
        self.gangs: list[Gang | None] = [None] * len(parts)
        self._waits = [False] * len(parts)
        self.firsts: list[int] = []
        self.masks: list[Mask] = []

    @property
    def staged(self) -> Long:
        """GPUs of each node that are set aside, int64 (m,)."""
        total = np.zeros(len(self._parts[0]), dtype=np.int64)
        for gang in self.gangs:
            if gang is not None:
                total += gang.staged
        return total

    def seek(self) -> bool:
        """Go on until some agent has more to do than wait; return whether there is one."""
        while True:
            self.firsts = self._first_jobs()
            idle = not self._episode.may_wait and not any(g is not None and g.left < g.degree for g in self.gangs)
            self.masks = [self._mask(k, job, idle) for k, job in enumerate(self.firsts)]
            if any(mask[:-1].any() for mask in self.masks):
                return True
            if not self._episode.advance():
                return False
            self._waits = [False] * len(self._parts)

    def act(self, k: int, action: int) -> None:
        """Do what agent k may do."""
        job, gang, to = self.firsts[k], self.gangs[k], action - self._width
        if to >= 0:
            self.gangs[k] = None  # it has not been begun
            if to == len(self._parts):
                self._waits[k] = bool(self.masks[k][:-1].any())  # who had nothing to do takes what is passed on to it
            else:
                self.owner[job], self._passed_on[job] = to, True
            return
        assert gang is not None, "the mask allowed it"
        gang.take(int(self.nodes[k][action]))
        if not gang.left:
            at = int(np.flatnonzero(self._episode.queue.jobs == job)[0])
            self._episode.start(at, gang.degree, gang.rows())
            self.gangs[k] = None

    def _who_holds(self) -> NDArray[np.bool_]:
        """Return which agents could hold each job if nothing else ran, bool (n, K)."""
        episode, state = self._episode, self._episode.state
        work = state.workload
        if len(self._parts) == 1:  # the engine has seen to that
            return np.ones((work.n_jobs, 1), dtype=bool)
        _, sample, back = np.unique(
            np.column_stack([work.gpus, state.kind, state.unit]), axis=0, return_index=True, return_inverse=True
        )
        holds = np.zeros((len(sample), len(self._parts)), dtype=bool)
        for i, job in enumerate(sample.tolist()):
            holds[i] = [Gang(state, job, episode.wanted(job), part).fits() for part in self._parts]
            if not holds[i].any():
                words = f"job {work.names[job]} needs {work.gpus[job]}, which no agent's part ever has for it"
                raise InstanceError(f"gpus[{job}]", words)
        return np.asarray(holds[back.ravel()])

    def _first_jobs(self) -> list[int]:
        jobs = self._episode.queue.jobs
        owners, at = np.unique(self.owner[jobs], return_index=True)
        firsts = [-1] * len(self._parts)
        for k, i in zip(owners.tolist(), at.tolist(), strict=True):
            gang = self.gangs[k]  # one begun is ended, whoever was passed on since and goes before it
            firsts[k] = int(jobs[i]) if gang is None else gang.job
        return firsts

    def _mask(self, k: int, job: int, idle: bool) -> Mask:
        mask = np.zeros(self._width + len(self._parts) + 1, dtype=np.int8)
        gang = self.gangs[k]
        if gang is None and job >= 0 and not self._waits[k]:
            gang = Gang(self._episode.state, job, self._episode.wanted(job), self._parts[k], self._single)
            if not self._passed_on[job]:
                mask[self._width : -1] = self._holds[job]
                mask[self._width + k] = 0
            self.gangs[k] = gang = gang if gang.fits() else None
        if gang is not None:
            mask[: len(self.nodes[k])] = gang.eligible()[self.nodes[k]]
            if gang.left < gang.degree:
                return mask
        mask[-1] = not (idle and mask.any())
        return mask
