"""Batches of gang jobs that the project makes itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, dump
from gangplan.instances.generators.gangs import NETWORKS, gangs


@pytest.mark.parametrize("load", [0.6, 0.8, 0.95])
@pytest.mark.parametrize("jobs", [16, 64])
def test_demand(jobs: int, load: float) -> None:
    """The gangs ask for the share of the fleet that was asked for, and the same arguments give the same batch."""
    problem = gangs(jobs, racks=4, nodes=8, load=load, seed=3)
    assert sum(job.workers[-1] for job in problem.jobs) == round(load * problem.fleet.n_gpus)
    assert dump(problem) == dump(gangs(jobs, racks=4, nodes=8, load=load, seed=3))
    assert dump(problem) != dump(gangs(jobs, racks=4, nodes=8, load=load, seed=4))


def test_options() -> None:
    """Each option makes its kind of job, and the running jobs fit."""
    asked = dict.fromkeys(("menus", "shares", "selectors", "spread", "apart", "whole_nodes", "optional", "down"), 0.3)
    problem = gangs(80, racks=4, nodes=16, gpu_types="A100,V100", running=0.3, **asked)  # type: ignore[arg-type]
    jobs = problem.jobs
    assert any(len(job.workers) > 1 for job in jobs)
    assert any(job.worker.gpu < 1 for job in jobs)
    assert any(job.requires for job in jobs) and any(job.apart for job in jobs)
    assert any(job.most_per_node for job in jobs) and any(job.whole_nodes for job in jobs)
    assert any(job.value for job in jobs)
    assert {job.collective for job in jobs} == {"ring", "tree", "hierarchical", "ps"}
    assert {run.movable for run in problem.running} == {True, False}
    assert set(problem.fleet.gpu_type.tolist()) == {0, 1}
    used = dict.fromkeys(problem.fleet.names, 0)
    for run in problem.running:
        for node, workers in zip(run.nodes, run.workers, strict=True):
            used[node] += workers
    assert 0 < max(used.values()) <= 8
    assert not set(np.array(problem.fleet.names)[~np.asarray(problem.fleet.usable)]) & {n for n, w in used.items() if w}


def test_step_times_by_hand() -> None:
    """A step of VGG-16 on an A100 is 3 x 32 passes of 31 GFLOP at half of 312 TFLOP/s, which memory does not limit."""
    speeds = gangs().speeds
    k = speeds.models.index("vgg16")
    assert speeds.compute[0, k] == pytest.approx(96 * 31e9 / 156e12)
    assert speeds.gradient[k] == 4 * NETWORKS["vgg16"].parameters
    assert (speeds.gpu.min(axis=1) > 0).all() and (speeds.host < speeds.gpu).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "jobs: 0 is not positive"),
        ({"load": 1.5}, "load: 1.5 is more than 1"),
        ({"collective": "mesh"}, "collective: 'mesh' is not one of ring"),
        ({"gpu_types": "TPU"}, "gpu_types: 'TPU' is not one of P100"),
    ],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    """An argument that makes no sense is refused by name."""
    with pytest.raises(InstanceError, match=words):
        gangs(**options)
