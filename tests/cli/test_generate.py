"""`gangplan generate gangs`: a batch of jobs in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gangplan.instances import dump, load
from gangplan.instances.generators import JOBS, defaults
from gangplan.instances.generators.gangs import gangs


def test_generate(tmp_path: Path, cli: Any) -> None:
    """The command writes and prints what the function makes, options included."""
    path = tmp_path / "made.json"
    options = (
        "--jobs",
        "5",
        "--racks",
        "1",
        "--nodes",
        "2",
        "--load",
        "0.7",
        "--gpu-types",
        "V100,A100",
        "--seed",
        "3",
    )
    done = cli("generate", "gangs", *options, "--out", path)
    assert done.code == 0 and done.out == f"{path}: 5 jobs on 2 nodes with 16 GPUs: slowdown\n"
    expected = gangs(5, 1, 2, load=0.7, gpu_types="V100,A100", seed=3)
    assert path.read_text() == f"{dump(expected)}\n" == cli("generate", "gangs", *options).out
    assert dump(load(path.read_text())) == dump(expected)


def test_help(cli: Any) -> None:
    """The help and the list name every option."""
    text, table = cli("generate", "gangs", "--help"), cli("generate", "--list")
    assert "gangs" in JOBS and text.code == table.code == 0
    for name in defaults("gangs"):
        assert f"--{name.replace('_', '-')} " in text.out
        assert f"{name}=" in table.out


def test_bad_option(cli: Any) -> None:
    """An option out of range is named."""
    done = cli("generate", "gangs", "--load", "1.5")
    assert done.code == 2 and "load: 1.5 is more than 1" in done.err
