"""Readers of traces: the published files, and rows that are wrong."""

from __future__ import annotations

import dataclasses
import gzip
import json
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
        "a1,ps,,Terminated,90.0,150.0,200.0,10,,MISC\n"
        "a1,chief,1.0,Terminated,100.0,170.0,600.0,,200.0,T4\n"
        "b2,worker,1.0,Running,200.0,,600.0,29,100.0,T4\n"
        "c3,worker,,Terminated,300.0,310.0,100.0,1,25.0,P100\n"
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
        ("ann", "", "bob, of physics"),
        ("", "train.py", "x"),
        np.array([-5, 0, 2**31 - 1]),
        np.array([np.inf, 0.1, 3600.0]),
    )
    back = read_trace(written(tmp_path, as_csv(work))).workload
    for field in dataclasses.fields(Workload):
        assert np.array_equal(getattr(back, field.name), getattr(work, field.name)), field.name


SACCT = "JobID|Partition|Submit|Elapsed|State|ReqTRES\n"


def sacct(job: str, tres: str, submit: str = "10:00:00", elapsed: str = "00:10:00", state: str = "COMPLETED") -> str:
    """Return a row of ``sacct``."""
    return f"{job}|gpu|2025-03-01T{submit}|{elapsed}|{state}|{tres}\n"


def test_attempts_of_one_job(tmp_path: Path) -> None:
    """Of a job that was requeued the last attempt counts, from its own submission, wherever it stands in the file."""
    late = sacct("30", "gres/gpu=4", "10:20:00", "01:00:00")
    rows = late + sacct("30", "gres/gpu=4", state="NODE_FAIL") + sacct("31", "gres/gpu=4")
    found = read_trace(written(tmp_path, SACCT + rows))
    assert (found.workload.names, found.workload.submit.tolist()) == (("30", "31"), [1200, 0])
    assert found.workload.duration.tolist() == [3600, 600]
    assert found.left_out == {"of an attempt that was not the last": 1}
    # requeued and waiting still: the job has not ended
    found = read_trace(written(tmp_path, SACCT + rows + sacct("30", "gres/gpu=4", "12:00:00", state="PENDING")))
    assert found.workload.names == ("31",)
    assert found.left_out == {"of an attempt that was not the last": 2, "that never ran to an end": 1}


def test_heterogeneous_jobs_are_one_gang(tmp_path: Path) -> None:
    """The parts of a heterogeneous job hold their GPUs together; of each the last attempt counts."""
    parts = sacct("20+0", "cpu=8,gres/gpu=4") + sacct("20+1", "cpu=8,gres/gpu=8", elapsed="00:20:00")
    found = read_trace(written(tmp_path, SACCT + parts + sacct("20+1.batch", "") + sacct("20+2", "cpu=8")))
    assert (found.workload.names, found.workload.gpus.tolist()) == (("20",), [12])
    assert found.workload.duration.tolist() == [1200]
    assert found.workload.cpu is not None and found.workload.cpu.tolist() == [16]
    again = sacct("20+0", "gres/gpu=4", "11:00:00") + sacct("20+1", "gres/gpu=2", "11:00:00")
    found = read_trace(written(tmp_path, SACCT + parts + again))
    assert (found.workload.gpus.tolist(), found.workload.duration.tolist()) == ([6], [600])
    found = read_trace(
        written(tmp_path, SACCT + sacct("1", "gres/gpu=1") + parts + sacct("20+2", "gpu", state="RUNNING"))
    )
    assert (found.workload.names, found.left_out) == (("1",), {"that never ran to an end": 3})


@pytest.mark.parametrize(
    ("head", "cells", "gpus"),
    [
        ("ReqTRES|AllocTRES", "cpu=1|cpu=36,gres/gpu:rtx2080ti=4,gres/gpu=4", 4),  # --exclusive
        ("ReqTRES|AllocTRES", "gres/gpu=1|cpu=36,gres/gpu=4", 4),
        ("ReqTRES|AllocTRES", "gres/gpu=2|", 2),
        ("AllocTRES", "gres/gpu:a100=2,gres/gpu:v100=3", 5),
        ("AllocTRES", "gres/gpu:a100=2,gres/gpu:v100=3,gres/gpu=5", 5),
        ("AllocTRES", "gres/gpu:1g.10gb=2,gres/gpumem=37,gres/gpuutil=90", 2),
        ("ReqGRES|NNodes", "gpu:4|2", 8),
        ("ReqGRES|AllocNodes", "gpu:a100:2,gpu:v100:1(S:0)|3", 9),
        ("ReqGRES|NNodes", "gpu|2", 2),
        ("AllocGRES", "gpu:a100:8", 8),
        ("reqtres", "gres/gpu=3", 3),
    ],
)
def test_gpus_of_slurm(tmp_path: Path, head: str, cells: str, gpus: int) -> None:
    """What was given counts before what was asked, types are added up, GRES are of each node."""
    for name in ("JobID", "JobIDRaw", "jobid"):
        text = f"{name}|Submit|Elapsed|{head}|\n7|1740823200|00:10:00|{cells}|\n"
        assert read_trace(written(tmp_path, text)).workload.gpus.tolist() == [gpus]


