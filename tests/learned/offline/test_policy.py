"""The method `gnn`: the contract of a method, the rule where nothing was learned, and weights that are broken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gangplan
from gangplan.cli import main
from gangplan.hybrid.table import own
from gangplan.instances import InstanceError, dump, verify
from gangplan.learned.graph.compiled import score
from gangplan.learned.offline.policy import OfflinePolicy
from gangplan.learned.training.offline.lessons import problem_of, task_of
from gangplan.solvers.check import check_solver
from gangplan.solvers.method import suite
from gangplan.solvers.run import Run

Weights = Callable[[str, float], Path]
OBJECTIVES = {"throughput": 40, "placement": 16}
"""Problems with the size of a small one."""


def played(objective: str, problem: object) -> Run:
    """Return the run of `gnn` on a problem, in this process."""
    run = Run(problem, time_limit=60)  # type: ignore[arg-type]
    own(objective)["gnn"].run(run, suite(objective).prepare(run))
    return run


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_contract(objective: str, weights: Weights) -> None:
    """Its plans are verified, none is below the optimum, one seed gives one trace, and it stops when told."""
    weights(objective, 1.0)
    check_solver(own(objective)["gnn"], objective)


def test_no_scores_are_the_rule(weights: Weights) -> None:
    """Scores of 0 give PipeDream's plan, with single groups moved; those of a network give no worse a plan."""
    compared = 0
    for index in range(8):
        problem = problem_of("throughput", "train", index, 60)
        other = Run(problem, time_limit=60)
        prepared = suite("throughput").prepare(other)
        decoder = task_of("throughput").decoder(prepared)
        suite("throughput").methods["pipedream"].run(other, prepared)
        plan = None if decoder is None else decoder.decode(0)
        if plan is None:
            assert other.objective is None
            continue
        assert other.objective is not None and plan.value <= other.objective * (1 + 1e-9)
        weights("throughput", 1.0)
        best = played("throughput", problem).objective
        assert best is not None and best <= plan.value * (1 + 1e-9)
        compared += 1
    assert compared > 4


def test_names_of_devices_change_nothing(weights: Weights) -> None:
    """With its devices in another order a problem has the same scores, and plans that are as good."""
    policy = OfflinePolicy.load(task_of("throughput"), weights("throughput", 1.0))
    for index in range(4):
        problem = problem_of("throughput", "train", index, 60)
        cluster = problem.cluster
        kinds = (*cluster.device_types, replace(cluster.device_types[0], name="slower"))
        time = np.concatenate([problem.graph.time, 2 * problem.graph.time])
        number = np.arange(cluster.n_devices, dtype=np.int32) % 2
        found = []
        for flipped in (number, number[::-1].copy()):
            made = replace(
                problem,
                graph=replace(problem.graph, device_types=tuple(kind.name for kind in kinds), time=time),
                cluster=replace(cluster, device_types=kinds, type_of=flipped),
            )
            prepared = suite("throughput").prepare(Run(made, time_limit=60))
            scores = score(policy.task.graph(prepared), policy.network)
            decoder = policy.task.decoder(prepared)
            assert decoder is not None
            plans = [decoder.decode(x) for x in (0, scores)]
            found.append((scores, [None if x is None else x.value for x in plans]))
        assert scores.any()
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-6)
        assert found[0][1] == pytest.approx(found[1][1])


def cut(path: Path) -> None:
    """Cut the file off."""
    path.write_bytes(path.read_bytes()[:-100])


def nan(path: Path) -> None:
    """Write a number that is none."""
    content = bytearray(path.read_bytes())
    content[-4:] = np.float32("nan").tobytes()
    path.write_bytes(bytes(content))


def of_another(path: Path) -> None:
    """Have the card name another policy."""
    card = path.with_suffix(".json")
    card.write_text(card.read_text().replace("offline-", "other-"))


