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
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from ..arrivals import DISTRIBUTIONS
from .features import MOST
from .network import BlockNetwork, Weights
from .recipe import TRAINING, PacmlSettings
from .tables import Long
from .values import EPISODE, EXPLORE, ArrivalEpisode, Scenario, value_table
from .worth import SHAPE, Teacher

SHARE = 0.5
"""Of the decisions, that a student takes."""

AHEAD = 20_000
"""Jobs of which the futures are drawn."""


class TeacherLabels(NamedTuple):
    """Decisions and what each of their rows is worth to the teacher; d decisions, A rows.

    Attributes:
        rows: float32 (A, WIDTH).
        first: int64 (d + 1,).
        value: accepted jobs to come, discounted, this one included; float32 (A,).
    """

    rows: NDArray[np.float32]
    first: Long
    value: NDArray[np.float32]


def label(
    scenario: Scenario, episode: ArrivalEpisode, knows: Teacher, keep: float, student: Weights | None = None
) -> TeacherLabels:
    """Let a teacher play an episode, now and then at random, and label about a share `keep` of its decisions.

    A student, if any, takes every other decision, so that the states are those it comes to.
    """
    size, share, random = round(len(episode.kind) * keep * 45) + MOST, SHARE if student else 0.0, knows.random
    decision, value = scenario.decision(choose=not knows.published), np.zeros(MOST)
    row, rows, values, first = np.asarray(decision.row), [], [], [0]
    decision.begin(scenario.times)
    for job in episode.jobs():
        k = decision.arrive(*job)
        knows.judge(decision, k, value)
        asked = random.uniform() < share
        kept = k > 1 and first[-1] + k <= size and random.uniform() < keep
        if asked or kept:
            decision.write(k)
        if kept:
            rows.append(row[:k].copy())
            values.append(value[:k].astype(np.float32))
            first.append(first[-1] + k)
        best = student.scores(row[:k]) if student and asked else value[:k]
        a = random.below(k) if random.uniform() < EXPLORE else int(np.argmax(best))
        if a > 0:
            decision.accept(a)
    none = np.zeros((0, row.shape[1]), np.float32)
    return TeacherLabels(np.concatenate([none, *rows]), np.array(first), np.concatenate([none[:, 0], *values]))


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
    table: FloatArray
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
            seed, jobs = int(rng.integers(2**31)), (ahead.kind, ahead.beta) if ahead else ()
            world, choose = (self.scenario.tables, self.scenario.times), settings.blocks
            knows = Teacher(*world, self.table, *jobs, planned=self.planned, choose=choose, seed=seed)
            found.append(label(self.scenario, episode, knows, keep, student))
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
    jobs = [delayed(_correct)(x, network.weights(), settings, seed + i) for i, x in enumerate(teachers)]
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
    many = settings.planned_corrected if made.planned else settings.corrected
    more = made.label(many, settings, np.random.default_rng([seed, 1]), looks=True, student=student)
    return replace(made, searched=(*made.searched, *more))
