"""Classic rules that put the tasks of waiting jobs on servers without knowing who hurts whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_choice
from gangplan.simulator.snapshots import Truth

from .case import InterferenceCase
from .environment import SERVER, WORKER, Environment
from .greedy import Greedy
from .truths import HiddenTruth

Score = Callable[[Environment, int, int], FloatArray]
"""Of each server for a task of a job, (environment, job, kind), float64 (m,): the least is taken, ties to the first."""


class Places(Protocol):
    """Places what waits, with `Environment.place`; what it leaves waits for the next interval."""

    def place(self, env: Environment) -> None:
        """Place tasks of waiting jobs, once an interval."""


def first_fit(env: Environment, job: int, kind: int) -> FloatArray:
    """Score a server by its number."""
    return np.arange(len(env.free), dtype=np.float64)


def load_balance(env: Environment, job: int, kind: int) -> FloatArray:
    """Score a server by the largest share of a resource in use (LB)."""
    return np.asarray((1.0 - env.free / env.size).max(axis=1))


def best_fit(env: Environment, job: int, kind: int) -> FloatArray:
    """Score a server by what it has left, in shares of all resources."""
    return np.asarray((env.free / env.size).sum(axis=1))


def tetris(env: Environment, job: int, kind: int) -> FloatArray:
    """Score a server by its alignment with the task, negated (Grandl et al., SIGCOMM 2014, section 3.2)."""
    need = (env.case.jobs.worker, env.case.jobs.server)[kind][job]
    return np.asarray(-(env.free / env.size) @ (need / env.size))


def least_interference(env: Environment, job: int, kind: int) -> FloatArray:
    """Score a server by what the tasks there are expected to add to the job, and it to them (LIF).

    A job that moves more bytes in a second of compute is expected to interfere more. That is all that the rule knows:
    two tasks cost the product of these intensities, on top of one for being there at all.
    """
    intensity = env.intensity
    return np.asarray(env.tasks @ (1.0 + intensity[env.case.jobs.kind[job]] * intensity))


SCORES: dict[str, Score] = {
    "first": first_fit,
    "best": best_fit,
    "lb": load_balance,
    "tetris": tetris,
    "lif": least_interference,
}
ORDERS = ("arrival", "shortest")


class ScoreRule:
    """Places jobs in turn, task by task, by a score of servers.

    Args:
        score: a name in `SCORES`, or a function: of the servers, the least is taken.
        order: of waiting jobs: by ``arrival``, or the ``shortest`` by what is profiled first.
        together: whether a server, or socket or the like below the rack, that holds all that is left of the job goes
            before others, then one where tasks of it are, then what is nearest.
        patience: for so many intervals after its arrival a job waits rather than be on more servers than it needs.
        near: whether a job that is begun goes on where it is nearest, before what holds all that is left of it.
    """

    def __init__(
        self,
        score: str | Score,
        order: str = "arrival",
        *,
        together: bool = False,
        patience: float = 0.0,
        near: bool = False,
    ) -> None:
        if isinstance(score, str):
            require_choice(score, "score", SCORES)
        require_choice(order, "order", ORDERS)
        self._score = SCORES[score] if isinstance(score, str) else score
        self._shortest, self._together, self._patience = order == "shortest", together, patience
        self._near = near

    def place(self, env: Environment) -> None:
        """Place every job that fits."""
        for job in env.in_order(self._shortest):
            insists = env.now - env.case.jobs.submit[job] < self._patience * env.case.interval
            while (mask := env.mask(job)).any():
                kind = WORKER if mask[WORKER].any() else SERVER
                server = self._server(env, job, kind, mask[kind])
                if insists and len(env.rows(job).keys() | {server}) > env.case.fewest[job]:
                    env.take_back()
                    break
                env.place(job, kind, server)

    def _server(self, env: Environment, job: int, kind: int, mask: np.ndarray) -> int:
        scores = self._score(env, job, kind)
        if not self._together:
            return int(np.argmin(np.where(mask, scores, np.inf)))
        (w, p), jobs, mine = env.left(job), env.case.jobs, list(env.rows(job))
        group = env.case.fleet.topology.group
        apart = 1 + (group != group[:, mine[:1]]).sum(axis=0) if mine else np.ones(len(mask), dtype=np.int64)
        apart[mine] = 0
        need = (w * jobs.worker[job] + p * jobs.server[job]) * (1 - 1e-9)
        split = (env.free < need).any(axis=1).astype(np.int64)
        for level, members in zip(env.case.fleet.topology.levels, group, strict=True):
            if level.name == "rack":
                break
            free = np.stack([np.bincount(members, env.free[:, x]) for x in range(len(need))], axis=1)
            split += (free < need).any(axis=1)[members]
        keys = (split, apart) if self._near and mine else (apart, split)
        return int(np.lexsort((scores, *keys, ~mask))[0])


def run(case: InterferenceCase, policy: Places, change: tuple[float, Truth] | None = None) -> Environment:
    """Let a policy decide to the end; return the environment.

    Args:
        change: another truth and since when, as of the first interval that begins then; that is in ``env.case``.
    """
    env = Environment(case)
    while not env.done:
        if change is not None and env.case is case and env.now >= change[0]:
            env.case = replace(case, truth=change[1])
        policy.place(env)
        env.end_interval()
    return env


CONSOLIDATE, PATIENCE = 50.0, 2.0
"""Intervals that a tuned rule lets a job wait for few servers, and an oracle for a fast place: the best on validation
seeds, as are the shortest first, and together."""
Maker = Callable[[InterferenceCase], Places]
"""Makes a policy for a case, of which it may look at all but the truth."""


def baselines() -> dict[str, Maker]:
    """Return by name the classic rules, tuned and as published (spread, by arrival, none waits), and two oracles.

    One lets a job wait for a place that is fast, the other for few servers, as the tuned rules do; the better of both
    is what to compare with. ``alone`` is the latter with the speeds that jobs have alone: what it lacks is what there
    is to learn about interference.
    """
    makers: dict[str, Maker] = {x: lambda case, x=x: tuned(x) for x in ("lif", "tetris", "lb", "best", "first")}  # type: ignore[misc]
    makers |= {f"{x}-published": lambda case, x=x: ScoreRule(x) for x in ("lif", "tetris", "lb")}  # type: ignore[misc]
    makers["alone"] = lambda case: Greedy(alone(case.truth), consolidate=CONSOLIDATE)
    makers["oracle-patient"] = lambda case: Greedy(case.truth, PATIENCE)
    return makers | {"oracle-consolidated": lambda case: Greedy(case.truth, consolidate=CONSOLIDATE)}


def alone(truth: Truth) -> HiddenTruth:
    """Return a truth without interference, see `HiddenTruth.alone`."""
    if not isinstance(truth, HiddenTruth):
        raise InstanceError("truth", "is not compiled: how fast jobs are alone is not known of it")
    return truth.alone()


def tuned(score: str, *, near: bool = False) -> ScoreRule:
    """Return a rule that takes the shortest first, together; near: that goes on where a job began."""
    return ScoreRule(score, "shortest", together=True, patience=CONSOLIDATE, near=near)
