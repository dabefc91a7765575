"""Labels: decisions of training episodes, with what each candidate that was tried comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from gangplan.simulator.gangs.arrays import ARRIVED, RUNNING, WAITING, GpuRacks, Jobs, State
from gangplan.simulator.gangs.formula import FORMULAS
from gangplan.simulator.gangs.mixes import TRAINING
from gangplan.simulator.gangs.step import advance, start
from gangplan.simulator.gangs.traffic import Draw, Episode, episode

from ...graph.compiled import CompiledNetwork, Graph
from ...online.candidates import WAIT, CandidateScratch
from ...online.episodes import NEVER, observe
from ...online.rollouts import weigh
from ...online.settings import GnnSettings
from .exact import MOST, needed, weigh_exactly

KEPT, STUDENTS = 0.5, 0.25
"""Shares: of the decisions, those that are labelled, fewer of a long episode; of these, those in which the student's
candidate is taken."""
JOBS = 150
"""Jobs that arrive in an episode."""
CROWD, FEWEST = 60, 5
"""Jobs present up to which all candidates and futures are tried; of more in proportion fewer, but not less than so
many: a future takes as long as the square of the jobs."""
SOLVED, SECONDS = 1, 0.04
"""Futures of a decision that is labelled exactly, and time limit of each candidate in each, see `weigh_exactly`. More
decisions teach more than more futures of each; and nine in ten of what takes longer is not proved in .1 either."""
FARTHEST = 100
"""Arrivals in a future at most; half as many as there are jobs if that is more than the settings say."""
EPISODES = 100_000
"""Episodes of a seed at most."""
STRAY = 0.7
"""Deviation of the noise that is added to scores to find candidates worth trying."""


@dataclass(frozen=True, slots=True)
class DecisionLabel:
    """A decision with k candidates, c of which were tried.

    Attributes:
        graph: of it.
        tried: candidates, int64 (c,).
        regret: how much more the JCTs sum up to than by the best one, in mean lengths of a job, float32 (c,).
        exact: whether CP-SAT planned the rest.
    """

    graph: Graph
    tried: NDArray[np.int64]
    regret: NDArray[np.float32]
    exact: bool = False


def kept(graph: Graph) -> Graph:
    """Return a copy of what counts of a graph."""
    nodes, edges = int(graph.kind[-1]), int(graph.relation[-1])
    ends = (x[:edges].copy() for x in (graph.source, graph.target, graph.weight))
    return Graph(graph.x[:nodes].copy(), graph.kind.copy(), *ends, graph.relation.copy())


def label_episode(given: Episode, settings: GnnSettings, net: CompiledNetwork, seed: int) -> Iterator[DecisionLabel]:
    """Play an episode, and yield the decisions of it that are labelled.

    Args:
        given: what is played.
        settings: how many candidates are tried, and how.
        net: the student, which corrects the rule.
        seed: of what is drawn.
    """
    rng = np.random.default_rng(seed)
    jobs, cluster, pool = given.jobs, given.cluster, given.pool
    state, s, rule = given.begin(), CandidateScratch(cluster), FORMULAS[settings.rule]
    share, go_on = KEPT * min(JOBS / (len(jobs.submit) - int(state.count[ARRIVED])), 1.0), True
    while go_on:
        k = observe(jobs, cluster, state, s, net, rule, False)
        if k == 0:
            go_on = advance(jobs, cluster, state)
            continue
        rated = s.score[:k]
        best = int(np.argmax(rated))
        if k > 1 and rng.random() < share:
            live = int(state.count[WAITING] + state.count[RUNNING])
            fewer = min(1.0, CROWD / live)
            exactly = settings.exact > 0 and rng.random() < settings.exact
            most = FEWEST if exactly else max(int(fewer * settings.tries), FEWEST)
            tried = np.argsort(-rated - STRAY * rng.normal(size=k), kind="stable")[:most]
            tried = np.unique(np.append(tried[rated[tried] > NEVER], best))
            played = SOLVED if exactly else max(int(fewer * settings.futures), FEWEST)
            value, ahead = np.full((len(tried), played), np.nan), min(max(settings.ahead, live // 2), FARTHEST)
            if not exactly or needed(s, tried) <= MOST:
                of = jobs, cluster, state, pool, s, rule, tried, ahead, int(rng.integers(1 << 31)), value
                weigh_exactly(*of, seconds=SECONDS) if exactly else weigh(*of)
            value = value[:, ~np.isnan(value[0])]
            if value.size:
                mean = value.mean(axis=1)
                yield DecisionLabel(kept(s.graph), tried, ((mean - mean.min()) / s.mean).astype(np.float32), exactly)
                if rng.random() >= STUDENTS:
                    best = int(tried[np.argmin(mean)])
        go_on = take(jobs, cluster, state, s, best)


def take(jobs: Jobs, cluster: GpuRacks, state: State, s: CandidateScratch, i: int) -> bool:
    """Do what a candidate says; return whether there is more to come."""
    if s.place[i] == WAIT:
        return bool(advance(jobs, cluster, state))
    start(jobs, cluster, state, int(s.place[i]), s.take[i].copy())
    return True


def _some(draw: Draw, number: int, settings: GnnSettings, net: CompiledNetwork) -> list[DecisionLabel]:
    return list(label_episode(draw(number, JOBS, TRAINING), settings, net, number))


def make_labels(
    settings: GnnSettings, net: CompiledNetwork, seed: int, count: int, *, first: int = 0, draw: Draw = episode
) -> list[DecisionLabel]:
    """Return so many labels, made in processes by joblib, whose backend the caller may choose.

    Args:
        settings, net: see `label_episode`.
        seed: of the training.
        count: of decisions.
        first: number of the first episode.
        draw: what is played.
    """
    from joblib import Parallel, delayed

    labels, number = list[DecisionLabel](), EPISODES * seed + first
    parts: Any = Parallel(n_jobs=-1, return_as="generator")(
        delayed(_some)(draw, n, settings, net) for n in range(number, number + EPISODES // 2)
    )
    for part in parts:
        labels += part
        if len(labels) >= count:
            break
    with catch_warnings():  # that some were made in vain
        simplefilter("ignore", UserWarning)
        parts.close()
    return labels[:count]
