"""The contract of a policy that picks the next job: observe what may be seen, act on it.

A policy runs on every ground that shows what it needs (`Ground.picks`), in the engine (`EnginePick`), and in
`gangplan.Scheduler` (`gangplan.scheduler.policies.picking.SchedulerPick`). Where a job goes is the ground's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar, Protocol

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray

from .engine.jobs import Long, Rows
from .engine.policy import EngineView

COLUMNS = {
    "gpus": "GPUs that a job asks for",
    "seconds": "seconds that it is said to run, alone",
    "waited": "seconds since its submission",
}
"""What a ground may show of the n jobs that wait."""
WAIT = -1
"""The action of a policy that lets everybody wait until something happens."""


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What may be seen at a decision.

    Attributes:
        now: seconds.
        idle, gpus: GPUs that nobody holds, and all.
        columns: float64 (n,) by name, see `COLUMNS`.
        fits: whether a job may start now, bool (n,).
    """

    now: float
    idle: int
    gpus: int
    columns: Mapping[str, FloatArray]
    fits: BoolArray


class Picks(Protocol):
    """A policy; `needs` are names of `COLUMNS`."""

    needs: Sequence[str]

    def act(self, scene: DecisionView) -> int:
        """Return the place of a job that fits and starts now, or `WAIT`."""


def require_seen(policy: Picks, sees: Sequence[str], where: str) -> None:
    """Raise unless all that a policy needs is shown; the error names what is not."""
    if isinstance(policy.needs, str) or not isinstance(policy.needs, Sequence):
        raise InstanceError("policy", f"`needs` is {policy.needs!r}, not names of columns")
    if not sees:
        raise InstanceError("policy", f"picks one of the jobs that wait, and {where} shows no jobs that wait")
    for name in policy.needs:
        if name not in sees:
            raise InstanceError("policy", f"needs {name!r}, and {where} shows {', '.join(sees) or 'no jobs that wait'}")


def ask(policy: Picks, scene: DecisionView) -> int:
    """Return a policy's action."""
    if not scene.fits.any():
        return WAIT
    shown = DecisionView(scene.now, scene.idle, scene.gpus, {x: scene.columns[x] for x in policy.needs}, scene.fits)
    try:
        at = index(policy.act(shown))
    except TypeError as error:
        raise InstanceError("act", f"{error}") from None
    if at != WAIT and not (0 <= at < len(scene.fits) and scene.fits[at]):
        raise InstanceError("act", f"{at!r} is no job that fits, nor {WAIT}")
    return at


def in_turn(policy: Picks, scene: DecisionView, takes: Callable[[int], int]) -> list[int]:
    """Return the jobs that a policy would start one after the other, while the GPUs last; `takes` counts theirs."""
    left, idle = np.arange(len(scene.fits)), scene.idle
    order: list[int] = []
    while True:
        fits = scene.fits[left] & np.array([takes(i) <= idle for i in left.tolist()], dtype=bool)
        columns = {name: values[left] for name, values in scene.columns.items()}
        at = ask(policy, DecisionView(scene.now, idle, scene.gpus, columns, fits))
        if at == WAIT:
            return order
        order.append(int(left[at]))
        idle -= takes(order[-1])
        left = np.delete(left, at)


class EnginePick:
    """A policy that picks, as one of the engine: for the discipline ``overtake``.

    Args:
        places: says where a job goes, by default `EngineView.find`.
    """

    steady = False
    sees: ClassVar[tuple[str, ...]] = tuple(COLUMNS)

    def __init__(self, policy: Picks, places: Any = None) -> None:
        require_seen(policy, self.sees, "the engine")
        self._policy, self._places = policy, places
        self._chosen: set[int] = set()

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        """Put those that it picks first, in its order; it is shown them as they were submitted."""
        rank = np.argsort(view.rank[jobs])
        jobs, back = jobs[rank], np.argsort(rank)
        work, idle = view.workload, int(view.free.sum())
        columns = {
            "gpus": work.gpus[jobs].astype(np.float64),
            "seconds": work.duration[jobs],
            "waited": view.now - work.submit[jobs],
        }
        fits = np.array([view.find(job, int(work.gpus[job])) is not None for job in jobs.tolist()], dtype=bool)
        scene = DecisionView(view.now, idle, int(view.fleet.gpus.sum()), columns, fits)
        order = in_turn(self._policy, scene, lambda i: int(work.gpus[jobs[i]]))
        self._chosen = {int(jobs[i]) for i in order}
        keys = np.full(len(jobs), np.inf)
        keys[order] = np.arange(len(order))
        return keys[back]

    def place(self, job: int, degree: int, view: EngineView) -> Rows | None:
        """Start those that it picked."""
        if job not in self._chosen:
            return None
        found: Rows | None = self._places.place(job, degree, view) if self._places else view.find(job, degree)
        return found


def check_picks(make: Callable[[], Any], *, scenes: int = 50, seed: int = 0) -> None:
    """Check a policy on random scenes, as Gymnasium checks environments.

    Checked: it needs columns that there are; each action is a job that fits, or `WAIT`; the same scene has the same
    answer from two of it; jobs in another order do not change who is picked, unless equal ones are; what it is shown
    cannot be written to; it picks a job of some scene.
    """
    policy, again, rng, picked = make(), make(), np.random.default_rng(seed), 0
    for name in ("needs", "act"):
        assert hasattr(policy, name), f"it has no `{name}`"
    assert set(policy.needs) <= set(COLUMNS), f"needs {sorted(set(policy.needs) - set(COLUMNS))}, which nothing shows"
    for _ in range(scenes):
        n = int(rng.integers(1, 12))
        gpus: FloatArray = (rng.permutation(n) + 1).astype(np.float64)
        columns = {"gpus": gpus, "seconds": rng.random(n) * 1e3, "waited": rng.random(n) * 1e3}
        idle = int(rng.integers(0, n + 1))
        order = rng.permutation(n)
        scene = _shown(idle, columns, np.arange(n))
        at = ask(policy, scene)
        assert ask(again, scene) == at, f"two of it act otherwise: {at} and another in {scene}"
        picked += at != WAIT
        moved = ask(make(), _shown(idle, columns, order))
        assert (at == WAIT) == (moved == WAIT), f"it waits by the order of the jobs: {scene}"
        assert at == WAIT or order[moved] == at, f"it picks by the order of the jobs: {at}, then {order[moved]}"
    assert picked, f"it lets all wait in {scenes} scenes"


def _shown(idle: int, columns: Mapping[str, FloatArray], order: Long) -> DecisionView:
    """Return a scene with the jobs in an order, which refuses to be written to."""
    shown = {name: values[order] for name, values in columns.items()}
    fits = shown["gpus"] <= idle
    for values in (*shown.values(), fits):
        values.flags.writeable = False
    return DecisionView(0.0, idle, 16, shown, fits)
