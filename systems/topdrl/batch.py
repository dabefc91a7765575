"""Many episodes side by side: compiled code takes each to its next decision, and one that is over begins anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice, require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.allocate import ALLOCATORS, choose
from gangplan.simulator.gangs.arrays import (
    ARRIVED,
    NOW,
    RUNNING,
    WAITING,
    Cluster,
    Jobs,
    State,
    begin,
    cluster_of,
    jobs_of,
)
from gangplan.simulator.gangs.step import begin_job, pass_time, rate, total
from gangplan.solvers.compiled.kernel import (
    Bools,
    Bools2,
    Floats,
    Floats2,
    Ints,
    Ints2,
    by_reference,
    lean,
    lean_kernel,
)

JCT, THROUGHPUT = range(2)
REWARDS = ("jct", "throughput")
"""What is paid for seconds that pass: minus the increase of the sum of JCT; the sum of the rates of the jobs that run
less a penalty for each that waits (Ayadi et al., JPDC 204, 2025)."""
GIVEN = -1
"""The allocator that takes the GPUs of each node that are given."""


def _rows_of(one: type) -> Any:
    """Return a named tuple of the fields of `one`, an episode a row; rows are as long as the longest needs."""
    more, fields = {Floats: Floats2, Ints: Ints2}, get_type_hints(one, include_extras=True)
    return NamedTuple(f"{one.__name__}Rows", [(name, more[kind]) for name, kind in fields.items()])


if TYPE_CHECKING:
    JobRows = Jobs
    StateRows = State
else:
    JobRows, StateRows = _rows_of(Jobs), _rows_of(State)


@lean_kernel
def play(
    jobs: JobRows, cluster: Cluster, state: StateRows, size: Ints, choice: Ints, allocator: Ints, take: Ints2,
    hold: float, mask: Bools2, paid: Floats2,
) -> None:  # fmt: skip
    """Do in each episode what was chosen, nothing where that is -1, and go on to the next decision."""
    on = by_reference(cluster)
    for b in range(len(choice)):
        of, now = by_reference(jobs_at(jobs, size[b], b)), by_reference(state_at(state, size[b], b))
        _go_on(of, on, now, choice[b], allocator[b], take[b], hold, mask[b], paid[b])


@lean
def jobs_at(jobs: JobRows, n: int, b: int) -> Jobs:
    """Return the n jobs of an episode."""
    return Jobs(
        jobs.submit[b, :n], jobs.work[b, :n], jobs.expected[b, :n], jobs.gpus[b, :n], jobs.intensity[b, :n],
        jobs.first[b, : n + 1],
    )  # fmt: skip


@lean
def state_at(state: StateRows, n: int, b: int) -> State:
    """Return the state of an episode of n jobs."""
    return State(
        state.clock[b], state.count[b], state.queue[b, :n], state.running[b, :n], state.free[b], state.holder[b],
        state.held[b], state.start[b, :n], state.finish[b, :n], state.urgency[b, :n], state.cost[b, :n],
    )  # fmt: skip


@lean
def _go_on(
    jobs: Jobs, cluster: Cluster, state: State, choice: int, allocator: int, take: Ints, hold: float, mask: Bools,
    paid: Floats,
) -> None:  # fmt: skip
    """Act in an episode, and pass time until a job in a slot fits or all is over."""
    on = True
    if choice == len(mask) - 1:
        on = _wait(jobs, cluster, state, hold, paid)
    elif choice >= 0:
        if allocator >= 0:
            choose(allocator, jobs.gpus[state.queue[choice]], cluster, state.free, take)
        begin_job(jobs, cluster, state, choice, take)
    while on and not offer(jobs, state, mask):
        on = _wait(jobs, cluster, state, hold, paid)
    if not on:
        mask[:] = False


@lean
def offer(jobs: Jobs, state: State, mask: Bools) -> bool:
    """Write which jobs in slots fit, and last whether waiting is possible; return whether any fits."""
    idle, found, slots = total(state.free), False, len(mask) - 1
    for at in range(slots):
        mask[at] = at < state.count[WAITING] and jobs.gpus[state.queue[at]] <= idle
        found = found or mask[at]
    mask[slots] = state.count[RUNNING] > 0 or state.count[ARRIVED] < len(jobs.submit)
    return found


@lean
def _wait(jobs: Jobs, cluster: Cluster, state: State, hold: float, paid: Floats) -> bool:
    """Go on to the next instant, and pay for the time by each of `REWARDS`; return whether there is one."""
    before, waiting, running, rates = state.clock[NOW], state.count[WAITING], state.count[RUNNING], 0.0
    for i in range(running):
        rates += rate(jobs, state, state.running[i])
    on = pass_time(jobs, cluster, state, np.inf)
    seconds = state.clock[NOW] - before
    paid[JCT] -= seconds * (waiting + running)
    paid[THROUGHPUT] += seconds * (rates - hold * waiting)
    return on


Drawn = Workload | tuple[Workload, FloatArray | None]
"""Jobs, and the durations that policies are told of, by default the true ones."""


def alone(jobs: Jobs, state: State) -> tuple[JobRows, StateRows, Ints]:
    """Return one episode as rows, which are views."""
    size = np.array([len(jobs.submit)])
    return JobRows(*(x[None] for x in jobs)), StateRows(*(x[None] for x in state)), size


class Finished(NamedTuple):
    """An episode that is over: the number that it was drawn by, and its mean JCT in seconds."""

    seed: int
    mean_jct: float


class Batch:
    """B episodes, each at an instant at which a job fits that is among the first `slots` of its queue.

    Action i < slots starts the job in slot i on the GPUs that the allocator gives it; then the episode is asked again
    at the same instant, as long as a job in a slot fits. Action `slots` waits for the next arrival or completion; where
    nothing runs or arrives any more it is forbidden. After the last decision the rest is run and paid for.

    Args:
        draw: makes the jobs of an episode from a seed, the next one each time; or a list of jobs, each played once,
            after which there is nothing more to decide.
        fleet, proximity: as of `simulate`.
        seed: the first that is drawn by.
        slots: how many jobs of the queue are in sight.
        hold: the penalty of a waiting job, by the second.

    Attributes:
        jobs, state: rows of arrays; new ones where an episode needs longer rows.
        size: jobs of each episode, int64 (B,).
        mask: which actions are possible, bool (B, slots + 1); none in an episode that is over for good. `act` changes
            it in place.
        seeds: of each episode, int64 (B,).
        finished: the episodes that are over, in the order of their ends.
    """

    def __init__(
        self,
        draw: Callable[[int], Drawn] | Sequence[Drawn],
        fleet: Fleet,
        proximity: Proximity | None = None,
        *,
        count: int = 16,
        seed: int = 0,
        slots: int = 20,
        allocator: str = "closest",
        reward: str = "jct",
        hold: float = 1.0,
    ) -> None:
        require_number(count, "count", positive=True, whole=True)
        require_number(slots, "slots", positive=True, whole=True)
        for name, value, known in (("allocator", allocator, ALLOCATORS), ("reward", reward, REWARDS)):
            require_choice(value, name, known)
        self._draw: Callable[[int], Drawn | None] = (
            draw if callable(draw) else lambda at: draw[at] if at < len(draw) else None
        )
        self._next = seed if callable(draw) else 0
        self._proximity, self._reward, self._hold = proximity or Proximity(), REWARDS.index(reward), float(hold)
        self.slots, self.cluster = slots, cluster_of(fleet, self._proximity)
        floats, ints = np.zeros((count, 0)), np.zeros((count, 0), dtype=np.int64)
        self.jobs = JobRows(floats, floats, floats, ints, floats, ints)
        self.state = StateRows(floats, ints, ints, ints, ints, ints, ints, floats, floats, floats, floats)
        self.size, self.seeds = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
        self.mask = np.zeros((count, slots + 1), dtype=bool)
        self.finished: list[Finished] = []
        self._allocator = np.full(count, ALLOCATORS.index(allocator), dtype=np.int64)
        self._take = np.zeros((count, fleet.n_nodes), dtype=np.int64)
        self._given = np.full(count, GIVEN, dtype=np.int64)
        self._paid, self._over = np.zeros((count, len(REWARDS))), np.zeros(count, dtype=bool)
        self._none = np.full(count, -1, dtype=np.int64)
        for b in range(count):
            self._begin(b)
        self._run(self._none, self._allocator)

    def __len__(self) -> int:
        return len(self.size)

    def of(self, b: int) -> tuple[Jobs, State]:
        """Return jobs and state of an episode, as views; `copy` the state before a rollout changes it."""
        n = int(self.size[b])
        jobs, state = jobs_at(self.jobs, n, b), state_at(self.state, n, b)
        return jobs, state._replace(held=state.held[: int(jobs.first[-1])])

    def act(
        self,
        choice: NDArray[np.int64],
        allocator: NDArray[np.int64] | None = None,
        take: NDArray[np.int64] | None = None,
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Act in each episode, and go on to its next decision; one that is over begins anew with the next jobs.

        Args:
            choice: the actions, int64 (B,); -1 leaves an episode as it is, and of one that is over for good it does not
                matter.
            allocator: of each episode by its place in `ALLOCATORS`, int64 (B,), by default that of the batch.
            take: instead of an allocator, the GPUs of each node that the job gets, int64 (B, m).

        Returns:
            What the actions earned, float64 (B,), and which episodes ended by them, bool (B,).

        Raises:
            InstanceError: if an action is forbidden, or `take` is not what the job needs and is idle.
        """
        choice = np.ascontiguousarray(choice, dtype=np.int64)
        if choice.shape != self.size.shape:
            raise InstanceError("choice", f"has the shape {choice.shape}, not {self.size.shape}")
        live = ~self._over & (choice != -1)
        inside = (choice >= 0) & (choice <= self.slots)
        allowed = inside & self.mask[np.arange(len(choice)), np.where(inside, choice, 0)]
        if (live & ~allowed).any():
            b = int(np.argmax(live & ~allowed))
            raise InstanceError(f"choice[{b}]", f"{choice[b]} is not possible now")
        if take is not None:
            self._take[:] = take
            self._require_take(choice, live & (choice < self.slots))
            allocator = self._given
        elif allocator is None:
            allocator = self._allocator
        else:
            allocator = np.ascontiguousarray(allocator, dtype=np.int64)
            if allocator.shape != choice.shape or ((allocator < 0) | (allocator >= len(ALLOCATORS)))[live].any():
                raise InstanceError("allocator", f"is not a number below {len(ALLOCATORS)} for each episode")
        return self._play(np.where(live, choice, -1), allocator)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that changes, but the episodes that are over, by name: with it, `restore` goes back to here."""
        parts = {f"jobs.{k}": x for k, x in self.jobs._asdict().items()}
        parts |= {f"state.{k}": x for k, x in self.state._asdict().items()}
        rest = {"size": self.size, "seeds": self.seeds, "mask": self.mask, "over": self._over}
        return {name: x.copy() for name, x in (parts | rest).items()} | {"next": np.array(self._next)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go back to what `arrays` returned of a batch made alike."""
        self.jobs = JobRows(*(arrays[f"jobs.{name}"].copy() for name in JobRows._fields))
        self.state = StateRows(*(arrays[f"state.{name}"].copy() for name in StateRows._fields))
        for held, name in ((self.size, "size"), (self.seeds, "seeds"), (self.mask, "mask"), (self._over, "over")):
            held[:] = arrays[name]
        self._next = int(arrays["next"])

    def _require_take(self, choice: NDArray[np.int64], starts: NDArray[np.bool_]) -> None:
        for b in np.flatnonzero(starts).tolist():
            need = self.jobs.gpus[b, self.state.queue[b, choice[b]]]
            if self._take[b].sum() != need or ((self._take[b] < 0) | (self._take[b] > self.state.free[b])).any():
                raise InstanceError(f"take[{b}]", f"{self._take[b].tolist()} are not {need} idle GPUs")

    def _play(self, choice: NDArray[np.int64], allocator: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.bool_]]:
        self._run(choice, allocator)
        earned = self._paid[:, self._reward].copy()
        ended = ~self.mask.any(axis=1) & ~self._over
        if ended.any():
            for b in np.flatnonzero(ended).tolist():
                jobs, state = self.of(b)
                self.finished.append(Finished(int(self.seeds[b]), float((state.finish - jobs.submit).mean())))
                self._begin(b)
            self._run(self._none, allocator)
        return earned, ended

    def _run(self, choice: NDArray[np.int64], allocator: NDArray[np.int64]) -> None:
        self._paid[:] = 0.0
        of = self.jobs, self.cluster, self.state, self.size
        play(*of, choice, allocator, self._take, self._hold, self.mask, self._paid)

    def _begin(self, b: int) -> None:
        """Begin the next episode in row b, if there is one."""
        drawn = self._draw(self._next)
        if drawn is None:
            self._over[b] = True
            return
        workload, expected = drawn if isinstance(drawn, tuple) else (drawn, None)
        jobs = jobs_of(workload, self._proximity, expected)
        self.size[b], self.seeds[b] = workload.n_jobs, self._next
        self.jobs = JobRows(*(_put(x, b, row) for x, row in zip(self.jobs, jobs, strict=True)))
        state = begin(jobs, self.cluster)
        self.state = StateRows(*(_put(x, b, row) for x, row in zip(self.state, state, strict=True)))
        self._next += 1


def _put(rows: Any, b: int, row: Any) -> Any:
    """Write the beginning of a row, of longer rows if need be."""
    if rows.shape[1] < len(row):
        rows = np.concatenate([rows, np.zeros((len(rows), len(row) - rows.shape[1]), dtype=rows.dtype)], axis=1)
    rows[b, : len(row)] = row
    return rows
