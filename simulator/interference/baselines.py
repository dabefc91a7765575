"""Classic rules that put the tasks of waiting jobs on servers without knowing who hurts whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from gangplan.instances.arrays import FloatArray

from .case import Case
from .environment import Environment

Score = Callable[[Environment, int, int], FloatArray]
"""Of each server for a task of a job, (environment, job, kind), float64 (m,): the least is taken, ties to the first."""


class Policy(Protocol):
    """Places what waits, with `Environment.place`; what it leaves waits for the next interval."""

    def place(self, env: Environment) -> None:
        """Place tasks of waiting jobs, once an interval."""
        ...


def load_balance(env: Environment, job: int, kind: int) -> FloatArray:
    """Score a server by the largest share of a resource in use."""
    return np.asarray((1.0 - env.free / np.maximum(env.capacity, 1e-9)).max(axis=1))


class Rule:
    """Places jobs in turn, task by task, by a score of servers.

    Args:
        score: of the servers, the least is taken.
        order: of waiting jobs, `None` for that of arrival.
    """

    def __init__(self, score: Score, order: Callable[[Environment], FloatArray] | None = None) -> None:
        self._score, self._order = score, order

    def place(self, env: Environment) -> None:
        """Place every job that fits."""
        waiting = np.array(env.waiting)
        if self._order is not None and len(waiting):
            waiting = waiting[np.argsort(self._order(env)[waiting], kind="stable")]
        for job in waiting.tolist():
            while (mask := env.mask(job)).any():
                kind = 0 if mask[0].any() else 1
                scores = np.where(mask[kind], self._score(env, job, kind), np.inf)
                env.place(job, kind, int(np.argmin(scores)))


def run(case: Case, policy: Policy) -> Environment:
    """Let a policy decide to the end; return the environment."""
    env = Environment(case)
    while not env.done:
        policy.place(env)
        env.end_interval()
    return env
