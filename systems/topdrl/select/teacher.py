"""The teacher: it knows what jobs are like, looks ahead, and says what each candidate of a decision comes to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.learned.policy.perceptron import Weights, forward
from gangplan.solvers.compiled.kernel import Floats, Ints, Singles2, kernel
from gangplan.solvers.compiled.routines import sow, uniform

from ..arrays import WAITING, Cluster, Jobs, State, begin, cluster_of
from ..step import pass_time
from ..suites import suite
from .candidates import Scratch, scratch_of
from .episodes import take_candidate
from .features import CANDIDATE, CONTEXT, MEAN, WIDTH, see, write_rows
from .guard import RULES
from .recipe import Settings
from .rollouts import TRIED, Base, best_scores, weigh
from .scenarios import episode

TRIES, ROOM, EPISODES = 24, 20_000, 10_000
"""Candidates that are labelled at most; rows of an episode at most; episodes of a seed."""
KEPT, STUDENTS = 0.8, 0.15
"""Shares: of the decisions, those that are labelled; of these, those that the student takes and not the teacher."""


class Labels(NamedTuple):
    """Decisions and what their candidates come to; d decisions, A rows.

    Attributes:
        rows: float32 (A, WIDTH).
        first: the rows of each decision begin there, int64 (d + 1,).
        regret: how much more the JCTs sum up to than by the best one, in mean lengths of a job, float64 (A,).
    """

    rows: Singles2
    first: Ints
    regret: Floats


def labels(settings: Settings, seed: int) -> Labels:
    """Return labelled decisions of training episodes, by rollouts.

    Args:
        settings: how many decisions and futures.
        seed: of the episodes and the futures.
    """
    made = suite("small")
    cluster = cluster_of(made.fleet, made.proximity)
    scratch, student = scratch_of(cluster, WIDTH), least_work()
    base = Base(RULES[0], np.array([TRIES, settings.futures, settings.ahead]))
    room = Labels(np.zeros((ROOM, WIDTH), np.float32), np.zeros(ROOM, np.int64), np.zeros(ROOM))
    found: list[Labels] = []
    count, number = 0, EPISODES * seed
    while count < settings.labels:
        jobs, pool = episode(number)
        d = label(jobs, cluster, begin(jobs, cluster), scratch, student, pool, base, number, room)
        rows = int(room.first[d])
        found.append(Labels(room.rows[:rows].copy(), room.first[: d + 1].copy(), room.regret[:rows].copy()))
        count, number = count + d, number + 1
    length = np.concatenate([np.diff(x.first) for x in found])
    first = np.append(0, np.cumsum(length))
    return Labels(np.concatenate([x.rows for x in found]), first, np.concatenate([x.regret for x in found]))


def least_work() -> Weights:
    """Return a network that prefers the candidate with the least work, but to wait as long as anything runs.

    So the teacher, which tries the best candidates, tries waiting first, and what the network decides itself makes full
    queues.
    """
    first = np.zeros((WIDTH, 2), np.float32)
    names = CONTEXT + CANDIDATE
    first[names.index("over_least")] = -1, 1
    first[names.index("wait")] = 0.3, -0.3
    none = np.zeros(2, np.float32)
    return Weights(first, none.copy(), np.eye(2, dtype=np.float32), none.copy(), np.array([1, -1], np.float32))


@kernel
def label(
    jobs: Jobs, cluster: Cluster, state: State, scratch: Scratch, student: Weights, pool: Jobs,
    base: Base, seed: int, out: Labels,
) -> int:  # fmt: skip
    """Play an episode, label a share `KEPT` of its decisions, and return how many there are.

    Args:
        jobs, cluster, state: are those of the episode.
        scratch: of the cluster.
        student: the candidates with its best scores are labelled; it takes the decisions that are not labelled.
        pool: jobs like those to come.
        base: who goes on, in how many futures.
        seed: of the futures.
        out: is written; there is room for all.
    """
    s = scratch
    sow(seed)
    tried, more = np.zeros(base.of[TRIED], np.int64), np.zeros(base.of[TRIED])
    d, go_on = 0, True
    while go_on:
        k = 0
        if state.count[WAITING] > 0:
            see(jobs, cluster, state, s)
            k = write_rows(jobs, cluster, state, s)
        if k == 0:
            go_on = pass_time(jobs, cluster, state)
            continue
        forward(s.row, k, student, s.score)
        c = best_scores(s.score, k, tried)
        best = 0
        room = d + 1 < len(out.first) and out.first[d] + c <= len(out.rows)
        if c > 1 and room and uniform() < KEPT:
            weigh(jobs, cluster, state, pool, len(pool.submit), s, tried[:c], base, more[:c])
            top = int(np.argmin(more[:c]))
            for i in range(c):
                at = out.first[d] + i
                out.rows[at] = s.row[tried[i]]
                out.regret[at] = (more[i] - more[top]) / s.stats[MEAN]
            out.first[d + 1] = out.first[d] + c
            d += 1
            if uniform() >= STUDENTS:
                best = top
        go_on = take_candidate(jobs, cluster, state, s, tried[best])
    return d