def wider(path: Path) -> None:
    """Have the card say another width."""
    card = path.with_suffix(".json")
    content = json.loads(card.read_text())
    content["settings"]["width"] = 16
    card.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (Path.unlink, "weights: are missing"),
        (cut, "tensors: are broken or cut off"),
        (nan, "holds a number that is not finite"),
        (of_another, "policy: 'other-throughput' is not offline-throughput"),
        (wider, "has shape"),
    ],
)
def test_broken_weights(
    spoil: Callable[[Path], None],
    words: str,
    weights: Weights,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Weights that are missing, cut off, not finite or of another policy are an error that names the file."""
    path = weights("throughput", 1.0)
    spoil(path)
    problem = problem_of("throughput", "train", 0, 20)
    with pytest.raises(InstanceError, match=words.replace("(", r"\(")) as error:
        played("throughput", problem)
    assert error.value.source == str(path) or error.value.source == str(path.with_suffix(".json"))
    capsys.readouterr()
    monkeypatch.setattr("gangplan.hybrid.portfolio.can_serve", lambda: False)  # another process looks elsewhere
    (tmp_path / "problem").write_text(dump(problem))
    assert main(["solve", str(tmp_path / "problem"), "--method", "gnn", "--time-limit", "5", "--json"]) == 2
    told = capsys.readouterr().err
    assert words in told and "Traceback" not in told


def test_without_torch() -> None:
    """Neither the weights nor a plan by them needs torch."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from gangplan.hybrid.table import own\n"
        "from gangplan.learned.training.offline.lessons import problem_of\n"
        "from gangplan.solvers.method import suite\n"
        "from gangplan.solvers.run import Run\n"
        "for name in ('throughput', 'placement'):\n"
        "    run = Run(problem_of(name, 'train', 1, 40), time_limit=60)\n"
        "    own(name)['gnn'].run(run, suite(name).prepare(run))\n"
        "    assert any(x.by == 'gnn' for x in run.trace)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_scores_of_items(objective: str, weights: Weights) -> None:
    """Without scores, or with such as are no numbers, the first plan is the classic one; seeds draw other scores."""
    policy = OfflinePolicy.load(task_of(objective), weights(objective, 0.0))
    problem = problem_of(objective, "train", 1, OBJECTIVES[objective])
    prepared = suite(objective).prepare(Run(problem, time_limit=60))
    decoder = policy.task.decoder(prepared)
    assert decoder is not None and (classic := decoder.decode(0)) is not None
    said = replace(policy, network=policy.network.replace(last=np.full_like(policy.network.last, np.inf)))
    for one in (policy, said):
        first, *others = one.choose(prepared, 1)
        plan = decoder.decode(first)
        assert not first.any() and plan is not None and plan.value == classic.value
        assert len(others) == 15 and (others[0] != one.choose(prepared, 2)[1]).any()
        np.testing.assert_array_equal(others, one.choose(prepared, 1)[1:])
    assert verify(problem, decoder.plan(classic)).objective == pytest.approx(classic.value)


def test_numbers_of_gangs_change_nothing(weights: Weights) -> None:
    """With its gangs in another order a problem has the same scores, each its own."""
    objective = "placement"
    policy, found = OfflinePolicy.load(task_of(objective), weights(objective, 1.0)), []
    problem = problem_of(objective, "train", 4, OBJECTIVES[objective])
    count = len(problem.jobs)
    for order in (np.arange(count), np.arange(count)[::-1]):
        made = replace(problem, jobs=tuple(problem.jobs[i] for i in order))
        scores = score(policy.task.graph(suite(objective).prepare(Run(made, time_limit=60))), policy.network)
        found.append(scores[np.argsort(order)])
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)


def test_time_limit(weights: Weights) -> None:
    """Of 2,000 gangs on 10,000 nodes there is a plan, and what the network takes is within the limit."""
    objective, limit = "placement", 2.0
    weights(objective, 1.0)
    problem = problem_of(objective, "train", 0, 10_000)
    problem = replace(problem, jobs=problem.jobs[:2000], running=())
    played(objective, problem_of(objective, "train", 0, OBJECTIVES[objective]))  # everything is loaded
    run = Run(problem, time_limit=600)
    prepared = suite(objective).prepare(run)
    run.deadline = run.started + run.seconds() + limit
    own(objective)["gnn"].run(run, prepared)
    assert run.objective is not None and any(x.by == "gnn" for x in run.trace)
    assert run.remaining() > -limit


def test_not_in_auto() -> None:
    """`solve` takes the method by name where there is a network, and the portfolio does not run it."""
    from gangplan.hybrid.table import ENTRIES

    assert {x for x in ("throughput", "step", "placement", "schedule") if "gnn" in gangplan.methods(x)} == {*OBJECTIVES}
    assert not any(entry.name == "gnn" for entry in ENTRIES)
