"""Start intervals of 90% on traces: how many jobs start within theirs, and how wide these are, beside rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet
from gangplan.scheduler.explaining.intervals import ENOUGH, TAIL, QuantileLevels
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, EngineView, simulate
from gangplan.simulator.engine.jobs import Long

from .found import Found, table
from .intervals_traces import CASES, DURATIONS, told
from .rows import Task
from .study import Options, Study

RIVALS = ("plain", "adapted")
"""Quantiles of the waits of a size: as they are, and with the same adaptation as ours."""
WINDOW = 256
"""Waits of a size that a rival looks at: 512 do the same on the traces on which ours was tuned, 64 and 128 worse."""
FIRST, TIMES, EACH = 600.0, 4.0, 4
"""Seconds after which a job is asked of again, how many times as long the next time, and one of how many jobs is."""


class Sizes:
    """Predict a wait by the quantiles of the last waits of jobs with as many GPUs, or of all while these are few.

    Args:
        adapted: whether quantiles are adapted as ours are, with jobs that wait too long counted at once.
    """

    def __init__(self, adapted: bool) -> None:
        self._waits: dict[int, list[float]] = {}
        self._all: list[float] = []
        self._levels, self._adapted = QuantileLevels(), adapted
        self._open: dict[int, tuple[float, float, bool]] = {}
        self._ends: list[tuple[float, int]] = []

    def ask(self, now: float, job: int, gpus: int) -> tuple[float, float] | None:
        """Return an interval for a job that has come, seconds of the clock."""
        waits = self._waits.get(gpus, [])
        waits = waits if len(waits) >= ENOUGH else self._all
        if len(waits) < ENOUGH:
            return None
        logs = np.sort(np.log1p(waits))
        low, high = (self._levels if self._adapted else QuantileLevels(TAIL, 1 - TAIL)).of(logs)
        ends = now + float(np.expm1(max(low, 0.0))), now + float(np.expm1(min(high, logs[-1] + 2.3)))
        self._open[job] = *ends, False
        heappush(self._ends, (ends[1], job))
        return ends

    def learn(self, now: float, job: int, gpus: int, wait: float) -> None:
        """Learn how long a job waited."""
        for waits in (self._waits.setdefault(gpus, []), self._all):
            waits.append(wait)
            del waits[:-WINDOW]
        if job in self._open:
            low, high, passed = self._open.pop(job)
            self._levels.missed_low(now < low)
            if not passed:
                self._levels.missed_high(now > high)

    def pass_by(self, now: float) -> None:
        """Note who waits beyond its interval."""
        while self._ends and self._ends[0][0] < now:
            job = heappop(self._ends)[1]
            if job in self._open:
                self._open[job] = *self._open[job][:2], True
                self._levels.missed_high(True)


@dataclass(slots=True)
class Asked:
    """An interval that was told, and by whom, of which job, after how long a wait, its ends."""

    who: str
    job: int
    waited: float
    ends: tuple[float, float] | None


@dataclass
class Watched(SchedulerPolicy):
    """A `Scheduler` in the engine that is asked of each job that waits after the decision that follows its submission,
    and again when it has waited some time."""

    durations: bool | FloatArray
    asked: list[Asked] = field(default_factory=list)
    began: dict[int, float] = field(default_factory=dict)
    waited: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(told=self.durations)
        self._seen: set[int] = set()
        self._again: list[tuple[float, int]] = []
        self._rivals = {name: Sizes(name == "adapted") for name in RIVALS}

    def preempt(self, view: EngineView) -> Long:
        """Decide, and ask."""
        stops = super().preempt(view)
        now, state, gpus = view.now, self.scheduler._state, view.workload.gpus
        for job in self._plan:
            if job not in self.began:
                self.began[job] = now
                if job in self.waited:
                    for rival in self._rivals.values():
                        rival.learn(now, job, int(gpus[job]), now - self.waited[job])
        for rival in self._rivals.values():
            rival.pass_by(now)
        for job in sorted(self._known - self._seen):
            if str(job) in state.waiting:
                self.waited[job] = now
                if job % EACH == 0:
                    heappush(self._again, (now + FIRST, job))
                self._ask("ours", now, job, 0.0)
                for name, rival in self._rivals.items():
                    self.asked.append(Asked(name, job, 0.0, rival.ask(now, job, int(gpus[job]))))
        self._seen |= self._known
        while self._again and self._again[0][0] <= now:
            job = heappop(self._again)[1]
            if str(job) in state.waiting and job not in self.began:
                waited = now - self.waited[job]
                heappush(self._again, (self.waited[job] + TIMES * waited, job))
                self._ask("later", now, job, waited)
        return stops

    def _ask(self, who: str, now: float, job: int, waited: float) -> None:
        ends = self.scheduler._intervals.predict(self.scheduler._state, str(job))
        self.asked.append(Asked(who, job, waited, ends))


def tasks(options: Options) -> Iterator[Task]:
    """Yield every trace with every kind of durations."""
    names = options.chosen(case.name for case in CASES)
    for durations in options.policies or DURATIONS:
        yield from (Task(name, durations, 0) for name in names)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Run a trace, and compare intervals with when jobs started."""
    case = next(case for case in CASES if case.name == task.case)
    work = case.make(options.data)
    policy = Watched(told(work, task.policy))
    fleet = Fleet.regular(1, case.nodes, case.gpus, cpu=1e15, memory=1e15)
    simulate(work, fleet, EngineScheduler((policy,), "head", True, True))
    return {"jobs": work.n_jobs, "waited": len(policy.waited), **judged(policy.asked, policy.began, work.n_jobs)}


