"""Readers of measured speeds: the published files, and what is wrong with others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.measured import MeasuredSteps, Pairs, read_measured


def test_gavel(data: Path) -> None:
    """Pairs of single-GPU jobs: throughputs become shares of those alone, pairs that do not fit stay unknown."""
    path = data / "gavel" / "simulation_throughputs.json"
    raw = json.loads(path.read_text())
    found = {pairs.name: pairs for pairs in read_measured(path)}
    assert list(found) == ["k80", "p100", "v100"]
    pairs = found["k80"]
    assert isinstance(pairs, Pairs)
    i, j = (pairs.jobs.index(f"ResNet-18 (batch size {n})") for n in (16, 32))
    table = raw["k80"]["('ResNet-18 (batch size 16)', 1)"]
    assert pairs.kept[i, j] == table["('ResNet-18 (batch size 32)', 1)"][0] / table["null"]
    assert np.isnan(pairs.kept).any()


def test_deepshare(data: Path) -> None:
    """The matrix of ratios, row the job that suffers."""
    (pairs,) = read_measured(data / "deepshare" / "shared_thp_ratio.csv")
    assert isinstance(pairs, Pairs)
    assert pairs.kept.shape == (36, 36)
    assert pairs.kept.min() == pytest.approx(0.123)
    assert np.median(pairs.kept) == pytest.approx(0.824)


def test_pollux(data: Path) -> None:
    """The digits of a placement are the workers on each node."""
    (steps,) = read_measured(data / "pollux" / "bert-placements.csv")
    assert isinstance(steps, MeasuredSteps)
    assert steps.name == "bert"
    i = steps.placement.index("112")
    assert (steps.nodes[i], steps.workers[i], steps.most[i]) == (3, 4, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "content: the file is empty"),
        ("a,b\n1,2\n", "begins no known format"),
        ("{", "JSON: Expecting property name"),
        ('{"k80": {"x": {}}}', r"k80.x: is not a row of"),
        ("""{"k80": {"('a', 1)": {"null": -1}}}""", r"null: -1 is not a positive number"),
        (",a,b\na,1,x\nb,1,1\n", "line 2: b: 'x' is not a number"),
        (",a,b\na,1,1\nc,1,1\n", "line 3: 'c' does not fit the header's 'b'"),
        ("placement,local_bsz,step_time\n1x,4,0.5\n", "line 2: placement: '1x' is not the workers"),
        ("placement,local_bsz,step_time\n11,4,nan\n", "line 2: step_time: 'nan' is not a positive number"),
        ("placement,local_bsz\n11,4\n", "header: placement, local_bsz lacks step_time"),
        ("\nplacement,local_bsz,step_time\n\n11,4,x\n", "line 4: step_time: 'x' is not a number"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, words: str) -> None:
    """What is wrong is said with the place."""
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InstanceError, match=words):
        read_measured(path)


def test_no_file() -> None:
    """A file that is not there is named."""
    with pytest.raises(InstanceError, match=r"nowhere.csv: file: no such file"):
        read_measured("nowhere.csv")
