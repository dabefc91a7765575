"""The traces of the study of durations: windows of real ones, a drawn LLM cluster, and limits that are too long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.jobs import PROCESSES
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.gangs.traces import HOURS
from gangplan.simulator.gangs.traces import TRACES as TRACED

from .policies_traces import OPENB, PHILLY

FACTOR, SPREAD = 3.0, 1.15
"""Limit over duration: log-normal with this median and deviation of the logarithm, so that 5% are above 20 times; at
least 1. Half of the variance is the title's, or the job's own where jobs have none."""
LOAD = 0.95
"""GPU seconds of a window's jobs until its last job comes over those of the cluster; arrivals are stretched to it."""
GPUS = 8
"""Of a node."""
_EARLY = 300
"""Pods of openb that are left out: the first ten come within 60 days, and the others within a month."""
TUNING, TEST = (0, 1, 2), (3, 4, 5, 6, 7)
"""Windows for tuning, thirds of the first half of a trace in time, and for testing, five of six of the second half."""
LAST = 8
"""The sixth: nothing was run on it before all was as it is, and nothing may be changed by what came of it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A trace on equal nodes of eight GPUs.

    Attributes:
        name: of the row.
        needs: a file of the data folder, "" if none.
        nodes: how many.
        make: the jobs of a window, by data folder and window.
    """

    name: str
    needs: str
    nodes: int
    make: Callable[[Path, int], Workload]

    def workload(self, data: Path, window: int) -> Workload:
        """Return the jobs of a window, as fast as the load says, with limits."""
        work = self.make(data, window)
        gpus = np.minimum(work.gpus, self.nodes * GPUS)
        work = loaded(replace(work, submit=work.submit - work.submit.min(), gpus=gpus), self.nodes * GPUS)
        return replace(work, limit=limits(work, 1000 + window))


def loaded(work: Workload, gpus: int) -> Workload:
    """Return the jobs so fast that the load is `LOAD` until the last comes, of jobs what they could do until then."""
    low, high = 1e-6, 1e6
    for _ in range(60):
        pace = float(np.sqrt(low * high))
        last = float(work.submit.max()) * pace
        done = float(work.gpus @ np.minimum(work.duration, last - work.submit * pace))
        low, high = (pace, high) if done > LOAD * gpus * last else (low, pace)
    return replace(work, submit=work.submit * high)


def limits(work: Workload, seed: int) -> FloatArray:
    """Return limits that overstate."""
    rng, part = np.random.default_rng(seed), SPREAD / np.sqrt(2)
    group = np.unique(
        [f"{u} {t.rsplit('-', 1)[0]}" for u, t in zip(work.user, work.title, strict=True)], return_inverse=True
    )[1]
    habit = rng.normal(0.0, part, work.n_jobs)
    if group.max() > 0:
        habit = habit[: group.max() + 1][group]
    factor = np.exp(np.log(FACTOR) + habit + rng.normal(0.0, part, work.n_jobs))
    return np.asarray(work.duration * np.maximum(1.0, factor))


def _window(work: Workload, kept: np.ndarray, window: int, every: int = 1) -> Workload:
    """Return a window of those jobs of a trace that are kept, one job of so many, of the first half of half as many."""
    kept = kept[np.argsort(work.submit[kept], kind="stable")]
    half = len(kept) // 2
    if window in TUNING:
        at, many, every = 0, half // len(TUNING), 2 * every
    else:
        at, many = half, half // (len(TEST) + 1)
    at += many * (window - (TUNING if window in TUNING else TEST)[0])
    work = work.take(kept[at : at + many : every])
    return Workload(work.names, work.submit, work.gpus, work.duration, queue=work.queue)


def _philly(queues: tuple[str, ...], every: int, data: Path, window: int) -> Workload:
    """Return jobs of some virtual clusters, or of all."""
    trace = read_trace(data / PHILLY).workload
    kept = np.flatnonzero((np.isin(trace.queue, queues) | (not queues)) & (trace.duration > 0))
    return _window(trace, kept, window, every)


