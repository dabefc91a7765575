"""Replicated stages and clusters of several levels on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gangplan.cli.report import ranges
from gangplan.instances import load, verify
from gangplan.instances.generators import generate
from gangplan.instances.readers import read

from .conftest import Cli

TREE = ("--cluster", "2x4", "--bandwidth", "1e10,1e9")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a PipeDream profile of four ops, the last with most of the weights."""
    lines = [
        f"node{i} -- Op -- forward_compute_time={2 + i}.0, backward_compute_time=4.0, activation_size=1000.0, "
        f"parameter_size={weights}"
        for i, weights in ((1, 0.0), (2, 100.0), (3, 100.0), (4, 5e7))
    ]
    path = tmp_path / "graph.txt"
    path.write_text("\n".join([*lines, *(f"\tnode{i} -- node{i + 1}" for i in (1, 2, 3))]) + "\n")
    return path


def test_solve_verify_and_show(profile: Path, tmp_path: Path, cli: Cli) -> None:
    """A plan of replicated stages is made, checked with the same options, and described without its problem."""
    plan = tmp_path / "plan.json"
    made = cli("solve", profile, "--objective", "stages", *TREE, "--json", "--out", plan)
    assert made.code == 0
    found = json.loads(made.out)
    assert found["status"] == "OPTIMAL"
    problem = read(profile, objective="stages", cluster="2x4", bandwidth=(1e10, 1e9))
    assert found["objective"] == verify(problem, load(plan.read_text())).objective
    checked = cli("verify", profile, plan, *TREE)
    assert checked.code == 0
    assert "feasible, stages" in checked.out
    described = cli("show", plan)
    assert f"8 ops in {len(found['plan']['degree'])} stages" in described.out
    assert "replicas" not in described.out and "share" in described.out


def test_table_of_stages(profile: Path, cli: Cli) -> None:
    """The answer has a row a stage with its devices and replicas, and says how much faster it is than one device."""
    made = cli("solve", profile, "--objective", "stages", *TREE)
    assert made.code == 0
    assert "per pass" in made.out
    row = next(line for line in made.out.splitlines() if " node4 " in line)
    # 10 ms on four devices, and 4 3/4 of 5e7 bytes at 1e10 bytes/s for each four samples
    assert " ".join(row.split()[3:]) == "2 1 x 4 3.750 6.250 100.0 0.125%"
    assert "times as fast as one device, which takes 34 ms" in made.out


def test_options_reach_the_problem(profile: Path, cli: Cli) -> None:
    """Recomputation makes a plan slower that has memory enough, and a free choice of degrees makes none slower."""

    def objective(*more: str) -> float:
        made = cli("solve", profile, "--objective", "stages", *TREE, "--json", *more)
        return float(json.loads(made.out)["objective"])

    plain = objective()
    assert objective("--recompute") > plain
    assert objective("--degrees", "1,2,4") <= plain
    assert objective("--no-activations") <= plain
    assert objective("--memory-model", "none", "--no-stashing") <= plain


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cluster", "2x"), "cluster: '2x' is not like 8 (devices) or 2x8 (two nodes of eight)"),
        (("--cluster", "0x8"), "cluster: '0x8' is not like"),
        (("--cluster", "99999x99999"), "cluster: 9999800001 is more than"),
        (("--cluster", "2x8", "--bandwidth", "1e9"), "bandwidth: 1 values for 2 levels of links"),
        (("--cluster", "2x8", "--bandwidth", "1e9,-1"), "bandwidth[1]: -1.0 is not positive"),
        (("--cluster", "2x8", "--devices", "4"), "devices: 4 besides a cluster of 2x8"),
        (("--bandwidth", "1e9,2e9"), "bandwidth: 2 values, the cluster has 1 levels of links"),
        (("--bandwidth", "fast"), "--bandwidth: 'fast' is not a number"),
        (("--recompute",), "recompute: True does not apply to the objective throughput"),
        (("--degrees", "1,2"), "degrees: (1, 2) do not apply to the objective throughput"),
        (("--objective", "stages", "--degrees", "1,x"), "--degrees: 'x' is not a whole number"),
        (("--objective", "stages", "--memory-model", "gpipe"), "memory_model: 'gpipe' is not one of 1f1b, pipedream"),
        (("--objective", "stages", "--contention"), "contention: True does not apply to the objective stages"),
    ],
)
def test_options_that_cannot_be(profile: Path, cli: Cli, options: tuple[str, ...], words: str) -> None:
    """An option that makes no sense is named with its value, in one line."""
    done = cli("solve", profile, *options)
    assert done.code == 2
    assert done.out == ""
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_cluster_for_every_objective(problem: Path, cli: Cli) -> None:
    """A document's devices can be arranged in servers for a step time too."""
    tree = ("--cluster", "2x2", "--bandwidth", "1e10,1e9")
    made = cli("solve", problem, "--objective", "step", *tree, "--time-limit", "5")
    assert made.code == 0
    shown = cli("show", problem, *tree)
    assert "server 10 GB/s, rack 1 GB/s" in shown.out


def test_levels_of_a_document_get_other_speeds(tmp_path: Path, cli: Cli) -> None:
    """A document of two levels takes a bandwidth for each."""
    path = tmp_path / "tree.json"
    from gangplan.instances import dump
    from gangplan.instances.readers.overrides import arranged

    path.write_text(dump(arranged(generate("layered", ops=6, layers=3), (2, 2), (4.0, 2.0))))
    shown = cli("show", path, "--bandwidth", "3e9,1e9")
    assert "server 3 GB/s, rack 1 GB/s" in shown.out


def test_several_types_cannot_be_arranged(data: Path, cli: Cli) -> None:
    """Where the CPUs of a file are in servers is not said."""
    file = data / "msr-placement" / "throughput" / "layer-bert24_training.json"
    done = cli("solve", file, "--objective", "stages", "--cluster", "2x2", "--bandwidth", "1,1")
    assert done.code == 2
    assert "cluster: 2x2 says not where devices of 2 types are" in done.err


def test_ranges_of_devices() -> None:
    """Neighbours are drawn together."""
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert ranges([]) == "none"
