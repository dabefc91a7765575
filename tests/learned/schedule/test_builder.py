"""The schedule policy: its schedules, its search, its labels, a small training, the method of the suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError, RampTopology, verify
from gangplan.instances.generators.families import make, unseen
from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.learned.policy import train_policy
from gangplan.learned.schedule import method
from gangplan.learned.schedule.build import Net
from gangplan.learned.schedule.builder import Builder, gumbel, no_net, plans
from gangplan.learned.schedule.examples import best_list, by_rollouts, by_solver, example_of, loss_of
from gangplan.learned.schedule.policy import Network, SchedulePolicy, compiled, network_of
from gangplan.learned.schedule.settings import Settings
from gangplan.solvers import Run
from gangplan.solvers.schedule.prepare import prepare

TINY = """policy = "schedule"
instances = 4
exact = 1
most = 10
imitation_updates = 2
rl_updates = 2
rl_instances = 3
rl_most = 12
validate_every = 1
validation = 2
"""
PROBLEMS = {
    "pool": moldable(14, 2, 4, seed=3),
    "nodes": moldable(14, 2, 8, seed=4, capacity="nodes", optional=0.3),
    "ramp": moldable(8, 2, 4, seed=5, capacity="ramp"),
    "deadlines": moldable(12, 2, 4, seed=6, fraction=3.0, optional=1.0),
    "makespan": moldable(12, 2, 4, 0.0, seed=7, goal="makespan"),
    "throughput": moldable(12, 2, 4, seed=8, goal="throughput"),
    "mean_jct": moldable(12, 2, 4, seed=9, goal="mean_jct"),
}


def loud(builder: Builder, seed: int = 0) -> Net:
    """Return an untrained network that has a say."""
    torch.manual_seed(seed)
    network = network_of(Settings())
    torch.nn.init.normal_(network.last.weight, std=1.0)
    return compiled(network, [builder.graph()])[0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_schedule_is_feasible_and_costs_what_is_said(name: str) -> None:
    """Whatever the scores, the verifier accepts each schedule and finds the same objective."""
    builder = Builder(prepare(PROBLEMS[name]))
    net = loud(builder)
    for cost, _ in zip(plans(builder, net), range(8), strict=False):
        verdict = verify(PROBLEMS[name], builder.plan())
        assert verdict.objective == pytest.approx(cost), verdict.violations
    noise = gumbel(builder.p.n, builder.most, 3.0, np.random.default_rng(0))
    cost = builder.build(net, noise)
    assert verify(PROBLEMS[name], builder.plan()).objective == pytest.approx(cost)


def test_without_a_network_the_base_is_built() -> None:
    """The network that says nothing leaves the base schedule as it is."""
    for problem in (PROBLEMS["pool"], PROBLEMS["nodes"], PROBLEMS["deadlines"]):
        builder = Builder(prepare(problem))
        assert builder.build(no_net()) == pytest.approx(builder.base.cost)


def test_a_short_heavy_job_goes_first() -> None:
    """Of two jobs for one GPU, that with more weight a second is first: 1 s of weight 9 before 9 s of weight 1."""
    jobs = (MoldableJob("long", (1,), (9.0,)), MoldableJob("short", (1,), (1.0,), weight=9.0))
    builder = Builder(prepare(ScheduleProblem(jobs, Pool(1))))
    assert builder.build(no_net()) == 9.0 * 1 + 10.0
    assert builder.start.tolist() == [1.0, 0.0]


def test_compiled_and_torch_rate_alike() -> None:
    """The compiled network gives the scores that torch does, the base's advantage included."""
    builder = Builder(prepare(PROBLEMS["nodes"]))
    graph = builder.graph()
    torch.manual_seed(0)
    network = network_of(Settings())
    torch.nn.init.normal_(network.last.weight, std=1.0)
    _, steps = builder.record(compiled(network, [graph])[0])
    which = np.flatnonzero(steps.count > 1)
    one = example_of(graph, steps, which.tolist(), [np.zeros(int(steps.count[t])) for t in which])
    from gangplan.learned.schedule.examples import rated

    with torch.no_grad():
        scores = rated(network, [one])[0].numpy()
    logged = np.concatenate([steps.score[t, : steps.count[t]] for t in which])
    assert np.abs(scores - logged).max() < 1e-4