def _openb(data: Path, window: int) -> Workload:
    """Return pods that ended, on whole GPUs, but the first, which came months before the others."""
    trace = read_trace(data / OPENB).workload
    kept = np.flatnonzero(trace.duration > 0)
    return _window(trace, kept[np.argsort(trace.submit[kept], kind="stable")][_EARLY:], window)


def _pollux(data: Path, window: int) -> Workload:
    """Return Pollux's jobs three times over, each as long as drawn in the bounds of its model."""
    trace = read_trace(data / TRACED["pollux"], seconds=dict.fromkeys(HOURS, 1.0)).workload
    rng = np.random.default_rng(300 + window)
    order = np.concatenate([rng.permutation(trace.n_jobs) for _ in range(3)])
    models, gpus = tuple(trace.model[i] for i in order), trace.gpus[order]
    low, high = np.log(np.array([HOURS[m] for m in models])).T
    seconds = np.exp(rng.uniform(low, high)) * 3600 / gpus
    submit = PROCESSES["poisson"](rng, len(order), 0.01, 0.0, 0.0)
    return Workload(tuple(map(str, range(len(order)))), submit, gpus, seconds, model=models)


PURPOSES = {
    "eval": (0.62, 600.0, (1, 1, 2, 4, 8)),
    "debug": (0.14, 300.0, (1, 1, 2, 8)),
    "sft": (0.20, 3 * 3600.0, (8, 8, 16)),
    "pretrain": (0.04, 10 * 3600.0, (16, 32, 64)),
}
"""Share of the jobs, median seconds, and GPUs to choose from: most jobs evaluate and are short, pre-training takes most
of the GPU time, as Hu et al. (NSDI 2024) tell of Acme. Drawn, and no more than like it."""


def _language(data: Path, window: int) -> Workload:
    """Draw the jobs of an LLM cluster: users, their recurring jobs by title, queues; the same for the same window."""
    rng = np.random.default_rng(200 + window)
    users, jobs = 40, 700
    active = 1 / (np.arange(users) + 1.0)
    active /= active.sum()
    names, shares = list(PURPOSES), np.array([share for share, _, _ in PURPOSES.values()])
    titles: dict[int, list[tuple[str, int, float]]] = {user: [] for user in range(users)}
    rows = []
    for i in range(jobs):
        user = int(rng.choice(users, p=active))
        known = titles[user]
        if not known or rng.random() < 0.06:  # a new kind of job now and then
            purpose = names[int(rng.choice(len(names), p=shares))]
            _, median, sizes = PURPOSES[purpose]
            title = f"{purpose}-{'abcdefghijklmnop'[int(rng.integers(16))]}{chr(97 + len(known) % 26)}"
            known.append((title, int(rng.choice(sizes)), median * float(np.exp(rng.normal(0.0, 0.8)))))
        title, gpus, median = known[-1 - min(len(known) - 1, int(rng.geometric(0.3)) - 1)]
        seconds = median * float(np.exp(rng.normal(0.0, 0.5)))
        if rng.random() < 0.25:  # fails early
            seconds *= float(rng.uniform(0.01, 0.5))
        rows.append((f"u{user}", f"{title}-{i}", title.split("-")[0], gpus, max(5.0, seconds)))
    user, title, queue, gpus, duration = zip(*rows, strict=True)
    queue = tuple("large" if q == "pretrain" else "small" for q in queue)
    submit = PROCESSES["diurnal"](rng, jobs, 0.02, 0.0, 0.7)
    return Workload(
        tuple(map(str, range(jobs))),
        submit,
        np.array(gpus, dtype=np.int32),
        np.array(duration),
        queue=queue,
        user=user,
        title=title,
    )


SMALL = ("103959", "ee9e8c", "0e4a51", "ed69ec", "7f04ca", "2869ce", "e13805")
"""Virtual clusters of 374 to 1,934 jobs each."""
CASES = (
    Case("Philly, all", PHILLY, 8, partial(_philly, (), 10)),
    Case("Philly, small clusters", PHILLY, 16, partial(_philly, SMALL, 1)),
    Case("openb", OPENB, 4, _openb),
    Case("Pollux", TRACED["pollux"], 8, _pollux),
    Case("LLM cluster, generated", "", 16, _language),
)
