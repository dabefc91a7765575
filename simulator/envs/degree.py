"""On how many GPUs the next job runs, if at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, SpeedModel

from ..engine import POLICIES, Scheduler, View
from ..engine.jobs import Rows
from .base import ClusterEnv, Mask, Observation
from .cases import Cases, Synthetic
from .episode import Episode, check_menu
from .rewards import Accepted, CompletionTime, Reward


class DegreeEnv(ClusterEnv):
    """Choose the degree of the next job, or none.

    With `blocks` every job is decided on when it arrives, as in PAC-ML: action 0 sends it away for good, and is always
    possible. Otherwise jobs wait: action 0 leaves the job waiting, ``head`` makes those behind it wait too, and
    ``overtake`` goes on to the next that fits. Action i gives it ``degrees[i - 1]`` GPUs: possible if that is on its
    menu, takes no longer than its `limit`, and the scheduler finds room for it on the GPUs that are free now.

    Args:
        fleet: the nodes; by default 32 of one GPU.
        cases: what episodes are made of. By default 30 jobs with menus 1, 2, 4, 8, and with `blocks` a limit of 0.1 to
            1 times what a single GPU takes.
        scheduler: makes the other decisions, by default in order of submission on any free GPUs.
        degrees: those that menus may have, ascending.
        blocks: whether a job that does not start on arrival is blocked.
        speeds: the cost model, by which jobs slow one another down; none by default. A limit is on the duration alone.
        reward: what is paid, by default `Accepted` with `blocks`, else `CompletionTime`.
        horizon: seconds; longer times are shown as this.
    """

    takes: ClassVar[str] = "degree"

    def __init__(
        self,
        fleet: Fleet | None = None,
        cases: Cases | None = None,
        scheduler: Scheduler | None = None,
        *,
        degrees: Sequence[int] = (1, 2, 4, 8),
        blocks: bool = True,
        speeds: SpeedModel | None = None,
        reward: Reward | None = None,
        horizon: float = 1e8,
    ) -> None:
        fleet = Fleet.regular(4, 8, 1) if fleet is None else fleet
        self.degrees = tuple(degrees)
        for i, degree in enumerate(self.degrees):
            require_number(degree, f"degrees[{i}]", positive=True, whole=True)
            if i and degree <= self.degrees[i - 1]:
                raise InstanceError(f"degrees[{i}]", f"{degree!r} does not ascend")
        if not self.degrees:
            raise InstanceError("degrees", "is empty")
        self.blocks = blocks
        if cases is None:
            one = Synthetic(fleet.n_gpus, sizes=self.degrees, degrees=self.degrees)
            cases = replace(one, fraction=(0.1, 1.0)) if blocks else one
        self._at = 0
        self._waits = False
        self._rows: list[Rows | None] = []
        k = len(self.degrees)
        super().__init__(
            fleet,
            cases,
            scheduler or Scheduler((POLICIES["fifo"](),)),
            speeds,
            reward or (Accepted() if blocks else CompletionTime()),
            horizon,
            slots=1,
            actions=k + 1,
            more={"menu": Box(np.float32(0), np.float32(horizon), (k,), np.float32)},
        )
        self._horizon = horizon
        self.scheduler = replace(self.scheduler, parts=(*self.scheduler.parts, _Agent()))

    def words(self, action: int) -> str:
        """Return what an action means."""
        none = "to block the job" if self.blocks else "to wait"
        return f"degree {self.degrees[action - 1]}" if action else none

    def _begin(self, episode: Episode) -> None:
        self._turn()
        work = episode.state.workload
        check_menu(episode.menu, self.degrees, work.names)
        if self.blocks:
            return
        if episode.case.limit is not None:
            raise InstanceError("limit", "is of no use where jobs may wait for as long as it takes")
        for job in range(work.n_jobs):
            if all(episode.room(job, d) is None for d in episode.menu.degrees(job).tolist()):
                raise InstanceError("menu", f"job {work.names[job]} has no degree that the cluster ever has for it")

    def _turn(self) -> None:
        self._at, self._waits = 0, False

    def _offer(self, episode: Episode) -> Mask | None:
        queue = episode.queue
        while self._at < queue.size and not self._waits:
            job = int(queue.jobs[self._at])
            self._rows = self._rooms(episode, job)
            mask = np.array([0, *(rows is not None for rows in self._rows)], dtype=np.int8)
            if self.blocks:
                mask[0] = 1
                return mask
            if mask.any():
                mask[0] = episode.may_wait
                return mask
            if self.scheduler.discipline == "head":
                break
            self._at += 1
        return None

    def _rooms(self, episode: Episode, job: int) -> list[Rows | None]:
        """Return where the job would go at each of the degrees."""
        menu, limit = episode.menu, episode.limit[job]
        fine = menu.degrees(job)[menu.durations(job) <= limit].tolist()
        return [episode.room(job, d) if d in fine else None for d in self.degrees]

    def _act(self, episode: Episode, action: int) -> None:
        if action:
            rows = self._rows[action - 1]
            assert rows is not None, "the mask allowed it"
            episode.start(self._at, self.degrees[action - 1], rows)
        elif self.blocks:
            episode.reject(self._at)
        else:
            self._at += 1
            self._waits = self.scheduler.discipline == "head"

    def _look(self, episode: Episode) -> Observation:
        state, over = episode.state, not self._mask.any()
        shown = episode.queue.jobs[:0] if over else episode.queue.jobs[self._at : self._at + 1]
        seconds = np.zeros(len(self.degrees), dtype=np.float32)
        for job in shown.tolist():
            index = np.searchsorted(self.degrees, episode.menu.degrees(job))
            seconds[index] = np.minimum(episode.menu.durations(job), self._horizon)
        return {
            "nodes": self._scene.nodes(state),
            "jobs": self._scene.jobs(state, shown, 1, limit=episode.case.limit),
            "backlog": self._scene.backlog(state, len(shown)),
            "menu": seconds,
        }


class _Agent:
    """Tells the engine that degrees are chosen, so that it does not ask what jobs submitted."""

    def degree(self, job: int, view: View) -> Any:
        """Refuse."""
        raise AssertionError("the agent decides")
