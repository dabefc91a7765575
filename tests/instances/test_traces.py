"""Readers of traces: the published files, and rows that are wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.traces import queues, read_trace

HEAD = "job_id,num_gpu,submit_time,duration\n"


def test_philly(data: Path) -> None:
    """All jobs of all virtual clusters, seconds from the first submission."""
    workload = read_trace(data / "philly" / "philly.csv.gz").workload
    assert workload.n_jobs == 82_247
    parts = dict(queues(workload))
    assert len(parts) == 15 and sum(part.n_jobs for part in parts.values()) == 82_247
    assert workload.submit.min() == 0
    assert workload.duration.max() == pytest.approx(4.63e6, rel=1e-3)
    assert workload.only("ee9e8c").n_jobs == parts["ee9e8c"].n_jobs


def test_tiresias(data: Path) -> None:
    """A trace with columns of its own is read by those it shares."""
    workload = read_trace(data / "tiresias" / "60_job.csv").workload
    assert (workload.n_jobs, workload.gpus[1], workload.submit[1], workload.duration[1]) == (60, 8, 30, 147)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("1,0,5,5", "line 3: num_gpu: '0' is not a positive whole number"),
        ("1,1.5,5,5", "line 3: num_gpu: '1.5' is not a positive whole number"),
        ("1,1,-5,5", "line 3: submit_time: '-5' is not a finite number from 0 on"),
        ("1,1,5,nan", "line 3: duration: 'nan' is not a finite number from 0 on"),
        ("1,1,x,5", "line 3: submit_time: 'x' is not a number"),
        ("1,1,5", "line 3: columns: the row has not the 4 of the header"),
        ("1,1,5,5,5", "line 3: columns: the row has not the 4 of the header"),
        (" ,1,5,5", "line 3: job_id: is empty"),
    ],
)
def test_bad_rows(tmp_path: Path, row: str, words: str) -> None:
    """A bad row is named; or it is left out and counted."""
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD}0,1,0,5\n{row}\n2,2,1,5\n")
    with pytest.raises(InstanceError, match=words):
        read_trace(path)
    found = read_trace(path, skip_bad=True)
    assert found.workload.names == ("0", "2")
    assert found.skipped == [words]


def test_bad_files(tmp_path: Path) -> None:
    """Files that are no trace are refused, compressed or not."""
    path = tmp_path / "t.csv"
    for content, words in (
        (b"", "header: nothing lacks"),
        (b"a,b\n1,2\n", "header: a, b lacks job_id"),
        (HEAD.encode(), "content: there is no job"),
        (b"\xff\xfe\x00", "UTF-8"),
        (gzip.compress(HEAD.encode())[:-9], "file: "),
        (f"{HEAD}0,1,0,5\n0,1,0,5\n".encode(), r"names\[1\]: '0' is a duplicate"),
    ):
        path.write_bytes(content)
        with pytest.raises(InstanceError, match=words):
            read_trace(path)
    with pytest.raises(InstanceError, match="no such file"):
        read_trace(tmp_path / "absent")
