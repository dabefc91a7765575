"""`gangplan bench pass`, `verify` and `submit --bound`: the library of bounds from the command line."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.hybrid.bench.library import LIBRARY, read_library, write_library
from gangplan.hybrid.bench.suite import suite

from .conftest import Cli, Outcome

ONE = "throughput-random-toy-00"
CHOSEN = ("--suite", "toy", "--objective", "throughput", "--family", "random")


def words(done: Outcome) -> str:
    """Return what was printed, on one line."""
    return " ".join(done.out.split())


def test_verify_fits_and_agrees(cli: Cli) -> None:
    """The table has 80 columns and says what the JSON says; all hold, so the exit code is 0."""
    shown, found = cli("bench", "verify", *CHOSEN), cli("bench", "verify", *CHOSEN, "--json", "--jobs", "1")
    data = json.loads(found.out)
    assert shown.code == found.code == 0 and max(map(len, shown.out.splitlines())) <= 80
    line = next(x for x in shown.out.splitlines() if x.startswith("all")).split()[1:]
    keys = ("plan", "best", "certificate", "optimal", "certified")
    few = cli("bench", "verify", *CHOSEN, "--longest", "-1")
    assert few.code == 0 and few.out.count("certificate left out: throughput-random-toy") == len(data)
    assert line == [str(len(data)), *(str(sum(x[key] in ("ok", True) for x in data)) for key in keys), "0"]


def test_verify_names_what_fails(cli: Cli, tmp_path: Path) -> None:
    """A certificate that says more than it proves costs the exit code, and is named."""
    records = read_library(LIBRARY)
    bad = {**records, ONE: replace(records[ONE], bound="inf")}
    write_library(bad.values(), {x.id: x for x in suite("all")}, tmp_path)
    done = cli("bench", "verify", *CHOSEN, "--library", tmp_path)
    assert done.code == 1 and f"{ONE}: plan ok; certificate proves" in words(done)
    assert "1 failed" in done.out


def test_a_pass_and_a_submission(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pass finds comes into its library; a certificate that is on file is not better, from any file."""
    given = ("--sample", "1", "--time-limit", "2", "--folder", tmp_path / "pass", "--library", tmp_path / "library")
    assert "1 steps of 1 instances, 0 values fell" in words(cli("bench", "pass", *CHOSEN, *given))
    assert "0 steps of 1 instances" in words(cli("bench", "pass", *CHOSEN, *given))
    assert cli("bench", "verify", *CHOSEN, "--library", tmp_path / "library").code == 0
    assert cli("bench", "pass", "--certify", "-1").code == 2
    proof = tmp_path / "proof.json"
    proof.write_text(json.dumps(read_library(tmp_path / "library")[ONE].certificate))
    submit = ("bench", "submit", "--bound", proof, "--instance", ONE, "--folder", tmp_path / "mine")
    assert "not better" in cli(*submit).out
    monkeypatch.setattr("gangplan.hybrid.bench.submit.LIBRARY", tmp_path / "empty")
    done = cli(*submit)
    assert done.code == 0 and "checked" in done.out and "better: noted" in done.out
    shutil.copy(tmp_path / "mine" / "records.jsonl", tmp_path / "library")
    assert cli("bench", "verify", *CHOSEN, "--library", tmp_path / "library").code == 0
    proof.write_text('{"argument": "faith"}')
    wrong = cli(*submit)
    assert wrong.code == 2 and "proof.json: argument" in wrong.err
    assert cli("bench", "submit", "--instance", ONE).code == 2
