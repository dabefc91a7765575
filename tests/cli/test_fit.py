"""`gangplan fit`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.instances.readers.measured import read_measured
from gangplan.instances.readers.together import Together


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
    assert done.err == f"error: {path}: content: '1,2\\n' begins no known format of measured speeds\n"


def test_table_of_jobs_together(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of one's own gets a row for each model, judged on combinations held out; the page's example is one."""
    from gangplan.learned.training.interference import models

    page = (Path(__file__).parents[2] / "docs" / "speeds.md").read_text()
    example = re.search(r"```csv\n(.*?)```", page, re.DOTALL)
    assert example is not None
    path = tmp_path / "mine.csv"
    path.write_text(example[1])
    (read,) = read_measured(path)
    assert isinstance(read, Together) and len(read.kept) == 2 * (len(example[1].splitlines()) - 1)
    rows = example[1].splitlines()[:1]
    suffers = {name: 1 + i / 4 for i, name in enumerate("ABCDEFG")}
    for a, mine in suffers.items():
        for b, theirs in suffers.items():
            rows.append(f"{a},32,1,100,{100 / (1 + mine * theirs / 9):.3f},{b},32,1")
    path.write_text("\n".join(rows))
    monkeypatch.setattr(models, "MODELS", {name: models.MODELS[name] for name in ("mean ratio", "ridge")})
    found = json.loads(cli("fit", path, "--json").out)
    assert [(x["data"], x["model"]) for x in found] == [("mine", "mean ratio"), ("mine", "ridge")]
    assert found[1]["mape"] < 0.03 < found[0]["mape"]
    text = cli("fit", path).out
    assert all(f"{x['mape']:.1%}" in text for x in found)
    path.write_text(path.read_text().replace("C,32,1,100", "C,32,one,100", 1))
    done = cli("fit", path)
    assert done.code == 2 and "GPUs: 'one' is not a number" in done.err
