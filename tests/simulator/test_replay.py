"""Filling a cluster: the protocol on small clusters, and the published policies on the published list."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from gangplan.cli import main
from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet
from gangplan.instances.placement.job import Task
from gangplan.instances.readers.openb import read_nodes, read_pods
from gangplan.simulator.replay import arrivals, replay, saturate
from gangplan.solvers.placement.online import TaskMix, make_policy
from gangplan.solvers.placement.online.state import GPU

SHARE, WHOLE, CORES = Task(Demand(0.6, 1.0)), Task(Demand(1.0, 1.0)), Task(Demand(0.0, 1.0))
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1,1,600\nb,1000,1,1,1000\n"


def test_arrivals_stop_at_the_load() -> None:
    """The last task is the one that brings the requests to the load, and a seed gives the same tasks again."""
    drawn = arrivals([SHARE, WHOLE, CORES], 10 * GPU, 1.3, seed=4)
    requested = np.cumsum([task.demand.gpu for task in drawn])
    assert requested[-1] >= 13 - 1e-9 > requested[-2]
    assert drawn == arrivals([SHARE, WHOLE, CORES], 10 * GPU, 1.3, seed=4)
    assert drawn != arrivals([SHARE, WHOLE, CORES], 10 * GPU, 1.3, seed=5)
    with pytest.raises(InstanceError, match="no task asks for a GPU"):
        arrivals([CORES], GPU, 1.0, seed=0)


def test_a_list_arrives_whole_before_samples_of_it() -> None:
    """Each task of the list comes once, in an order of the seed, before any comes again."""
    tasks = [Task(Demand(1.0, float(i))) for i in range(50)]
    first, other = (arrivals(tasks, 100 * GPU, 1.0, seed=seed) for seed in (0, 1))
    assert set(first[:50]) == set(tasks)
    assert first[:50] != tasks
    assert first != other
    assert len(set(arrivals(tasks, 40 * GPU, 1.0, seed=0))) == 40


def test_nodes_are_in_an_order_of_the_seed() -> None:
    """The first of equal nodes is another for each seed, and the same for each policy."""
    fleet = Fleet.regular(1, 16, 1)

    def order(seed: int, name: str = "first_fit") -> list[str]:
        done = saturate(fleet, [WHOLE], make_policy(name, TaskMix.of([WHOLE])), seed=seed)
        return list(done.state.fleet.names)

    assert order(0) == order(0, "fgd") != order(1)
    assert sorted(order(0)) == sorted(fleet.names)
    assert order(0) != list(fleet.names) != order(1)


def test_shares_that_do_not_pair() -> None:
    """Tasks of 0.6 go one to a GPU: at 60% of the load all 8 have arrived and fit, and no more do."""
    fleet = Fleet.regular(1, 2, 4)
    done = saturate(fleet, [SHARE], make_policy("best_fit", TaskMix.of([SHARE])), marks=(0.6, 1.3))
    assert done.ratio.tolist() == pytest.approx([0.6, 0.6])
    assert (done.arrived, done.dropped) == (18, 10)  # 18 x 0.6 = 10.8 is the first multiple from 10.4 on


def test_what_fits_nowhere_is_dropped_alone() -> None:
    """A task of 5 GPUs is dropped where nodes have 4; those of one GPU fill the cluster all the same."""
    done = saturate(
        Fleet.regular(1, 2, 4), [Task(Demand(5.0)), WHOLE], make_policy("fgd", TaskMix.of([WHOLE])), marks=(9.0,)
    )
    assert done.ratio.tolist() == [1.0]
    assert done.dropped == done.arrived - 8


def test_replay_is_repeated_by_its_seed() -> None:
    """The same seeds give the same ratios, in one process or two, and the interval is that of Student's t."""
    fleet = Fleet.regular(2, 4, 4, cpu=12.0)
    tasks = [SHARE, WHOLE, CORES, Task(Demand(0.3, 2.0)), Task(Demand(2.0, 6.0))]
    names = ["random", "stranding"]
    one, two = (replay(fleet, tasks, names, seeds=range(3), workers=workers) for workers in (1, 2))
    assert [x.ratio.tolist() for x in one] == [x.ratio.tolist() for x in two]
    assert one[0].ratio.tolist() != replay(fleet, tasks, names, seeds=range(3, 6))[0].ratio.tolist()
    deviation = one[0].ratio.std(axis=0, ddof=1) / 3**0.5
    assert one[0].margin == pytest.approx(student.ppf(0.975, 2) * deviation)
    assert replay(fleet, tasks, ["random"], seeds=[1])[0].margin is None


