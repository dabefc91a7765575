"""`gangplan topdrl`: policies on TopDRL's cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Cli

FEW = ("topdrl", "--jobs", "12", "--seeds", "2", "--policy", "fcfs+head+nearest", "--policy", "linear")


def test_figures_agree(cli: Cli) -> None:
    """The table and the JSON object say the same of the same workloads, and a table is 80 columns wide at most."""
    table, data = cli(*FEW), json.loads(cli(*FEW, "--json").out)
    assert table.code == 0 and max(map(len, table.out.splitlines())) <= 80
    assert data["suite"] == "small" and data["seeds"] == [0, 1]
    first, other = data["policies"]
    assert first["policy"] == "fcfs+head+nearest" and len(first["mean_jct"]["values"]) == 2
    mean = sum(other["mean_jct"]["values"]) / 2
    assert other["mean_jct"]["mean"] == pytest.approx(mean) and f"{mean:.3g} ±" in table.out
    assert f"{100 * (mean / first['mean_jct']['mean'] - 1):+.3g} ±" in table.out


def test_sizes_and_cluster(cli: Cli) -> None:
    """On GPUs enough for all jobs nobody waits: completion is the same whoever is first."""
    roomy = cli(
        "topdrl", "--cluster", "1x1x64", "--jobs", "4", "--gpus", "8", "--policy", "sjf", "--policy", "ljf", "--json"
    )
    sjf, ljf = json.loads(roomy.out)["policies"]
    assert sjf["mean_jct"]["values"] == ljf["mean_jct"]["values"] and sjf["communication"]["mean"] <= 7 / 40


def test_pictures_side_by_side(cli: Cli, tmp_path: Path) -> None:
    """One picture has the lanes of every policy."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "both.svg"
    assert cli(*FEW, "--plot", path, "--panel", "jobs").code == 0
    assert path.read_text().count('id="axes_') >= 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--suite", "tiny"], "'tiny' is not one of small"),
        (["--cluster", "2x4"], "'2x4' is not racks x nodes x GPUs"),
        (["--policy", "slowest"], "'slowest' is not one of fcfs"),
        (["--gpus", "99"], "more than the 32 of the cluster"),
        (["--suite", "uncertain", "--jobs", "3"], "jobs: is fixed in suite 'uncertain'"),
        (["--arrival", "0"], "no job ever arrives"),
        (["--seeds", "0"], "0 is not from 1 to 10000"),
        (["--plot", "x.doc"], "'.doc' is not one of .png"),
        (["--suite", "philly", "--data", "nowhere"], "'nowhere' does not have philly"),
    ],
)
def test_bad_input(cli: Cli, given: list[str], words: str) -> None:
    """Exit code 2 and one line that names what is wrong."""
    found = cli("topdrl", *given)
    assert found.code == 2 and words in found.err and not found.out
