"""`gangplan fit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy")


def test_fit(data: Path, cli: Any) -> None:
    """Every fit of every file has a row, in the table and in JSON."""
    path = data / "pollux" / "bert-placements.csv"
    found = json.loads(cli("fit", path, "--json").out)
    assert [(x["data"], x["model"]) for x in found] == [
        ("bert", "compute alone"),
        ("bert", "ring"),
        ("bert", "hierarchical"),
    ]
    text = cli("fit", path).out
    assert all(f"{x['median']:.1%}" in text for x in found)


def test_bad_file(tmp_path: Path, cli: Any) -> None:
    """Bad input has exit code 2 and one line."""
    path = tmp_path / "x.csv"
    path.write_text("1,2\n")
    done = cli("fit", path)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: {path}: content: begins no known format of measured speeds\n"
