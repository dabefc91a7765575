"""The three-field notation says what a problem is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import teach
from gangplan.instances import Cluster, DeviceType, InstanceError, OpGraph, RampTopology, StepProblem
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem
from gangplan.solvers.method import OBJECTIVES, suite

ONE = MoldableJob("a", (1,), (2.0,))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("two_jobs", "P|size_j|sum w_j C_j"),
        ("graham", "P||C_max"),
        ("moldable", "P|any_j|C_max"),
        ("greedy_trap", "P|size_j, net|sum w_j S_j"),
        ("symmetric", "P||C_max"),
        ("lp_gap", "P||C_max"),
        ("one_call", "R|chains, c_j, call|C_max"),
        ("fork", "P|prec, c_j|C_max"),
        ("replicas", "P|chains, any_j|max T_s"),
    ],
)
def test_lessons(name: str, wanted: str) -> None:
    """Each lesson is called what a textbook calls it, as far as one does."""
    assert str(teach.notation(teach.LESSONS[name]().problem)) == wanted


@pytest.mark.parametrize(
    ("jobs", "capacity", "goal", "wanted"),
    [
        ((ONE,), Pool(1), "weighted_completion", "1||sum C_j"),
        ((replace(ONE, weight=2.0, release=1.0),), Pool(1), "weighted_completion", "1|r_j|sum w_j C_j"),
        ((replace(ONE, deadline=9.0),), Pool(2), "makespan", "P|dbar_j|C_max"),
        ((replace(ONE, value=9.0),), Pool(2), "makespan", "P|rej|C_max + sum v_j"),
        ((replace(ONE, degrees=(2,)),), NodePool(2, 2), "mean_jct", "P|size_j, nodes|sum F_j / n"),
        ((replace(ONE, degrees=(2,)),), RampTopology(2, 2, 1), "blocked", "P|size_j, blocks|sum v_j U_j"),
    ],
)
def test_jobs(jobs: tuple[MoldableJob, ...], capacity: Pool, goal: str, wanted: str) -> None:
    """Machines, releases, deadlines, gangs, rejection and every goal have their symbols."""
    found = teach.notation(ScheduleProblem(jobs, capacity, goal))
    assert str(found) == wanted
    assert set(found.ours) == {"nodes", "blocks"} & set(found.sentences)


def test_a_common_due_date() -> None:
    """Throughput by a horizon is the weighted number of late jobs."""
    assert str(teach.notation(ScheduleProblem((ONE,), Pool(2), "throughput", 5.0))) == "P||sum w_j U_j"


@pytest.mark.parametrize(
    ("times", "counts", "wanted"),
    [
        ([[1.0, 2.0]], (1,), "1"),
        ([[1.0, 2.0]], (2,), "P"),
        ([[1.0, 2.0], [1.0, 2.0]], (1, 1), "P"),
        ([[1.0, 2.0], [3.0, 6.0]], (1, 1), "Q"),
        ([[1.0, 2.0], [3.0, 5.0]], (1, 1), "R"),
        ([[1.0, np.inf], [np.inf, 5.0]], (1, 1), "J"),
        ([[1.0, np.inf], [np.inf, 5.0]], (2, 1), "R"),
    ],
)
def test_machines(times: list[list[float]], counts: tuple[int, ...], wanted: str) -> None:
    """One machine, identical, uniform and unrelated ones and a job shop are told apart by the times."""
    zero, kinds = np.zeros(2), ("a", "b")[: len(counts)]
    graph = OpGraph(("x", "y"), kinds, times, zero, zero, zero, [0], [1], [0.0])
    cluster = Cluster.flat(*((DeviceType(k), n) for k, n in zip(kinds, counts, strict=True)), bandwidth=1.0)
    found = teach.notation(StepProblem(graph, cluster))
    assert found.alpha == wanted and found.gamma == "C_max"


@pytest.mark.parametrize("objective", [x for x in OBJECTIVES if x != "layout"])  # of no machines and jobs
def test_every_problem_has_a_sentence_a_symbol(objective: str) -> None:
    """Random problems of every kind have a notation, and each of its symbols a sentence."""
    of = suite(objective)
    for variant in of.variants:
        for seed in range(6):
            found = teach.notation(of.random_problem(seed, variant))
            symbols = [found.alpha, *filter(None, found.beta.split(", ")), found.gamma]
            assert list(found.sentences) == symbols
            assert all(words.endswith(".") for words in found.sentences.values())
            assert set(found.ours) <= set(symbols)


def test_no_problem() -> None:
    """What is no problem has no notation."""
    with pytest.raises(InstanceError, match="problem: a str is no problem of this library"):
        teach.notation("P||C_max")