def test_gres_need_the_number_of_nodes(tmp_path: Path) -> None:
    """A count of each node is no count of a job."""
    with pytest.raises(InstanceError, match="line 2: ReqGRES: 'gpu:4' is of each node, and NNodes is missing"):
        read_trace(written(tmp_path, "JobID|Submit|Elapsed|ReqGRES\n7|2025-03-01|00:10:00|gpu:4\n"))


SWF_ROW = "{} {} -1 {} 4 -1 -1 4 -1 -1 {} 1 1 -1 1 -1 -1 -1\n"


@pytest.mark.parametrize(
    "head",
    ["; UnixStartTime: 0 \n", "# a comment\n\n  ; another\n", "", "1 0 -1 1e2 4 -1 -1 4 -1 -1 1 1 1 -1 1 -1 -1 -1 9\n"],
)
def test_swf_as_it_is_found(tmp_path: Path, head: str) -> None:
    """Comments of either kind, more columns than eighteen, floats and exponents are the format still."""
    row = SWF_ROW.format("2", "1.5e1", "2.3e+01", "1.0").replace("4 -1", "4.0 -1.0", 1)
    found = read_trace(written(tmp_path, head + row.rstrip() + " 7 8\n"))
    assert (found.workload.gpus[-1], found.workload.submit[-1], found.workload.duration[-1]) == (4, 15, 23)


def test_swf_cancelled_and_in_parts(tmp_path: Path) -> None:
    """Jobs cancelled before they ran are left out; of executions between stops either the whole or the sum counts."""
    rows = [("1", 0, 100, 1), ("2", 10, 0, 5), ("3", 20, -1, 5), ("4", 20, 7, 5), ("5", 20, 0, 1)]
    rows += [("6", 30, 50, 1), ("6", 30, 20, 2), ("6", -1, 30, 3), ("7", 40, 5, 2), ("7", -1, 6, 4)]
    found = read_trace(written(tmp_path, "".join(SWF_ROW.format(*row) for row in rows)))
    assert dict(zip(found.workload.names, found.workload.duration.tolist(), strict=True)) == {
        "1": 100, "4": 7, "5": 0, "6": 50, "7": 11,
    }  # fmt: skip
    assert found.workload.submit.tolist() == [0, 20, 20, 30, 40]
    whole = "of a part of a job that has a row for the whole"
    assert found.left_out == {"that never ran to an end": 2, whole: 2}
    with pytest.raises(InstanceError, match="line 2: job: '6' is a duplicate"):
        read_trace(written(tmp_path, SWF_ROW.format("6", 0, 1, 1) * 2))
    with pytest.raises(InstanceError, match="line 2: run: 'x' is not a number"):
        read_trace(written(tmp_path, SWF_ROW.format("6", 0, 1, 1) + SWF_ROW.format("7", 0, "x", 1)))


ACME = "job_id,user,node_num,gpu_num,cpu_num,{}type,state,submit_time,start_time,end_time,{}duration,queue,gpu_time\n"


