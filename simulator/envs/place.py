"""Where the next gang goes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import POLICIES, Scheduler
from .base import ClusterEnv, Mask, Observation
from .cases import Cases, Synthetic
from .episode import Episode
from .gang import Gang
from .rewards import CompletionTime, Reward


class PlaceEnv(ClusterEnv):
    """Choose the node, or the group of nodes, that takes the next part of a gang.

    Action i puts as many of the gang's GPUs on group i as it can hold (on its nodes by the engine's rule); the agent is
    asked again until all have a place, and only then the job starts. The last action waits; a gang begun must be ended.
    Jobs come in the scheduler's order; if one waits, ``head`` makes all wait, ``overtake`` goes on to the next that
    fits.

    Args:
        fleet: the nodes; by default 2 racks of 4 nodes of 4 GPUs.
        cases: what episodes are made of; by default 30 jobs of 1 to 8 GPUs at a load of 0.9.
        scheduler: makes the other decisions. If it consolidates, the agent is bound by that; by default it does not.
        level: 0 to choose nodes, i for groups of level i - 1 of the fleet's topology (1 are racks).
        single: an action places one GPU (one worker, as in Harmony) instead of as many as possible.
        speeds: the cost model, by which jobs slow one another down; none by default, and then it matters only for jobs
            that are consolidated, where they go.
        reward: what is paid, by default minus the increase of the sum of JCT.
        horizon: seconds; longer times are shown as this.
    """

    takes: ClassVar[str] = "place"

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: Scheduler | None = None,
        *,
        level: int = 0,
        single: bool = False,
        speeds: SpeedModel | None = None,
        reward: Reward | None = None,
        horizon: float = 1e8,
    ) -> None:
        fleet = Fleet.regular(2, 4, 4) if fleet is None else fleet
        scheduler = scheduler or Scheduler((POLICIES["fifo"](),))
        require_number(level, "level", whole=True)
        if level > len(fleet.topology.levels):
            raise InstanceError("level", f"{level!r} is beyond the topology's {len(fleet.topology.levels)}")
        if single and scheduler.consolidate:
            raise InstanceError("single", "goes one GPU at a time, but the scheduler consolidates")
        group = np.arange(fleet.n_nodes) if level == 0 else fleet.topology.group[level - 1]
        self._group = np.unique(group, return_inverse=True)[1].ravel()
        self._groups = int(self._group.max()) + 1
        self._what = "node" if level == 0 else fleet.topology.levels[level - 1].name
        self._single = single
        self._at = 0
        self._waits = False
        self._gang: Gang | None = None
        super().__init__(
            fleet,
            cases or Synthetic(fleet.n_gpus),
            scheduler,
            speeds,
            reward or CompletionTime(),
            horizon,
            slots=1,
            actions=self._groups + 1,
        )

    def words(self, action: int) -> str:
        """Return what an action means."""
        return "to wait" if action == self._groups else f"to use {self._what} {action}"

    def _begin(self, episode: Episode) -> None:
        self._turn()
        self._gang = None

    def _turn(self) -> None:
        self._at, self._waits = 0, False

    def _offer(self, episode: Episode) -> Mask | None:
        queue = episode.queue
        if self._gang is None and not self._waits:
            while self._at < queue.size:
                job = int(queue.jobs[self._at])
                gang = Gang(episode.state, job, episode.wanted(job), single=self._single)
                if gang.fits():
                    self._gang = gang
                    break
                if self.scheduler.discipline == "head":
                    break
                self._at += 1
        gang_in_hand = self._gang
        if gang_in_hand is None:
            return None
        nodes = gang_in_hand.eligible()
        mask = np.zeros(self._groups + 1, dtype=np.int8)
        mask[self._group[nodes]] = 1
        mask[-1] = gang_in_hand.left == gang_in_hand.degree and episode.may_wait
        return mask

    def _act(self, episode: Episode, action: int) -> None:
        gang = self._gang
        assert gang is not None, "the mask allowed it"
        if action == self._groups:
            self._gang = None
            self._at += 1
            self._waits = self.scheduler.discipline == "head"
            return
        gang.take(self._group == action)
        if not gang.left:
            episode.start(self._at, gang.degree, gang.rows())
            self._gang = None

    def _look(self, episode: Episode) -> Observation:
        state, gang, queue = episode.state, self._gang, episode.queue
        staged, left = (None, None) if gang is None else (gang.staged, gang.left)
        shown = queue.jobs[self._at : self._at + 1] if gang is not None else queue.jobs[:0]
        return {
            "nodes": self._scene.nodes(state, staged),
            "jobs": self._scene.jobs(state, shown, 1, left, episode.case.limit),
            "backlog": self._scene.backlog(state, len(shown)),
        }
