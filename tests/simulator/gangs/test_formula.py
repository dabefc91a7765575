"""A formula is what its words say, and the rule `TopdrlPatient` is one."""

from __future__ import annotations

from math import inf, log, log1p

import numpy as np
import pytest

from gangplan.simulator.gangs.allocate import CLOSEST, allocate
from gangplan.simulator.gangs.arrays import NOW, RUNNING, WAITING, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.formula import HOLD, LENGTH, ONE, PATIENT, TERMS, finish, words
from gangplan.simulator.gangs.step import advance, communication, least_cost, start
from gangplan.simulator.gangs.traffic import DRAWN, TRAIN, Episode, Traffic
from gangplan.systems.topdrl.rules import TopdrlPatient


@pytest.mark.parametrize("ground", [x for x in TRAIN if x.jobs in DRAWN][:-1], ids=lambda x: x.name)
def test_patient_is_a_formula(ground: Traffic) -> None:
    """To the bit, on grounds that are learned from."""
    work, told = ground.draw(0)
    jobs, cluster = jobs_of(work, ground.proximity, told), cluster_of(ground.fleet, ground.proximity)
    mine, theirs = begin(jobs, cluster), begin(jobs, cluster)
    finish(jobs, cluster, mine, PATIENT)
    TopdrlPatient().finish(jobs, cluster, theirs)
    assert np.array_equal(mine.start, theirs.start) and np.array_equal(mine.held, theirs.held)


def plainly(run: Episode, w: np.ndarray) -> State:
    """Do what a formula says, as the module's docstring has it."""
    jobs, cluster, state, ideal = run.jobs, run.cluster, run.begin(), least_cost(run.cluster)
    order, wait = w[:4], w[4:HOLD]
    while True:
        running = state.running[: state.count[RUNNING]]
        now, queue = float(state.clock[NOW]), state.queue[: state.count[WAITING]].tolist()
        crowd = log1p(len(queue) / max(len(running), 1))
        typical = float(np.log(jobs.expected[running]).mean()) if len(running) else 0.0
        key, late, best = {}, {}, {}
        for j in queue:
            gpus, seconds = log(jobs.gpus[j]), jobs.expected[j]
            best[j], late[j] = 1 + jobs.intensity[j] * ideal[jobs.gpus[j]], log1p((now - jobs.submit[j]) / seconds)
            key[j] = log(seconds) + order @ (gpus, log(best[j]), late[j], crowd * gpus)
        ran, most = log1p(len(running)), inf
        for j in sorted(queue, key=lambda j: (key[j], j)):
            take = np.zeros_like(state.free)
            if key[j] > most:
                break
            if allocate(CLOSEST, int(jobs.gpus[j]), cluster, state.free, take):
                more = (1 + jobs.intensity[j] * communication(cluster, take)) / best[j] - 1
                terms = 1, log(jobs.expected[j]) - typical, log(jobs.gpus[j]), ran, crowd, late[j]
                if more <= 1e-9 or not state.count[RUNNING] or log(more) <= wait @ terms + 1e-9:
                    start(jobs, cluster, state, state.queue[: state.count[WAITING]].tolist().index(j), take)
                    continue
            most = min(most, key[j] - log(w[HOLD]) if w[HOLD] > 0 else inf)
        if not advance(jobs, cluster, state):
            return state


@pytest.mark.parametrize("seed", range(6))
def test_compiled_runs_are_what_the_formula_says(seed: int) -> None:
    """With weights that are drawn, each term among them, decision by decision."""
    rng = np.random.default_rng(seed)
    weights = PATIENT + rng.normal(size=len(TERMS)) * 0.3 * (rng.random(len(TERMS)) < 0.7)
    weights[HOLD] = max(weights[HOLD], 0.0)
    run = TRAIN[(0, 1, 2)[seed % 3]].episode(seed, 60)
    mine, theirs = run.begin(), plainly(run, weights)
    finish(run.jobs, run.cluster, mine, weights)
    assert np.array_equal(mine.start, theirs.start) and np.array_equal(mine.held, theirs.held)


def test_words() -> None:
    """They name each weight that is not 0."""
    assert words(PATIENT) == (
        "key = log seconds + 0.777 log GPUs + 0.639 log slowdown",
        "waits where log(slower - 1) > - 2.35",
        "holds nobody",
    )
    other = np.zeros(len(TERMS))
    other[[ONE, LENGTH, HOLD]] = 1.5, -0.7, 0.25
    assert words(other) == (
        "key = log seconds",
        "waits where log(slower - 1) > 1.5 - 0.7 log(seconds/typical)",
        "holds those behind with exp(key) more than 4 times as much",
    )