def test_acme(tmp_path: Path) -> None:
    """Both clusters are read; Kalos' durations count the wait, so that the times are taken; zones are honoured."""
    seren = ACME.format("", "") + (
        "1,u,1,8,16,Eval,FAILED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:05+08:00,2023-03-01 01:00:05Z,3600,5,1\n"
        "2,u,1,0,16,Other,COMPLETED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:05+08:00,2023-03-01 01:00:05Z,1,5,1\n"
    )
    found = read_trace(written(tmp_path, seren))
    assert (found.workload.queue, found.workload.duration.tolist()) == (("Eval",), [3600])
    assert found.left_out == {"without a GPU": 1}
    kalos = ACME.format("mem_per_pod_GB,shared_mem_per_pod,", "fail_time,stop_time,") + (
        "a,u,2,16,96,100,1.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
        "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,288\n"
        "b,u,2,16,96,,1.0,Other,RUNNING,2023-05-17 19:01:08+08:00,2023-05-17 11:01:08+00:00,,,,18,10.0,288\n"
        "c,u,2,16,96,,,Other,CANCELLED,2023-05-17 19:01:08+08:00,2023-05-17 11:01:08Z,2023-05-17 11:01:09Z,,,1,0,1\n"
    )
    work = read_trace(written(tmp_path, kalos)).workload
    assert (work.names, work.submit.tolist(), work.duration.tolist()) == (("a", "c"), [0, 10], [8, 1])
    assert work.memory is not None and work.memory.tolist() == [200e9, 0]
    with pytest.raises(InstanceError, match="line 3: end_time: '2023-02-01' is before the start_time"):
        row = "3,u,1,1,1,Eval,FAILED,2023-03-01,2023-03-01,2023-02-01,1,1,1\n"
        read_trace(written(tmp_path, "".join(seren.splitlines(keepends=True)[:2]) + row))


@pytest.mark.parametrize("word", ["None", "", "NaN", "null", "Unknown"])
def test_helios_that_never_started(tmp_path: Path, word: str) -> None:
    """Whatever stands for no time means that the job never ran."""
    rows = "2,u,v,8,16,1,CANCELLED,2020-04-01 00:01:00,{},2020-04-01 00:05:00,0,240\n"
    rows = rows.format(word) + rows.replace("2,", "3,", 1).format("2020-04-01 00:02:00")
    found = read_trace(written(tmp_path, HELIOS + rows))
    assert (found.workload.names, found.left_out) == (("3",), {"that never ran to an end": 1})


@pytest.mark.parametrize(
    "first", ["j1,tf,,Waiting,,,600.0,29.3,50.0,MISC", "j1,ps,2.0,Failed,5.0,,,,,", "j1,ps,1,Running,5,nan,1,1,,T4"]
)
def test_alibaba_without_its_header(tmp_path: Path, first: str) -> None:
    """The table is known by its ten columns though the first row lacks numbers."""
    found = read_trace(
        written(tmp_path, f"{first}\nj2,worker,2.0,Terminated,494378.0,494500.0,600.0,29.3,100.0,MISC\n")
    )
    assert (found.workload.names, found.workload.gpus.tolist(), found.workload.duration.tolist()) == (
        ("j2",),
        [2],
        [122],
    )


def philly_job(name: object, *attempts: object, gpus: object = ("gpu0", "gpu1")) -> dict[str, object]:
    """Return a job of Philly's log with attempts from one second of an hour to another."""
    ran = [{"start_time": f"2017-10-09 07:00:{a}", "end_time": f"2017-10-09 07:00:{b}"} for a, b in attempts]  # type: ignore[misc]
    detail = [{"ip": "m1", "gpus": list(gpus) if isinstance(gpus, tuple) else gpus}]
    records = [one | {"detail": detail} for one in ran]
    return {"jobid": name, "vc": "v", "attempts": records, "submitted_time": "2017-10-09 06:59:59", "status": "Pass"}


def test_philly_log(tmp_path: Path) -> None:
    """A job of Philly's own log runs as long as all its attempts, as in the CSV made of it."""
    log = [philly_job("a", ("01", "03"), ("10", "15")), philly_job("b"), philly_job("c", ("01", "02"), gpus=())]
    found = read_trace(written(tmp_path, json.dumps(log)))
    work = found.workload
    assert (work.names, work.gpus.tolist(), work.duration.tolist(), work.queue) == (("a",), [2], [7], ("v",))
    assert found.left_out == {"that never ran to an end": 1, "without a GPU": 1}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (3, "job 2: job: 3 is not an object"),
        ({"jobid": "x", "attempts": 4}, "job 2: attempts: 4 is not a list of objects"),
        (philly_job("x", ("10", "05")), r"job 2: attempts\[0\].end_time: '2017-10-09 07:00:05' is before"),
        (philly_job("x", ("10", "xx")), r"job 2: attempts\[0\].end_time: '2017-10-09 07:00:xx' is no time"),
        (philly_job("x", ("10", "15"), gpus=3), r"job 2: attempts\[0\].detail: has a server whose gpus"),
        (philly_job("a", ("10", "15")), "job 2: job: 'a' is a duplicate"),
        (philly_job(None, ("10", "15")), "job 2: jobid: is empty"),
    ],
)
def test_bad_philly_log(tmp_path: Path, job: object, words: str) -> None:
    """A wrong job is named by its number, or left out and counted."""
    path = written(tmp_path, json.dumps([philly_job("a", ("01", "03")), job]))
    with pytest.raises(InstanceError, match=words):
        read_trace(path)
    assert len(read_trace(path, skip_bad=True).skipped) == 1


