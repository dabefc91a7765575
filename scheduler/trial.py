"""Change who holds what, and have all that is not kept be as it was: the one transaction on the state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import compress
from operator import not_
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

START, STOP, ROOM = "start", "stop", "room"
"""What was done: a job began, a job stopped, or free room was taken or left while nobody began or stopped."""


class _Change(NamedTuple):
    """Hold what was done with which job, and what takes it back."""

    what: str
    name: str
    undo: Callable[[], object]


class Trial:
    """Changes of a state that are taken back, the newest first, unless they are kept.

    ::

        with state.trial() as trial:
            trial.halt("long")
            if starts("short"):
                trial.keep()

    The same trial can be entered again within: then what was done there is taken back alone.

    Args:
        state: it is changed.
        around: of whoever keeps more beside the state; it is entered with the names of jobs that are taken back.

    Attributes:
        halted: the jobs that stopped and were not taken back, as they ran.
    """

    def __init__(
        self,
        state: SchedulerState,
        around: Callable[[Collection[str]], AbstractContextManager[None]] = lambda names: nullcontext(),
    ) -> None:
        self._state, self._around = state, around
        self._done: list[_Change] = []
        self._marks: list[int] = []
        self._kept = False
        self.halted: dict[str, RunningJob] = {}

    def __enter__(self) -> Self:
        """Take back from here on what is not kept."""
        self._marks.append(len(self._done))
        return self

    def __exit__(self, *_: object) -> None:
        """Take it back, unless it is kept."""
        mark, kept, self._kept = self._marks.pop(), self._kept, False
        if not kept:
            self._undo(self._done[mark:], self._done[:mark])

    def keep(self) -> None:
        """Leave what was done as it is."""
        self._kept = True

    def back(self, starts: Collection[str] | None = None, stops: Collection[str] = ()) -> None:
        """Take back some starts and stops, which rest on none of the others; by default all that was done."""
        some = {START: starts or (), STOP: stops}
        goes = [starts is None or x.name in some.get(x.what, ()) for x in self._done]
        self._undo([*compress(self._done, goes)], [*compress(self._done, map(not_, goes))])

    def _undo(self, gone: list[_Change], rest: list[_Change]) -> None:
        self._done = rest
        if gone:
            with self._around({change.name for change in gone}):
                for change in reversed(gone):
                    change.undo()

    def note(self, what: str, name: str, undo: Callable[..., object], *args: object) -> None:
        """Note something that was done with a job, and how it is taken back."""
        self._done.append(_Change(what, name, partial(undo, *args)))

    def begin(self, job: RunningJob) -> None:
        """Have a waiting job, whose seats are taken, run."""
        promise = self._state.promises.get(job.name)
        self._state.begin(job)
        self.note(START, job.name, self._end, job.name, promise)

    def _end(self, name: str, promise: float | None) -> None:
        self._state.wait(self._state.free(name).request)
        if promise is not None:
            self._state.promises[name] = promise

    def halt(self, name: str) -> None:
        """Have a running job stop, and wait with what is left of its work."""
        self.halted[name] = self._state.halt(name)
        self.note(STOP, name, self._run_on, name)

    def _run_on(self, name: str) -> None:
        job = self.halted.pop(name)
        self._state.waiting[name] = job.request
        assert self._state.put(job), f"{name} had these seats"

    def place(
        self, gang: GangJob, room: Capacity | None = None, policy: GangPolicy | None = None
    ) -> Mapping[int, NodeAllocation] | None:
        """Seat a gang where it fits; see `Placer.place`."""
        seats = self._state.placer.place(gang, room, policy)
        if seats is not None:
            self.note(ROOM, gang.name, self._state.placer.remove, gang.name)
        return seats

    def put(self, request: Request, nodes: Nodes) -> bool:
        """Seat a gang on GPUs that are known; see `Placer.put`."""
        fits = self._state.placer.put(self._state.loose(request), nodes)
        if fits:
            self.note(ROOM, request.name, self._state.placer.remove, request.name)
        return fits

    def unseat(self, job: RunningJob) -> None:
        """Leave the seats of a running job to others, though it is noted as running."""
        self._state.placer.remove(job.name)
        self.note(ROOM, job.name, self._seat, job)

    def _seat(self, job: RunningJob) -> None:
        assert self._state.placer.put(self._state.loose(job.request), job.nodes), f"{job.name} had these seats"

    def hold(self, request: Request, amounts: Sequence[int], sign: int) -> None:
        """Count that a job holds so much, of limits too; or that it does not if the sign is -1, but for limits."""
        hold = partial(self._state.accounts.hold, request.terms, amounts, limits=sign > 0)
        hold(sign)
        self.note(ROOM, request.name, hold, -sign)

    def close(self, node: int, gpus: Collection[int], amounts: np.ndarray, gang: GangJob) -> np.ndarray:
        """Have idle GPUs of a node and such amounts, as far as it has them, be a gang's that does not run.

        Return the amounts. To the verifier the gang is another one than any that waits or runs.
        """
        state = self._state
        less = state.placer.close(node, gpus, amounts)
        before = state.held.get(gang.name)
        state.holders[node].update(dict.fromkeys(gpus, gang.name))
        state.held[gang.name] = gang, {**({} if before is None else before[1]), node: tuple(gpus)}
        state.idle -= len(gpus)
        self.note(ROOM, gang.name, self._open, node, gpus, less, gang.name)
        return less

    def _open(self, node: int, gpus: Collection[int], amounts: np.ndarray, name: str) -> None:
        state = self._state
        state.placer.open(node, gpus, amounts)
        for gpu in gpus:
            del state.holders[node][gpu]
        state.held.pop(name, None)
        state.idle += len(gpus)
