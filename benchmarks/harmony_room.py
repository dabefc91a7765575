"""How much a better search could gain: `colocate` against more orders and against every joint place of a few jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import numpy as np

from gangplan.instances.arrays import FloatArray, offsets, require_choice
from gangplan.simulator.ground import against, evaluate
from gangplan.simulator.snapshots import Long, Snapshots, Truth
from gangplan.systems.harmony.colocate.policy import DELAY, SLACK, Joint, Speeds
from gangplan.systems.interference.baselines import CONSOLIDATE, PATIENCE, Places
from gangplan.systems.interference.case import InterferenceCase
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.greedy import Rows, places, rooms
from gangplan.systems.interference.ground import Interference
from gangplan.systems.interference.policies import make_policy

MORE, JOBS, PLACES, AT_ONCE = 80, 3, 400_000, 20_000
"""Orders; jobs and joint places up to which all are tried, and how many of them at once."""
_WAYS = {
    "joint, consolidated": {"consolidate": CONSOLIDATE},
    "joint, patient": {"patience": PATIENCE},
    "joint, packed": {"consolidate": CONSOLIDATE, "slack": SLACK},
}


class Exact(Joint):
    """Does the best of all joint places of the jobs that wait; where there are too many, improves on the search."""

    def place(self, env: Environment) -> None:
        """Place what is best to place now."""
        found = env.fork()
        super().place(found)
        jobs = [job for job in env.waiting if env.fits(job)]
        whole = self.best(env, jobs) if len(jobs) <= JOBS else None
        if whole is not None:
            if whole[0] <= self.value(found):
                found = env.fork()
                for job, rows in whole[1].items():
                    found.place_whole(job, rows)
        else:
            found = self._improved(found, jobs)
        for job in found.running[len(env.running) :]:
            env.place_whole(job, found.rows(job))

    def _improved(self, env: Environment, jobs: Sequence[int]) -> Environment:
        """Place each job anew where that is better, three times over."""
        for _, job in product(range(3), jobs):
            other = env.fork()
            if job in other.running:
                other.withdraw(job)
                other.waiting = sorted([*other.waiting, job])
            whole = self.best(other, [job]) if other.fits(job) else None
            if whole is not None and whole[0] < self.value(env) * (1 - 1e-9):
                for rows in whole[1].values():
                    other.place_whole(job, rows)
                env = other
        return env

    def best(self, env: Environment, jobs: Sequence[int]) -> tuple[float, dict[int, Rows]] | None:
        """Return the least value of all places of some jobs, and these; None if there are too many."""
        options = [self._options(env, job) for job in jobs]
        if np.prod([len(x) + 1.0 for x in options]) > PLACES:
            return None
        demands, wait = env.case.jobs, self.value(env) - self.remaining(env)
        left = demands.epochs[env.running] - env.done_epochs[env.running]
        found: tuple[float, dict[int, Rows]] = (self.value(env), {})
        for size in range(1, len(jobs) + 1):
            for some in combinations(range(len(jobs)), size):
                chosen = [jobs[i] for i in some]
                need = [options[i] @ np.stack([demands.worker[jobs[i]], demands.server[jobs[i]]]) for i in some]
                starts = wait - sum(self.least(env, job) + DELAY * env.case.interval for job in chosen)
                todo = np.concatenate([left, demands.epochs[chosen]])
                for part in _joint(need, env.free + 1e-9 * env.size):
                    tried = np.stack([options[i][part[:, k]] for k, i in enumerate(some)], axis=1)
                    now = _snapshots(env.snapshot(), demands.kind[chosen], tried)
                    speed = self._truth.speeds(now).reshape(len(part), -1)
                    cost = (todo / np.maximum(speed, 1e-12)).sum(axis=1) + starts
                    at = int(cost.argmin())
                    if cost[at] < found[0] * (1 - 1e-12):
                        found = float(cost[at]), dict(zip(chosen, map(_rows, tried[at]), strict=True))
        return found

    def _options(self, env: Environment, job: int) -> Long:
        insists = env.now - env.case.jobs.submit[job] < self._consolidate * env.case.interval
        tried, _ = places(env, job, rooms(env, job), most=2000)
        most = env.case.fewest[job] if insists else len(env.free)
        return np.asarray(tried[np.count_nonzero(tried.any(axis=2), axis=1) <= most])


def _joint(need: Sequence[FloatArray], free: FloatArray) -> Iterator[Long]:
    """Yield which places of all jobs fit together, int64 (c, jobs); `need` is float64 (places, m, 3) of each."""
    index, used = np.zeros((1, 0), dtype=np.int64), np.zeros((1, *free.shape))
    for mine in need:
        fits = [np.flatnonzero((total + mine <= free).all(axis=(1, 2))) for total in used]
        at, own = np.repeat(np.arange(len(used)), list(map(len, fits))), np.concatenate([np.zeros(0, np.int64), *fits])
        index, used = np.column_stack([index[at], own]), used[at] + mine[own]
    for begin in range(0, len(index), AT_ONCE):
        yield index[begin : begin + AT_ONCE]


def _rows(place: Long) -> Rows:
    return {int(s): (int(place[s, 0]), int(place[s, 1])) for s in np.flatnonzero(place.any(axis=1))}


def _snapshots(base: Snapshots, kinds: Long, tried: Long) -> Snapshots:
    """Return the jobs of one snapshot beside new ones at each of c joint places, int64 (c, jobs, m, 2)."""
    count, new = tried.shape[:2]
    place, server = np.nonzero(tried.reshape(count * new, *tried.shape[2:]).any(axis=2))
    own = (place // new + 1) * len(base.server) + np.arange(len(place))
    columns = np.empty((3, count * len(base.server) + len(own)), dtype=np.int64)
    there = np.ones(columns.shape[1], dtype=np.bool_)
    there[own] = False
    columns[:, there] = np.tile(np.stack([base.server, base.workers, base.ps]), count)
    columns[:, own] = server, *tried.reshape(count * new, *tried.shape[2:])[place, server].T
    sizes = np.bincount(place, minlength=count * new).reshape(count, new)
    rows = offsets(np.concatenate([np.tile(np.diff(base.rows), (count, 1)), sizes], axis=1).ravel())
    first = np.arange(count + 1, dtype=np.int64) * (len(base.kind) + new)
    return Snapshots(first, np.tile(np.append(base.kind, kinds), count).astype(np.int64), rows, *columns)


def room(name: str, make: Callable[[int], InterferenceCase], seeds: Sequence[int]) -> Iterator[str]:
    """Yield how far other searches under the same learned speeds are from `colocate` in mean JCT."""
    ships = make_policy("colocate", name)
    policy = ships(make(seeds[0]))
    truth: Truth = Speeds(policy.fitted)  # type: ignore[attr-defined]
    require_choice(policy.way, "way", _WAYS)  # type: ignore[attr-defined]
    words = _WAYS[policy.way]  # type: ignore[attr-defined]

    def of(kind: type[Joint], **more: float) -> Callable[[InterferenceCase], Places]:
        return lambda case: kind(truth, **more)  # type: ignore[arg-type]

    others = {
        "other orders": of(Joint, **words, seed=1),
        f"{MORE} orders": of(Joint, **words, tries=MORE),
        "exact": of(Exact, **words, tries=MORE),
        "exact, none waits by rule": of(Exact, tries=MORE),
    }
    makers = {x: lambda drawn, seed, of=one: of(drawn) for x, one in {"colocate": ships, **others}.items()}
    runs = evaluate(Interference(name, make=make), makers, seeds)
    for other in makers:
        mean, margin = against(runs, other, "colocate", "mean_jct")
        yield f"{name}, {len(seeds)} seeds: {other} {mean:+.2%}" + ("" if margin is None else f" ± {margin:.2%}")
