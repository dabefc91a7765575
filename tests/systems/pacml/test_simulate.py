"""Blocking on a RAMP cluster: published rates, hand cases, the check, the bound, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.pacml_suites import RAMP_POLICIES
from gangplan.cli import main
from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.readers import parse
from gangplan.simulator.ground import evaluate, values
from gangplan.systems.pacml.arrivals import DISTRIBUTIONS, ArrivalCase, Fractions, arrivals, interval
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.check import check
from gangplan.systems.pacml.ground import Pacml
from gangplan.systems.pacml.jobs import Blocks, JobType, read_types
from gangplan.systems.pacml.plans import clairvoyant, search
from gangplan.systems.pacml.simulate import REASONS, Acceptance, RampOutcome, RampState, simulate

PROFILE = """\
a -- Conv -- forward_compute_time=400.0, backward_compute_time=600.0, activation_size=3e8, parameter_size=1e8
"""
BASELINES = {
    "para-max": (0.2624, 0.2631, 0.2674, 0.2631),
    "para-min": (0.3087, 0.3956, 0.3074, 0.1419),
    "random": (0.5172, 0.6011, 0.5055, 0.4652),
    "constant-2": (0.4709, 0.9574, 0.5574, 0.1189),
    "constant-4": (0.2168, 0.4975, 0.1229, 0.1092),
    "constant-8": (0.2904, 0.3037, 0.2781, 0.2771),
}
"""Published blocking on A, B, C, D: the mean of three seeds."""
CONSTANTS = [f"constant-{d}" for d in (2, 4, 8, 16)]


@pytest.fixture(scope="module")
def small() -> JobType:
    """Return a job of 50 s on one of 32 servers: 50 steps of 1 s, and little to send."""
    return JobType.of(parse(PROFILE, keep_inputs=True).graph, name="small", blocks=Blocks(RampTopology()))


def test_another_number_of_steps(small: JobType) -> None:
    """A job made to last for fewer steps is one that was made for as many."""
    graph = parse(PROFILE, keep_inputs=True).graph
    less, made = small.lasting(7), JobType.of(graph, name="small", blocks=small.blocks, steps=7)
    free = np.ones(32, dtype=bool)
    assert less.sequential == pytest.approx(made.sequential)
    assert less.jct == pytest.approx(made.jct)
    for degree in range(len(small.blocks.degrees)):
        mine, theirs = less.published(degree, free), made.published(degree, free)
        assert mine is not None
        assert theirs is not None
        assert mine.jct == pytest.approx(theirs.jct)
    with pytest.raises(InstanceError, match="steps: 0"):
        small.lasting(0)


def case(kind: JobType, submit: list[float], fraction: list[float]) -> ArrivalCase:
    """Return jobs of one type."""
    return ArrivalCase(
        (kind,), np.array(submit), np.zeros(len(submit), dtype=np.int32), np.array(fraction), submit[-1] + 1
    )


class Fixed:
    """Decides as told, job by job."""

    def __init__(self, *choices: Acceptance | None) -> None:
        self.choices = choices

    def decide(self, state: RampState) -> Acceptance | None:
        """Return the next decision."""
        return self.choices[state.index]


def test_published_rates(data: Path) -> None:
    """Over five seeds every published baseline blocks within 1.5 points of what is published, on every distribution.

    The best constants are the degrees that the published policies always choose.
    """
    types, names = read_types(data / "pipedream", units="as-published"), [*BASELINES, "constant-16"]
    rates = {}
    for letter in "ABCD":
        ground = Pacml(types, letter, "as-published")
        runs = evaluate(ground, {name: ground.policy(name) for name in names}, range(5))
        rates |= {(name, letter): float(values(runs, name, "blocked_or_running").mean()) for name in names}
    for policy, published in BASELINES.items():
        ours = [rates[policy, letter] for letter in "ABCD"]
        assert ours == pytest.approx(published, abs=0.015), policy
    best = {d: min(CONSTANTS, key=lambda name: rates[name, d]) for d in "ABCD"}
    assert best == {"A": "constant-4", "B": "constant-16", "C": "constant-4", "D": "constant-2"}


def test_in_a_fresh_process(data: Path) -> None:
    """1,000 arrivals are simulated in a process that has loaded nothing else."""
    program = """
