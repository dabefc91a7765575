"""Readers of traces: the published files, and rows that are wrong."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.traces import as_csv, read_trace
from gangplan.instances.workload import Workload

HEAD = "job_id,num_gpu,submit_time,duration\n"


def test_philly(data: Path) -> None:
    """All jobs of all virtual clusters, seconds from the first submission."""
    workload = read_trace(data / "philly" / "philly.csv.gz").workload
    assert workload.n_jobs == 82_247
    parts = {name: workload.only(name) for name in set(workload.queue)}
    assert len(parts) == 15 and sum(part.n_jobs for part in parts.values()) == 82_247
    assert workload.submit.min() == 0
    assert workload.duration.max() == pytest.approx(4.63e6, rel=1e-3)
    assert workload.only("ee9e8c").n_jobs == workload.queue.count("ee9e8c")


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
        ("1,1,5", "line 3: columns: the row has 3 of them, not 4"),
        ("1,1,5,5,5", "line 3: columns: the row has 5 of them, not 4"),
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
        (b"", "content: the file is empty"),
        (b"a,b\n1,2\n", "header: a, b lacks job_id"),
        (b'{"kind": "partition"}', "header: is that of JSON, not of a trace"),
        (HEAD.encode(), "content: there is no job"),
        (b"\xff\xfe\x00", "UTF-8"),
        (gzip.compress(HEAD.encode())[:-9], "content: is gzip that was cut off"),
        (gzip.compress(HEAD.encode())[:10] + b"\xff" * 20, "content: is broken gzip"),
        (f"{HEAD}0,1,0,5\n0,1,0,5\n".encode(), "line 3: job: '0' is a duplicate"),
    ):
        path.write_bytes(content)
        with pytest.raises(InstanceError, match=words):
            read_trace(path)
    with pytest.raises(InstanceError, match="no such file"):
        read_trace(tmp_path / "absent")


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
PAI = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


def written(tmp_path: Path, text: str) -> Path:
    """Return a file of that text."""
    path = tmp_path / "trace"
    path.write_text(text)
    return path


def test_helios(tmp_path: Path) -> None:
    """Times of the calendar count from the first submission; CPU jobs and unfinished ones are counted."""
    rows = (
        "7,u1,vcA,8,32,1,COMPLETED,2020-03-29 01:59:59,2020-03-29 02:30:00,2020-03-29 03:30:00,3600,1801\n"
        "8,u1,vcB,0,4,1,COMPLETED,2020-03-29 01:00:00,2020-03-29 01:00:00,2020-03-29 02:00:00,3600,0\n"
        "9,u2,vcB,1,4,1,CANCELLED,2020-03-29 03:59:59,,,0,0\n"
        "10,u2,vcB,1,4,1,FAILED,2020-03-29 03:59:59,2020-03-29 04:00:00,2020-03-29 04:00:05,5,1\n"
    )
    found = read_trace(written(tmp_path, HELIOS + rows))
    work = found.workload
    assert (work.names, work.queue) == (("7", "10"), ("vcA", "vcB"))
    assert work.submit.tolist() == [0, 7200]  # whatever the zone of this machine did that night
    assert work.duration.tolist() == [3600, 5]
    assert work.cpu is not None and work.cpu.tolist() == [32, 4]
    assert found.left_out == {"without a GPU": 1, "that never ran to an end": 1}


@pytest.mark.parametrize("head", [PAI, ""])
def test_alibaba_2020(tmp_path: Path, head: str) -> None:
    """The tasks of a job are joined; the published table has no header."""
    rows = (
        "a1,worker,2.0,Terminated,100.0,160.0,600.0,29.5,50.0,T4\n"
        "a1,ps,1.0,Terminated,90.0,150.0,200.0,10,,MISC\n"
        "a1,chief,1.0,Terminated,100.0,170.0,600.0,,200.0,T4\n"
        "b2,worker,1.0,Running,200.0,,600.0,29,100.0,T4\n"
        "c3,worker,1.0,Terminated,300.0,310.0,100.0,1,25.0,P100\n"
    )
    found = read_trace(written(tmp_path, head + rows))
    work = found.workload
    assert (work.names, work.gpus.tolist(), work.submit.tolist()) == (("a1", "c3"), [4, 1], [0, 200])
    assert work.duration.tolist() == [70, 10]
    assert work.share is not None and work.share.tolist() == [3 / 4, 0.25]  # 2 halves and 2 whole ones; a quarter
    assert work.memory is not None and work.memory.tolist() == [59e9, 1e9]
    assert found.left_out == {"without a GPU": 1, "that never ran to an end": 1}


def test_alibaba_2023(data: Path, tmp_path: Path) -> None:
    """Pods run from when they were scheduled until they were deleted."""
    rows = (
        "p0,8000,1024,1,250,,LS,Running,10,110,30\np1,8000,1024,0,0,,LS,Running,0,9,0\np2,1,1,1,1000,,BE,Pending,5,,\n"
    )
    found = read_trace(written(tmp_path, PODS + rows))
    work = found.workload
    assert (work.duration.tolist(), found.left_out) == (
        [80],
        {"without a GPU": 1, "that never ran to an end": 1},
    )
    assert work.share is not None and work.cpu is not None and (work.share[0], work.cpu[0]) == (0.25, 8)
    whole = read_trace(data / "openb" / "openb_pod_list_default.csv")
    assert whole.workload.n_jobs + sum(whole.left_out.values()) == 8152


def test_pollux(data: Path) -> None:
    """The durations of applications are asked for, one by one."""
    path = data / "pollux" / "workload-6.csv"
    with pytest.raises(InstanceError, match="line 2: application: 'cifar10' has no duration"):
        read_trace(path)
    names = "bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"
    work = read_trace(path, seconds=dict.fromkeys(names, 600.0)).workload
    assert (work.n_jobs, work.model[0], work.gpus[0], work.submit[0]) == (160, "cifar10", 6, 53)


def test_standard_workload_format(tmp_path: Path) -> None:
    """Processors are GPUs: those asked for, or else those that were given."""
    text = (
        "; Computer: none\n; MaxNodes: 4\n"
        "  1 0 10 100 4 -1 -1 4 200 -1 1 3 1 -1 2 -1 -1 -1\n"
        "2 50 0 30 8 -1 -1 -1 -1 -1 1 3 1 -1 -1 -1 -1 -1\n"
        "3 60 -1 -1 -1 -1 -1 2 60 -1 5 3 1 -1 2 -1 -1 -1\n"
    )
    found = read_trace(written(tmp_path, text))
    work = found.workload
    assert (work.gpus.tolist(), work.submit.tolist(), work.duration.tolist()) == ([4, 8], [0, 50], [100, 30])
    assert (work.queue, found.left_out) == (("2", ""), {"that never ran to an end": 1})


@pytest.mark.parametrize("elapsed", ["1-02:03:04", "26:03:04"])
def test_slurm(tmp_path: Path, elapsed: str) -> None:
    """Steps repeat their job; a typed count of GPUs repeats the plain one."""
    text = (
        "JobID|Partition|Submit|Elapsed|State|ReqTRES\n"
        f"17|gpu|2026-01-02T03:04:05|{elapsed}|COMPLETED|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1\n"
        "17.batch||2026-01-02T03:05:05|00:00:05|COMPLETED|\n"
        "18_1|gpu|2026-01-02T03:04:15|00:10|CANCELLED by 1000|cpu=2,gres/gpu=1,mem=1000M\n"
        "19|cpu|2026-01-02T03:04:15|00:10|COMPLETED|cpu=2\n"
        "20|gpu|2026-01-02T03:04:25|00:00:00|PENDING|gres/gpu=1\n"
    )
    found = read_trace(written(tmp_path, text))
    work = found.workload
    assert (work.names, work.gpus.tolist(), work.submit.tolist()) == (("17", "18_1"), [4, 1], [0, 10])
    assert work.duration.tolist() == [26 * 3600 + 184, 10]
    assert work.memory is not None and work.memory.tolist() == [64 * 2**30, 1000 * 2**20]
    assert found.left_out == {"of a step of a job": 1, "without a GPU": 1, "that never ran to an end": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HELIOS + "7,u,v,1,1,1,C,yesterday,x,y,5,0\n", "line 2: submit_time: 'yesterday' is no time"),
        (PODS + "p,1,1,1,2000,,LS,Running,0,5,0\n", "line 2: gpu_milli: 2000 is more than a GPU has"),
        (PODS + "p,1,1,1,1000,,LS,Running,0,5,9\n", "line 2: deletion_time: '5' is before"),
        (PAI + "a,w,1,Terminated,9,5,1,1,100,T4\n", "line 2: end_time: '5' is before"),
        ("JobID|Submit|ReqTRES\n1|2026-01-02|gres/gpu=1\n", "line 2: Elapsed: is missing"),
        ("JobID|Submit|Elapsed|ReqTRES\n1|2026-01-02|5|gres/gpu=1\n", "line 2: Elapsed: '5' is no time"),
        ("1 0 0 x 4 0 0 4 0 0 1 0 0 0 0 0 0 0\n", "lacks job_id"),
        ("; SWF\n" + "1 " * 18 + "\n" + "2 " * 17 + "\n", "line 3: columns: the row has 17 of them, not 18"),
    ],
)
def test_bad_rows_of_published_formats(tmp_path: Path, text: str, words: str) -> None:
    """Each format says which line and which field is wrong."""
    with pytest.raises(InstanceError, match=words):
        read_trace(written(tmp_path, text))


def test_written_and_read(tmp_path: Path) -> None:
    """Every field of a workload comes back to the last digit."""
    rng = np.random.default_rng(3)
    work = Workload(
        ("a", "b,c", 'd"'),
        rng.random(3) * 1e6,
        np.array([1, 8, 3]),
        rng.random(3) / 3,
        ("q", "", "r s"),
        ("bert", "", "x"),
        rng.random(3),
        rng.random(3) * 100,
        rng.random(3) * 1e12,
    )
    back = read_trace(written(tmp_path, as_csv(work))).workload
    for field in dataclasses.fields(Workload):
        assert np.array_equal(getattr(back, field.name), getattr(work, field.name)), field.name
