"""Which waiting job next."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import POLICIES, Scheduler
from ..engine.jobs import Rows
from .base import ClusterEnv, Mask, Observation
from .cases import Cases, Synthetic
from .episode import Episode
from .rewards import CompletionTime, Reward


class SelectEnv(ClusterEnv):
    """Start one of the first jobs of the queue, or none of them before something happens.

    Action i < slots starts the job in slot i, action `slots` waits for the next arrival or completion. After a start
    the agent is asked again at the same instant, as long as a job in a slot fits. Whether and where a job fits, and at
    what degree it runs, is the scheduler's; its `select` says who is in the slots. As in RLScheduler (Zhang et al., SC
    2020) and TopDRL.

    Args:
        fleet: the nodes; by default TopDRL's, 2 racks of 4 nodes of 4 GPUs.
        cases: what episodes are made of; by default 30 jobs of 1 to 8 GPUs at a load of 0.9.
        scheduler: makes the other decisions; its discipline counts for nothing. By default the slots are in the order
            of submission and jobs are consolidated.
        slots: how many jobs of the queue are shown.
        speeds: the cost model, by which jobs slow one another down; none by default.
        reward: what is paid, by default minus the increase of the sum of JCT.
        horizon: seconds; longer times are shown as this.
    """

    takes: ClassVar[str] = ""

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: Scheduler | None = None,
        *,
        slots: int = 20,
        speeds: SpeedModel | None = None,
        reward: Reward | None = None,
        horizon: float = 1e8,
    ) -> None:
        require_number(slots, "slots", positive=True, whole=True)
        fleet = Fleet.regular(2, 4, 4) if fleet is None else fleet
        self._slots = slots
        self._found: list[tuple[int, Rows | None]] = []  # at what degree and where each job of a slot fits
        self._alike: list[int] = []  # jobs of one number fit alike
        self._waits = False
        super().__init__(
            fleet,
            cases or Synthetic(fleet.n_gpus),
            scheduler or Scheduler((POLICIES["fifo"](),), consolidate=True),
            speeds,
            reward or CompletionTime(),
            horizon,
            slots=slots,
            actions=slots + 1,
        )

    def words(self, action: int) -> str:
        """Return what an action means."""
        return "to wait" if action == self._slots else f"to start the job in slot {action}"

    def _begin(self, episode: Episode) -> None:
        self._waits = False
        self._alike = list(range(episode.state.workload.n_jobs))
        if self.scheduler.part("place") is None and self.scheduler.part("degree") is None:
            asked = np.column_stack([episode.state.workload.gpus, episode.state.kind, episode.state.unit])
            self._alike = np.unique(asked, axis=0, return_inverse=True)[1].ravel().tolist()

    def _turn(self) -> None:
        self._waits = False

    def _offer(self, episode: Episode) -> Mask | None:
        if self._waits:
            return None
        jobs = episode.queue.jobs[: self._slots].tolist()
        found: dict[int, tuple[int, Rows | None]] = {}
        for job in jobs:
            if self._alike[job] not in found:
                degree = episode.wanted(job)
                found[self._alike[job]] = degree, episode.room(job, degree)
        self._found = [found[self._alike[job]] for job in jobs]
        mask = np.zeros(self._slots + 1, dtype=np.int8)
        mask[: len(jobs)] = [rows is not None for _, rows in self._found]
        if not mask.any():
            return None
        mask[-1] = episode.may_wait
        return mask

    def _act(self, episode: Episode, action: int) -> None:
        if action == self._slots:
            self._waits = True
            return
        degree, rows = self._found[action]
        assert rows is not None, "the mask allowed it"
        episode.start(action, degree, rows)

    def _look(self, episode: Episode) -> Observation:
        state = episode.state
        return {
            "nodes": self._scene.nodes(state),
            "jobs": self._scene.jobs(state, episode.queue.jobs, self._slots, limit=episode.case.limit),
            "backlog": self._scene.backlog(state, self._slots),
        }