import sys
from gangplan.systems.pacml.arrivals import arrivals
from gangplan.systems.pacml.baselines import make_policy
from gangplan.systems.pacml.jobs import read_types
from gangplan.systems.pacml.simulate import simulate
outcome = simulate(arrivals(read_types(sys.argv[1], units="as-published"), "A", 0), make_policy("constant-4"))
print(outcome.blocked)
"""
    folder = str(data / "pipedream")
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    assert 0.1 < float(done.stdout) < 0.3


def test_one_after_the_other(small: JobType) -> None:
    """A job is rejected, finds its servers taken, is too late, or runs; servers are free at the instant a job ends."""
    jct = small.kept(0)
    assert jct == pytest.approx(50.0)
    block, pair = Acceptance(0, 0), Acceptance(1, int(small.blocks.first[1]) + 1)
    o = simulate(
        case(small, [0, 1, 2, 3, jct, jct], [1, 1, 1, 0.4, 1, 1]), Fixed(block, None, block, pair, block, block)
    )
    assert [REASONS[r] for r in o.reason] == ["accepted", "rejected", "no place", "too late", "accepted", "no place"]
    assert (o.row_job.tolist(), o.row_node.tolist()) == ([0, 4], [0, 0])
    assert o.finish[[0, 4]].tolist() == [jct, 2 * jct]
    assert o.blocked == pytest.approx(4 / 6)
    assert o.blocked_or_running == pytest.approx(5 / 6)
    assert check(o) == []


def test_a_decision_that_is_none(small: JobType) -> None:
    """A degree there is not, and a block of another degree, are told with the job."""
    with pytest.raises(InstanceError, match=r"decisions\[0\].degree: 6 is not the index"):
        simulate(case(small, [0], [1]), Fixed(Acceptance(6)))
    with pytest.raises(InstanceError, match=r"decisions\[0\].block: 0 is not a block of degree 2"):
        simulate(case(small, [0], [1]), Fixed(Acceptance(1, 0)))


@pytest.mark.parametrize("name", RAMP_POLICIES)
def test_every_policy(small: JobType, name: str) -> None:
    """Every policy gives outcomes that pass the check, and the same for the same seed."""
    blocked = [simulate(arrivals((small,), "A", 3, n=60, load=1.3), make_policy(name, 5)) for _ in range(2)]
    assert check(blocked[0]) == []
    assert blocked[0].row_node.tolist() == blocked[1].row_node.tolist()


def test_rules_of_the_baselines(small: JobType) -> None:
    """On an empty cluster each rule has the degree that its name says."""

    def degree(name: str, fraction: float, busy: int = 0) -> int:
        ends = np.where(np.arange(32) < busy, 9.0, -np.inf)
        state = RampState(case(small, [0], [fraction]), 0, fraction * small.sequential, ends, np.zeros(0, dtype=bool))
        choice = make_policy(name).decide(state)
        return 0 if choice is None else small.blocks.degrees[choice.degree]

    assert degree("para-max", 0.5) == 16
    assert degree("para-max", 0.5, busy=25) == 6
    assert [degree("para-min", beta) for beta in (1.0, 0.5, 0.26, 0.25, 0.2, 0.13, 0.1)] == [1, 2, 4, 4, 6, 8, 16]
    assert degree("constant-8", 1.0) == 8
    # in a rack two servers are exactly twice as fast as one, and four not four times
    assert [degree("smallest+first", beta) for beta in (1.0, 0.99, 0.5, 0.49, 0.01)] == [1, 2, 2, 4, 0]
    assert [degree("para-min+first", beta) for beta in (0.5, 0.25)] == [2, 0]
    assert [degree("from-4+best", beta) for beta in (1.0, 0.2)] == [4, 6]
    assert [degree("from-4+best", 1.0, busy=busy) for busy in (28, 29)] == [0, 0]
    assert [degree("about-4+best", 1.0, busy=busy) for busy in (30, 31, 32)] == [2, 1, 0]


def test_best_fit(small: JobType) -> None:
    """With five servers free, of which two make no larger block, a job of two takes those two."""
    blocks = small.blocks
    # a box of four at the corner, and a pair apart from it
    free = [0, 1, 8, 9, 30, 31]
    ends = np.where(np.isin(np.arange(32), free), -np.inf, 9.0)
    state = RampState(case(small, [0], [1]), 0, small.sequential, ends, np.zeros(0, dtype=bool))
    first, best = (make_policy(f"constant-2+{how}").decide(state) for how in ("first", "best"))
    assert first is not None and best is not None
    assert blocks.members(first.block).tolist() == [0, 8]
    assert blocks.members(best.block).tolist() == [30, 31]


@pytest.mark.parametrize("name", ["constant", "best+first", "constant-4+worst", "constant-x", "smallest", "constant-"])
def test_no_such_policy(name: str) -> None:
    """A name that is no policy's is told."""
    with pytest.raises(InstanceError, match="is not a rule, alone or with"):
        make_policy(name)


def spoilt(o: RampOutcome, **changes: Any) -> RampOutcome:
    """Return the outcome with entries of its arrays changed: field = (index, value)."""
    arrays = {}
    for field, (index, value) in changes.items():
        arrays[field] = getattr(o, field).copy()
        arrays[field][index] = value
    return replace(o, **arrays)


