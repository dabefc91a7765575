"""`gangplan harmony`: policies under interference that is hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Cli

FEW = ("harmony", "shared", "--jobs", "8", "--seeds", "2", "--policy", "lif", "--policy", "oracle-patient")


def test_table_and_json_agree(cli: Cli) -> None:
    """Both show every policy; a figure for machines is the mean of its values."""
    text, data = cli(*FEW), json.loads(cli(*FEW, "--json").out)
    assert text.code == 0 and all(name in text.out for name in ("lif", "oracle-patient", "2 x 8 jobs on 6 servers"))
    assert max(map(len, text.out.splitlines())) <= 80
    jct = data["policies"][1]["mean_jct"]
    assert data["seeds"] == [0, 1] and jct["mean"] == pytest.approx(sum(jct["values"]) / 2)


def test_the_oracle_is_compared_with_the_first(cli: Cli) -> None:
    """The second column has the paired difference in percent, nothing of the first policy itself."""
    data = {x["policy"]: x["mean_jct"]["values"] for x in json.loads(cli(*FEW, "--json").out)["policies"]}
    shares = [b / a - 1 for a, b in zip(data["lif"], data["oracle-patient"], strict=True)]
    line = next(x for x in cli(*FEW).out.splitlines() if x.startswith("oracle-patient"))
    assert f"{100 * sum(shares) / 2:+.3g}".rstrip("0") in line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("nope",), "case: 'nope'"),
        (("shared", "--policy", "best-of-all"), "policy: 'best-of-all'"),
        (("shared", "--jobs", "0"), "jobs"),
    ],
)
def test_bad_input(cli: Cli, given: tuple[str, ...], words: str) -> None:
    """The value is named, in one line, with exit code 2."""
    found = cli("harmony", *given)
    assert found.code == 2 and words in found.err and "Traceback" not in found.err


def test_data_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    """A case of published data says which file it lacks."""
    found = cli("harmony", "philly", "--data", str(tmp_path))
    assert found.code == 2 and "philly.csv.gz" in found.err


def test_agents_tell_what_they_said(cli: Cli) -> None:
    """A market between processes decides as one in this does, and says what it sent; a rule says nothing."""
    few = ("harmony", "leaf-spine", "--jobs", "8", "--seeds", "1")
    few += ("--policy", "market", "--policy", "market-processes", "--policy", "lif")
    here, there, rule = json.loads(cli(*few, "--json").out)["policies"]
    assert here["mean_jct"] == there["mean_jct"] and here["messages"] == there["messages"]
    assert here["sent_bytes"] == [0.0] and there["sent_bytes"][0] > 0 and "messages" not in rule
    assert "round," in cli(*few).out