def test_plain_times(tmp_path: Path) -> None:
    """Times of the calendar or of a clock with a far origin count from the first submission; near ones stay."""
    for first, second in (
        ("2024-01-01 00:00:00", "2024-01-01T00:01:00Z"),
        ("1790000000", "1790000060"),
        ("1.79e9", "1790000060.0"),
    ):
        work = read_trace(written(tmp_path, f"{HEAD}a,8,{first},100\nb,8,{second},100\n")).workload
        assert work.submit.tolist() == [0, 60]
    assert read_trace(written(tmp_path, f"{HEAD}a,8,5,1\nb,8,1790000000,1\n")).workload.submit[0] == 5
    with pytest.raises(InstanceError, match="line 3: submit_time: 'soon' is no time"):
        read_trace(written(tmp_path, f"{HEAD}a,8,2024-01-01,100\nb,8,soon,100\n"))


@pytest.mark.parametrize("empty", ["", " ", "nan", "NULL"])
def test_empty_optional_cells(tmp_path: Path, empty: str) -> None:
    """Nothing in an optional column is as if there were no such column."""
    text = f"{HEAD.strip()},cpu,memory,share\na,8,0,100,{empty},{empty},{empty}\nb,8,0,100,2,3,0.5\n"
    work = read_trace(written(tmp_path, text)).workload
    assert work.cpu is not None and work.memory is not None and work.share is not None
    assert (work.cpu.tolist(), work.memory.tolist(), work.share.tolist()) == ([0, 2], [0, 3], [1, 0.5])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_named_columns(tmp_path: Path, delimiter: str) -> None:
    """A file says what it calls our columns, whatever stands between them; the others keep our names."""
    text = "job,n,t,s,num_gpu,cpu\na,8,5,100,x,3\n".replace(",", delimiter)
    names = {"id": "job", "gpus": "n", "submit": "t", "duration": "s"}
    work = read_trace(written(tmp_path, text), columns=names).workload
    assert work.cpu is not None
    assert (work.names, work.gpus.tolist(), work.submit.tolist(), work.cpu.tolist()) == (("a",), [8], [5], [3])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": "jobs"}, "columns: 'jobs' is not one of job, n, t, s; did you mean job"),
        ({"idd": "job"}, "columns: 'idd' is not one of id, gpus"),
        ({"id": "job", "job_id": "n"}, "columns: give a column two names, or a name to two columns"),
        ({"id": "job", "gpus": "n"}, "header: job_id, num_gpu, t, s lacks submit_time, duration"),
    ],
)
def test_bad_names_of_columns(tmp_path: Path, columns: dict[str, str], words: str) -> None:
    """A column that is not there, not ours, or taken twice is named."""
    with pytest.raises(InstanceError, match=words):
        read_trace(written(tmp_path, "job,n,t,s\na,8,5,100\n"), columns=columns)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("job_id,num_gpu,submit_time,duration,num_gpu", "'num_gpu' is there 2 times"),
        ("job_id,num_gpu,submit_time,duration,cpu,CPU", "'cpu' is there 2 times"),
        ("JobID|Submit|Elapsed|ReqTRES|jobid", "'JobID' is there 2 times"),
        (
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli",
            "nearly Alibaba's of 2023 .* lacks creation_time, deletion_time",
        ),
        ("JobIDRaw|Partition|Submit|Elapsed", r"nearly Slurm's \(sacct --parsable2\), but lacks AllocTRES or ReqTRES"),
        ("JobID    Partition  Submit   Elapsed  AllocTRES", "fixed width: write it by sacct --parsable2"),
        ("job_id,gpu_num,cpu_num,submit_time,start_time,end_time,duration", r"nearly Helios' .* lacks vc"),
        ("jobid,num_gpus,submit,duration", "lacks job_id, num_gpu, submit_time; did you mean jobid"),
        ("Transformer\tpython3 train.py\tx\t-step\t1\t5\t1\t1\t-1.0\t5", "looks like Gavel's, which needs --rounds"),
    ],
)
def test_headers_that_are_nearly_known(tmp_path: Path, head: str, words: str) -> None:
    """What is wrong with a header is told by the format that it is nearest to."""
    with pytest.raises(InstanceError, match=f"header: .*{words}"):
        read_trace(written(tmp_path, f"{head}\n1,2\n"))