def moved(o: RampOutcome, job: int, start: float, finish: float) -> RampOutcome:
    """Return the outcome with a job at another time."""
    begin, end = o.start.copy(), o.finish.copy()
    begin[job], end[job] = start, finish
    seconds = np.subtract(end, begin, out=np.zeros(len(end)), where=o.admitted)
    times = {"row_start": begin[o.row_job], "row_end": end[o.row_job]}
    return replace(o, workload=replace(o.workload, duration=seconds), start=begin, finish=end, **times)


SPOILT: dict[str, tuple[Callable[[RampOutcome], RampOutcome], str]] = {
    "other servers": (lambda o: spoilt(o, row_node=(0, 31)), "no block of its degree"),
    "at once": (lambda o: spoilt(o, row_node=(4, o.row_node[0])), "holds 2 GPUs"),
    "late": (lambda o: moved(o, 0, 0.5, o.finish[0] + 0.5), "does not start when it arrives"),
    "too quick": (lambda o: moved(o, 0, 0.0, o.finish[0] - 1), "on its servers it would take"),
    "too slow": (lambda o: moved(o, 0, 0.0, 60.0), "longer than its user accepts"),
    "no rows": (lambda o: spoilt(o, row_job=(slice(4), 1)), "or did not run though"),
    "no reason": (lambda o: spoilt(o, reason=(0, 1)), "without a reason"),
    "no degree": (lambda o: spoilt(o, degree=(0, -1)), "or none though it ran"),
    "not first fit": (lambda o: spoilt(o, block=(0, -1)), "first fit would not give it"),
    "no server": (lambda o: spoilt(o, row_node=(0, 32)), "beyond the 32 there are"),
    "twice": (lambda o: spoilt(o, row_node=(0, o.row_node[1])), "holds 2 GPUs"),
    "another's": (lambda o: spoilt(o, row_job=(0, 1)), "it needs"),
    "times": (lambda o: spoilt(o, finish=(2, 9.0)), "ran though it was rejected"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_check_finds(small: JobType, how: str) -> None:
    """The check passes a right outcome and finds each way of spoiling it."""
    first = int(small.blocks.first[2])
    o = simulate(
        case(small, [0, 1, 2], [1, 1, 0.01]), Fixed(Acceptance(2, first + 1), Acceptance(2, first), Acceptance(0))
    )
    assert o.admitted.tolist() == [True, True, False]
    assert check(o) == []
    spoil, words = SPOILT[how]
    assert any(words in found for found in check(spoil(o))), check(spoil(o))


@pytest.mark.parametrize("letter", DISTRIBUTIONS)
def test_fractions(letter: str) -> None:
    """Betas have two decimals within [0.1, 1], the moments documented, and come again with the seed."""
    beta = DISTRIBUTIONS[letter].sample(50_000, np.random.default_rng(0))
    assert (beta == DISTRIBUTIONS[letter].sample(50_000, np.random.default_rng(0))).all()
    assert (beta >= 0.1).all() and (beta <= 1).all()
    np.testing.assert_allclose(beta * 100, np.round(beta * 100), atol=1e-9)
    mean, sd = {"A": (0.55, 0.26), "B": (0.279, 0.118), "C": (0.489, 0.110), "D": (0.714, 0.109)}[letter]
    assert (beta.mean(), beta.std()) == pytest.approx((mean, sd), abs=0.003)


def test_arrivals(small: JobType) -> None:
    """Jobs come evenly from 0 on, or at random with the same mean, at the load asked for."""
    gap = interval((small,))
    # the published: one job of 29.945 s each second on 32 servers
    assert gap == pytest.approx(50 / 29.945, rel=1e-4)
    assert interval((small,), 2.0) == gap / 2
    even = arrivals((small, replace(small, name="other")), "C", 0, n=100)
    assert even.submit.tolist() == pytest.approx((np.arange(100) * gap).tolist())
    assert np.bincount(even.model).tolist() == [50, 50]
    assert even.horizon == pytest.approx(100 * gap)
    random = arrivals((small,), "C", 0, n=2000, poisson=True)
    assert random.submit[0] == 0 and (np.diff(random.submit) >= 0).all()
    assert np.diff(random.submit).mean() == pytest.approx(gap, rel=0.1)
    assert np.diff(random.submit).std() == pytest.approx(gap, rel=0.1)


def test_published_interval(data: Path) -> None:
    """The five models on 32 servers arrive every 1000 published units, which are one second."""
    for units, wanted in (("as-published", 1000.0), ("physical", 1.0)):
        types = read_types(data / "pipedream", units=units)  # type: ignore[arg-type]
        assert interval(types) == wanted


def test_bad_cases(small: JobType) -> None:
    """What is wrong with a case is named."""
    with pytest.raises(InstanceError, match="distribution: 'E' is not one of A, B, C, D"):
        arrivals((small,), "E", 0)
    with pytest.raises(InstanceError, match="types: names no type"):
        arrivals((), "A", 0)
    with pytest.raises(InstanceError, match=r"submit\[1\]: 1.0 does not ascend"):
        case(small, [2, 1], [1, 1])
    with pytest.raises(InstanceError, match=r"fraction\[0\]: 0.0 is not a positive number"):
        case(small, [0], [0])
    with pytest.raises(InstanceError, match=r"types\[1\].units"):
        arrivals((small, replace(small, units="as-published")), "A", 0)
    with pytest.raises(InstanceError, match="leaves nearly nothing"):
        Fractions(0.0, 50.0, 0.1).sample(10, np.random.default_rng(0))


def test_clairvoyant_by_hand(small: JobType) -> None:
    """Two jobs of 16 servers fill the cluster; of three at a time one is blocked, and knowing it helps no one."""
    quick = float(small.jct[-1]) / small.sequential * 1.01
    three = clairvoyant(case(small, [0, 0.1, 0.2], [quick] * 3), time_limit=5)
    assert (three.lp, three.bound, three.outcome.blocked) == pytest.approx((1 / 3,) * 3)
    assert clairvoyant(case(small, [0], [0.01]), time_limit=0).bound == 1
    # the second would be done after the horizon
    late = clairvoyant(case(small, [0, 90], [1, 1]), time_limit=0, by_horizon=True)
    assert late.bound == pytest.approx(0.5)


def test_no_policy_passes_the_bound(small: JobType) -> None:
    """The bound is below what policies block, the plan found is a right outcome, and both are not far apart."""
    c = arrivals((small,), "A", 0, n=40, load=1.5)
    found = clairvoyant(c, time_limit=1)
    assert check(found.outcome) == []
    least = min(simulate(c, make_policy(name)).blocked for name in ("smallest+best", "constant-4", "from-8+best"))
    assert found.lp <= found.bound <= found.outcome.blocked < least


def test_search_sees_what_comes(small: JobType) -> None:
    """A long job that would keep the one server there is from two later ones is rejected."""
    one = JobType.of(small.graph, name="small", blocks=Blocks(RampTopology(1, 1, 1)))
    slow = replace(one, jct=2 * one.jct, sequential=2 * one.sequential)
    # the long one runs from 0 to 100, the others from 10 to 60 and from 65 to 115
    three = ArrivalCase((slow, one), np.array([0.0, 10, 65]), np.array([0, 1, 1]), np.ones(3), 66.0)
    found = search(three)
    assert (found.accepted, found.block.tolist()) == (2, [-1, 0, 0])
    assert search(three, by_horizon=True).accepted == 1


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a table a distribution, or JSON with the same figures."""
    (tmp_path / "small.txt").write_text(PROFILE)
    call = ["system", "pacml", "--profiles", str(tmp_path), "--models", "small", "--jobs", "50", "--seeds", "2"]
    call += ["--policy", "constant-4", "--policy", "smallest+best", "--distribution", "A,C"]
    assert main(call) == 0
    shown = capsys.readouterr().out
    assert main([*call, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["policies"]
    assert [(row["policy"], row["case"]) for row in rows] == [
        (policy, letter) for letter in "AC" for policy in ("constant-4", "smallest+best")
    ]
    for row in rows:
        assert f"{100 * row['blocked_or_running']['mean']:.3g} ±" in shown


def test_generated(capsys: pytest.CaptureFixture[str]) -> None:
    """Without profiles generated networks arrive, each of which gains by more servers."""
    call = ["system", "pacml", "--jobs", "60", "--seeds", "2", "--distribution", "A", "--policy", "constant-2"]
    assert main(call) == 0
    assert "60 jobs of 5 models" in capsys.readouterr().out
    assert all(min(kind.jct) < 0.6 * kind.sequential for kind in Pacml().types)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--profiles", "nowhere"], "profiles: 'nowhere' is not a folder"),
        (["--profiles", ".", "--units", "ms"], "units: 'ms' is not one of physical, as-published"),
        (["--profiles", ".", "--cluster", "4x4"], "cluster: '4x4' is not like 4x4x2"),
        (["--profiles", ".", "--distribution", "E"], "distribution: 'E' is not one of A, B, C, D"),
        (["--profiles", ".", "--seeds", "0"], "0 is not from 1 to 10000"),
        (["--profiles", ".", "--load", "-1"], "load: -1.0 is not from 0 to 100"),
        (["--profiles", ".", "--models", "x"], "models[0]: 'x' has no profile"),
        (["--models", "x"], "models[0]: 'x' is not one of bert, gpt, "),
    ],
)
def test_command_refuses(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input ends with code 2 and one line that names it."""
    assert main(["system", "pacml", *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