def test_another_order_of_jobs_gives_the_same_schedule() -> None:
    """Names and order of the jobs make no difference to what a network builds."""
    problem = PROBLEMS["pool"]
    order = np.random.default_rng(0).permutation(len(problem.jobs))
    moved = ScheduleProblem(tuple(problem.jobs[i] for i in order), problem.capacity, problem.goal)
    first, second = Builder(prepare(problem)), Builder(prepare(moved))
    assert first.build(loud(first)) == pytest.approx(second.build(loud(second)))
    assert first.start[order] == pytest.approx(second.start)


def test_values_are_the_goals_of_following_a_candidate() -> None:
    """A candidate is worth what the schedule costs that takes it and goes on by the rollout's network."""
    builder = Builder(prepare(PROBLEMS["nodes"]))
    _, steps = builder.record(no_net())
    worth = builder.values(no_net(), steps, 2)
    assert len(worth) == steps.count[2] and worth[steps.pick[2]] == pytest.approx(builder.base.cost)
    c = int(np.argmax(worth))
    follow = np.concatenate([steps.taken()[:2], [[steps.jobs()[2, c], steps.cands[2, c, 1]]]])
    assert builder.build(no_net(), follow=follow) == pytest.approx(worth[c])


def test_on_the_best_way_the_next_step_has_no_regret() -> None:
    """Labels on the way to the optimum know that its steps are worth the optimum."""
    builder = Builder(prepare(PROBLEMS["pool"]))
    found = best_list(builder.p, 5.0)
    assert found is not None
    taken, cost = found
    assert builder.build(no_net(), follow=taken) == pytest.approx(cost) and cost <= builder.base.cost
    one = by_solver(builder, builder.graph(), no_net(), np.random.default_rng(0), states=14, seconds=5.0)
    assert one is not None
    for state in range(one.states):
        mine = one.state == state
        assert one.regret[mine].min() == 0 and (one.regret[mine] > 0).any()


def test_learning_lowers_the_expected_regret() -> None:
    """A few steps on one example lower its loss, of all labels and of one."""
    builder, rng = Builder(prepare(PROBLEMS["pool"])), np.random.default_rng(0)
    one = by_rollouts(builder, builder.graph(), no_net(), no_net(), rng, states=5)
    assert one is not None
    for single in (False, True):
        torch.manual_seed(0)
        network = network_of(Settings())
        torch.nn.init.normal_(network.last.weight, std=0.02)
        optimizer, losses = torch.optim.Adam(network.parameters(), 1e-2), []
        for _ in range(12):
            loss = loss_of(network, [one], one_label=single)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < 0.9 * losses[0]


def test_search_never_repeats_and_ends() -> None:
    """Of two jobs on one GPU there are few schedules; the search finds the best of them, and comes to its end."""
    jobs = (MoldableJob("a", (1,), (3.0,)), MoldableJob("b", (1,), (2.0,), release=1.0, weight=4.0))
    builder = Builder(prepare(ScheduleProblem(jobs, Pool(1))))
    costs = [cost for cost, _ in zip(plans(builder, loud(builder)), range(50), strict=False)]
    assert len(costs) <= 4 and min(costs) == 4 * 3.0 + 6.0  # b at 1, a after it


def test_training_from_end_to_end(tmp_path: Path) -> None:
    """A tiny configuration trains to weights that are read again and schedule alike; an unknown key is refused."""
    (tmp_path / "tiny.toml").write_text(TINY)
    done = train_policy(tmp_path / "tiny.toml", tmp_path / "out")
    assert [x.name for x in done.reports] == ["imitation", "rl1"] and done.weights is not None
    policy = SchedulePolicy.load(done.weights)
    p = prepare(PROBLEMS["pool"])
    again = SchedulePolicy.load(done.weights).schedule(p, 4)
    cost, plan = policy.schedule(p, 4)
    assert cost == again[0] and (plan.start == again[1].start).all()
    (tmp_path / "tiny.toml").write_text(TINY + "wide = 3\n")
    with pytest.raises(InstanceError, match="wide"):
        train_policy(tmp_path / "tiny.toml", tmp_path / "other")


