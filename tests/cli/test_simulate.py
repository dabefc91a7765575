"""`gangplan simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROWS = "job_id,num_gpu,submit_time,duration\na,1,0,10\nb,2,1,5\nc,1,2,8\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return the file of three jobs."""
    path = tmp_path / "trace.csv"
    path.write_text(ROWS)
    return path


def test_json(trace: Path, cli: Any) -> None:
    """A list with an object a policy, in the order asked."""
    done = cli("simulate", trace, "--cluster", "1x2", "--policy", "sjf", "--policy", "fifo", "--json")
    found = json.loads(done.out)
    assert [one["policy"] for one in found] == ["sjf", "fifo"]
    # fifo: a 0-10, b 10-15, c 15-23: stays of 10, 14 and 21
    assert found[1]["mean_jct"] == pytest.approx(15.0)
    assert found[1]["makespan"] == 23
    assert found[1]["utilisation"] == pytest.approx(28 / 46)


def test_table(trace: Path, cli: Any) -> None:
    """People get a table, with what was skipped."""
    trace.write_text(ROWS + "d,0,1,1\n")
    assert cli("simulate", trace, "--cluster", "1x2").code == 2
    done = cli("simulate", trace, "--cluster", "1x2", "--skip-bad", "--discipline", "easy")
    assert done.code == 0
    assert "line 5: num_gpu: '0' is not a positive whole number" in done.out
    assert "fifo" in done.out


def test_policies_of_the_engine(trace: Path, cli: Any) -> None:
    """Every policy runs by name, with what it costs to stop jobs and with nodes that fail, and says how often."""
    names = ("srtf", "tiresias", "drf", "tetris", "gandiva", "optimus")
    asked = [x for name in names for x in ("--policy", name)]
    costs = ("--preempt-cost", "1", "--mtbf", "50", "--mttr", "2", "--checkpoint-interval", "3", "--seed", "4")
    done = cli("simulate", trace, "--cluster", "2x2", *asked, *costs, "--degrees", "1,2", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [one["policy"] for one in found] == list(names)
    assert all(one["jobs"] == 3 and one["mean_jct"] > 0 and one["p99_jct"] > 0 for one in found)
    assert all({"makespan", "utilisation", "blocking_rate", "interruptions"} <= one.keys() for one in found)


def test_preemption_and_conservative(trace: Path, cli: Any) -> None:
    """SRTF without preemption is SJF, and a conservative queue is one of the disciplines."""
    base = ("simulate", trace, "--cluster", "1x2", "--json", "--policy")
    srtf, sjf = (json.loads(cli(*base, *x).out)[0] for x in (("srtf", "--no-preempt"), ("sjf",)))
    assert [srtf[key] for key in ("mean_jct", "makespan", "mean_wait")] == [
        sjf[key] for key in ("mean_jct", "makespan", "mean_wait")
    ]
    assert json.loads(cli(*base, "sjf", "--preempt").out)[0]["interruptions"] > 0
    # b needs both GPUs and is due at 10; c would end by then, and does not delay it
    assert json.loads(cli(*base, "fifo", "--discipline", "conservative").out)[0]["makespan"] == 15


def test_per_queue(trace: Path, cli: Any) -> None:
    """Each virtual cluster has its own nodes, so its jobs wait for no other's."""
    trace.write_text("job_id,num_gpu,submit_time,duration,queue\na,2,0,10,x\nb,2,0,10,y\n")
    (found,) = json.loads(cli("simulate", trace, "--cluster", "1x2", "--per-queue", "--json").out)
    assert found["mean_jct"] == 10
    assert found["utilisation"] == 1


def test_shares_of_a_trace(trace: Path, cli: Any) -> None:
    """A trace that names shares of GPUs is simulated with shared ones."""
    trace.write_text("job_id,num_gpu,submit_time,duration,share\na,1,0,10,0.5\nb,1,0,10,0.5\n")
    (found,) = json.loads(cli("simulate", trace, "--cluster", "1x1", "--json").out)
    assert (found["makespan"], found["utilisation"]) == (10, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "lifo"), "error: policy: 'lifo' is not one of fifo, sjf"),
        (("--discipline", "none"), "error: discipline: 'none' is not one of head, overtake, easy, conservative"),
        (
            ("--policy", "srtf", "--discipline", "easy"),
            "error: discipline: 'easy' holds reservations, which goes neither",
        ),
        (("--mtbf", "5"), "error: mttr: is not given; failures need both"),
        (("--mttr", "5"), "error: mtbf: is not given; failures need both"),
        (("--policy", "srtf", "--preempt-cost", "-1"), "error: preempt_cost: -1.0 is negative"),
        (("--degrees", "0"), "error: degrees[0]: 0 is not positive"),
        (("--rounds", "360", "--preempt-cost", "5"), "error: rounds: of leases know no preempt_cost"),
        (("--policy", "online", "--preempt"), "error: preempt: is decided by the policy itself"),
        (("--policy", "online", "--consolidate"), "error: consolidate: is decided by the policy itself"),
        (("--policy", "online", "--discipline", "overtake"), "error: discipline: is decided by the policy itself"),
        (("--policy", "fifo", "--policy", "fifo"), "error: policy: 'fifo' is given 2 times"),
        (("--cluster", "1x2"), "error: cluster: '1x2' is given 2 times"),
        (("--preempt", "--no-preempt"), "error: --preempt: is given 2 times, and only one counts"),
        (("--degrees", "1,2"), "error: degrees: are chosen by none of the policies"),
        (("--policy", "optimus", "--overhead", "0.2"), "error: overhead: changes nothing without --degrees"),
        (("--checkpoint-interval", "5"), "error: checkpoint_interval: changes nothing without --mtbf and --mttr"),
        (("--preempt-cost", "5"), "error: preempt_cost: changes nothing without a policy that stops jobs"),
        (("--seed", "3"), "error: seed: changes nothing here"),
        (("--like", "--seeds", "1,2", "--seed", "3"), "error: seed: changes nothing beside a list of --seeds"),
        (("--per-queue",), "error: per_queue: changes nothing: the jobs are all of one queue"),
        (("--lasts", "bert=5"), "error: lasts: 'bert' is no application of the trace"),
        (("--lasts", "bert=5,bert=6"), "error: lasts: 'bert=6' is there twice"),
        (("--node-cpu", "5"), "error: node_cpu: changes nothing: the trace says of no job what cores it needs"),
        (("--node-memory", "5"), "error: node_memory: changes nothing"),
        (("--panel", "load"), "error: panel: is of a picture: give --plot"),
        (("--columns", "id"), "error: columns: 'id' is not name=word"),
    ],
)
def test_bad_options(trace: Path, cli: Any, options: tuple[str, ...], words: str) -> None:
    """A wrong option is named with its value."""
    done = cli("simulate", trace, "--cluster", "1x2", *options)
    assert done.code == 2
    assert done.err.startswith(words)


