"""A pass: every instance one record, nothing is done twice, and what is certified optimal is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.hybrid.bench.library import JOURNAL, Record, check, read_library
from gangplan.hybrid.bench.passes import run_pass
from gangplan.hybrid.bench.rows import append, read_lines, read_rows
from gangplan.hybrid.bench.suite import read_manifest, suite
from gangplan.hybrid.bench.task import BenchSettings

NAMES = ("throughput-random-toy-00", "throughput-fat_tree-toy-00")


def nothing(share: float) -> None:
    """Tell nobody."""


def test_a_pass(tmp_path: Path) -> None:
    """Plans and certificates come into the library; a journal cut off by kill -9 goes on."""
    chosen = [replace(x, value=None, by="", bound=None, bound_by="") for x in suite("toy") if x.id in NAMES]
    settings, library = BenchSettings(tmp_path / "a", deadlines=(2.0,), seeds=(0, 1)), tmp_path / "library"
    assert run_pass(chosen[:1], settings, 5.0, library, nothing).steps == 1  # of two seeds: the first certifies
    with (tmp_path / "a" / JOURNAL).open("a") as journal:
        journal.write('{"instance":"cut of')
    assert run_pass(chosen, settings, 5.0, library, nothing).steps == 1
    assert run_pass(chosen, settings, 5.0, library, nothing).steps == 0
    records, ledger = read_library(library), read_manifest(tmp_path / "a" / "ledger.jsonl")
    assert set(records) == set(NAMES) and len(read_rows(tmp_path / "a")) == 2
    assert len(read_lines(tmp_path / "a" / JOURNAL, Record)) == 2
    for instance in chosen:
        assert check(instance, records[instance.id]).certified and ledger[instance.id].proved
        assert {"by", "seed", "limit", "seconds", "date", "on"} <= records[instance.id].made.keys()
        assert {"by", "limit", "seconds", "check", "bytes", "date", "on"} <= records[instance.id].proved.keys()
    assert run_pass(chosen, replace(settings, folder=tmp_path / "b"), 5.0, library, nothing).steps == 0


def test_an_optimum_is_not_solved_again(tmp_path: Path) -> None:
    """Where the best plan is on file and proved, only a certificate is looked for, and a worse plan is improved."""
    (instance,) = [x for x in suite("toy") if x.id == NAMES[0]]
    settings, library = BenchSettings(tmp_path / "a", deadlines=(2.0,)), tmp_path / "library"
    run_pass([instance], settings, 5.0, library, nothing)
    record = read_library(library)[instance.id]
    bare = replace(record, bound="", certificate={}, proved={}, key="")
    for folder, known, rows in (("b", bare, 0), ("c", replace(bare, value=2 * (bare.value or 0)), 1)):
        own = replace(settings, folder=tmp_path / folder)
        own.folder.mkdir()
        append([known], own.folder, JOURNAL)
        assert run_pass([instance], own, 5.0, None, nothing).steps == 1
        assert len(read_rows(own.folder)) == rows
        found = read_library(own.folder)[instance.id]
        assert found.value == record.value and check(instance, found).certified


def test_a_search_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that raises, as for a bound above a plan, costs its certificate and is told; the pass goes on."""
    chosen = [replace(x, value=2 * (x.value or 0), bound=None, bound_by="") for x in suite("toy") if x.id in NAMES]

    def raises(run: object, seconds: float) -> None:
        raise AssertionError("tree proves 2, above a plan of 1")

    monkeypatch.setattr("gangplan.solvers.certificates.make.certify", raises)
    done = run_pass(chosen, BenchSettings(tmp_path, deadlines=(2.0,)), 5.0, None, nothing)
    words = "AssertionError: tree proves 2, above a plan of 1"
    assert (done.steps, done.fell, sorted(done.failed)) == (2, 2, sorted(f"{x.id}: {words}" for x in chosen))
    assert all(x.plan and not x.certificate for x in read_library(tmp_path).values())
