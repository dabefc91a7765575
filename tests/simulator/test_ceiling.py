"""The bound on every policy: hand-sized cases with their argument, and policies on random clusters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gangplan.cli import main
from gangplan.instances.placement import Demand, Fleet
from gangplan.instances.placement.job import Task
from gangplan.instances.readers.openb import read_nodes, read_pods
from gangplan.simulator.ceiling import ceiling
from gangplan.simulator.replay import ceilings, replay, saturate
from gangplan.solvers.placement.online import TASK_POLICIES, TaskMix, make_policy

SHARE, SMALL, WHOLE = Task(Demand(0.6, 1.0)), Task(Demand(0.4, 1.0)), Task(Demand(1.0, 1.0))


def test_shares_that_do_not_pair() -> None:
    """Of 0.6 one goes on a GPU, and with whole tasks between as many GPUs are lost to them as were taken by then."""
    assert ceiling([SHARE] * 20, 8) == pytest.approx(0.6, abs=1e-5)
    # four of each fill 8 GPUs, 4 + 2.4
    assert ceiling([SHARE, WHOLE] * 50, 8) == pytest.approx(0.8, abs=1e-5)
    # with as many of 0.4 to go beside them nothing is lost
    assert ceiling([SHARE, SMALL, WHOLE] * 50, 8) == pytest.approx(1.0, abs=1e-5)


def test_only_what_surely_fits_must_be_placed() -> None:
    """Shares that need more cores than whole tasks may have found none, and those bound to a type no GPU of it."""
    hungry, bound = Task(Demand(0.6, 9.0)), Task(Demand(0.6, 1.0), gpu_types=("T4",))
    assert ceiling([hungry, WHOLE] * 50, 8) == pytest.approx(1.0, abs=1e-5)
    assert ceiling([bound, WHOLE] * 50, 8) == pytest.approx(1.0, abs=1e-5)
    assert ceiling([WHOLE] * 50, 8) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_no_policy_is_above(seed: int) -> None:
    """On random clusters and lists no policy gets more allocated than the bound of the sample."""
    rng = np.random.default_rng(seed)
    fleet = Fleet.regular(1, int(rng.integers(2, 6)), 4, cpu=float(rng.integers(8, 40)))
    sizes, cores = rng.choice([0.0, 0.2, 0.35, 0.55, 0.8, 1.0, 2.0, 4.0], size=12), rng.integers(1, 9, size=12)
    tasks = [WHOLE, *(Task(Demand(float(g), float(c))) for g, c in zip(sizes, cores, strict=True))]
    most = ceilings(fleet, tasks, seeds=range(3))
    for name in TASK_POLICIES:
        for sample in range(3):
            done = saturate(fleet, tasks, make_policy(name, TaskMix.of(tasks)), seed=sample)
            assert done.ratio[-1] <= most[sample] + 1e-9, name


def test_published_list(data: Path) -> None:
    """On the published list the bound leaves stranding less than half a point, and FGD more than one."""
    fleet = read_nodes(data / "openb" / "openb_node_list_gpu_node.csv")
    tasks = read_pods(data / "openb" / "openb_pod_list_default.csv").tasks
    most = 100 * float(ceilings(fleet, tasks, seeds=[0])[0])
    found = {x.policy: 100 * float(x.mean[1]) for x in replay(fleet, tasks, ["fgd", "stranding"], seeds=[0])}
    assert found["fgd"] + 1 < most
    assert most - 0.5 < found["stranding"] <= most


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`gangplan replay --ceiling` says it in words, and in JSON for every seed."""
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,G2\n")
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1,1,600\n")
    command = ["replay", str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv"), "--policy", "fgd", "--seeds", "2"]
    assert main([*command, "--ceiling"]) == 0
    assert "no policy gets more than 60.00% allocated at 130%" in capsys.readouterr().out
    assert main([*command, "--ceiling", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ceiling"] == pytest.approx([0.6, 0.6], abs=1e-4)
