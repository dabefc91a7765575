"""The picture of this library: one family of problems from toy to huge, and who answers how well in which time.

Workloads have gangs of up to a quarter of the cluster, at most 64 GPUs, lengths as TopDRL draws them.
A decision is a job's start: seconds are the processor's, of all that a policy does, over the jobs. Where a policy
takes too long to play all, only its time is measured, on a few decisions of the network's run. ``teachers`` are the
two that label decisions, on validation seeds, as policies and by the regret of what they choose.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.online.candidates import WAIT, CandidateScratch
from gangplan.learned.online.episodes import NEVER, observe, play
from gangplan.learned.online.features import BY_RULE
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.rollouts import imagined, weigh
from gangplan.learned.policy.weights import FOLDER, find
from gangplan.learned.training.online.exact import weigh_exactly
from gangplan.simulator.gangs.arrays import RUNNING, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.formula import PATIENT as RULE
from gangplan.simulator.gangs.formula import finish
from gangplan.simulator.gangs.mixes import VALIDATION, Mix
from gangplan.simulator.gangs.step import advance, start, total_jct
from gangplan.simulator.gangs.traffic import fit
from gangplan.systems.topdrl.oracle import Oracle
from gangplan.systems.topdrl.policies import make_policy
from gangplan.systems.topdrl.rollout import Rollout

from .picture_episodes import Episode, episode
from .picture_figure import TABLES, draw
from .rows import Task, digest
from .study import Options, Study

SIZES = {"8": ((2, 2, 2), 12), "32": ((2, 4, 4), 40), "256": ((4, 8, 8), 120), "1,024": ((8, 16, 8), 300),
         "10,240": ((16, 80, 8), 2000)}  # fmt: skip
"""Racks, nodes in each and GPUs in each, and jobs, by the number of GPUs."""
WIDEST, POOL = 64, 2000
"""GPUs of a gang at most; jobs that futures are drawn from."""
EXACT, SEARCH, CUT, ROLLOUT, NETWORK, IMITATION, PATIENT, FIRST, ORACLE = (
    "exact", "search", "search in windows", "rollout", "gnn", "gnn-imitation", "patient", "fcfs+head+closest", "oracle",
)  # fmt: skip
LOAD = 1.3
"""GPU seconds of jobs where they run fastest, over those of the cluster until the last arrives: a queue forms."""
PLAYED = {EXACT: 8, ROLLOUT: 256}
"""GPUs up to which these play whole workloads."""
TIMED = {ORACLE: 256, EXACT: 256, ROLLOUT: 1024}
"""GPUs up to which they are run at all."""
SEEDS, FEW, FEWEST = 10, 5, 3
"""Test seeds; on more than 32 GPUs; and of those who are timed, or play only just."""
SEARCHED = 10.0
"""Seconds of the oracle."""
POLICIES = (FIRST, PATIENT, NETWORK, IMITATION, ROLLOUT, EXACT, ORACLE)
TEACHERS = {"teachers, 16": (2, 2, 4), "teachers, 32": (2, 4, 4)}
TAUGHT = (PATIENT, NETWORK, SEARCH, CUT, EXACT)
JOBS, TRIES, FUTURES, AHEAD = 30, 4, 6, 30
"""Of the teachers' episodes; candidates of the rule that are tried, futures in which, arrivals in each."""
TRUE = 64
"""Futures that the network decides: what a candidate is held to be worth."""
PROBES = 3
"""Decisions on which the time is measured of who does not play all."""


