"""The contract of a policy, as a test anyone can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.instances.workload import Workload

from ..options import DegreeOptions
from ..outcome import Outcome
from .failures import Outages
from .jobs import Long
from .policy import DECISIONS, EngineScheduler, EngineView
from .simulate import simulate


def check_policy(make: Callable[[], Any], *, traces: int = 8) -> None:
    """Run a policy on small random traces, crowded, with and without consolidation, failures and restoring costs.

    Checked: every schedule passes the check (the engine sees to that, and to what `place` and `select` return); every
    job is done, unless the policy admits; two runs decide alike; the numbers of a policy that calls itself ``steady``
    stay as they are while jobs wait; what the view shows cannot be written to.
    """
    policy = make()
    missing = [name for name in DECISIONS if hasattr(policy, name) and not callable(getattr(policy, name))]
    assert not missing, f"{missing} can not be called"
    fleet = Fleet.regular(1, 3, 4, cpu=40.0)
    for seed in range(traces):
        work = _work(seed)
        for consolidate in (False, True):
            for outages in (None, Outages(mtbf=80.0, mttr=5.0, seed=seed)):
                where = f"trace {seed}, {'consolidated' if consolidate else 'counted'}, {outages}"
                runs = [_run(part, work, fleet, consolidate, outages, where) for part in (make(), make())]
                done = runs[0].admitted | hasattr(policy, "admit")
                assert done.all(), f"{where}: job {np.argmin(done)} is never done"
                same = all(np.array_equal(getattr(runs[0], x), getattr(runs[1], x)) for x in ("row_job", "row_start"))
                assert same, f"{where}: two runs differ"


def _run(part: Any, work: Workload, fleet: Fleet, consolidate: bool, outages: Outages | None, where: str) -> Outcome:
    return simulate(
        work,
        fleet,
        EngineScheduler((_WatchedPolicy(part, where), part), "overtake", consolidate),
        options=DegreeOptions.scaling(work, (1, 2, 4)) if hasattr(part, "degree") else None,
        outages=outages,
        preempt_cost=1.5,
        checkpoint_interval=4.0,
    )


class _WatchedPolicy:
    def __init__(self, part: Any, where: str) -> None:
        self._part, self._where = part, where
        self._said: dict[int, tuple[float, float]] = {}

    def select(self, view: EngineView, jobs: Long) -> FloatArray:
        for name in ("waiting", "running", "degree", "rate", "up", "rank"):
            assert not getattr(view, name).flags.writeable, f"view.{name} can be written to"
        if not hasattr(self._part, "select"):
            return view.workload.submit[jobs]
        keys: FloatArray = np.asarray(self._part.select(view, jobs))
        if getattr(self._part, "steady", False):
            for job, key, had in zip(jobs.tolist(), keys.tolist(), view.attained(jobs).tolist(), strict=True):
                before, at = self._said.get(job, (key, had))
                self._said[job] = key, had
                words = f"{self._where}: steady, but {before!r} became {key!r} while job {job} waited"
                assert before == key or at != had, words
        return keys


def _work(seed: int) -> Workload:
    """Make jobs that tie, queue and block one another, of three tenants, with cores of their own."""
    rng, n = np.random.default_rng(seed), 30
    gpus = rng.integers(1, 9, n).astype(np.int32)
    return Workload(
        names=tuple(map(str, range(n))),
        submit=rng.integers(0, 50, n).astype(float),
        gpus=gpus,
        duration=rng.integers(0, 20, n).astype(float),
        queue=tuple(rng.choice(["a", "b", "c"], n).tolist()),
        cpu=gpus * rng.uniform(1.0, 9.0, n),
    )