def test_the_shipped_method_beats_the_lists_on_average() -> None:
    """On instances it never saw, the shipped policy's plans are better than the best of the lists on average."""
    shares = []
    for i in range(8):
        problem: Any = make("schedule", "moldable", 7_000_000 + i, 20)
        runs = {}
        for name, run_it in (("learned", method.learned), ("lists", None)):
            run = Run(problem, time_limit=20)
            p = prepare(problem)
            if run_it is None:
                from gangplan.solvers.schedule.lists import lists

                lists(run, p)
            else:
                run_it(run, p)
            runs[name] = run
        assert not runs["learned"].notes
        shares.append((runs["learned"].objective or 0) / (runs["lists"].objective or 1))
    assert np.mean(shares) < 0.995


def test_the_method_says_why_it_has_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without weights, with NaN among them, or without time it leaves a note and no plan."""
    from gangplan.learned.schedule import policy as module

    def missing() -> Any:
        raise InstanceError("file", "is missing")

    network = network_of(Settings())
    with torch.no_grad():
        network.by_job.bias.fill_(float("nan"))
    problem = PROBLEMS["pool"]
    for found in (missing, lambda: SchedulePolicy(network)):
        monkeypatch.setattr(module, "shipped", found)
        run = Run(problem, time_limit=10)
        method.learned(run, prepare(problem))
        assert run.plan is None and run.notes and run.notes[0].startswith("learned: ")
    run = Run(problem, time_limit=0)
    method.learned(run, prepare(problem))
    assert run.plan is None


def test_unseen_families_are_made_from_their_seed() -> None:
    """The same seed makes the same instance, another one another; all can be scheduled."""
    for family in ("bursts", "moldable, other ranges"):
        one, same, other = (unseen(family, seed, 12) for seed in (1, 1, 2))
        assert one.jobs == same.jobs != other.jobs
        assert np.isfinite(Builder(prepare(one)).build(no_net()))


def test_onnx_gives_the_same_network(tmp_path: Path) -> None:
    """The exported policy gives the vectors of torch to 1e-5, on other sizes than it was traced with."""
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from gangplan.learned.schedule.onnx import OnnxSchedulePolicy, export
    from gangplan.learned.schedule.policy import shipped

    (path,) = export(shipped(), tmp_path / "schedule")
    for problem in (PROBLEMS["nodes"], ScheduleProblem((MoldableJob("a", (1,), (2.0,)),), Pool(2))):
        builder = Builder(prepare(problem))
        mine, theirs = shipped().nets([builder])[0], OnnxSchedulePolicy(path).nets([builder])[0]
        for a, b in zip(mine, theirs, strict=True):
            assert a.shape == b.shape and np.abs(a - b).max(initial=0.0) <= 1e-5 * max(1.0, np.abs(a).max(initial=0.0))
        assert builder.build(mine) == pytest.approx(builder.build(theirs))


def test_settings_name_what_is_wrong() -> None:
    """A setting out of range is refused by its name."""
    for field, value in (("width", 0), ("imitation_rate", 0.0), ("share", 1.5), ("least", 2), ("rounds", -1)):
        with pytest.raises(InstanceError, match=field):
            Settings(**{field: value})  # type: ignore[arg-type]


def test_weights_are_small() -> None:
    """The weights that are shipped are under 2 MB and come with the settings of their card."""
    folder = Path(method.__file__).parent.parent / "weights"
    assert (folder / "schedule.safetensors").stat().st_size < 2_000_000
    assert json.loads((folder / "schedule.json").read_text())["settings"]["rounds"] == 2
    assert isinstance(SchedulePolicy.load(folder / "schedule").network, Network)
    assert isinstance(PROBLEMS["ramp"].capacity, RampTopology)
