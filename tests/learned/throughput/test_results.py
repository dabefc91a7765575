"""The page of the throughput policy is what its rows make."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from benchmarks import learned, learned_tables  # noqa: E402
from benchmarks.learned_rows import LearnedRow, append, csv_of, raise_reference, read  # noqa: E402


def _row(method: str, objective: float | None, seed: int = 0) -> LearnedRow:
    return LearnedRow("throughput", "small", "layered", 100, seed, method, objective, 2.0, True, 1.5)


def test_the_page_agrees_with_the_rows() -> None:
    """Every table of docs/learned-throughput.md is made from the rows."""
    assert learned.write_page("throughput", check=True) == 0


def test_rows_survive_the_file(tmp_path: Path) -> None:
    """Rows with and without a plan come back as written; a cell that is none of its kind is named with its line."""
    path = tmp_path / "rows.csv"
    rows = [_row("learned", 2.5), _row("greedy", None)]
    append(rows[:1], path)
    append(rows[1:], path)
    assert read(path) == rows
    assert [row.gap for row in rows] == [0.25, float("inf")]
    path.write_text(path.read_text().replace("True", "Yes", 1))
    with pytest.raises(ValueError, match=r":2: proved: 'Yes'"):
        read(path)


def test_references_rise(tmp_path: Path) -> None:
    """A greater bound is that of all rows of its instance and no more than the best plan, which then is the optimum."""
    path = tmp_path / "rows.csv"
    rows = [replace(x, proved=False) for x in (_row("learned", 2.5), _row("greedy", 3.0), _row("bound", 2.0))]
    append([*rows, _row("learned", 2.5, seed=1)], path)
    raise_reference(rows[0].instance, 2.2, path)
    assert [(x.objective, x.reference, x.proved) for x in read(path)] == [
        (2.5, 2.2, False), (3.0, 2.2, False), (2.2, 2.2, False), (2.5, 2.0, True)
    ]  # fmt: skip
    raise_reference(rows[0].instance, 2.1, path)
    assert {x.reference for x in read(path)} == {2.2, 2.0}
    raise_reference(rows[0].instance, 2.6, path)
    assert [(x.objective, x.reference, x.proved) for x in read(path)][:3] == [
        (2.5, 2.5, True), (3.0, 2.5, True), (2.5, 2.5, True)
    ]  # fmt: skip


def test_gaps_count_instances_that_all_methods_have() -> None:
    """A method that was judged on fewer instances is compared on those; one that has no plan at all has no line."""
    rows = [_row("a", 2.2), _row("a", 4.0, 1), _row("b", 2.0), _row("c", None)]
    lines = learned_tables.gaps(rows, ("a", "b", "c")).splitlines()
    assert lines[2].startswith("| a | 1 | 10.00% |") and lines[3].startswith("| b | 1 | 0.00% |")
    assert len(lines) == 4
    low, high = learned_tables.interval([0.0, 0.1, 0.2])
    assert 0 <= low < 0.1 < high <= 0.2 + 1e-9


def test_only_what_is_missing_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run judges the methods that the file lacks, and nothing twice."""
    judged: list[str] = []

    def judge(methods: list[str]) -> list[LearnedRow]:
        judged.extend(methods)
        return [_row(m, 2.0) for m in methods]

    class Module:
        @staticmethod
        def tasks(weights: Path) -> list[learned.Task]:
            return [learned.Task("small", "layered", 100, 0, ("a", "b"), judge)]  # type: ignore[arg-type]

    monkeypatch.setattr(learned, "_module", lambda problem: Module)
    monkeypatch.setattr(learned, "csv_of", lambda problem: tmp_path / "rows.csv")
    learned.run("throughput", only="a", say=lambda text: None)
    learned.run("throughput", say=lambda text: None)
    learned.run("throughput", say=lambda text: None)
    assert judged == ["a", "b"]
    assert csv_of("step").name == "learned_step.csv"
