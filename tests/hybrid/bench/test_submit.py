"""Submissions of bounds: what the checker accepts and is better is taken, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.hybrid.bench.library import LIBRARY, read_library
from gangplan.hybrid.bench.submit import submit_bound
from gangplan.hybrid.bench.suite import read_manifest, suite
from gangplan.instances import InstanceError

ONE = "throughput-random-toy-00"


def test_a_bound_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first certificate of an instance is better than none, however good the claim is; again it is not."""
    monkeypatch.setattr("gangplan.hybrid.bench.submit.LIBRARY", tmp_path / "empty")
    record = read_library(LIBRARY)[ONE]
    given = {"by": "me", "ledger": tmp_path / "own.jsonl", "folder": tmp_path}
    weak = {"argument": "best", "parts": []}
    assert submit_bound(weak, ONE, **given)[1:] == (0.0, False)  # type: ignore[arg-type]
    _, bound, better = submit_bound(dict(record.certificate), ONE, **given)  # type: ignore[arg-type]
    assert better and bound == float(record.proves)
    assert not submit_bound(dict(record.certificate), ONE, **given)[2]  # type: ignore[arg-type]
    kept = read_library(tmp_path)[ONE]
    assert kept.proves == record.proves and kept.proved["by"] == "me"
    with pytest.raises(InstanceError, match="threshold"):
        submit_bound({**record.certificate, "threshold": "1"}, ONE, **given)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match="there is no 'x'"):
        submit_bound(weak, "x", **given)  # type: ignore[arg-type]


def test_a_bound_that_the_manifest_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound above the manifest's goes into the ledger, rounded down, with who submitted it."""
    monkeypatch.setattr("gangplan.hybrid.bench.submit.LIBRARY", tmp_path / "empty")
    record, ledger = read_library(LIBRARY)[ONE], tmp_path / "own.jsonl"
    (known,) = [x for x in suite("toy") if x.id == ONE]
    monkeypatch.setattr("gangplan.hybrid.bench.submit._known", lambda name, path: replace(known, bound=1e-9))
    assert submit_bound(dict(record.certificate), ONE, by="me", ledger=ledger, folder=tmp_path)[2]
    found = read_manifest(ledger)[ONE]
    assert found.bound_by == "me" and found.bound is not None and found.bound <= record.proves
