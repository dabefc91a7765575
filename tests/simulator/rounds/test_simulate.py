"""Rounds of leases: by hand, against a plain simulator and plain LPs, and against Gavel's published figures."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.cli import main
from gangplan.instances import InstanceError
from gangplan.instances.readers.gavel import read_gavel_trace, read_throughputs
from gangplan.instances.workload import Workload
from gangplan.simulator.rounds import (
    ROUND_POLICIES,
    RoundJobs,
    RoundsCluster,
    check_rounds,
    finish_time_fairness,
    from_gavel,
    from_workload,
    parse_cluster,
    simulate_rounds,
    summary,
)
from gangplan.simulator.rounds.policies.shares import AllocationLP

GAVEL = Path(__file__).parents[4] / "shared" / "data" / "gavel"
MIXED = "8xV100+8xP100+8xK80"


def jobs(*rows: tuple[float, int, int, list[float]]) -> RoundJobs:
    """Build jobs of (submit, GPUs, steps, speed on each type)."""
    submit, gpus, steps, speed = zip(*rows, strict=True)
    names = tuple(f"j{i}" for i in range(len(rows)))
    return RoundJobs(names, list(gpus), list(steps), list(speed), np.ones(len(rows)), np.array(submit, float))


def random_jobs(seed: int, n: int = 12) -> RoundJobs:
    """Make jobs that queue, some of which do not run on some types."""
    rng = np.random.default_rng(seed)
    speed = rng.choice([0.0, 0.3, 1.0, 2.5, 7.0], size=(n, 3))
    speed[:, 0] = np.maximum(speed[:, 0], 0.7)
    submit = np.sort(rng.integers(0, 4000, n).astype(float))
    return RoundJobs(
        tuple(map(str, range(n))),
        rng.choice([1, 1, 2, 3], n),
        rng.integers(1, 4000, n),
        speed,
        rng.choice([1.0, 2.0], n),
        submit,
    )


class Plain:
    """The rules of the rounds, written to be read: sorted lists, one round after the other."""

    def __init__(self, work: RoundJobs, cluster: RoundsCluster, policy: str, seed: int) -> None:
        speed = np.where(work.gpus[:, None] <= np.array(cluster.count), work.speed, 0.0)
        self.work = replace(work, speed=speed)
        self.cluster = cluster
        self.policy = ROUND_POLICIES[policy](self.work, cluster, seed)
        self.random = random.Random(seed + 5)

    def run(self, length: float, gap: float) -> list[float]:
        """Return each job's finish."""
        w, n, k = self.work, self.work.n_jobs, len(self.cluster.types)
        left, finish = w.steps.tolist(), [np.nan] * n
        share, received, owed = np.zeros((n, k)), np.full((n, k), length / 2), np.zeros((n, k))
        known: set[int] = set()
        now, last, ended, stale, seen = 0.0, 0.0, 0.0, False, 0
        while any(left):
            arrived = [i for i in range(n) if w.submit[i] - w.submit[0] <= now]
            stale, seen = stale or len(arrived) > seen, len(arrived)
            active = [i for i in arrived if left[i]]
            if stale and (last == 0 or now - last >= gap):
                owed[active] += share[active] * (now - last) - (received[active] - length / 2)
                received[active] = length / 2
                share[active] = self.policy.shares(
                    np.array(active, int), np.array([left[i] for i in active]), now - (w.submit - w.submit[0])[active]
                )
                known, last, stale = known | set(active), now, False
            chosen = self.choose(active, share, received, owed, known)
            if not chosen:
                now, last = (float(w.submit[seen] - w.submit[0]), last) if seen < n else (now, 0.0)
                continue
            ends = []
            for i, j in chosen:
                steps = min(int(w.speed[i, j] * length), left[i])
                took = steps / w.speed[i, j]
                received[i, j] += now + took - ended
                left[i] -= steps
                ends.append(now + took)
                if not left[i]:
                    finish[i], stale = w.submit[0] + (now + took), True
            now = ended = max(ends)
        return finish

    def choose(self, active: list[int], share: Any, received: Any, owed: Any, known: set[int]) -> list[tuple[int, int]]:
        """Return (job, type) pairs."""
        order = list(range(len(self.cluster.types)))
        if not self.policy.in_order:
            self.random.shuffle(order)
        taken: set[int] = set()
        pairs = []
        for j in order:
            free = self.cluster.count[j]
            value = {i: share[i, j] / received[i, j] if self.work.speed[i, j] else 0.0 for i in active}
            for i in sorted(active, key=lambda i: (-value[i], -owed[i, j], -share[i, j], i)):
                runs = self.work.speed[i, j] > 0 and (value[i] > 0 or not self.policy.strict)
                if i not in taken and runs and self.work.gpus[i] <= free:
                    free -= self.work.gpus[i]
                    taken.add(i)
                    if i in known:
                        pairs.append((i, j))
        return pairs


