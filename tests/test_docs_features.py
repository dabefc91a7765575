"""The table of features: what it says is there is tested, and what is not has no test."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "scheduler"
PAGE = Path(__file__).parent.parent / "docs" / "operators.md"
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and line.count("|") == 9
][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_feature_has_its_test(row: list[str]) -> None:
    """A row that says yes names a test that exists; one that says no names none."""
    assert all(mark in "+o-?" for mark in row[1:6]) and row[6] in ("+", "o", "-")
    named = row[7] if len(row) > 7 else ""
    assert bool(named) == (row[6] != "-")
    if named:
        module, name = named.split(": ")
        (file,) = HERE.rglob(f"{module}.py")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert f"test_{name}" in {x.name for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)}


def test_the_table_was_read() -> None:
    """All rows are looked at."""
    assert len(ROWS) > 30


@pytest.mark.parametrize("product", ["Slurm", "Kueue", "Volcano", "KAI", "YARN"])
def test_a_product_has_its_sources(product: str) -> None:
    """Each has one line with the addresses that its marks come from."""
    (line,) = [x for x in PAGE.read_text(encoding="utf-8").splitlines() if x.startswith(f"- {product}: ")]
    assert line.count("(https://") > 5


def test_the_loop_of_an_operator() -> None:
    """The example's day goes through: every job that started ends or runs, and no queue holds more than its most."""
    cluster = runpy.run_path(str(PAGE.parent / "examples" / "operators_loop.py"))["main"](200)
    assert sum(map(len, cluster.waits.values())) == 200 - len(cluster.came)
    assert {*cluster.scheduler.running} == {*cluster.began}
    assert cluster.scheduler._state.accounts.share(cluster.scheduler._state.accounts._number["prod"]) <= 0.6
