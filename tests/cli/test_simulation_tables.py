"""Rows of `gangplan simulate` side by side, and what users, queues and sizes got."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SACCT = """JobID|User|JobName|Partition|Priority|Timelimit|Submit|Elapsed|State|AllocTRES
1|ann|train|gpu|10|1-00:00:00|2026-01-05T08:00:00|10:00:00|COMPLETED|gres/gpu=8
2|bob|eval|gpu|20|02:00:00|2026-01-05T08:30:00|00:40:00|COMPLETED|gres/gpu=2
3|ann|train|gpu|10|1-00:00:00|2026-01-05T09:00:00|11:00:00|COMPLETED|gres/gpu=8
4|eve|sweep|big|30|04:00:00|2026-01-05T09:10:00|03:00:00|COMPLETED|gres/gpu=16
5|bob|eval|gpu|20|02:00:00|2026-01-05T09:20:00|00:30:00|COMPLETED|gres/gpu=1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return the file of five jobs of three users."""
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    return path


def test_one_table(trace: Path, cli: Any) -> None:
    """Clusters, disciplines, policies and prices make a row each; the best of each column has a star."""
    asked = ("simulate", trace, "--cluster", "2x8,3x8", "--policy", "fifo,srtf", "--policy", "heuristic")
    asked += ("--price", "0,600", "--discipline", "head", "--discipline", "easy")
    found = json.loads(cli(*asked, "--json").out)
    rows = [(one["cluster"], one["discipline"], one["policy"], one.get("price")) for one in found]
    each = [("head", "fifo", None), ("easy", "fifo", None), ("head", "srtf", None)]  # srtf holds no reservations
    each += [("its own", "heuristic", 0.0), ("its own", "heuristic", 600.0)]
    assert rows == [(cluster, *row) for cluster in ("2x8", "3x8") for row in each]
    shown = cli(*asked).out
    assert max(map(len, shown.splitlines()[1:])) <= 80
    best = min(one["mean_jct"] for one in found)
    (starred,) = {one["mean_jct"] for one in found if f"*{one['mean_jct'] / 3600:.4g}" in shown}
    assert starred == best
    assert "the best of its column" in shown


def test_groups(trace: Path, cli: Any) -> None:
    """Each user and size has its jobs, GPU-hours and their cost, and no line is wider than a page."""
    asked = ("simulate", trace, "--cluster", "2x8", "--by", "user,size", "--gpu-hour-price", "2.5")
    (found,) = json.loads(cli(*asked, "--json").out)
    users = {group["name"]: group for group in found["by"]["user"]}
    assert [*users] == ["ann", "eve", "bob"]  # 8 x 21 GPU-hours, 16 x 3, and 2 x 2/3 + 1/2
    assert (users["ann"]["jobs"], users["ann"]["gpu_hours"], users["ann"]["cost"]) == (2, 168.0, 420.0)
    assert sum(group["cost"] for group in found["by"]["size"]) == pytest.approx(found["cost"])
    assert found["cost"] + found["idle_cost"] == pytest.approx(2.5 * found["gpu_hours"] / found["utilisation"])
    shown = cli(*asked).out
    assert "by user" in shown and "by size" in shown and "9-16 GPUs" in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80


def test_many_users_share_a_line(tmp_path: Path, cli: Any) -> None:
    """Beyond twenty users those with fewest GPU-hours are one line."""
    path = tmp_path / "jobs.csv"
    rows = "".join(f"{i},1,0,{100 - i},u{i}\n" for i in range(30))
    path.write_text(f"job_id,num_gpu,submit_time,duration,user\n{rows}")
    shown = cli("simulate", path, "--cluster", "4x8", "--by", "user").out
    assert "10 others" in shown and "u19 " in shown and "u20 " not in shown
    (found,) = json.loads(cli("simulate", path, "--cluster", "4x8", "--by", "user", "--json").out)
    assert len(found["by"]["user"]) == 30


def test_priorities_and_limits(trace: Path, cli: Any) -> None:
    """Eve's priority is the highest and bob's the next; by limits 5 is thought to be done before 4 can start."""
    base = ("simulate", trace, "--cluster", "2x8", "--by", "user", "--json")
    plain, first = (
        {group["name"]: group["mean_wait"] for group in json.loads(cli(*base, *more).out)[0]["by"]["user"]}
        for more in ((), ("--priorities",))
    )
    # first in first out: 3 waits until 9:10 for the GPUs of 2, 4 until 20:10, 5 as long and three hours more
    assert plain == {"ann": 300.0, "eve": 39600.0, "bob": pytest.approx((0 + 50400 - 600) / 2)}
    # at 9:10 eve goes before 3, and all wait for 1; then bob and ann
    assert first == {"ann": pytest.approx(43200 / 2), "eve": 31800.0, "bob": pytest.approx(42000 / 2)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "team"), "by: 'team' is not one of user, queue, size"),
        (("--by", "user", "--by", "user"), "by: 'user' is given 2 times"),
        (("--price", "600"), "price: changes nothing without a policy of online, hybrid, heuristic, patient, evolved"),
        (("--price", "-1", "--policy", "online"), "price: -1.0 is negative"),
        (("--price", "5,5", "--policy", "online"), "price: '5,5' has one twice"),
        (("--gpu-hour-price", "-2"), "gpu_hour_price: -2.0 is negative"),
        (("--epoch", "2026-01-05"), "epoch: is of pictures: give --plot or --html"),
        (("--plot", "x.svg", "--epoch", "yesterday"), "epoch: 'yesterday' is no time like 2026-01-05T00:00"),
        (("--estimates", "guess"), "estimates: 'guess' is not one of known, limits, none"),
        (("--estimates", "none", "--policy", "sjf"), "estimates: 'none' are told, and sjf needs to know durations"),
        (("--policy", "fifo,srtf", "--discipline", "easy"), "discipline: 'easy' holds reservations, which srtf does"),
        (("--html", "page.txt"), "page.txt: html: '.txt' is not .html"),
        (("--like", "--priorities"), "like: draws jobs that have neither priorities nor limits"),
        (("--like", "--by", "user"), "by: 'user': the trace says of no job what user it is of"),
        (("--like", "--seeds", "2", "--by", "size"), "by: is of one seed: leave --seeds out"),
        (("--rounds", "60", "--cluster", "3x8", "--speeds", "v100=1"), "cluster: is one in rounds"),
    ],
)
def test_bad_options(trace: Path, cli: Any, options: tuple[str, ...], words: str) -> None:
    """A wrong option is named with its value."""
    done = cli("simulate", trace, "--cluster", "2x8", *options)
    assert (done.code, done.err.splitlines()[0][: len(words) + 7]) == (2, f"error: {words}")


def test_what_a_trace_does_not_have(tmp_path: Path, cli: Any) -> None:
    """Options about users, priorities and limits are refused where the trace has none."""
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,num_gpu,submit_time,duration\na,1,0,10\n")
    for options, words in (
        (("--by", "queue"), "by: 'queue': the trace says of no job what queue it is of"),
        (("--priorities",), "priorities: change nothing: the trace gives all jobs the same one, or none"),
        (("--estimates", "limits"), "estimates: 'limits' are told, but no job of the trace has a limit"),
    ):
        done = cli("simulate", path, "--cluster", "1x2", *options)
        assert (done.code, done.err) == (2, f"error: {words}\n")


def test_a_figure_that_the_first_policy_has_not(trace: Path, cli: Any) -> None:
    """Where the first policy lacks a figure the others have no difference from it."""
    asked = ("simulate", trace, "--cluster", "2x8", "--policy", "fifo,srtf", "--like", "--seeds", "2", "--json")
    first, second = json.loads(cli(*asked).out)
    assert "fragmentation" not in first["figures"]
    assert second["figures"]["fragmentation"]["difference"] is None
    assert second["figures"]["mean_jct"]["difference"] is not None
