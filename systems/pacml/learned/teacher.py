"""The teachers: they know the distribution of jobs, look ahead, and say what every row of a decision is worth.

Rollouts play on by a table of values, plans know the future they plan. The policy that learns from them is told neither
distribution nor future.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from gangplan.solvers.compiled.kernel import Floats, Floats3, Ints, Singles, Singles2, kernel

from ..arrivals import DISTRIBUTIONS
from .features import MOST, SUMS, WIDTH, FeatureScratch, remember, scratch_of, see, turn_of, write_rows
from .hindsight import FUTURES as PLANNED
from .hindsight import Future, Plans, hindsight, plans
from .network import BlockNetwork, Weights, forward
from .recipe import TRAINING, PacmlSettings
from .tables import BlockTables, TypeTimes, start_job
from .values import EPISODE, EXPLORE, GAMMA, SHAPE, ArrivalEpisode, Scenario, value_table, weigh, worth

TRIED, FUTURES, HORIZON = 6, 24, 24
"""Rows played on, futures of each, jobs in a future."""

SHARE = 0.5
"""Of the decisions, that a student takes."""

VOTE = 0.2
"""Of what a plan says a row is worth: plans differ by whole jobs where rollouts differ by tenths."""

AHEAD = 20_000
"""Jobs of which the futures are drawn."""

NOBODY = Weights(*(np.zeros(shape, np.float32) for shape in ((WIDTH, 1), (1,), (1, 1), (1,), (1,))))
"""In place of a student."""


class TeacherLabels(NamedTuple):
    """Decisions and what each of their rows is worth to the teacher; d decisions, A rows.

    Attributes:
        rows: float32 (A, WIDTH).
        first: int64 (d + 1,).
        value: accepted jobs to come, discounted, this one included; float32 (A,).
    """

    rows: Singles2
    first: Ints
    value: Singles


class Teacher(NamedTuple):
    """Who knows the distribution in one cluster.

    Attributes:
        table: of values.
        future: jobs of which futures are drawn; none to go by the table alone, which is 500 times faster.
        planned: whether futures are planned; else played on by the table.
        plans, scratch: are written.
    """

    table: Floats3
    future: Future
    planned: bool
    plans: Plans
    scratch: FeatureScratch


def teacher(
    scenario: Scenario, table: Floats3, ahead: ArrivalEpisode | None, *, planned: bool, choose: bool
) -> Teacher:
    """Return who knows a table and, to look ahead, jobs like those to come."""
    future = Future(np.zeros(0, np.int64), np.zeros(0)) if ahead is None else Future(ahead.kind, ahead.beta)
    return Teacher(table, future, planned, plans(scenario.tables), scratch_of(scenario.tables, choose=choose))


def label(
    scenario: Scenario, episode: ArrivalEpisode, knows: Teacher, keep: float, seed: int, student: Weights | None = None
) -> TeacherLabels:
    """Let a teacher play an episode, now and then at random, and label about a share `keep` of its decisions.

    A student, if any, takes every other decision, so that the states are those it comes to.
    """
    n = len(episode.kind)
    size = round(n * keep * 45) + MOST
    scratch = scenario.scratch(choose=not knows.scratch.published)
    out = TeacherLabels(
        np.zeros((size, scratch.row.shape[1]), np.float32), np.zeros(n + 1, np.int64), np.zeros(size, np.float32)
    )
    d = _label(
        episode.kind, episode.beta, episode.gap, scenario.tables, scenario.times, knows,
        scratch, student or NOBODY, SHARE if student else 0.0, keep, seed, out,
    )  # fmt: skip
    k = out.first[d]
    return TeacherLabels(out.rows[:k].copy(), out.first[: d + 1].copy(), out.value[:k].copy())


@kernel
def _label(
    kind: Ints, beta: Floats, gap: Floats, tables: BlockTables, times: TypeTimes, teacher: Teacher,
    scratch: FeatureScratch, student: Weights, share: float, keep: float, seed: int, out: TeacherLabels,
) -> int:  # fmt: skip
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code, which has no other
    end, sums, value = np.full(tables.n, -1.0), np.zeros(SUMS), np.zeros(MOST)
    score = np.zeros(MOST, np.float32)
    now, d = 0.0, 0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], times.sequential[m], times.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        k = judge(end, now, turn, m, beta[i] * times.sequential[m], tables, times, teacher, scratch, value)
        at = out.first[d]
        asked = np.random.random() < share  # noqa: NPY002
        kept = k > 1 and at + k <= len(out.rows) and np.random.random() < keep  # noqa: NPY002
        if asked or kept:
            write_rows(end, now, turn, tables, times, m, beta[i], sums, scratch)
        if kept:
            out.rows[at : at + k] = scratch.row[:k]
            out.value[at : at + k] = value[:k]
            d += 1
            out.first[d] = at + k
        a = int(np.argmax(value[:k]))
        if asked:
            forward(scratch.row, k, student, score)
            a = int(np.argmax(score[:k]))
        if np.random.random() < EXPLORE:  # noqa: NPY002
            a = np.random.randint(k)  # noqa: NPY002
        if a > 0:
            start_job(end, now, scratch.choice[a], m, tables, times, scratch.published)
    return d


@kernel
def judge(
    end: Floats, now: float, turn: float, m: int, limit: float, tables: BlockTables, times: TypeTimes, teacher: Teacher,
    scratch: FeatureScratch, value: Floats,
) -> int:  # fmt: skip
    """Write what each candidate is worth to a teacher, and return how many there are."""
    k = weigh(end, now, turn, tables, times, m, limit, teacher.table, scratch, value)
    if k > 1 and len(teacher.future.kind) > 0:
        if teacher.planned:
            hindsight(
                k, end, now, turn * 32 / tables.n, m, teacher.future, tables, times, scratch, teacher.plans, PLANNED,
                value,
            )  # fmt: skip
            value[:k] *= VOTE
        else:
            look_ahead(k, end, now, turn, m, tables, times, teacher, scratch, value)
    return k


@kernel
def look_ahead(
    k: int, end: Floats, now: float, turn: float, m: int, tables: BlockTables, times: TypeTimes, teacher: Teacher,
    scratch: FeatureScratch, out: Floats,
) -> None:  # fmt: skip
    """Play on from the most promising rows by the table, and write what comes of them in place of what they seem worth.

    All are played on with the same futures: `FUTURES` times `HORIZON` jobs. Rows that are not played on are worth no
    more than before, and less than those that are.
    """
    order = np.argsort(-out[:k])[: min(k, TRIED)]
    choice = scratch.choice[:k].copy()
    future, ahead = teacher.future, teacher.scratch
    drawn = np.random.randint(0, len(future.kind), (FUTURES, HORIZON))  # noqa: NPY002
    played = np.zeros(len(order))
    later, found = np.zeros_like(end), np.zeros(MOST)
    for a in range(len(order)):
        own = choice[order[a]]
        for f in range(FUTURES):
            later[:] = end
            total, worth_of, t = 0.0, 1.0, now
            if own >= 0:
                total = 1.0
                start_job(later, now, own, m, tables, times, ahead.published)
            for h in range(HORIZON):
                t += turn * 32 / tables.n
                j = future.kind[drawn[f, h]]
                limit = future.beta[drawn[f, h]] * times.sequential[j]
                rows = weigh(later, t, turn, tables, times, j, limit, teacher.table, ahead, found)
                best = np.argmax(found[:rows])
                if best > 0:
                    total += worth_of
                    start_job(later, t, ahead.choice[best], j, tables, times, ahead.published)
                worth_of *= GAMMA
            see(later, t, turn, tables, ahead)
            played[a] += (total + worth_of * worth(ahead.count, teacher.table)) / FUTURES
    least = played.min()
    gap = out[order[len(order) - 1]] - least
    for i in range(k):
        out[i] = min(out[i] - gap, least)
    for a in range(len(order)):
        out[order[a]] = played[a]


@dataclass(frozen=True, slots=True, eq=False)
class Taught:
    """A published setting, its teacher and what that has labelled.

    Attributes:
        scenario, unit, name: the setting.
        first_seed: where the seeds of its cases begin.
        table: of values.
        planned: whether the teacher plans futures instead of playing on by the table.
        quick: labels by the table alone.
        searched: labels by looking ahead.
    """

    scenario: Scenario
    unit: str
    name: str
    first_seed: int
    table: Floats3
    planned: bool
    quick: tuple[TeacherLabels, ...] = ()
    searched: tuple[TeacherLabels, ...] = ()

    def draw(self, rng: np.random.Generator, n: int) -> ArrivalEpisode:
        """Return an episode of the setting."""
        return self.scenario.draw(self.unit, self.name, self.first_seed + int(rng.integers(2**30)), n)

    def label(
        self,
        many: int,
        settings: PacmlSettings,
        rng: np.random.Generator,
        *,
        looks: bool,
        student: Weights | None = None,
    ) -> tuple[TeacherLabels, ...]:
        """Return so many labels, of states that a student comes to if there is one."""
        found, left = [], many
        ahead = self.draw(rng, AHEAD) if looks and many else None
        while left > 0:
            # what was looked ahead from is kept: that is what takes long
            keep, n = (1.0, min(EPISODE, left + 50)) if looks else (0.4, EPISODE)
            episode = self.draw(rng, n)
            knows = teacher(self.scenario, self.table, ahead, planned=self.planned, choose=settings.blocks)
            found.append(label(self.scenario, episode, knows, keep, int(rng.integers(2**31)), student))
            left -= max(len(found[-1].first) - 1, 1)
        return tuple(found)


def taught(scenario: Scenario, settings: PacmlSettings, seed: int) -> list[Taught]:
    """Return a teacher for every set of the scenario and published distribution, with its first labels.

    Args:
        settings: how many labels of which kind, and how long a table is fitted.
    """
    jobs = [
        delayed(_setting)(scenario, unit, name, settings, seed, TRAINING + 1000 * i)
        for i, (unit, name) in enumerate((u, d) for u in scenario.sets for d in DISTRIBUTIONS)
    ]
    return list(Parallel(n_jobs=settings.processes)(jobs))


def corrected(teachers: Sequence[Taught], network: BlockNetwork, settings: PacmlSettings, seed: int) -> list[Taught]:
    """Return the teachers with labels of states that a network comes to, too (DAgger: Ross et al., AISTATS 2011)."""
    jobs = [delayed(_correct)(x, network.compiled(), settings, seed + i) for i, x in enumerate(teachers)]
    return list(Parallel(n_jobs=settings.processes)(jobs))


def _setting(scenario: Scenario, unit: str, name: str, settings: PacmlSettings, seed: int, first_seed: int) -> Taught:
    rng = np.random.default_rng([seed, first_seed])
    made = Taught(scenario, unit, name, first_seed, np.zeros(SHAPE), name in settings.planned)
    draw, rounds = partial(made.draw, n=2 * EPISODE), settings.rounds
    made = replace(made, table=value_table(scenario, draw, rng, rounds=rounds, choose=settings.blocks))
    quick = made.label(settings.labels, settings, rng, looks=False)
    many = settings.planned_labels if made.planned else settings.searched
    return replace(made, quick=quick, searched=made.label(many, settings, rng, looks=True))


def _correct(made: Taught, student: Weights, settings: PacmlSettings, seed: int) -> Taught:
    # joblib hands over arrays that are read-only, which are of another type to the compiler
    own = Weights(*(np.array(x) for x in student))
    many = settings.planned_corrected if made.planned else settings.corrected
    more = made.label(many, settings, np.random.default_rng([seed, 1]), looks=True, student=own)
    return replace(made, searched=(*made.searched, *more))
