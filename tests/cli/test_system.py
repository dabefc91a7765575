"""`gangplan system`: policies on the grounds of published systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Cli

FEW = ("system", "topdrl", "--jobs", "12", "--seeds", "2", "--policy", "fcfs+head+nearest", "--policy", "linear")


def test_figures_agree(cli: Cli) -> None:
    """The table and the JSON object say the same of the same workloads, and a table is 80 columns wide at most."""
    table, data = cli(*FEW), json.loads(cli(*FEW, "--json").out)
    assert table.code == 0 and max(map(len, table.out.splitlines())) <= 80
    assert data["system"] == "topdrl" and data["policies"][0]["case"] == "small" and data["seeds"] == [0, 1]
    first, other = data["policies"]
    assert first["policy"] == "fcfs+head+nearest" and len(first["mean_jct"]["values"]) == 2
    mean = sum(other["mean_jct"]["values"]) / 2
    assert other["mean_jct"]["mean"] == pytest.approx(mean) and f"{mean:.3g} ±" in table.out
    pairs = zip(first["mean_jct"]["values"], other["mean_jct"]["values"], strict=True)
    assert f"{100 * sum(b / a - 1 for a, b in pairs) / 2:+.3g} ±" in table.out


def test_sizes_and_cluster(cli: Cli) -> None:
    """On GPUs enough for all jobs nobody waits: completion is the same whoever is first."""
    roomy = cli(
        *("system", "topdrl", "--cluster", "1x1x64", "--jobs", "4", "--gpus", "8"),
        *("--policy", "sjf", "--policy", "ljf", "--json"),
    )
    sjf, ljf = json.loads(roomy.out)["policies"]
    assert sjf["mean_jct"]["values"] == ljf["mean_jct"]["values"] and sjf["communication"]["mean"] <= 7 / 40


def test_pictures_side_by_side(cli: Cli, tmp_path: Path) -> None:
    """One picture has the lanes of every policy."""
    path = tmp_path / "both.svg"
    assert cli(*FEW, "--plot", path, "--panel", "jobs").code == 0
    text = path.read_text()
    assert all(f">{policy} · mean JCT" in text for policy in ("fcfs+head+nearest", "linear"))
    assert text.count("<svg x=") == 2 and text.count("<title>0\n") >= 2  # job 0 of each


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--suite", "tiny"], "'tiny' is not one of small"),
        (["--cluster", "2x4"], "'2x4' is not racks x nodes x GPUs"),
        (["--policy", "slowest"], "'slowest' is not one of fcfs"),
        (["--suite", ","], "',' names none"),
        (["--gpus", "99"], "more than the 32 of the cluster"),
        (["--suite", "uncertain", "--jobs", "3"], "jobs: is fixed in suite 'uncertain'"),
        (["--arrival", "0"], "no job ever arrives"),
        (["--seeds", "0"], "0 is not from 1 to 10000"),
        (["--plot", "x.doc"], "'.doc' is not one of .png"),
        (["--suite", "philly", "--data", "nowhere"], "'nowhere' has no philly/philly.csv.gz: get it from "),
    ],
)
def test_bad_input(cli: Cli, given: list[str], words: str) -> None:
    """Exit code 2 and one line that names what is wrong."""
    found = cli("system", "topdrl", *given)
    assert found.code == 2 and words in found.err and not found.out


SHARED = ("system", "harmony", "--case", "shared", "--jobs", "8", "--seeds", "2")
SHARED += ("--policy", "lif", "--policy", "oracle-patient")


def test_table_and_json_agree(cli: Cli) -> None:
    """Both show every policy; a figure for machines is the mean of its values."""
    text, data = cli(*SHARED), json.loads(cli(*SHARED, "--json").out)
    assert text.code == 0 and all(name in text.out for name in ("lif", "oracle-patient", "2 x 8 jobs on 6 nodes"))
    assert max(map(len, text.out.splitlines())) <= 80
    jct = data["policies"][1]["mean_jct"]
    assert data["seeds"] == [0, 1] and jct["mean"] == pytest.approx(sum(jct["values"]) / 2)


def test_the_oracle_is_compared_with_the_first(cli: Cli) -> None:
    """The second column has the paired difference in percent, nothing of the first policy itself."""
    data = {x["policy"]: x["mean_jct"]["values"] for x in json.loads(cli(*SHARED, "--json").out)["policies"]}
    shares = [b / a - 1 for a, b in zip(data["lif"], data["oracle-patient"], strict=True)]
    line = next(x for x in cli(*SHARED).out.splitlines() if x.startswith("oracle-patient"))
    assert f"{100 * sum(shares) / 2:+.3g}".rstrip("0") in line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--case", "nope"), "case: 'nope'"),
        (("--case", "shared", "--policy", "best-of-all"), "policy: 'best-of-all'"),
        (("--case", "shared", "--jobs", "0"), "jobs"),
    ],
)
def test_bad_input_of_harmony(cli: Cli, given: tuple[str, ...], words: str) -> None:
    """The value is named, in one line, with exit code 2."""
    found = cli("system", "harmony", *given)
    assert found.code == 2 and words in found.err and "Traceback" not in found.err


def test_data_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    """A case of published data says which file it lacks."""
    found = cli("system", "harmony", "--case", "philly", "--data", str(tmp_path))
    assert found.code == 2 and "philly.csv.gz" in found.err


def test_agents_tell_what_they_said(cli: Cli) -> None:
    """A market between processes decides as one in this does, and says what it sent; a rule says nothing."""
    few = ("system", "marl", "--case", "leaf-spine", "--jobs", "8", "--seeds", "1")
    few += ("--policy", "market", "--policy", "market-processes", "--policy", "lif")
    here, there, rule = json.loads(cli(*few, "--json").out)["policies"]
    assert here["mean_jct"] == there["mean_jct"] and here["messages"] == there["messages"]
    assert here["wire"]["mean"] == 0.0 and there["wire"]["mean"] > 0 and not rule["messages"]["mean"]
    assert "round," in cli(*few).out


MINE = """
class First:
    needs = ("gpus",)

    def act(self, scene):
        return int(scene.fits.argmax())
"""


@pytest.mark.parametrize("system", ["topdrl", "harmony"])
def test_a_policy_of_a_file(system: str, cli: Cli, tmp_path: Path) -> None:
    """A class that picks jobs is compared like a policy of ours, called by its name; one that cannot is refused."""
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    found = cli("system", system, "--jobs", "8", "--seeds", "1", "--policy", f"{file}:First", "--json")
    (first,) = json.loads(found.out)["policies"]
    assert first["policy"] == "First" and first["mean_jct"]["mean"] > 0
    refused = cli("system", system, "--policy", f"{file}:scene")
    assert refused.code == 2 and "policy: " in refused.err