def terms(work: Workload) -> list[tuple[object, ...]]:
    """Return user, title, priority and limit of each job."""
    assert work.priority is not None and work.limit is not None
    return list(zip(work.user, work.title, work.priority.tolist(), work.limit.tolist(), strict=True))


def test_terms_of_slurm(tmp_path: Path) -> None:
    """User, name, priority and limit are read; the raw limit is in minutes, and one that is unlimited is none."""
    head = "JobID|User|JobName|Priority|Timelimit|TimelimitRaw|Submit|Elapsed|AllocTRES\n"
    row = "{}|{}|2025-03-01T10:00:00|00:10:00|gres/gpu=1\n"
    rows = [("1", "ann|train|4294901757|1-00:00:00|"), ("2", "bob|eval|7|UNLIMITED|"), ("3", "||||90")]
    found = read_trace(written(tmp_path, head + "".join(row.format(*one) for one in rows)))
    assert terms(found.workload) == [
        ("ann", "train", 2**31 - 1, 86400.0),
        ("bob", "eval", 7, np.inf),
        ("", "", 0, 5400.0),
    ]
    assert found.epoch == 1740823200  # 2025-03-01 10:00, as the clock of the trace shows it
    for cells, words in (("a|b|x||", "Priority: 'x' is not a whole number"), ("a|b||long|", "Timelimit: 'long' is no")):
        with pytest.raises(InstanceError, match=f"line 2: {words}"):
            read_trace(written(tmp_path, head + row.format("1", cells)))


def test_terms_of_gangs_in_parts(tmp_path: Path) -> None:
    """A heterogeneous job has the terms of its first part, the longest limit and the highest priority."""
    head = "JobID|User|JobName|Priority|Timelimit|Submit|Elapsed|AllocTRES\n"
    rows = "".join(
        f"20+{i}|ann|train|{p}|{t}|2025-03-01T10:00:00|00:10:00|gres/gpu=2\n"
        for i, p, t in ((0, 3, "01:00:00"), (1, 9, "02:00:00"))
    )
    assert terms(read_trace(written(tmp_path, head + rows)).workload) == [("ann", "train", 9, 7200.0)]


def test_terms_of_other_formats(data: Path, tmp_path: Path) -> None:
    """Helios, Acme, Philly, SWF, Alibaba and plain tables say what they know of users, names, priorities and limits."""
    helios = HELIOS.replace("vc,", "vc,jobname,")
    row = "7,u1,vcA,bert,8,32,1,DONE,2020-03-29 02:00:00,2020-03-29 02:30:00,2020-03-29 03:30:00,3600,1801\n"
    acme = ACME.format("", "") + "1,u9,1,8,16,Eval,DONE,2023-03-01,2023-03-01,2023-03-02,3600,5,1\n"
    philly = json.dumps([philly_job("a", ("01", "03")) | {"user": "ce2f"}])
    swf = "; UnixStartTime: 1000000000\n1 5 0 100 4 -1 -1 4 200 -1 1 3 1 12 2 -1 -1 -1\n"
    pai = PAI.replace("gpu_type", "gpu_type,user,group") + "a,w,1,Terminated,9,15,1,1,100,T4,u,g\n"
    plain = "job_id,num_gpu,submit_time,duration,User,title,priority,limit\na,1,0,5,ann,x,-3,60\nb,1,0,5,,,,\n"
    nothing = ("", "", 0, np.inf)
    for text, wanted, epoch in (
        (helios + row, [("u1", "bert", 0, np.inf)], 1585447200.0),
        (acme, [("u9", "", 0, np.inf)], 1677628800.0),
        (philly, [("ce2f", "", 0, np.inf)], 1507532399.0),
        (swf, [("3", "12", 0, 200.0)], 1e9),
        (pai, [("u", "g", 0, np.inf)], None),
        (plain, [("ann", "x", -3, 60.0), nothing], None),
    ):
        found = read_trace(written(tmp_path, text))
        assert (terms(found.workload), found.epoch) == (wanted, epoch)
    with pytest.raises(InstanceError, match="line 3: limit: '0' is not positive"):
        read_trace(written(tmp_path, plain.replace("b,1,0,5,,,,", "b,1,0,5,,,,0")))
    pollux = read_trace(data / "pollux" / "workload-6.csv", seconds=dict.fromkeys(POLLUX, 600.0))
    assert (pollux.workload.title[0], pollux.epoch) == ("cifar10", None)


POLLUX = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
