"""Gavel's traces and speeds: what they hold, and what is wrong with others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.gavel import is_gavel_trace, read_gavel_trace, read_throughputs

LINE = "ResNet-18 (batch size 16)\tpython\tdir\t-n\t1\t1000\t2\t1.0\t-1.0\t5.5\n"
TABLE = {kind: {"('ResNet-18 (batch size 16)', 2)": {"null": 10.0}} for kind in ("v100", "v100_unconsolidated")}


def test_gavel_trace(tmp_path: Path) -> None:
    """A line holds model, steps, GPUs, weight and arrival; a bad one is named, or skipped and told."""
    path = tmp_path / "x.trace"
    path.write_text(LINE + LINE.replace("\t1000\t", "\t-3\t"), encoding="utf-8")
    with pytest.raises(InstanceError, match=r"x.trace: line 2: steps: '-3' is not a finite number from 0 on"):
        read_gavel_trace(path)
    found = read_gavel_trace(path, skip_bad=True)
    assert (found.names, found.gpus.tolist(), found.steps.tolist(), found.submit.tolist()) == (
        ("0",),
        [2],
        [1000],
        [5.5],
    )
    assert found.skipped == ("line 2: steps: '-3' is not a finite number from 0 on",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LINE.replace("\t5.5", ""), "line 1: columns: .* has 9 of them, not 10"),
        (LINE.replace("\t2\t", "\t2.5\t"), "line 1: GPUs: '2.5' is not a positive whole number"),
        (LINE.replace("5.5", "soon"), "line 1: arrival: 'soon' is not a number"),
        (LINE.replace("5.5", "nan"), "line 1: arrival: 'nan' is not a finite number from 0 on"),
        (LINE.replace("ResNet-18 (batch size 16)", " "), "line 1: model: is empty"),
        ("", "content: the file is empty"),
    ],
)
def test_bad_traces(tmp_path: Path, text: str, words: str) -> None:
    """What is wrong is said with line and column."""
    path = tmp_path / "x.trace"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError, match=words):
        read_gavel_trace(path)
    assert is_gavel_trace(path) is (text.count("\t") == 9)


def test_throughputs(tmp_path: Path) -> None:
    """Plain types are kept, a wrong cell is named by its path, an unknown model by its name."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps(TABLE), encoding="utf-8")
    found = read_throughputs(path)
    assert found.types == ("v100",)
    assert found.of("v100", "ResNet-18 (batch size 16)", 2) == 10.0
    with pytest.raises(InstanceError, match=r"model: 'A3C' on 1 GPUs was not measured on v100"):
        found.of("v100", "A3C", 1)
    with pytest.raises(InstanceError, match=r"type: 'k80' is not one of v100"):
        found.of("k80", "A3C", 1)
    path.write_text(json.dumps(TABLE).replace("10.0", '"fast"'), encoding="utf-8")
    with pytest.raises(InstanceError, match=r"v100\.\('ResNet.*null: 'fast' is not a number"):
        read_throughputs(path)
