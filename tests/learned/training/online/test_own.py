"""One's own trace: episodes begin loaded in their part of it, and the verdict is of what comes of playing on."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from gangplan.learned.training.online.own import BLOCKS, CHOSEN, LEARNED, OwnCluster
from gangplan.simulator.gangs.arrays import RUNNING, begin, cluster_of
from gangplan.simulator.gangs.mixes import TRAINING, VALIDATION
from gangplan.simulator.gangs.traffic import TRAIN
from gangplan.systems.topdrl.rules import TopdrlPatient, rule

JOBS = 600


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> OwnCluster:
    """Return a trace of a cluster of 32 GPUs."""
    path = tmp_path_factory.mktemp("own") / "jobs.csv"
    work, _ = TRAIN[0].draw(0)
    columns = zip(range(JOBS), work.gpus, work.submit.round(3), work.duration, strict=False)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("job_id", "num_gpu", "submit_time", "duration"), *columns])
    return OwnCluster(str(path), "2x4x4")


@pytest.mark.parametrize(("first", "part"), [(TRAINING, (0.0, LEARNED)), (VALIDATION, (LEARNED, CHOSEN))])
def test_episodes_begin_loaded(own: OwnCluster, first: int, part: tuple[float, float]) -> None:
    """They lie in the part that is learned from or chosen by, with jobs that run when the first one arrives."""
    low, high = (own.jobs.submit[min(int(share * JOBS), JOBS - 1)] for share in part)
    running = []
    for number in range(5):
        run = own.episode(number, 20, first)
        assert low <= run.jobs.submit[0] and run.jobs.submit[-1] <= high
        running.append(int(run.state.count[RUNNING]))
    assert np.mean(running) > 2


def test_the_verdict_plays_on(own: OwnCluster) -> None:
    """A rule is level with itself, what is worse is not to be used, and means are of the last fifth of one long run."""
    level: dict[str, Any] = own.verdict(TopdrlPatient())[0]
    assert (level["rule"], level["gnn_less"], level["margin"]) == ("patient", 0.0, 0.0)
    worse = own.verdict(rule("ljf"))
    assert not worse[-1]["use"] and worse[-1]["blocks"] == BLOCKS and worse[0]["gnn_less"] > 0.1
    jobs, cluster = own.window(JOBS // 2, JOBS - JOBS // 2), cluster_of(*own.place)
    state = begin(jobs, cluster)
    TopdrlPatient().finish(jobs, cluster, state)
    last = (state.finish - jobs.submit)[int(CHOSEN * JOBS) - JOBS // 2 :]
    assert level["mean_jct"] == pytest.approx(last.mean())
