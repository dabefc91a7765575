"""Shards of labels: written whole, never twice, never mixed, and read back as problems and arrays."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.cli import main
from gangplan.instances import InstanceError, content_hash, verify
from gangplan.instances.generators.families import make
from gangplan.learned.labels import Configuration, Engine, collect, files, read_labels, up_to
from gangplan.learned.training.lock import LOCK

ONE = Engine(processes=1)
SMALL = Configuration("throughput", ("layered", "series_parallel"), size=8, states=2, time_limit=20, shard=2)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file in `folder` but the one that is locked."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.name != LOCK}


def without_time(folder: Path) -> list[Any]:
    """Return all rows but for how long they took."""
    from pyarrow import parquet

    tables = [parquet.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    return [table.drop_columns(["seconds"]).to_pylist() for table in tables]


def test_round_trip(tmp_path: Path) -> None:
    """What is read back is the problem itself, with labels that agree with the plans beside them."""
    found = collect(tmp_path, SMALL, 1, ONE)
    assert (found.shards, found.written, found.instances, found.proved) == (1, 1, 2, 2)
    read = list(read_labels(tmp_path))
    assert [(x.family, x.seed, x.split) for x in read] == [("layered", 0, "train"), ("series_parallel", 1, "train")]
    for one in read:
        again = make("throughput", one.family, one.seed, SMALL.size)
        assert content_hash(one.problem) == content_hash(again)
        assert one.objective == pytest.approx(one.bound, rel=1e-6)
        assert one.states[0][0].depth == 0
        for plan, objective in one.plans:
            assert verify(one.problem, plan).objective == pytest.approx(objective)
        for state, labels in one.states:
            assert labels.decision.shape == labels.action.shape == labels.value.shape == labels.lower.shape
            assert set(labels.decision.tolist()) <= set(range(state.depth, 8))
            for decision in np.unique(labels.decision):
                assert labels.regret[labels.decision == decision].min() <= 1e-6
    assert found.actions == sum(len(labels.value) for one in read for _, labels in one.states)


def test_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted run keeps its finished shards; going on leaves them as they are and ends like one in one go."""
    one, two = tmp_path / "one", tmp_path / "two"
    collect(one, SMALL, 3, ONE)
    real = files.label_instance

    def interrupted(configuration: Configuration, index: int) -> Any:
        if index == 3:
            raise KeyboardInterrupt
        return real(configuration, index)

    with monkeypatch.context() as patch:
        patch.setattr(files, "label_instance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            collect(two, SMALL, 3, ONE)
    before = contents(two)
    assert sorted(before) == ["labels.json", "shard-00000.parquet"]
    shares: list[float] = []
    found = collect(two, SMALL, 3, ONE, shares.append)
    assert (found.shards, found.written, found.instances) == (3, 2, 4)
    assert shares == pytest.approx([2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    assert {name: contents(two)[name] for name in before} == before
    assert without_time(two) == without_time(one)
    assert collect(two, SMALL, 3, ONE).written == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("size", 9), ("states", 1), ("split", "test"), ("levels", (0.0, 0.1)), ("families", ("layered",)), ("shard", 3)],
)
def test_refuses_another_configuration(tmp_path: Path, field: str, value: Any) -> None:
    """A folder takes labels of one configuration only, and the error names what differs."""
    collect(tmp_path, replace(SMALL, states=0), 1, ONE)
    before = contents(tmp_path)
    with pytest.raises(InstanceError, match=f"{field}: .* is not .*, with which the labels there were made"):
        collect(tmp_path, replace(SMALL, **{"states": 0, field: value}), 1, ONE)
    assert contents(tmp_path) == before


def test_refuses_a_changed_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are not read beside a problem that they were not made for."""
    collect(tmp_path, replace(SMALL, states=0), 1, ONE)
    monkeypatch.setattr(files, "make", lambda p, f, seed, size: make(p, f, seed + 1, size))
    with pytest.raises(InstanceError, match="hash: of layered 0 is not"):
        next(iter(read_labels(tmp_path)))


def test_refuses_what_is_no_shard(tmp_path: Path) -> None:
    """A damaged shard, a folder without a manifest and Parquet files of somebody else are errors with a name."""
    with pytest.raises(InstanceError, match=r"labels\.json"):
        next(iter(read_labels(tmp_path)))
    (tmp_path / "shard-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(InstanceError, match="holds Parquet files"):
        collect(tmp_path, SMALL, 1, ONE)
    (tmp_path / "labels.json").write_text('{"problem": "throughput"}')
    with pytest.raises(InstanceError, match="is no shard"):
        next(iter(read_labels(tmp_path)))


def test_levels() -> None:
    """Levels end at what is asked for."""
    assert up_to(0.05) == (0.0, 0.01, 0.02, 0.05)
    assert up_to(0.3) == (0.0, 0.01, 0.02, 0.05, 0.1, 0.3)
    assert up_to(0.0) == (0.0,)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what it has done, and two processes write what one writes."""
    options = ["--size", "8", "--shards", "1", "--shard-size", "2", "--states", "1"]
    for name, processes in (("one", "1"), ("two", "2")):
        command = ["learn", "labels", "throughput", str(tmp_path / name), *options, "--processes", processes, "--json"]
        assert main(command) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["problem"], said["shards"], said["written"], said["instances"]) == ("throughput", 1, 1, 2)
        assert said["settled"] == said["actions"] > 0
    assert without_time(tmp_path / "one") == without_time(tmp_path / "two")
    assert main(["learn", "labels", "throughput", str(tmp_path / "one"), *options]) == 0
    assert "1 shards in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing", "x"], "problem: 'nothing' is not one of throughput"),
        (["throughput", "x", "--split", "all"], "split: 'all' is not one of"),
        (["throughput", "x", "--family", "gangs"], "families[0]: 'gangs' is not one of"),
        (["throughput", "x", "--size", "3"], "size: 3 is less than 4"),
        (["throughput", "x", "--near", "-1"], "near: -1.0 is negative"),
        (["throughput", "x", "--shards", "0"], "shards: 0 is not positive"),
        (["throughput", "x", "--engine", "dask"], "engine: 'dask' is not one of local, ray"),
        (["throughput", "x", "--address", "here:1"], "address: 'here:1' is of a Ray cluster, and the engine is local"),
    ],
)
def test_bad_input(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    """Bad input ends with code 2 and one line that says what is wrong, and no folder is left."""
    monkeypatch.chdir(tmp_path)
    assert main(["learn", "labels", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ray cluster of this machine writes what this process writes; one that is not there is an error at once."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(InstanceError, match="nobody answers"):
        collect(tmp_path / "none", SMALL, 1, Engine("ray", 1, "127.0.0.1:1"))
    import ray

    try:
        collect(tmp_path / "ray", SMALL, 1, Engine("ray", 1, "local"))
    finally:
        ray.shutdown()
    collect(tmp_path / "here", SMALL, 1, ONE)
    assert without_time(tmp_path / "ray") == without_time(tmp_path / "here")