@pytest.mark.parametrize("policy", ROUND_POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_plain_simulator(policy: str, seed: int) -> None:
    """The compiled mechanism gives every finish of the plain one, for every policy."""
    work, cluster = random_jobs(seed), RoundsCluster(("a", "b", "c"), (3, 2, 1))
    outcome = simulate_rounds(work, cluster, policy, length=60.0, gap=200.0, seed=seed)
    assert outcome.finish.tolist() == Plain(work, cluster, policy, seed).run(60.0, 200.0)
    assert check_rounds(outcome) == []


def test_a_job_alone_keeps_one_lease() -> None:
    """1,000 steps at one a second are rounds of 360, 360 and 280 s on the same GPU."""
    outcome = simulate_rounds(jobs((0.0, 1, 1000, [1.0])), RoundsCluster(("a",), (2,)))
    assert outcome.finish.tolist() == [1000.0]
    assert outcome.begins.tolist() == [0.0, 360.0, 720.0]
    assert outcome.row_steps.tolist() == [1000]
    assert outcome.row_gpu.tolist() == [0]


def test_only_whole_steps_are_made() -> None:
    """At a step in 100 s a round holds 3 and ends after 300 s: 7 steps take 300 + 300 + 100 s."""
    outcome = simulate_rounds(jobs((0.0, 1, 7, [0.01])), RoundsCluster(("a",), (1,)))
    assert outcome.begins.tolist() == [0.0, 300.0, 600.0]
    assert outcome.finish.tolist() == [700.0]


def test_equal_shares_take_turns() -> None:
    """On one GPU the first job runs rounds 1 and 3, the second, half as long, round 2."""
    outcome = simulate_rounds(
        jobs((0.0, 1, 720, [1.0]), (0.0, 1, 360, [1.0])), RoundsCluster(("a",), (1,)), "max_min_fairness"
    )
    assert outcome.finish.tolist() == [1080.0, 720.0]
    assert outcome.row_job.tolist() == [0, 1, 0]


def test_overhead_is_lost_at_each_new_lease() -> None:
    """With 60 s lost a lease of one round makes 300 steps; a lease that goes on loses nothing."""
    one = RoundsCluster(("a",), (1,))
    turns = simulate_rounds(jobs((0.0, 1, 400, [1.0]), (0.0, 1, 300, [1.0])), one, "max_min_fairness", overhead=60.0)
    assert turns.finish.tolist() == [720.0 + 160.0, 720.0]
    assert simulate_rounds(jobs((0.0, 1, 1000, [1.0])), one, overhead=60.0).finish.tolist() == [1060.0]


def test_an_arrival_waits_for_the_next_allocation() -> None:
    """The third job finds a free GPU at 720 s, but shares are due 1,920 s after those of 360 s: at 2,520 s."""
    work = jobs((0.0, 1, 5000, [1.0]), (100.0, 1, 100, [1.0]), (400.0, 1, 100, [1.0]))
    assert simulate_rounds(work, RoundsCluster(("a",), (2,))).finish.tolist() == [5000.0, 460.0, 2620.0]
    assert simulate_rounds(work, RoundsCluster(("a",), (2,)), gap=0.0).finish.tolist() == [5000.0, 460.0, 820.0]


def test_shares_of_the_first_moment_are_renewed_at_once() -> None:
    """An allocation at the start of the clock does not delay the next one: a job of 100 s is seen at 360 s."""
    work = jobs((0.0, 1, 5000, [1.0]), (0.0, 1, 100, [1.0]), (100.0, 1, 100, [1.0]))
    outcome = simulate_rounds(work, RoundsCluster(("a",), (2,)))
    assert outcome.finish.tolist() == [5000.0, 100.0, 460.0]
    assert outcome.allocations == 3  # at 0, at 360 and, as the third has ended, at 2,280 s


@pytest.mark.parametrize("policy", ROUND_POLICIES)
@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_an_idle_cluster_is_shared_out_too(policy: str, start: float) -> None:
    """At 3,000 s nobody is left to share with; who comes 100 s later waits until shares are due, with the next."""
    work = jobs(*[(start + at, 1, steps, [1.0]) for at, steps in ((0, 3000), (3100, 100), (5000, 100), (9000, 100))])
    outcome = simulate_rounds(work, RoundsCluster(("a",), (2,)), policy)
    assert (outcome.finish - start).tolist() == [3000.0, 5100.0, 5100.0, 9100.0]


@pytest.mark.parametrize("policy", ROUND_POLICIES)
def test_a_trace_in_unix_time_runs_as_one_from_zero(policy: str) -> None:
    """Moved by 1.7e9 s a trace has the same leases, in the same order on the same GPUs, and the same fairness."""
    work, cluster = random_jobs(3, 40), RoundsCluster(("a", "b", "c"), (3, 2, 1))
    work = replace(work, submit=work.submit - work.submit[0])
    here = simulate_rounds(work, cluster, policy, length=61.7)
    there = simulate_rounds(replace(work, submit=work.submit + 1.7e9), cluster, policy, length=61.7)
    for column in ("row_job", "row_node", "row_gpu", "row_steps"):
        assert getattr(there, column).tolist() == getattr(here, column).tolist()
    assert there.finish - 1.7e9 == pytest.approx(here.finish, abs=1e-6)
    assert finish_time_fairness(there) == pytest.approx(finish_time_fairness(here), rel=1e-6)


def test_the_check_is_as_strict_in_unix_time() -> None:
    """A lease one second too short for its steps is told, whenever the trace began."""
    good = simulate_rounds(jobs((1.7e9, 1, 720, [1.0])), RoundsCluster(("a",), (1,)))
    assert check_rounds(good) == []
    start = good.row_start + 1.0
    late = replace(
        good, row_start=start, start=start, begins=np.append(good.begins, start), row_rate=good.row_rate * 720 / 719
    )
    assert any("has time for" in w for w in check_rounds(late))


def test_fifo_perf_takes_the_fastest_and_blocks() -> None:
    """The first gets type b; the second needs two GPUs of a; the third fits nowhere before the second is done."""
    work = jobs((0.0, 1, 400, [1.0, 4.0]), (0.0, 2, 100, [1.0, 1.0]), (0.0, 1, 100, [1.0, 1.0]))
    outcome = simulate_rounds(work, RoundsCluster(("a", "b"), (2, 1)), "fifo_perf", gap=0.0)
    assert outcome.row_node.tolist() == [0, 0, 1, 0]  # a row for each GPU
    assert outcome.finish.tolist() == [100.0, 100.0, 200.0]


def test_fifo_random_keeps_gpus_busy_with_the_first() -> None:
    """Two GPUs of two types: the first two jobs hold one each, the third starts when one of them ends."""
    work = jobs(*[(0.0, 1, 360, [1.0, 1.0])] * 3)
    for seed in range(4):
        outcome = simulate_rounds(work, RoundsCluster(("a", "b"), (1, 1)), "fifo_random", gap=0.0, seed=seed)
        assert outcome.finish.tolist() == [360.0, 360.0, 720.0]


def test_makespan_is_near_the_bound_of_its_lp() -> None:
    """Two jobs that swap types would take 1,800 s each; apart, on their fastest, both end at 900 s."""
    work = jobs((0.0, 1, 3600, [4.0, 2.0]), (0.0, 1, 3600, [2.0, 4.0]))
    outcome = simulate_rounds(work, RoundsCluster(("a", "b"), (1, 1)), "min_total_duration")
    assert outcome.finish.tolist() == [900.0, 900.0]


def test_shares_are_optimal() -> None:
    """The least gain of the shares is what CBC finds for the same LP, and they keep every limit."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        m, k = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        gain, use = rng.uniform(0.1, 5.0, (m, k)), rng.integers(1, 5, m).astype(float)
        demand, room = rng.uniform(0.5, 2.0, m), rng.integers(1, 6, k).astype(float)
        x, t = AllocationLP().max_min(gain, demand, use, room)
        plain = pulp.LpProblem("shares", pulp.LpMaximize)
        share = [[pulp.LpVariable(f"x{i}_{j}", 0) for j in range(k)] for i in range(m)]
        best = pulp.LpVariable("t")
        plain += best
        for i in range(m):
            plain += pulp.lpSum(share[i]) <= 1
            plain += pulp.lpDot(gain[i].tolist(), share[i]) >= float(demand[i]) * best
        for j in range(k):
            plain += pulp.lpSum(float(use[i]) * share[i][j] for i in range(m)) <= float(room[j])
        plain.solve(pulp.PULP_CBC_CMD(msg=False))
        assert t == pytest.approx(best.value(), rel=1e-4)
        assert ((gain * x).sum(axis=1) / demand).min() == pytest.approx(best.value(), rel=1e-4)
        assert (x.sum(axis=1) <= 1 + 1e-5).all()
        assert (use @ x <= room + 1e-4).all()


def test_finish_time_fairness_is_at_least_as_fair_as_equal_parts() -> None:
    """New jobs have a worst rho of at most 1, that of an equal part of everything, by the policy's own shares."""
    work = replace(random_jobs(1), submit=np.zeros(12))
    cluster = RoundsCluster(("a", "b", "c"), (3, 2, 1))
    fitting = replace(work, speed=np.where(work.gpus[:, None] <= np.array(cluster.count), work.speed, 0.0))
    x = ROUND_POLICIES["finish_time_fairness"](fitting, cluster, 0).shares(np.arange(12), work.steps, np.zeros(12))
    part = np.array(cluster.count) / 12 / work.gpus[:, None]
    part /= np.maximum(1.0, part.sum(axis=1))[:, None]
    rho = (part * fitting.speed).sum(axis=1) / (x * fitting.speed).sum(axis=1)
    assert rho.max() <= 1.001


@pytest.mark.parametrize("seed", range(5))
def test_finish_time_fairness_is_least(seed: int) -> None:
    """The worst rho of the shares is met, and a hundredth less asks for speeds that no shares give."""
    rng = np.random.default_rng(seed)
    work, room = replace(random_jobs(seed), gpus=np.ones(12, dtype=np.int32)), np.array([3.0, 2.0, 1.0])
    left, age = work.steps // 2 + 1, rng.uniform(0.0, 5000.0, 12)
    policy = ROUND_POLICIES["finish_time_fairness"](work, RoundsCluster(("a", "b", "c"), (3, 2, 1)), 0)
    policy.shares(np.arange(12), work.steps, np.zeros(12))
    x = policy.shares(np.arange(12), left, age)
    rate = (work.speed * (room / 12)).sum(axis=1)
    alone = work.steps / rate  # the steps that are done would have taken their time too
    worst = float(((age + left / (work.speed * x).sum(axis=1)) / alone).max())
    best = 0.99 * worst + 0.01 * float((age / alone).max())
    _, t = AllocationLP().max_min(work.speed, left / (best * alone - age), np.ones(12), room)
    assert worst <= 1.001 * ((age + left / rate) / alone).max()
    assert t < 1.0


def test_rho_counts_who_was_there() -> None:
    """Alone on the cluster rho is 1; of two that take turns on one GPU, the one that ends first has 720 / (2 * 360)."""
    one = RoundsCluster(("a",), (1,))
    alone = simulate_rounds(jobs((5.0, 1, 1000, [1.0])), one)
    assert finish_time_fairness(alone).tolist() == pytest.approx([1.0])
    turns = simulate_rounds(jobs((0.0, 1, 720, [1.0]), (0.0, 1, 360, [1.0])), one, "max_min_fairness")
    # the first sees two jobs for 720 of its 1,080 s: 5/3 on average, so 720 steps would take 1,200 s
    assert finish_time_fairness(turns).tolist() == pytest.approx([1080 / 1200, 1.0])


def test_metrics() -> None:
    """Two GPUs, 1,080 GPU seconds of work, 720 s: three quarters busy."""
    figures = summary(simulate_rounds(jobs((0.0, 1, 720, [1.0]), (0.0, 1, 360, [1.0])), RoundsCluster(("a",), (2,))))
    assert (figures.mean_jct, figures.makespan, figures.utilisation) == (540.0, 720.0, 0.75)
    assert figures.interruptions == 0


def test_the_check_sees_what_is_wrong() -> None:
    """Each kind of impossible lease is told."""
    work = jobs((0.0, 1, 720, [1.0, 1.0]), (0.0, 1, 360, [1.0, 1.0]))
    good = simulate_rounds(work, RoundsCluster(("a", "b"), (1, 1)))
    assert check_rounds(good) == []
    fewer, start = good.row_steps.copy(), good.row_start.copy()
    fewer[0] -= 1
    assert any("of 720 steps" in w or "of 360 steps" in w for w in check_rounds(replace(good, row_steps=fewer)))
    same = np.zeros_like(good.row_node)
    assert any("node 0 GPU 0 holds 2" in w or "GPU 0 holds 2" in w for w in check_rounds(replace(good, row_node=same)))
    assert any("does not have" in w for w in check_rounds(replace(good, row_gpu=good.row_gpu + 1)))
    assert any("does not end when" in w for w in check_rounds(replace(good, finish=good.finish + 1)))
    start[0] += 7.0
    rate = good.row_rate * (good.row_end - good.row_start) / (good.row_end - start)
    late = replace(good, row_start=start, row_rate=rate, start=start[np.argsort(good.row_job)])
    assert any("within a round" in w for w in check_rounds(late))
    assert any("has time for" in w for w in check_rounds(late))
    early = replace(good, workload=replace(good.workload, submit=np.array([1.0, 1.0])))
    assert any("before it is submitted" in w for w in check_rounds(early))


def test_same_seed_same_leases() -> None:
    """The whole trajectory repeats, and another seed gives another."""
    work, cluster = random_jobs(2, 20), RoundsCluster(("a", "b", "c"), (3, 2, 1))
    runs = [simulate_rounds(work, cluster, "max_min_fairness", seed=seed) for seed in (4, 4, 5)]
    assert runs[0].row_gpu.tolist() == runs[1].row_gpu.tolist()
    assert runs[0].row_start.tolist() == runs[1].row_start.tolist()
    assert runs[0].row_start.tolist() != runs[2].row_start.tolist()


def test_a_plain_workload_has_milliseconds_for_steps() -> None:
    """A job of 0.9 s on a type three times as fast takes 0.3 s."""
    work = Workload(("x",), np.zeros(1), [1], np.array([0.9]))
    cluster = parse_cluster("1xFast")
    found = from_workload(work, {"fast": 3.0}, cluster)
    assert simulate_rounds(found, cluster).finish.tolist() == pytest.approx([0.3])
    with pytest.raises(InstanceError, match=r"speeds.fast: None is not"):
        from_workload(work, {}, cluster)


def test_bad_arguments_are_named() -> None:
    """What cannot be run is refused, with the field and the value."""
    work, one = jobs((0.0, 3, 10, [1.0])), RoundsCluster(("a",), (2,))
    with pytest.raises(InstanceError, match=r"job j0: has no place: 3 GPUs"):
        simulate_rounds(work, one)
    with pytest.raises(InstanceError, match=r"policy: 'best' is not one of fifo"):
        simulate_rounds(work, one, "best")
    with pytest.raises(InstanceError, match=r"overhead: 400.0 is not below"):
        simulate_rounds(work, one, overhead=400.0)
    with pytest.raises(InstanceError, match=r"cluster: '0xK80' of 'V100\+0xK80' is not|'V100' of"):
        parse_cluster("V100+0xK80")
    with pytest.raises(InstanceError, match=r"types\[1\]: 'a' is a duplicate"):
        RoundsCluster(("a", "a"), (1, 1))
    with pytest.raises(InstanceError, match=r"steps\[0\]: 0 is not"):
        jobs((0.0, 1, 0, [1.0]))


LINE = "ResNet-18 (batch size 16)\tpython\tdir\t-n\t1\t1000\t2\t1.0\t-1.0\t5.5\n"
TABLE = {kind: {"('ResNet-18 (batch size 16)', 2)": {"null": 10.0}} for kind in ("v100", "v100_unconsolidated")}


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Gavel trace needs throughputs and a plain one speeds; JSON has an object a policy."""
    trace, table, plain = tmp_path / "x.trace", tmp_path / "t.json", tmp_path / "x.csv"
    trace.write_text(LINE, encoding="utf-8")
    table.write_text(json.dumps(TABLE), encoding="utf-8")
    plain.write_text("job_id,num_gpu,submit_time,duration\na,1,0,60\n", encoding="utf-8")
    rounds = ["--cluster", "2xV100", "--rounds", "360", "--policy", "fifo_perf"]
    assert main(["simulate", str(trace), *rounds, "--policy", "fifo", "--throughputs", str(table), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["policy"], one["mean_jct"], one["makespan"]) for one in found] == [
        ("fifo_perf", 100.0, 105.5),
        ("fifo", 100.0, 105.5),
    ]
    assert main(["simulate", str(plain), *rounds, "--speeds", "v100=2"]) == 0
    assert "fifo_perf" in (shown := capsys.readouterr().out) and " 30 " in shown
    for path, options, words in (
        (trace, [], "Gavel's, it needs a table"),
        (plain, [], "names no models"),
        (trace, ["--throughputs", str(table), "--speeds", "v100=1"], "throughputs: are for Gavel's traces"),
        (plain, ["--speeds", "fast"], "speeds: 'fast' is not name=number"),
    ):
        assert main(["simulate", str(path), *rounds, *options]) == 2
        assert words in capsys.readouterr().err


def test_files_of_rounds(tmp_path: Path) -> None:
    """Rows of jobs and a picture are written as of any simulation."""
    plain, rows, picture = tmp_path / "x.csv", tmp_path / "rows.csv", tmp_path / "x.html"
    plain.write_text("job_id,num_gpu,submit_time,duration\na,1,0,60\nb,2,0,30\n", encoding="utf-8")
    line = ["simulate", str(plain), "--cluster", "2xV100+1xK80", "--speeds", "v100=1,k80=.5", "--rounds", "20"]
    assert main([*line, "--policy", "fifo_perf", "--out", str(rows), "--plot", str(picture)]) == 0
    lines = rows.read_text().splitlines()
    assert lines[0].startswith("policy,job_id,submit,start,finish,jct,wait,gpus")
    assert len(lines) == 3
    assert picture.stat().st_size > 1000


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`simulate --rounds` runs it, and what has no meaning in rounds, or only there, is refused."""
    plain = tmp_path / "x.csv"
    plain.write_text("job_id,num_gpu,submit_time,duration\na,1,0,60\nb,1,0,30\n", encoding="utf-8")
    line = ["simulate", str(plain), "--cluster", "1xV100", "--speeds", "v100=1"]
    assert main([*line, "--rounds", "20", "--policy", "fifo_perf", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # b is seen at the end of a's last round, but shares are due 1,920 s after the first
    assert (found[0]["rounds"], found[0]["makespan"]) == (5, 90.0)
    assert main([*line, "--rounds", "20", "--discipline", "easy"]) == 2
    assert main(line) == 2
    assert "mean something in --rounds only" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["fifo_random", "max_min_fairness_perf", "min_total_duration"])
@given(seed=st.integers(0, 10**6), overhead=st.sampled_from([0.0, 7.5]), per=st.integers(1, 3))
@settings(max_examples=15)
def test_laws(policy: str, seed: int, overhead: float, per: int) -> None:
    """Whatever the jobs: leases are possible, work takes its time, nobody beats the fastest type."""
    work, cluster = random_jobs(seed), RoundsCluster(("a", "b", "c"), (3, 2 * per, per))
    outcome = simulate_rounds(work, cluster, policy, length=40.0, gap=90.0, overhead=overhead, seed=seed)
    assert check_rounds(outcome) == []
    jct = outcome.finish - outcome.jobs.submit
    assert (jct >= outcome.jobs.steps / outcome.jobs.speed.max(axis=1) * (1 - 1e-9)).all()
    speed = outcome.jobs.speed[outcome.row_job, outcome.row_node]
    assert outcome.held == pytest.approx(outcome.row_steps / speed + overhead, rel=1e-9)
    idle = outcome.begins[1:][np.diff(outcome.begins) > 40.0 + 1e-6]
    assert np.isin(idle, outcome.jobs.submit).all()  # only an arrival ends a wait in which nobody runs
    figures = summary(outcome)
    assert 0 < figures.utilisation <= 1
    assert figures.goodput == pytest.approx(np.sum(outcome.row_steps / speed) / outcome.held.sum(), rel=1e-9)


@pytest.mark.skipif(not GAVEL.exists(), reason="the data are not here")
@pytest.mark.parametrize(
    ("trace", "policy", "jct", "makespan", "within"),
    [
        ("minimize_makespan", "fifo", 211550.984, 274227.734, 1e-8),
        ("minimize_makespan", "fifo_perf", 61207.488, 139037.923, 1e-8),
        ("minimize_makespan", "max_min_fairness", 59944.208, 131139.538, 0.01),
        ("minimize_makespan", "max_min_fairness_perf", 55093.912, 111905.352, 0.01),
        ("minimize_makespan", "finish_time_fairness", 60009.641, 111718.469, 0.01),
        ("max_min_fairness", "fifo_perf", 35664.283, 107816.050, 2e-8),
        ("max_min_fairness", "max_min_fairness", 27808.013, 98590.348, 0.01),
        ("max_min_fairness", "max_min_fairness_perf", 30405.755, 84351.567, 0.01),
        ("max_min_fairness", "finish_time_fairness", 30142.327, 84614.107, 0.01),
    ],
)
def test_gavels_figures(trace: str, policy: str, jct: float, makespan: float, within: float) -> None:
    """Gavel's rules give these for 100 jobs at once and 96 that arrive, LPs by ECOS; FIFO's come out to the digit."""
    cluster = parse_cluster(MIXED)
    work = from_gavel(
        read_gavel_trace(GAVEL / f"{trace}.trace"),
        read_throughputs(GAVEL / "simulation_throughputs.json"),
        cluster,
    )
    figures = summary(simulate_rounds(work, cluster, policy))
    assert figures.mean_jct == pytest.approx(jct, rel=within)
    assert figures.makespan == pytest.approx(makespan, rel=within)