def test_options_that_one_of_the_policies_hears(trace: Path, cli: Any) -> None:
    """What changes something for one of the policies is taken, as it is."""
    base = ("simulate", trace, "--cluster", "1x2", "--json", "--policy", "online", "--policy")
    assert cli(*base, "fifo", "--preempt", "--consolidate", "--preempt-cost", "1").code == 0
    assert cli(*base, "optimus", "--degrees", "1,2", "--overhead", "0.2").code == 0


def test_jobs_larger_than_the_cluster(trace: Path, cli: Any) -> None:
    """A job that never fits is left out, counted and named, by GPUs, cores and memory, in rounds too."""
    trace.write_text("job_id,num_gpu,submit_time,duration,cpu,memory\na,9,0,9,9,9\nb,4,0,9,40,1\nc,2,5,7,2,8e9\n")
    for options, left_out, first in (
        (("--cluster", "2x2"), 1, "a with 9 GPUs"),
        (("--cluster", "1x3"), 2, "a with 9 GPUs"),
        (("--cluster", "3x3", "--node-cpu", "12"), 1, "b with 4 GPUs"),
        (("--cluster", "3x3", "--node-memory", "4.5e9"), 0, ""),
        (("--cluster", "3x3", "--node-memory", "4.5e9", "--consolidate"), 0, ""),
        (("--cluster", "3x3", "--node-memory", "3.5e9", "--consolidate"), 1, "c with 2 GPUs"),
        (("--rounds", "60", "--cluster", "5xV100+9xK80", "--speeds", "v100=1,k80=0"), 1, "a with 9 GPUs"),
    ):
        done = cli("simulate", trace, *options)
        assert (f"{left_out} jobs that the cluster is too small for" in done.out) == bool(left_out)
        assert first in " ".join(done.out.split())
        (found,) = json.loads(cli("simulate", trace, *options, "--json").out)
        assert (found["jobs"], sum(found.get("left_out", {}).values())) == (3 - left_out, left_out)
    done = cli("simulate", trace, "--cluster", "1x1")
    assert (done.code, done.err) == (2, "error: gpus[0]: job a needs 9, the cluster has 1\n")


