"""How well durations are predicted: each job when it comes, from those that ended before; `Durations` and rivals.

Windows are those for tuning of the study of durations, and drawn clusters with reruns. Jobs start when they come, so
that rows depend on no scheduler.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import GangJob
from gangplan.instances.workload import Workload
from gangplan.scheduler.durations import POINTS, Durations, pattern
from gangplan.scheduler.queueing.request import Terms

from .durations_rivals import USUAL
from .durations_traces import CASES, LAST, PURPOSES, TUNING, Case
from .found import Found, table
from .rows import Task
from .study import Options, Study

SHARES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
"""Of the distribution, where quantiles are held against the logarithm of seconds."""
BATCH, NEAR = 30, 60
"""Jobs that are put in order at a time, out of so many that came in a row."""
RERUNS = {"tight": (0.3, 0.6, 0.15), "usual": (0.7, 0.5, 0.25), "loose": (1.2, 0.3, 0.3)}
"""Deviation of the logarithm of seconds in a title, probability that a job is run again minutes later, and that it
fails early."""


def reruns(which: str, window: int, jobs: int = 2000, users: int = 60) -> Workload:
    """Draw a cluster: users of unlike habits and activity, their titles, jobs that are run again like the last one."""
    spread, again, fails = RERUNS[which]
    rng, names = np.random.default_rng(500 + window), list(PURPOSES)
    active = 1 / (np.arange(users) + 1.0)
    habit, rows, now = rng.normal(0.0, 0.7, users), [], 0.0
    titles: dict[int, list[tuple[str, int, float]]] = {user: [] for user in range(users)}
    shares = np.array([share for share, _, _ in PURPOSES.values()])
    while len(rows) < jobs:
        now += rng.exponential(600.0) * (1.6 + 1.2 * np.cos(2 * np.pi * now / 86400))
        user = int(rng.choice(users, p=active / active.sum()))
        known = titles[user]
        if not known or rng.random() < 0.06:
            purpose = names[int(rng.choice(len(names), p=shares))]
            median = PURPOSES[purpose][1] * float(np.exp(habit[user] + rng.normal(0.0, 0.8)))
            title = f"{purpose}-{chr(97 + rng.integers(16))}{chr(97 + len(known) % 26)}"
            known.append((title, int(rng.choice(PURPOSES[purpose][2])), median))
        title, gpus, median = known[-min(len(known), int(rng.geometric(0.3)))]
        at, level, failed = now, rng.normal(), rng.random() < fails
        while True:
            level = 0.8 * level + 0.6 * rng.normal()
            seconds = max(5.0, median * float(np.exp(spread * level)) * (rng.uniform(0.01, 0.3) if failed else 1.0))
            rows.append((at, f"vc{user % 6}", f"u{user}", f"{title}-{len(rows)}", gpus, seconds))
            if rng.random() > again:
                break
            at += rng.exponential(120.0) + seconds * failed
            failed = rng.random() < fails * (0.6 if not failed else 0.6 / fails)
    submit, queue, user_of, title_of, size, duration = zip(*sorted(rows)[:jobs], strict=True)
    return Workload(
        tuple(map(str, range(jobs))),
        np.array(submit),
        np.array(size, dtype=np.int32),
        np.array(duration),
        queue=queue,
        user=user_of,
        title=title_of,
    )


EVERY = (*CASES, *(Case(f"reruns, {which}", "", 16, lambda data, w, which=which: reruns(which, w)) for which in RERUNS))


class Medians:
    """Like jobs' seconds, as QSSF groups them: of the first group that has as many as are asked for, the last 200."""

    def __init__(self, fewest: int = 3, last: int = 200) -> None:
        self._fewest, self._last, self._seconds = fewest, last, dict[object, list[float]]()

    def _keys(self, job: GangJob, terms: Terms) -> list[object]:
        size, user, title = job.workers[-1], terms.user, pattern(terms.title)
        named = [(user, title, size), (user, title)] if title else []
        return [*named, *([(user, size), user] if user else []), (terms.queue, job.model, size), size, None]

    def predict(self, job: GangJob, terms: Terms) -> FloatArray:
        """Return quantiles of GPU seconds."""
        every = (self._seconds.get(key, []) for key in self._keys(job, terms))
        like = next((seconds for seconds in every if len(seconds) >= self._fewest), [USUAL])
        return np.quantile(like[-self._last :], (np.arange(POINTS) + 0.5) / POINTS) * job.workers[-1]

    def learn(self, job: GangJob, terms: Terms, work: float) -> None:
        """Learn from a job that ended."""
        for key in self._keys(job, terms):
            self._seconds.setdefault(key, []).append(work / job.workers[-1])


