"""`gangplan slurm` without Slurm: one line and exit code 2."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .conftest import Cli


def test_without_slurm(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its commands are named that are not here."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli("slurm", "--once", "--log", tmp_path / "log.jsonl")
    assert (done.code, done.out) == (2, "") and "there is no squeue here" in done.err and done.err.count("\n") == 1


@pytest.mark.skipif(shutil.which("squeue") is None, reason="no Slurm here")
def test_without_a_controller(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody answers: that is said, and nothing is begun."""
    config = tmp_path / "slurm.conf"
    config.write_text(
        "ClusterName=x\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\nMessageTimeout=2\nNodeName=n0\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(config))
    for words in (["--once"], ["--dry-run"], []):
        done = cli("slurm", *words, "--log", tmp_path / "log.jsonl")
        assert (
            (done.code, done.out) == (2, "") and done.err.startswith("error: slurm: squeue") and "Trace" not in done.err
        )
    assert not (tmp_path / "log.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--interval", "0"), "interval"),
        (("--mark", "a b"), "mark"),
        (("--set", "x=1"), "set"),
    ],
)
def test_bad_options(cli: Cli, words: tuple[str, ...], field: str) -> None:
    """They are refused before Slurm is asked."""
    done = cli("slurm", *words)
    assert done.code == 2 and done.err.startswith(f"error: {field}: ")
