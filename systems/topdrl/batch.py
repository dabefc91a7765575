"""Many episodes side by side: compiled code takes each to its next decision, and one that is over begins anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice, require_number
from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.allocate import ALLOCATORS
from gangplan.simulator.gangs.arrays import Jobs, State, begin, cluster_of, jobs_of

from .kernels import GIVEN, play

REWARDS = ("jct", "throughput")
"""What is paid for seconds that pass: minus the increase of the sum of JCT; the sum of the rates of the jobs that run
less a penalty for each that waits (Ayadi et al., JPDC 204, 2025)."""
Drawn = Workload | tuple[Workload, FloatArray | None]
"""Jobs, and the durations that policies are told of, by default the true ones."""


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
        episodes: jobs and state of each, no jobs before it begins; copy a state before a rollout changes it.
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
        none, nobody = np.zeros(0), np.zeros(0, np.int64)
        jobs = Jobs(none, none, none, nobody, none, np.zeros(1, np.int64))
        self.episodes: list[tuple[Jobs, State]] = [(jobs, begin(jobs, self.cluster))] * count
        self.seeds = np.full(count, -1, dtype=np.int64)
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
        return len(self.episodes)

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
        if choice.shape != self.seeds.shape:
            raise InstanceError("choice", f"has the shape {choice.shape}, not {self.seeds.shape}")
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
        parts = {f"{b}.{k}": x for b, of in enumerate(self.episodes) for each in of for k, x in each.arrays().items()}
        rest = {"seeds": self.seeds, "mask": self.mask, "over": self._over}
        return {name: x.copy() for name, x in (parts | rest).items()} | {"next": np.array(self._next)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go back to what `arrays` returned of a batch made alike."""
        for b, (jobs, state) in enumerate(self.episodes):
            mine = {name: arrays[f"{b}.{name}"].copy() for name in (*jobs.arrays(), *state.arrays())}
            ours = jobs.replace(**{name: mine.pop(name) for name in jobs.arrays()})
            self.episodes[b] = ours, state.replace(**mine)
        for held, name in ((self.seeds, "seeds"), (self.mask, "mask"), (self._over, "over")):
            held[:] = arrays[name]
        self._next = int(arrays["next"])

    def _require_take(self, choice: NDArray[np.int64], starts: NDArray[np.bool_]) -> None:
        for b in np.flatnonzero(starts).tolist():
            jobs, state = self.episodes[b]
            need = jobs.gpus[state.queue[choice[b]]]
            if self._take[b].sum() != need or ((self._take[b] < 0) | (self._take[b] > state.free)).any():
                raise InstanceError(f"take[{b}]", f"{self._take[b].tolist()} are not {need} idle GPUs")

    def _play(self, choice: NDArray[np.int64], allocator: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.bool_]]:
        self._run(choice, allocator)
        earned = self._paid[:, self._reward].copy()
        ended = ~self.mask.any(axis=1) & ~self._over
        if ended.any():
            for b in np.flatnonzero(ended).tolist():
                jobs, state = self.episodes[b]
                self.finished.append(Finished(int(self.seeds[b]), float((state.finish - jobs.submit).mean())))
                self._begin(b)
            self._run(self._none, allocator)
        return earned, ended

    def _run(self, choice: NDArray[np.int64], allocator: NDArray[np.int64]) -> None:
        self._paid[:] = 0.0
        mask = self.mask.view(np.uint8)
        play(self.episodes, self.cluster, choice, allocator, self._take, self._hold, mask, self._paid)

    def _begin(self, b: int) -> None:
        """Begin the next episode in place of b, if there is one."""
        drawn = self._draw(self._next)
        if drawn is None:
            self._over[b] = True
            return
        workload, expected = drawn if isinstance(drawn, tuple) else (drawn, None)
        jobs = jobs_of(workload, self._proximity, expected)
        self.episodes[b], self.seeds[b] = (jobs, begin(jobs, self.cluster)), self._next
        self._next += 1