def test_columns_by_other_names(trace: Path, cli: Any) -> None:
    """Times on a clock of another origin count from the first submission, in columns of other names."""
    trace.write_text("job;n;t;s\na;2;1791000000;60\nb;2;1791000010;60\n")
    names = ("--columns", "id=job,gpus=n,submit=t,duration=s")
    (found,) = json.loads(cli("simulate", trace, "--cluster", "1x2", *names, "--json").out)
    assert (found["makespan"], found["mean_wait"]) == (120, 25)
    rounds = ("--rounds", "60", "--cluster", "2xV100")
    (found,) = json.loads(cli("simulate", trace, *rounds, "--speeds", "v100=1", *names, "--json").out)
    assert found["makespan"] == 120
    done = cli("simulate", trace, *rounds, "--speeds", "v100=1,k8=3", *names)
    assert (done.code, "speeds: 'k8' is not one of v100" in done.err) == (2, True)


@pytest.mark.parametrize("cluster", ["2", "0x8", "2x", "axb", "2x2x2x2"])
def test_bad_cluster(trace: Path, cli: Any, cluster: str) -> None:
    """A cluster is nodes x GPUs."""
    done = cli("simulate", trace, "--cluster", cluster)
    assert (done.code, done.err) == (2, f"error: cluster: {cluster!r} is not nodes x GPUs, like 20x8\n")


@pytest.mark.parametrize("cluster", ["0x2x4", "2x0x4", "2x2x", "axbxc", "x2x2", "2x2x1.5", "-1x2x2"])
def test_bad_racks(trace: Path, cli: Any, cluster: str) -> None:
    """With racks it is racks x nodes x GPUs."""
    done = cli("simulate", trace, f"--cluster={cluster}")
    assert (done.code, done.err) == (2, f"error: cluster: {cluster!r} is not racks x nodes x GPUs, like 4x8x8\n")


def test_racks(trace: Path, cli: Any) -> None:
    """Gangs that are apart are slower: in a rack a quarter, between racks a half; `patient` waits for a node."""
    trace.write_text("job_id,num_gpu,submit_time,duration\na,3,0,100\nb,3,0,100\nc,2,1,10\nd,2,2,30\n")
    asked = [x for name in ("fifo", "patient", "gnn") for x in ("--policy", name)]
    for cluster, fifo, patient in (
        # a and b take 105 s; c on the two GPUs that are left 12.5 and d after it 37.5, JCTs of 12.5 and 49,
        # or both wait for a node: 10.25 and 30.75 from 105 on
        ("1x2x4", (105 + 105 + 12.5 + 49) / 4, (105 + 105 + 114.25 + 133.75) / 4),
        ("2x1x4", (105 + 105 + 15 + 59) / 4, (105 + 105 + 114.25 + 133.75) / 4),
        ("2x2x4", (105 + 105 + 10.25 + 30.75) / 4, (105 + 105 + 10.25 + 30.75) / 4),  # there are nodes enough
    ):
        done = cli("simulate", trace, "--cluster", cluster, *asked, "--json")
        assert done.code == 0, done.err
        rows = json.loads(done.out)
        assert [row["policy"] for row in rows] == ["fifo", "patient", "gnn"]
        assert [row["mean_jct"] for row in rows[:2]] == [pytest.approx(fifo), pytest.approx(patient)]
        assert 62.75 <= rows[2]["mean_jct"] <= 114.5 * (1 + 1e-9)  # every job at once on close GPUs; who waits most


def test_racks_are_told(trace: Path, cli: Any) -> None:
    """The facts above the table name nodes and racks; a job that only all racks hold is left in."""
    trace.write_text(ROWS + "d,16,3,1\ne,17,4,1\n")
    done = cli("simulate", trace, "--cluster", "2x2x4", "--policy", "patient", "--policy", "gnn")
    assert done.code == 0, done.err
    assert "4 nodes of 4 GPUs, 2 racks, close GPUs are faster" in done.out
    assert "1 jobs that the cluster is too small for, the first e with 17 GPUs" in done.out
    assert "patient" in done.out and "gnn" in done.out


def test_generated_workloads(cli: Any, tmp_path: Path) -> None:
    """Jobs that arrive by a process, and jobs like those of a trace, are traces themselves."""
    made, like = tmp_path / "made.csv", tmp_path / "like.csv"
    done = cli("generate", "arrivals", "--jobs", "60", "--gpus", "1:1,4:1", "--out", made)
    assert (done.code, "60 jobs of 1 to 4 GPUs" in done.out) == (0, True)
    assert "40 jobs of 1 to 4 GPUs" in cli("generate", "like", made, "--jobs", "40", "--out", like).out
    for path, jobs in ((made, 60), (like, 40)):
        (found,) = json.loads(cli("simulate", path, "--cluster", "2x4", "--json").out)
        assert found["jobs"] == jobs
    done = cli("generate", "arrivals", "--process", "x")
    assert (done.code, "process: 'x' is not one of" in done.err) == (2, True)


