"""`gangplan solve --certificate` and `gangplan verify --bound`: the certificate of a bound, to and fro."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gangplan


@pytest.fixture
def answers(tmp_path: Path, cli: Any) -> tuple[Path, Path, Path, dict[str, Any]]:
    """Return a problem, its plan, the certificate, and what solve printed."""
    problem, plan, proof = (tmp_path / name for name in ("bert.json", "plan.json", "proof.json"))
    cli("generate", "bert", "--layers", "1", "--devices", "2", "--out", problem)
    done = cli("solve", problem, "--time-limit", "20", "--out", plan, "--certificate", proof, "--json")
    assert done.code == 0
    return problem, plan, proof, json.loads(done.out)


def test_a_proof_to_and_fro(answers: tuple[Path, Path, Path, dict[str, Any]], cli: Any, tmp_path: Path) -> None:
    """What solve wrote verifies, in words and as JSON, from the file of its own and from what solve printed."""
    problem, plan, proof, printed = answers
    assert printed["standing"] == "OPTIMAL (certified)"
    assert printed["certificate"] == json.loads(proof.read_text())
    done = cli("verify", problem, plan, "--bound", proof)
    assert (done.code, done.err) == (0, "")
    assert "bound checked: OPTIMAL (certified)" in done.out
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(printed))
    found = json.loads(cli("verify", problem, whole, "--bound", whole, "--json").out)
    assert found["bound"] == printed["certified"] <= found["objective"]


def test_a_proof_that_is_none(answers: tuple[Path, Path, Path, dict[str, Any]], cli: Any, tmp_path: Path) -> None:
    """A weaker certificate leaves a gap; one that does not hold is an error that names file and field."""
    problem, plan, proof, _ = answers
    data = json.loads(proof.read_text())
    proof.write_text(json.dumps(data | {"threshold": "1/1000000000"}))
    done = cli("verify", problem, plan, "--bound", proof)
    assert done.code == 0 and "gap 100%" in done.out
    proof.write_text(json.dumps(data | {"threshold": 1}))
    done = cli("verify", problem, plan, "--bound", proof)
    assert (done.code, done.out) == (2, "")
    assert f"{proof}: threshold: a pipeline of 1 stage takes less than 1" in done.err
    done = cli("verify", problem, plan, "--bound", tmp_path / "none.json")
    assert done.code == 2 and "none.json" in done.err


def test_whose_word_it_is() -> None:
    """An optimum has a certificate or is claimed by a method; by name it is that method's word alone."""
    problem = gangplan.with_objective(gangplan.generate("bert", layers=1, devices=2, training=False), "latency")
    asked = gangplan.solve(problem, 20.0, workers=1, certify=True)
    named = gangplan.solve(problem, 20.0, workers=1, method="cpsat")
    assert asked.status == named.status == "OPTIMAL" and named.certified is None
    assert asked.standing in ("OPTIMAL (certified)", f"OPTIMAL (claimed by {asked.bound_by})")
    assert named.standing == "OPTIMAL (claimed by cpsat)" and named.stop_reason == "claimed"
    assert (asked.certified or 0) <= asked.objective
