"""Seat a gang: on the GPUs where it fits, no reservation minds and no window closes its nodes before it ends."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Capacity, Kind
from gangplan.solvers.placement.online.placer import NodeAllocation

from ..policies.policy import Watchdog
from ..queueing.request import Request
from ..state import SchedulerState
from ..stopping.running_jobs import Nodes
from ..trial import Trial
from .gpu_types import below_zero, best_type
from .reservations import Reservation

FULL = "it does not fit"
DELAY = "it would delay a job before it"
WINDOW = "nodes are closed to it before it would end"


class Seating:
    """Where gangs go.

    Args:
        state: its placer is changed, nothing else.
        watchdog: notes seats of the placer that are refused.
        trial: knows who stopped in this decision.
    """

    def __init__(self, state: SchedulerState, watchdog: Watchdog, trial: Trial) -> None:
        self._state, self._watchdog, self._trial = state, watchdog, trial

    def taken(self, request: Request) -> Nodes:
        """Return the GPUs of a gang that is seated."""
        seated = self._state.placer.running[request.name]
        if not request.job.worker.gpu:
            return {node: below_zero(self._state.holders[node], seat.workers) for node, seat in seated.items()}
        return {node: seat.gpus for node, seat in seated.items()}

    def place(self, request: Request, degree: int, reservations: list[Reservation], trial: Trial) -> str | None:
        """Seat a gang where it fits and no reservation minds; return why not, if so, and have it taken back."""
        state, placer, job = self._state, self._state.placer, self._state.placed(request, degree)
        open_ = self._open(request, degree, state.now + state.lasts(request, degree))
        if self._choose(request, degree, open_, trial) is None:
            return self.full(request, degree) if open_ is None else WINDOW
        end = state.now + request.lasts(degree, state.slower(request, degree, self.taken(request)))
        if self.barred(request, self.taken(request), end):  # its place is slow, so that a window comes before its end
            trial.back()
            if self._choose(request, degree, self._open(request, degree, np.inf), trial) is None:
                return WINDOW
            end = state.now + request.lasts(degree, state.slower(request, degree, self.taken(request)))
        if not self.stand(reservations, job, end):
            end = end if state.places is None and not request.types else np.inf  # elsewhere it may take longer
            trial.back()
            room = self._open(request, degree, end) or placer.room(job)
            for reservation in reservations:
                room = reservation.beside(job, room, end)
            if room.total < job.workers[0] or self._choose(request, degree, room, trial) is None:
                return DELAY
        return None

    def check(self, request: Request, degree: int, nodes: Nodes, trial: Trial) -> str | None:
        """Seat a gang on these GPUs, on which the trial may have it already; return why not, if so.

        Of workers that it does not need, in its last bundle, it keeps those with which it has whole nodes.
        """
        state, name = self._state, request.name
        mine, less, need = name in state.placer.running, False, request.job.worker.grants or 1
        if mine and (rest := sum(map(len, nodes.values())) // need - degree) > 0:
            part = [node for node, gpus in nodes.items() if len(gpus) < state.fleet.gpus[node]]
            less = bool(part)
        if less:
            node = min(part, key=lambda node: len(nodes[node]))
            nodes = {**nodes, node: nodes[node][: len(nodes[node]) - rest * need]}
        wrong = state.wrong(request, degree, nodes)
        if mine and less:
            trial.back()
        if not wrong and (less or not mine) and not trial.put(request, nodes):
            wrong = [f"{name}: cores, memory or NIC are too few, counted in whole millionths"]
        if wrong and mine:
            self._watchdog.note(f"the placer's seats are refused: {wrong[0]}")
        return wrong[0] if wrong else None

    def stand(self, reservations: list[Reservation], job: GangJob, end: float) -> bool:
        """Return whether reservations stand if a gang, which is seated, runs to `end`."""
        return all(x.stands(job, *self._state.placer.uses(job.name), end) for x in reservations)

    def barred(self, request: Request, nodes: Nodes, end: float) -> bool:
        """Return whether a window closes one of these nodes to a job before it ends."""
        shut = self._closed(request, end)
        return bool(len(shut)) and not nodes.keys().isdisjoint(shut.tolist())

    def _closed(self, request: Request, end: float) -> np.ndarray:
        """Return the nodes closed to a job by a claim, or by a window before it ends if others stop last."""
        state = self._state
        shut = state.calendar.closed(request, state.now, end + state.delay(self._trial.halted.values()))
        apart = state.notices.apart(request.job)
        return np.union1d(shut, apart).astype(np.int64) if apart else shut

    def _open(self, request: Request, degree: int, end: float) -> Capacity | None:
        """Return the room that windows leave a job which runs to `end`, `None` if they leave it all."""
        state, shut = self._state, self._closed(request, end)
        return state.placer.room(state.placed(request, degree)).without(shut) if len(shut) else None

    def _choose(
        self, request: Request, degree: int, room: Capacity | None, trial: Trial
    ) -> Mapping[int, NodeAllocation] | None:
        """Place a gang where jobs mind it least if speeds were learned or are known, else by the topology.

        Where places differ, it gets the closest GPUs.
        """
        state, job = self._state, self._state.placed(request, degree)
        if not job.worker.gpu:
            return trial.place(job, room)
        if state.learned is not None and state.learned.ready:
            gpus, busy = min(request.gpus(degree), state.size), 1 - state.idle / max(1, state.gpus)
            policy = state.learned.policy(request.job.model, gpus, request.lasts(degree), busy)
            return trial.place(job, room, policy)
        if state.interference is not None:
            return trial.place(job, room, state.interference.policy(job))
        if state.places is not None:
            room = best_type(state, request, degree, room) if request.types else room
            return trial.place(job, room, state.places.closest)
        return trial.place(job, room)

    def full(self, request: Request, degree: int) -> str:
        """Note that such workers did not fit."""
        job, closed = self._state.placed(request, degree), self._state.closed
        if not self._state.placer.against(job):
            kind, count = Kind.workers(job), job.workers[0]
            closed[kind] = min(closed.get(kind, count), count)
        return FULL