class Boosted(Medians):
    """Gradient boosting on what `Medians` knows of each group: the mean of logarithms, the last, how many.

    It is trained anew whenever a third more jobs have ended, on three fourths of them, and quantiles are those of what
    it is off on the rest.
    """

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[object, list[list[float]]] = {}
        self._rows, self._logs, self._next = list[list[float]](), list[float](), 60
        self._trees, self._off = None, np.zeros(POINTS)

    def predict(self, job: GangJob, terms: Terms) -> FloatArray:
        """Return quantiles of GPU seconds."""
        row = [float(job.workers[-1])]
        for key in (*self._keys(job, terms), *[-1] * 7)[:7]:
            logs = np.log(np.maximum(1.0, self._seconds.get(key, [USUAL])[-8:]))
            row += [float(logs.mean()), float(logs[-1]), float(len(self._seconds.get(key, ())))]
        self._asked.setdefault((job, terms), []).append(row)
        if self._trees is None:
            return super().predict(job, terms)
        return np.exp(np.clip(self._trees.predict([row])[0] + self._off, 0.0, 18.0)) * job.workers[-1]

    def learn(self, job: GangJob, terms: Terms, work: float) -> None:
        """Learn from a job that ended."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        super().learn(job, terms, work)
        self._rows.append(self._asked[job, terms].pop(0))
        self._logs.append(float(np.log(max(1.0, work / job.workers[-1]))))
        if len(self._rows) >= self._next:
            self._next = len(self._rows) * 4 // 3
            x, y, cut = np.array(self._rows), np.array(self._logs), len(self._rows) * 3 // 4
            trees = HistGradientBoostingRegressor(max_iter=80, learning_rate=0.06, max_leaf_nodes=15, random_state=0)
            off = y[cut:] - trees.fit(x[:cut], y[:cut]).predict(x[cut:])
            self._off, self._trees = np.quantile(off, (np.arange(POINTS) + 0.5) / POINTS), trees.fit(x, y)


PREDICTORS = {"Durations": Durations, "last": partial(Medians, 1, 1), "medians": Medians, "boosted": Boosted}


def tasks(options: Options) -> Iterator[Task]:
    """Yield every window for tuning, and of traces the last, with all names told and with none, by every predictor."""
    for case in EVERY:
        for known in ("history", "nothing"):
            for name in options.chosen([f"{case.name}: {known}"]):
                for policy in options.policies or PREDICTORS:
                    windows = (*TUNING, LAST) if case in CASES else TUNING
                    yield from (Task(name, policy, window) for window in windows)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Return the pinball loss of logarithms of seconds, and what an order by the mean costs.

    Raises:
        InstanceError: if the data of the trace is not there.
    """
    name, known = task.case.rsplit(": ", 1)
    case = next(case for case in EVERY if case.name == name)
    if case.needs and not (options.data / case.needs).exists():
        raise InstanceError("data", f"there is no {case.needs}")
    work = case.workload(options.data, task.seed)
    jobs = np.argsort(work.submit, kind="stable")
    said = predicted(work, jobs, known == "history", PREDICTORS[task.policy]())
    off = np.log(np.maximum(1.0, work.duration[jobs]))[:, None]
    off = off - np.log(np.maximum(1.0, [np.quantile(row, SHARES) for row in said]))
    cost = ordered(said.mean(axis=1), work.duration[jobs], work.gpus[jobs])
    return {"pinball": np.maximum(SHARES * off, (SHARES - 1) * off).mean(), "order": cost}


def predicted(work: Workload, jobs: np.ndarray, named: bool, predictor: Durations | Medians) -> FloatArray:
    """Return what was expected of jobs as they came, ascending amounts of seconds (jobs, `POINTS`)."""
    ended, said = list[tuple[float, int]](), []
    told = {}
    for i in jobs.tolist():
        fields = {"user": work.user, "title": work.title, "queue": work.queue} if named else {}
        model = work.model[i] if named and work.model and work.model[i] else "any"
        terms = Terms(**{name: values[i] for name, values in fields.items() if values and values[i]})
        told[i] = GangJob("job", model, (int(work.gpus[i]),)), terms
        while ended and ended[0][0] <= work.submit[i]:
            _, j = heapq.heappop(ended)
            predictor.learn(*told[j], float(work.duration[j] * work.gpus[j]))
        said.append(np.asarray(predictor.predict(*told[i])) / work.gpus[i])
        heapq.heappush(ended, (float(work.submit[i] + work.duration[i]), i))
    return np.array(said)


def ordered(expected: FloatArray, seconds: FloatArray, gpus: np.ndarray) -> float:
    """Return how much longer, as a share, batches of jobs take to end on one machine than in the order of the truth."""
    rng, took = np.random.default_rng(1), np.zeros(2)
    for _ in range(1000):
        at = int(rng.integers(max(1, len(seconds) - NEAR))) + rng.permutation(min(NEAR, len(seconds)))[:BATCH]
        work = seconds[at] * gpus[at]
        for k, by in enumerate((expected, seconds)):
            took[k] += np.cumsum(work[np.argsort(by[at] * np.sqrt(gpus[at]), kind="stable")]).mean() / work.mean()
    return float(took[0] / took[1] - 1)


def losses(found: Found, windows: Sequence[int] = TUNING) -> str:
    """Return a line a case: pinball loss and cost of the order, means over windows, by predictor."""
    lines = []
    for case in found.cases:
        every = [[found.of(case, p, name) for name in ("pinball", "order")] for p in PREDICTORS]
        kept = ([[of[w] for w in windows if w in of] for of in each] for each in every)
        lines.append((case, *(f"{np.mean(x):.3f}, {np.mean(y):+.0%}" if x else "" for x, y in kept)))
    return table(("trace", *PREDICTORS), lines)


def show(options: Options) -> None:
    """Print a table of the windows for tuning, and one of the last."""
    for windows in (TUNING, (LAST,)):
        print(losses(STUDY.found(options.rows), windows))


STUDY = Study(
    "durations-loss",
    ("pinball", "order"),
    tasks,
    measure,
    more={"table": show},
)
"""Mean pinball loss of the logarithm of seconds; cost of the order, a share."""