@pytest.mark.parametrize("marks", [(1.0, 1.0), (0.0,), (float("nan"),)])
def test_marks_ascend(marks: tuple[float, ...]) -> None:
    """Marks that are no ascending positive numbers are refused."""
    with pytest.raises(InstanceError, match="marks"):
        saturate(Fleet.regular(1, 1, 1), [WHOLE], make_policy("random", TaskMix.of([WHOLE])), marks=marks)


def test_published_policies(data: Path) -> None:
    """On the published list, policies are within two points of their published ratios, FGD within half a point."""
    fleet = read_nodes(data / "openb" / "openb_node_list_gpu_node.csv")
    tasks = read_pods(data / "openb" / "openb_pod_list_default.csv").tasks
    published = {"random": (86.3, 87.5), "gpu_packing": (91.8, 92.0), "fgd": (95.2, 95.4)}
    found = {x.policy: 100 * x.mean for x in replay(fleet, tasks, [*published, "stranding"], seeds=[0])}
    for name, ratios in published.items():
        assert found[name] == pytest.approx(ratios, abs=0.5 if name == "fgd" else 2.0)
    assert found["random"][1] + 4 < found["fgd"][1] < found["stranding"][1] - 0.7


@pytest.fixture
def lists(tmp_path: Path) -> tuple[str, str]:
    """Return the paths of a small node list and a small pod list."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return str(nodes), str(pods)


def test_command(lists: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a row a policy, and with --json the ratio of every seed."""
    assert main(["replay", *lists, "--policy", "fgd", "--policy", "random", "--seeds", "2"]) == 0
    out = capsys.readouterr().out
    assert "10 GPUs on 2 nodes, 2 pods listed, 2 seeds" in out
    assert [line.split()[0] for line in out.splitlines()[-2:]] == ["fgd", "random"]
    assert main(["replay", *lists, "--policy", "fgd", "--seeds", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (policy,) = data["policies"]
    assert (policy["policy"], policy["marks"], np.shape(policy["ratio"])) == ("fgd", [1.0, 1.3], (2, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "worst"], "policy: 'worst' is not one of"),
        (["--seeds", "0"], "seeds: 0 is not from 1"),
        (["--load", "nan"], "load: nan is not"),
        (["--workers", "0"], "workers: 0 is not positive"),
    ],
)
def test_bad_options(
    lists: tuple[str, str], options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option is named with what was given."""
    assert main(["replay", *lists, *options]) == 2
    assert words in capsys.readouterr().err


def test_pods_that_fit_no_node(lists: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Pods of a GPU type that no node has, or too large for every node, are counted and said to be dropped."""
    with open(lists[1], "a") as file:
        file.write("c,1000,1,1,500\nd,900000,1,0,0\n")
    spec = Path(lists[1]).read_text().replace("gpu_milli\n", "gpu_milli,gpu_spec\n").replace("00\n", "00,\n")
    Path(lists[1]).write_text(spec.replace("0,0\n", "0,0,\n").replace("c,1000,1,1,500,", "c,1000,1,1,500,H100|B200"))
    assert main(["replay", *lists, "--policy", "fgd", "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 of the pods fit no node even when it is empty" in out
    assert "the first is c: no node has a GPU of type B200 or H100" in out
    assert main(["replay", *lists, "--policy", "fgd", "--seeds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["misfits"] == {"c": "no node has a GPU of type B200 or H100", "d": "no node has so much"}
    assert found["policies"][0]["dropped"][0] > 0


def test_no_gpu_at_all(lists: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A node list without GPUs is refused: there is nothing to allocate."""
    Path(lists[0]).write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,0,\n")
    assert main(["replay", *lists, "--policy", "fgd", "--seeds", "1"]) == 2
    assert "no usable node has a GPU" in capsys.readouterr().err


def test_bad_rows_of_a_list(lists: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A bad row ends the command with file and line, unless it may be left out."""
    with open(lists[1], "a") as file:
        file.write("c,1000,1,1,2000\n")
    assert main(["replay", *lists, "--policy", "fgd", "--seeds", "1"]) == 2
    assert f"{lists[1]}: line 4: gpu_milli: 2000" in capsys.readouterr().err
    assert main(["replay", *lists, "--policy", "fgd", "--seeds", "1", "--skip-bad"]) == 0
    assert "1 rows of the pods are wrong" in capsys.readouterr().out
