"""The teachers: they know the distribution of jobs, look ahead, and say what every row of a decision is worth.

Rollouts play on by a table of values, plans know the future they plan. The policy that learns from them is told neither
distribution nor future.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from gangplan.simulator.ramp import (
    DISTRIBUTIONS,
)
from gangplan.solvers.compiled.kernel import kernel

from .episodes import forward, hold
from .features import MOST, SUMS, WIDTH, remember, scratch_of, see, turn_of, write_rows
from .hindsight import hindsight, plans
from .network import Network, Weights, compiled
from .scenarios import EPISODE, Episode, Scenario
from .settings import Settings
from .tables import Long
from .values import EXPLORE, GAMMA, case_of, value_table, weigh, worth

TRIED, FUTURES, HORIZON = 6, 24, 24
"""Rows played on, futures of each, jobs in a future."""

SHARE = 0.5
"""Of the decisions, that a student takes."""

VOTE = 0.2
"""Of what a plan says a row is worth: plans differ by whole jobs where rollouts differ by tenths."""


class Labels(NamedTuple):
    """Decisions and what each of their rows is worth to the teacher; d decisions, A rows.

    Attributes:
        rows: float32 (A, WIDTH).
        first: int64 (d + 1,).
        kind: type of the job, int64 (d,).
        value: accepted jobs to come, discounted, this one included; float32 (A,).
    """

    rows: NDArray[np.float32]
    first: Long
    kind: Long
    value: NDArray[np.float32]


def label(
    scenario: Scenario,
    episode: Episode,
    table: Any,
    keep: float,
    seed: int,
    *,
    ahead: Episode | None,
    planned: bool = False,
    student: Weights | None = None,
    choose: bool = True,
) -> Labels:
    """Let the teacher play an episode, now and then at random, and label about a share `keep` of its decisions.

    Args:
        scenario: where.
        episode: what arrives.
        table: the teacher's.
        keep: share of the decisions.
        seed: of chance.
        ahead: jobs of which futures are drawn; None to go by the table alone, which is 500 times faster.
        planned: whether futures are planned; else played on by the table.
        student: network that takes every other decision, so that the states are those it comes to; None for none.
        choose: see `gangplan.learned.ramp.features.scratch_of`.
    """
    n = len(episode.kind)
    rows, first = np.zeros((round(n * keep * 45) + MOST, WIDTH), np.float32), np.zeros(n + 1, np.int64)
    value, kind = np.zeros(len(rows), np.float32), np.zeros(n, np.int64)
    # copies, for arrays that are read-only are of another type to the compiler
    future = (np.zeros(0, np.int64), np.zeros(0)) if ahead is None else (np.array(ahead.kind), np.array(ahead.beta))
    place, other = (scratch_of(scenario.tables, choose=choose) for _ in range(2))
    share = 0.0 if student is None else SHARE
    d = _label(
        *case_of(episode), *future, scenario.tables, scenario.times, table, place, other, plans(scenario.tables),
        planned, _nobody() if student is None else _copied(student), share, keep, seed, rows, first, kind, value,
    )  # fmt: skip
    k = first[d]
    return Labels(rows[:k].copy(), first[: d + 1].copy(), kind[:d].copy(), value[:k].copy())


def _nobody() -> Weights:
    shapes = (WIDTH, 1), (1, 1), (1, 1), (1,), (1,)
    a, b, c, d, e = (np.zeros(shape, np.float32) for shape in shapes)
    return a, b, c, d, e


def _copied(weights: Weights) -> Weights:
    a, b, c, d, e = (np.array(x) for x in weights)
    return a, b, c, d, e


@kernel
def _label(
    kind: Any, beta: Any, gap: Any, future: Any, accept: Any, tables: Any, times: Any, table: Any, scratch: Any,
    ahead: Any, plans: Any, planned: bool, student: Any, share: float, keep: float, seed: int, rows: Any, first: Any,
    kinds: Any, value: Any,
) -> int:  # fmt: skip
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code, which has no other
    end, sums, out = np.full(tables.n, -1.0), np.zeros(SUMS), np.zeros(MOST)
    score = np.zeros(MOST, np.float32)
    now, d = 0.0, 0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], times.sequential[m], times.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        limit = beta[i] * times.sequential[m]
        k = weigh(end, now, turn, tables, times.jct[m], limit, table, scratch, out)
        if k > 1 and len(future) > 0:
            if planned:
                step = turn * 32 / tables.n
                hindsight(k, end, now, step, m, future, accept, tables, times, scratch, plans, out)
                out[:k] *= VOTE
            else:
                look_ahead(k, end, now, turn, m, future, accept, tables, times, table, scratch, ahead, out)
        at = first[d]
        asked = np.random.random() < share  # noqa: NPY002
        kept = k > 1 and at + k <= len(rows) and np.random.random() < keep  # noqa: NPY002
        if asked or kept:
            write_rows(end, now, turn, tables, times.jct[m], times.sequential[m], beta[i], sums, scratch)
        if kept:
            rows[at : at + k] = scratch.row[:k]
            value[at : at + k] = out[:k]
            kinds[d] = m
            d += 1
            first[d] = at + k
        a = int(np.argmax(out[:k]))
        if asked:
            forward(scratch.row, k, student, m, score)
            a = int(np.argmax(score[:k]))
        if np.random.random() < EXPLORE:  # noqa: NPY002
            a = np.random.randint(k)  # noqa: NPY002
        if a > 0:
            b = scratch.block[a]
            hold(end, b, now + times.jct[m, tables.shape[b]], tables)
    return d


@kernel
def look_ahead(
    k: int, end: Any, now: float, turn: float, m: int, future: Any, accept: Any, tables: Any, times: Any, table: Any,
    scratch: Any, ahead: Any, out: Any,
) -> None:  # fmt: skip
    """Play on from the most promising rows by the table, and write what comes of them in place of what they seem worth.

    All are played on with the same futures: `FUTURES` times `HORIZON` jobs drawn from `future` and `accept`. Rows that
    are not played on are worth no more than before, and less than those that are.
    """
    order = np.argsort(-out[:k])[: min(k, TRIED)]
    block = scratch.block[:k].copy()
    drawn = np.random.randint(0, len(future), (FUTURES, HORIZON))  # noqa: NPY002
    played = np.zeros(len(order))
    later, found = np.zeros_like(end), np.zeros(MOST)
    for a in range(len(order)):
        b = block[order[a]]
        for f in range(FUTURES):
            later[:] = end
            total, worth_of, t = 0.0, 1.0, now
            if b >= 0:
                total = 1.0
                hold(later, b, now + times.jct[m, tables.shape[b]], tables)
            for h in range(HORIZON):
                t += turn * 32 / tables.n
                j = future[drawn[f, h]]
                limit = accept[drawn[f, h]] * times.sequential[j]
                rows = weigh(later, t, turn, tables, times.jct[j], limit, table, ahead, found)
                best = np.argmax(found[:rows])
                if best > 0:
                    total += worth_of
                    c = ahead.block[best]
                    hold(later, c, t + times.jct[j, tables.shape[c]], tables)
                worth_of *= GAMMA
            see(later, t, turn, tables, ahead)
            played[a] += (total + worth_of * worth(ahead.count, table)) / FUTURES
    least = played.min()
    gap = out[order[len(order) - 1]] - least
    for i in range(k):
        out[i] = min(out[i] - gap, least)
    for a in range(len(order)):
        out[order[a]] = played[a]


AHEAD = 20_000
"""Jobs of which the futures are drawn."""

Draw = Callable[[np.random.Generator, int], Episode]
"""From a generator and a number of jobs to an episode."""


@dataclass(frozen=True, slots=True, eq=False)
class Taught:
    """A setting, its teacher and what that has labelled.

    Attributes:
        scenario: where.
        draw: its episodes.
        table: of values.
        planned: whether the teacher plans futures instead of playing on by the table.
        quick: labels by the table alone.
        searched: labels by looking ahead.
    """

    scenario: Scenario
    draw: Draw
    table: Any
    planned: bool
    quick: list[Labels]
    searched: list[Labels]


def taught(scenario: Scenario, settings: Settings, seed: int, *, first_seed: int) -> list[Taught]:
    """Return a teacher for every set of the scenario and published distribution, with its first labels.

    Args:
        scenario: of the published models.
        settings: how many labels of which kind, and how long a table is fitted.
        seed: of chance.
        first_seed: where the seeds of the cases begin.
    """
    jobs = [
        delayed(_setting)(scenario, unit, name, settings, seed, first_seed + 1000 * i)
        for i, (unit, name) in enumerate((u, d) for u in scenario.sets for d in DISTRIBUTIONS)
    ]
    return list(Parallel(n_jobs=settings.processes)(jobs))


def corrected(teachers: Sequence[Taught], network: Network, settings: Settings, seed: int) -> list[Taught]:
    """Return the teachers with labels of states that a network comes to, too (DAgger: Ross et al., AISTATS 2011)."""
    jobs = [
        delayed(_correct)(x, compiled(network, x.scenario.graphs), settings, seed + i) for i, x in enumerate(teachers)
    ]
    return list(Parallel(n_jobs=settings.processes)(jobs))


def _setting(scenario: Scenario, unit: str, name: str, settings: Settings, seed: int, first_seed: int) -> Taught:
    rng = np.random.default_rng([seed, first_seed])
    draw = partial(_published, scenario, unit, name, first_seed)
    table = value_table(
        scenario, lambda rng: draw(rng, EPISODE * 2), rng, rounds=settings.rounds, episodes=settings.rounds,
        choose=settings.blocks,
    )  # fmt: skip
    made = Taught(scenario, draw, table, name in settings.planned, [], [])
    searched = settings.planned_labels if made.planned else settings.searched
    return _more(made, settings.labels, searched, settings, rng, None)


def _published(scenario: Scenario, unit: str, name: str, first_seed: int, rng: np.random.Generator, n: int) -> Episode:
    return scenario.draw(unit, name, first_seed + int(rng.integers(2**30)), n)


def _correct(teacher: Taught, student: Weights, settings: Settings, seed: int) -> Taught:
    rng = np.random.default_rng([seed, 1])
    return _more(teacher, 0, settings.corrected, settings, rng, student)


def _more(
    teacher: Taught, quick: int, searched: int, settings: Settings, rng: np.random.Generator, student: Weights | None
) -> Taught:
    """Return the teacher with so many labels more of each kind."""
    found: tuple[list[Labels], list[Labels]] = (list(teacher.quick), list(teacher.searched))
    futures = teacher.draw(rng, AHEAD) if searched else None
    for made, many, ahead in ((found[0], quick, None), (found[1], searched, futures)):
        left = many
        while left > 0:
            # what was looked ahead from is kept: that is what takes long
            keep, n = (0.4, EPISODE) if ahead is None else (1.0, min(EPISODE, left + 50))
            made.append(
                label(
                    teacher.scenario, teacher.draw(rng, n), teacher.table, keep, int(rng.integers(2**31)), ahead=ahead,
                    planned=teacher.planned, student=student, choose=settings.blocks,
                )
            )  # fmt: skip
            left -= max(len(made[-1].kind), 1)
    return replace(teacher, quick=found[0], searched=found[1])
