"""The one transaction on the state: what is tried with jobs and with room is taken back unless it is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Capacity
from gangplan.solvers.placement.online.placer import NodeAllocation
from gangplan.solvers.placement.policies import GangPolicy

from .stopping.running_jobs import Nodes, RunningJob

if TYPE_CHECKING:
    from .queueing.request import Request
    from .state import SchedulerState

START, STOP, OTHER = "start", "stop", "other"


class _Change(NamedTuple):
    """Hold what was done, with which job, and what takes it back."""

    what: str
    name: str
    undo: Callable[[], object]


class Trial:
    """Changes of a state: ``with state.trial() as trial: ...; trial.keep()``.

    What is not kept is taken back, the newest first, also where something is raised. Whoever tries something while a
    larger trial goes on enters that one again: only what was done since then is taken back.

    Args:
        state: it is changed.
        around: of whoever keeps more than the state has: entered, with the names of the jobs, while some is taken back.

    Attributes:
        halted: the jobs that stopped, as they ran.
    """

    def __init__(
        self,
        state: SchedulerState,
        around: Callable[[Collection[str]], AbstractContextManager[None]] = lambda names: nullcontext(),
    ) -> None:
        self._state, self._around = state, around
        self._done, self._marks = list[_Change](), list[tuple[int | None, dict[str, float]]]()
        self._promises = dict(state.promises)
        self.halted: dict[str, RunningJob] = {}

    def __enter__(self) -> Self:
        """Begin something that may be taken back alone."""
        self._marks.append((len(self._done), dict(self._state.promises)))
        return self

    def __exit__(self, *_: object) -> None:
        """Take it back unless it is kept."""
        mark, promises = self._marks.pop()
        if mark is not None:
            self._undo(self._done[mark:], self._done[:mark], promises)

    def keep(self) -> None:
        """Leave what was done since the trial was entered last as it is."""
        self._marks[-1] = None, {}

    def back(self, starts: Collection[str] | None = None, stops: Collection[str] = ()) -> None:
        """Take back some starts and stops, on which no others rest; by default all that was done."""
        some = {START: starts or (), STOP: stops, OTHER: ()}
        rest = [] if starts is None else [x for x in self._done if x.name not in some[x.what]]
        gone = self._done if starts is None else [x for x in self._done if x.name in some[x.what]]
        self._undo(gone, rest, self._promises)

    def _undo(self, gone: Sequence[_Change], rest: list[_Change], promises: dict[str, float]) -> None:
        self._done = rest
        if gone:
            with self._around({change.name for change in gone}):
                for change in reversed(gone):
                    fits = change.undo()
                    assert fits is not False, f"{change.name} had these seats"
            # what was promised meanwhile was of room that jobs would have left
            waiting = self._state.waiting
            self._state.promises = {name: time for name, time in promises.items() if name in waiting}

    def note(self, what: str, name: str, undo: Callable[..., object], *args: object) -> None:
        """Note something that was done, and how it is taken back."""
        self._done.append(_Change(what, name, partial(undo, *args)))

    def begin(self, job: RunningJob) -> None:
        """Have a waiting job, whose seats are taken, run."""
        self._state.begin(job)
        self.note(START, job.name, self._end, job.name)

    def _end(self, name: str) -> None:
        self._state.wait(self._state.free(name).request)

    def halt(self, name: str) -> None:
        """Have a running job stop, and wait with what is left of its work."""
        self.halted[name] = self._state.halt(name)
        self.note(STOP, name, self._run_on, name)

    def _run_on(self, name: str) -> bool:
        job = self.halted.pop(name)
        self._state.waiting[name] = job.request
        return self._state.put(job)

    def place(
        self, gang: GangJob, room: Capacity | None = None, policy: GangPolicy | None = None
    ) -> Mapping[int, NodeAllocation] | None:
        """Seat a gang where it fits; see `Placer.place`."""
        seats = self._state.placer.place(gang, room, policy)
        if seats is not None:
            self.note(OTHER, gang.name, self._state.placer.remove, gang.name)
        return seats

    def put(self, request: Request, nodes: Nodes) -> bool:
        """Seat a gang on GPUs that are known; see `Placer.put`."""
        fits = self._state.placer.put(self._state.loose(request), nodes)
        if fits:
            self.note(OTHER, request.name, self._state.placer.remove, request.name)
        return fits

    def unseat(self, jobs: Iterable[RunningJob]) -> None:
        """Have the seats of running jobs be free, though the jobs count as running."""
        for job in jobs:
            self._state.placer.remove(job.name)
            self.note(OTHER, job.name, self._state.placer.put, self._state.loose(job.request), job.nodes)

    def hold(self, request: Request, amounts: Sequence[int], sign: int) -> None:
        """Count that a job holds so much, of limits too; or that it does not if the sign is -1, but for limits."""
        hold = partial(self._state.accounts.hold, request.terms, amounts, limits=sign > 0)
        hold(sign)
        self.note(OTHER, request.name, hold, -sign)

    def close(self, node: int, gpus: Collection[int], amounts: np.ndarray, gang: GangJob) -> np.ndarray:
        """Have idle GPUs of a node and such amounts, as far as it has them, be a gang's that is no job; return them."""
        state, others = self._state, self._state.held.get(gang.name, (gang, {}))[1]
        less = state.placer.close(node, gpus, amounts)
        state.holders[node].update(dict.fromkeys(gpus, gang.name))
        state.held[gang.name] = gang, {**others, node: tuple(gpus)}
        state.idle -= len(gpus)
        self.note(OTHER, gang.name, self._open, node, gpus, less, gang.name)
        return less

    def _open(self, node: int, gpus: Collection[int], amounts: np.ndarray, name: str) -> None:
        self._state.placer.open(node, gpus, amounts)
        for gpu in gpus:
            del self._state.holders[node][gpu]
        self._state.held.pop(name, None)
        self._state.idle += len(gpus)
