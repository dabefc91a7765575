"""The study of PAC-ML as published: tables by hand, a run, and rows of the weights that ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import pacml_published as study
from benchmarks.found import Found
from benchmarks.pacml_published import POLICY, SHARES, STUDY, SUITES
from benchmarks.rows import Row, Task, digest, read
from benchmarks.study import NOT_RUN, Options


def found(d: str, **figures: float) -> list[Row]:
    """Return the rows of two seeds, one of them all degree 4."""
    rest = dict.fromkeys((*STUDY.figures[:3], *SHARES), 0.0) | {"blocked_or_running": 0.2538}
    case = SUITES["main"].case(d)
    return [Row(Task(case, POLICY, seed), rest | own) for seed, own in enumerate((figures, {"degree_4": 0.8}))]


def test_tables_by_hand() -> None:
    """Rates stand beside the published ones; without rows nothing was run."""
    rows = [x for d in "ABCD" for x in found(d, rejected=0.5, degree_4=0.2, degree_16=0.2)]
    table = study.trained_here(Found(rows, STUDY.alike))
    assert "| less the published best checkpoint | +.0500 | -.0029 | +.1372 | +.1546 |" in table
    assert study.trained_here(Found([], STUDY.alike)) == NOT_RUN


@pytest.mark.skipif(not (Options().data / "pipedream").is_dir(), reason="there is no PipeDream data")
def test_a_run(tmp_path: Path) -> None:
    """A seed gets a row the shares of which add up with what is blocked; without weights it is left out."""
    options = Options(("main",), only=" C ", seeds=1, rows=tmp_path / "rows.csv")
    (row,) = STUDY.run(options, lambda text: None)
    assert sum(row.figures[x] for x in SHARES[1:]) == pytest.approx(1 - row.figures["blocked"])
    said = list[str]()
    assert (
        STUDY.run(Options(("main",), only=" C ", seeds=1, rows=tmp_path / "b.csv", weights=tmp_path), said.append) == []
    )
    assert "left out" in said[0]


def test_rows_are_of_what_is_shipped() -> None:
    """All rows are of the weights that come with the package."""
    weights = digest(Options().weights / f"{POLICY}.safetensors")
    assert {x.task.weights for x in read(STUDY.path)} == {weights}
    assert len(read(STUDY.path)) == sum(4 * cell.seeds for cell in SUITES.values())