def test_what_is_left_out(cli: Any, tmp_path: Path) -> None:
    """Rows that make no job are told, and durations that a trace lacks are asked for."""
    log = tmp_path / "log.swf"
    log.write_text("; a log\n1 0 0 5 2 0 0 2 0 0 1 0 0 0 0 0 0 0\n2 0 0 -1 2 0 0 2 0 0 5 0 0 0 0 0 0 0\n")
    assert "1 rows that never ran to an end" in cli("simulate", log, "--cluster", "1x2").out
    (found,) = json.loads(cli("simulate", log, "--cluster", "1x2", "--json").out)
    assert found["left_out"] == {"that never ran to an end": 1}
    pollux = tmp_path / "workload.csv"
    pollux.write_text("name,time,application,num_replicas,batch_size\na,0,ncf,2,64\n")
    done = cli("simulate", pollux, "--cluster", "1x2")
    assert (done.code, "application: 'ncf' has no duration" in done.err) == (2, True)
    (found,) = json.loads(cli("simulate", pollux, "--cluster", "1x2", "--lasts", "ncf=90", "--json").out)
    assert found["makespan"] == 90
    for wrong in ("ncf", "ncf=x", "ncf=-1"):
        assert cli("simulate", pollux, "--cluster", "1x2", "--lasts", wrong).code == 2


def test_seeds(trace: Path, cli: Any) -> None:
    """Means and margins over seeds, the same jobs for all policies; the differences are seed by seed."""
    asked = ("simulate", trace, "--cluster", "1x2", "--like", "--policy", "fifo", "--policy", "sjf")
    found = json.loads(cli(*asked, "--seeds", "3,5", "--json").out)
    alone = [json.loads(cli(*asked, "--seed", seed, "--json").out) for seed in ("3", "5")]
    fifo, sjf = ([runs[i]["mean_jct"] for runs in alone] for i in (0, 1))
    assert found[0]["seeds"] == [3, 5]
    assert found[1]["figures"]["mean_jct"]["values"] == sjf
    assert found[1]["figures"]["mean_jct"]["mean"] == pytest.approx(sum(sjf) / 2)
    assert found[1]["figures"]["mean_jct"]["difference"] == pytest.approx((sum(sjf) - sum(fifo)) / 2)
    shown = cli(*asked, "--seeds", "2").out
    assert "against fifo" in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    assert "seeds: change nothing here" in cli("simulate", trace, "--cluster", "1x2", "--seeds", "2").err
    assert cli(*asked, "--seeds", "0").code == 2


POLICY = """
class Last:
    def select(self, view, jobs):
        return -view.workload.submit[jobs]

class Wrong:
    def select(self, jobs):
        return jobs

class Breaks:
    def select(self, view, jobs):
        return 1 / 0

class Idle:
    pass
"""


def test_policy_of_a_file(trace: Path, cli: Any, tmp_path: Path) -> None:
    """A class of a file is a policy, and what is wrong with one is told in a line."""
    file = tmp_path / "mine.py"
    file.write_text(POLICY)
    base = ("simulate", trace, "--cluster", "1x2", "--policy")
    found = json.loads(cli(*base, f"{file}:Last", "--policy", "fifo", "--json").out)
    assert [one["policy"] for one in found] == ["Last", "fifo"]
    assert found[0]["mean_jct"] > 0
    for name, words in (
        (f"{file}:Wrong", "Wrong.select must take (view, jobs)"),
        (f"{file}:Breaks", "Breaks: ZeroDivisionError: division by zero"),
        (f"{file}:Idle", "Idle has none of the methods select, admit"),
        (f"{file}:Absent", "has no attribute 'Absent'"),
        ("none.py:X", "there is no file 'none.py'"),
    ):
        done = cli(*base, name)
        assert (done.code, words in done.err, "Traceback" in done.err) == (2, True, False)


def test_online_scheduler(trace: Path, cli: Any) -> None:
    """`gangplan.Scheduler` is a policy by the name of online."""
    (found,) = json.loads(cli("simulate", trace, "--cluster", "1x2", "--policy", "online", "--json").out)
    assert (found["jobs"], found["makespan"]) == (3, 15)  # c runs beside a, then b on both GPUs


def test_ctrl_c_keeps_what_is_done(trace: Path, cli: Any, tmp_path: Path) -> None:
    """The policies simulated before Ctrl-C are shown, and the exit code is that of an interruption."""
    file = tmp_path / "mine.py"
    file.write_text("class Stop:\n    def select(self, view, jobs):\n        raise KeyboardInterrupt\n")
    done = cli("simulate", trace, "--cluster", "1x2", "--policy", "fifo", "--policy", f"{file}:Stop")
    assert done.code == 130
    assert "interrupted" in done.out
    assert "fifo" in done.out