def judged(asked: list[Asked], began: Mapping[int, float], jobs: int) -> dict[str, float]:
    """Return the figures of all who were asked: of jobs of which each of them told an interval."""
    figures: dict[str, float] = {}
    silent = {(x.job, x.waited) for x in asked if x.ends is None}
    for who in ("ours", *RIVALS, "later"):
        rows = [
            (*x.ends, began[x.job])
            for x in asked
            if x.who == who and x.ends is not None and (x.job, x.waited) not in silent
        ]
        if not rows:
            continue
        low, high, start = np.array(rows).T
        held = (low - 1e-6 <= start) & (start <= high + 1e-6)
        loss = sum(
            np.maximum(at * (start - end), (at - 1) * (start - end)) for at, end in ((TAIL, low), (1 - TAIL, high))
        )
        if who == "ours":
            figures |= {"asked": len(rows), "all": (jobs - np.sum(~held)) / jobs}
        found = {
            "cover": held.mean(),
            "median": np.median(high - low),
            "mean": (high - low).mean(),
            "loss": loss.mean() / 2,
        }
        figures |= {f"{who}_{name}": float(value) for name, value in found.items()}
    return figures


def intervals(found: Found) -> str:
    """Return a line a trace, its cells by what is known of durations; widths over those by size."""
    lines = []
    for case in (case for case in CASES if not case.tuned):
        runs = [how for how in DURATIONS if (case.name, how) in found.runs]
        every = [{name: found.one(case.name, how, name) for name in FIGURES} for how in runs]
        cells = [
            *([f"{one[f'{who}_cover']:.1%}" for one in every] for who in ("ours", RIVALS[0])),
            [f"{one['ours_median'] / one[f'{RIVALS[0]}_median'] - 1:+.0%}" for one in every],
        ]
        if every:
            lines.append((case.name, *(", ".join(cell) for cell in cells)))
    head = ("trace", "held", "by size", "width over by size")
    return table(head, lines)


FIGURES = (
    "jobs", "waited", "asked", "all",
    *(f"{who}_{name}" for who in ("ours", *RIVALS, "later") for name in ("cover", "median", "mean", "loss")),
)  # fmt: skip
STUDY = Study("intervals", FIGURES, tasks, measure, {"scheduler-results.md": {"intervals": intervals}})
"""Of jobs that wait after the decision that follows their submission, and of which all told an interval: the share
that starts within it, median and mean of its width, seconds, and the mean pinball loss of its ends, seconds; of ours,
of the quantiles by size, and of ours when asked later. `all`: the share of all jobs, those that start at once
included."""