def world(case: str, seed: int) -> Episode:
    """Return the workload of a case, with others like it."""
    if case in TEACHERS:
        return episode(seed - VALIDATION, JOBS, VALIDATION, TEACHERS[case])
    shape, jobs = SIZES[case]
    fleet, near = Fleet.regular(*shape), Proximity()
    widest = min(WIDEST, fleet.n_gpus // 4)
    drawn = (
        fit(Mix(n, 0.1, gpus=widest).draw(s), fleet, near) for n, s in ((jobs, seed), (POOL, seed + 3 * VALIDATION))
    )
    own, pool = (jobs_of(replace(x, submit=x.submit / LOAD), near) for x in drawn)
    return Episode(own, cluster_of(fleet, near), pool)


class Teacher:
    """Tries the best candidates by the rule in the same futures, and does what goes best; `values` tells how."""

    def __init__(self, given: Episode, policy: str, seed: int, net: GnnPolicy) -> None:
        self.given, self.policy, self.seed, self.net = given, policy, seed, net
        self.s, self.other = CandidateScratch(given.cluster), CandidateScratch(given.cluster)
        self.seconds, self.decisions, self.notes = 0.0, 0, list[tuple[float, ...]]()

    def values(self, policy: str, state: State, tried: np.ndarray, seed: int, futures: int = FUTURES) -> np.ndarray:
        """Return what the JCTs come to, a row a candidate."""
        jobs, cluster, pool = self.given
        value, at = np.zeros((len(tried), futures)), (jobs, cluster, state, pool, self.s)
        if policy in (EXACT, CUT):
            more = {} if policy == EXACT else {"seconds": 0.0}
            weigh_exactly(*at, RULE, tried, AHEAD, seed, value, sure=False, **more)
        elif policy == NETWORK:
            self._by_network(state, tried, seed, value)
        else:
            weigh(*at, RULE, tried, AHEAD, seed, value)
        return value.mean(axis=1)

    def _by_network(self, state: State, tried: np.ndarray, seed: int, value: np.ndarray) -> None:
        """Write what the JCTs come to where the network decides in the futures, (candidates, futures)."""
        jobs, cluster, pool = self.given
        for future in range(value.shape[1]):
            ours, root = imagined(jobs, cluster, state, pool, AHEAD, seed, future)
            for i, row in zip(tried, value, strict=True):
                then, running = root.copy(), root.count[RUNNING]
                if self.s.place[i] == WAIT:
                    while then.count[RUNNING] == running and advance(ours, cluster, then):
                        pass
                else:
                    start(ours, cluster, then, int(self.s.place[i]), self.s.take[i].copy())
                play(ours, cluster, then, self.other, self.net.net, RULE, True, len(ours.submit) + 1, 10 * AHEAD)
                finish(ours, cluster, then, RULE)
                row[future] = total_jct(ours, then)

    def candidates(self, state: State) -> tuple[np.ndarray, int]:
        """Return those that are tried, the rule's own first, none if no waiting job fits; and the network's."""
        jobs, cluster, _ = self.given
        k = observe(jobs, cluster, state, self.s, self.net.net, RULE, False)
        rated = np.where(self.s.score[:k] > NEVER, self.s.graph.x[:k, BY_RULE], -np.inf)
        best = np.argsort(-rated, kind="stable")[:TRIES]
        return best[rated[best] > -np.inf].copy(), int(np.argmax(self.s.score[:k])) if k else WAIT

    def choose(self, state: State, tried: np.ndarray) -> int:
        """Return the candidate that goes best."""
        self.decisions += 1
        begun = time.process_time()
        if self.policy == ROLLOUT:  # only timed: it plays by itself
            rollout = Rollout()
            rollout.pick(rollout.values(*self.given[:2], state, np.random.default_rng(self.seed)))
            self.seconds += time.process_time() - begun
            return int(tried[0])
        value = self.values(self.policy, state, tried, 10_000 * self.seed + self.decisions)
        self.seconds += time.process_time() - begun
        return int(tried[np.argmin(value)])

    def compare(self, state: State, tried: np.ndarray) -> None:
        """Note the regret of the choices of both teachers by what candidates are held to be worth, in mean lengths."""
        at, unit = 10_000 * self.seed + self.decisions, self.s.mean
        worth = self.values(NETWORK, state, tried, at + 5000, TRUE) / unit
        own = [self.values(policy, state, tried, at) / unit for policy in (SEARCH, CUT, EXACT)]
        regrets = [float(worth[np.argmin(x)] - worth.min()) for x in own]
        errors = [float(np.abs(x - x.mean() - worth + worth.mean()).mean()) for x in own]
        self.notes.append((*regrets, *errors, float(np.argmin(own[0]) == np.argmin(own[2]))))

    def play(self, state: State, *, probes: int = 0, notes: bool = False) -> None:
        """Run to the end; with `probes` the network decides, and only so many decisions are timed on the way."""
        jobs, cluster, _ = self.given
        more, skip = True, len(jobs.submit) // 2 // max(probes, 1)
        while more and not (probes and self.decisions == probes):
            tried, networks = self.candidates(state)
            if len(tried) == 0:
                more = advance(jobs, cluster, state)
                continue
            best = networks if probes else int(tried[0])
            if len(tried) > 1 and not probes:
                best = self.choose(state, tried)
                if notes:
                    self.compare(state, tried)
            elif len(tried) > 1 and np.isfinite(state.start).sum() >= skip * (self.decisions + 1):
                self.choose(state, tried)
            if self.s.place[best] == WAIT:
                more = advance(jobs, cluster, state)
            else:
                start(jobs, cluster, state, int(self.s.place[best]), self.s.take[best].copy())


NOTES = ("regret_search", "regret_cut", "regret_exact", "error_search", "error_cut", "error_exact", "agree")


def tasks(options: Options) -> Iterator[Task]:
    """Yield every size and teachers' case, seed and policy."""
    for case in options.chosen((*SIZES, *TEACHERS)):
        taught, gpus = case in TEACHERS, _gpus(case)
        for i in range(options.seeds or (24 if taught else SEEDS)):
            for policy in options.policies or (TAUGHT if taught else POLICIES):
                weights = _weights(policy, options)
                most = FEWEST if gpus >= max(PLAYED.get(policy, 1 << 60), 32) else SEEDS if gpus <= 32 else FEW
                if (policy != IMITATION or weights) and gpus <= TIMED.get(policy, gpus) and (taught or i < most):
                    yield Task(case, policy, i + VALIDATION * taught, digest(weights))


def _gpus(case: str) -> int:
    return int(case.removeprefix("teachers, ").replace(",", ""))


def _weights(policy: str, options: Options) -> Path | None:
    if policy == NETWORK:
        return find("gnn")
    path = options.weights / f"{policy}.safetensors"
    return path if policy == IMITATION and path.is_file() else None


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Play a workload, or time decisions of it."""
    _warm(task._replace(case="8", seed=0), options)
    return _play(task, options)


@cache
def _warm(task: Task, options: Options) -> None:
    """Have everything compiled and loaded."""
    _play(task, options, warm=True)


def _play(task: Task, options: Options, *, warm: bool = False) -> dict[str, float | None]:
    given = world(task.case, task.seed)
    jobs, cluster, _ = given
    state, n = begin(jobs, cluster), len(jobs.submit)
    whole = task.case in TEACHERS or cluster.first[-1] <= PLAYED.get(task.policy, 1 << 60)
    if task.policy in (EXACT, SEARCH, CUT) or not whole:
        teacher = Teacher(given, task.policy, task.seed, GnnPolicy.load(find("gnn")))
        notes = not warm and task.policy == EXACT and task.case in TEACHERS
        teacher.play(state, probes=1 if warm else 0 if whole else PROBES, notes=notes)
        seconds = teacher.seconds / (n if whole else max(teacher.decisions, 1))
        means = dict(zip(NOTES, np.mean(teacher.notes, axis=0).tolist(), strict=True)) if teacher.notes else {}
        mean = float((state.finish[:n] - jobs.submit).mean()) if whole else None
        return {"mean_jct": mean, "seconds": seconds, "decisions": float(teacher.decisions), **means}
    finish: Callable[..., None] = _policy(task, options).finish
    begun = time.process_time()
    finish(jobs, cluster, state)
    seconds = (time.process_time() - begun) / n
    return {"mean_jct": float((state.finish - jobs.submit).mean()), "seconds": seconds, "decisions": float(n)}


def _policy(task: Task, options: Options) -> Any:
    if task.policy in (NETWORK, IMITATION):
        return GnnPolicy.load(_weights(task.policy, options) or FOLDER, guarded=False)
    return Oracle(seconds=SEARCHED) if task.policy == ORACLE else make_policy(task.policy)


def figure(_: Options) -> None:
    """Draw."""
    draw(STUDY.found())


STUDY = Study(
    "picture", ("mean_jct", "seconds", "decisions", *NOTES), tasks, measure, {"picture.md": TABLES}, {"figure": figure}
)
