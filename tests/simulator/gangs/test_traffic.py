"""Continuous runs: a loaded cluster, jobs as declared, and grounds of the test that are nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan.simulator.gangs.arrays import ARRIVED, RUNNING, WAITING
from gangplan.simulator.gangs.mixes import VALIDATION
from gangplan.simulator.gangs.traces import read_jobs
from gangplan.simulator.gangs.traffic import DRAWN, PARTS, TEST, TRAIN, VALIDATE, Traffic, episode, grounds, load

TABLES = (TRAIN, VALIDATE, TEST)
EVERY = [ground for table in TABLES for ground in table if ground.jobs in DRAWN]
BUSY = 0.5
"""Share of the GPUs that run when the cluster is loaded, at loads of .9 and more."""


def test_tables_differ_by_ground() -> None:
    """No name stands twice; a size, a load, an error and two traces are in the test only."""
    names = [ground.name for table in TABLES for ground in table]
    assert len(names) == len(set(names))

    def only(values: list[set[object]]) -> set[object]:
        return values[2] - values[0] - values[1]

    assert 4096 in only([{x.fleet.n_gpus for x in table} for table in TABLES])
    assert 0.6 in only([{x.load for x in table} for table in TABLES])
    assert 0.8 in only([{x.error for x in table} for table in TABLES])
    assert only([{x.jobs for x in table} for table in TABLES]) == {"pollux", "openb"}
    assert {x.part for x in TRAIN} == {"train"} and {x.part for x in TEST} == {"test"}


@pytest.mark.parametrize("ground", EVERY, ids=lambda x: x.name)
def test_jobs_are_as_declared(ground: Traffic) -> None:
    """The cluster, the load, the widest gang and the error are those of the ground, and a seed draws the same again."""
    work, told = ground.draw(3)
    assert load(work, ground.fleet, ground.proximity) == pytest.approx(ground.load)
    assert work.gpus.max() <= max(ground.fleet.n_gpus * ground.wide, ground.gpus) and (np.diff(work.submit) >= 0).all()
    assert (told is None) == (ground.error == 0)
    if told is not None:
        assert np.log(told / work.duration).std() == pytest.approx(ground.error, rel=0.1)
    again, other = ground.draw(3)[0], ground.draw(4)[0]
    assert np.array_equal(work.submit, again.submit) and not np.array_equal(work.submit, other.submit)


@pytest.mark.parametrize("ground", EVERY, ids=lambda x: x.name)
def test_runs_begin_loaded(ground: Traffic) -> None:
    """Jobs run, unless the ground begins empty; who waits is in the order of submission; what is played does not
    change where it begins."""
    run = ground.episode(1, 50)
    state, m = run.begin(), len(run.cluster.rack)
    assert np.diff(run.cluster.begin).tolist() == list(ground.racks) and m == sum(ground.racks)
    assert (state.count[RUNNING] > 0) == (ground.loading > 0) and run.ground == ground.name
    assert len(run.jobs.submit) == int(ground.loading * len(ground.draw(1)[0].submit)) + 50
    assert state.count[ARRIVED] == len(run.jobs.submit) - 50
    assert (np.diff(state.queue[: state.count[WAITING]]) > 0).all()
    if ground.loading and ground.load >= 0.9 and ground.wide < 1:  # else who needs all GPUs waits for them
        assert state.free.sum() < (1 - BUSY) * ground.fleet.n_gpus
    state.finish[:] = state.start[:] = 0.0
    assert np.isinf(run.state.start).any()
    assert not np.array_equal(run.pool.gpus, run.jobs.gpus[: len(run.pool.gpus)])


def test_days_have_a_rhythm() -> None:
    """With a swing of .8 some hours have far more arrivals than others."""
    ground = next(x for x in TRAIN if x.swing)
    for swing, least, most in ((0.0, 1.0, 1.6), (ground.swing, 2.5, 20.0)):
        submit = replace(ground, swing=swing).draw(0)[0].submit
        hours = np.histogram((submit / submit[-1] * 3) % 1, 6)[0]
        assert least < hours.max() / hours.min() < most


def test_numbers_go_round_the_grounds() -> None:
    """Training and validation are of their own tables, without the traces that are not there."""
    for table, first in ((TRAIN, 0), (VALIDATE, VALIDATION)):
        here = grounds(table)
        assert episode(len(here) + 1, 10, first).ground == here[1].name
        some = [x.name for x in here if x.fleet.n_gpus <= 512]
        assert [episode(i, 10, first, gpus=range(513)).ground for i in range(len(some) + 1)] == [*some, some[0]]
    assert all(x.jobs in DRAWN for x in grounds(TEST, "nowhere"))


def test_traces(data: Path) -> None:
    """Each ground of a trace has its jobs: each part of Philly its own, Pollux' models, openb's sizes."""
    found = {x.name: x for table in TABLES for x in grounds(table, str(data)) if x.jobs not in DRAWN}
    assert {x.jobs for x in found.values()} == {"philly", "openb", "pollux"}
    for ground in found.values():
        (work, _), (trace, _) = ground.draw(0), read_jobs(ground.jobs, str(data))
        assert load(work, ground.fleet, ground.proximity) == pytest.approx(1.0)
        low, high = (int(share * trace.n_jobs) for share in PARTS[ground.part])
        if ground.jobs == "philly":
            assert set(work.duration.tolist()) <= set(trace.duration[low:high].tolist())
    assert "bert" in found["pollux-256"].draw(0)[0].model and found["pollux-256"].proximity.intensity["bert"] > 0
