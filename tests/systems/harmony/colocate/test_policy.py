"""The policy is fitted by its recipe, loads what it wrote, and is kept from deciding where its model is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.learned.policy.weights import FOLDER
from gangplan.learned.training.recipe import train_policy
from gangplan.simulator.ground import evaluate
from gangplan.simulator.snapshots import Snapshots, Truth
from gangplan.systems.harmony.colocate.policy import WAYS, ColocatePolicy, Joint, Slowdowns
from gangplan.systems.interference.baselines import ScoreRule, alone, run
from gangplan.systems.interference.cases import CENTRES, TRAINING, VALIDATION, poisson
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.ground import Interference
from gangplan.systems.interference.policies import BIDS
from gangplan.systems.interference.samples import log


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the weights of a short fit."""
    folder = tmp_path_factory.mktemp("colocate")
    config = folder / "few.toml"
    config.write_text(
        'policy = "colocate"\nsamples = 300\nmembers = 3\nkinds = 3\nupdates = 60\nvalidation_seeds = 1\n'
    )
    done = train_policy(config, folder / "run")
    assert done.weights is not None and done.card is not None
    assert set(WAYS) <= set(done.card.validation) and done.card.validation["score"] <= 1.0
    return done.weights


def test_loads_and_finishes(trained: Path, tmp_path: Path) -> None:
    """What is written again decides the same; the way is that with the best score under the fitted speeds."""
    policy = ColocatePolicy.load(trained)
    policy.save(tmp_path / "again")
    other, case = ColocatePolicy.load(tmp_path / "again.safetensors"), poisson(VALIDATION, jobs=30)
    assert policy.way == other.way
    first = run(case, policy).outcome()
    assert (first.finish == run(case, other).outcome().finish).all()
    assert (first.finish == run(case, policy).outcome().finish).all()  # a second case begins anew


def test_other_cluster_is_refused(trained: Path) -> None:
    """A case with other servers is an error that names them, and weights of another policy are no weights."""
    with pytest.raises(InstanceError, match="has 8 servers and 8 types"):
        run(poisson(VALIDATION, jobs=10, servers=8), ColocatePolicy.load(trained))


class Slow:
    """Speeds a fifth of the true ones."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job."""
        return self.truth.speeds(now) / 5.0


def test_guard(trained: Path) -> None:
    """Where all jobs run at a fifth of the speeds predicted, the error is seen and the rule takes over."""
    case, policy = poisson(VALIDATION, jobs=40), ColocatePolicy.load(trained)
    run(case, policy)
    assert 0.0 < policy.error < 0.5 and not policy.guarded
    run(replace(case, truth=Slow(case.truth)), policy)
    assert policy.error > 1.0 and policy.guarded


@pytest.mark.parametrize("name", ["flat", "fat-tree-256"])
def test_slowdowns(name: str) -> None:
    """Jobs by themselves are as fast as alone; beside others the prediction is nearer to the truth than alone is."""
    case = CENTRES[name](TRAINING + 50, jobs=150)
    slow = Slowdowns(ColocatePolicy.load(FOLDER / f"{BIDS}.safetensors").fitted, alone(case.truth))
    now = log(case, ScoreRule("lb", "shortest"), limit=600, noise=0.0, seed=0).now
    apart = replace(now, first=np.arange(len(now.kind) + 1))
    assert slow.speeds(apart) == pytest.approx(alone(case.truth).speeds(apart))
    truth, off = np.log(case.truth.speeds(now)), lambda said: np.abs(np.log(said.speeds(now)) - truth).mean()
    assert off(slow) < 0.7 * off(alone(case.truth))


def test_value_falls_with_orders() -> None:
    """On crowded clusters 12 orders reach a value at most that of one, sometimes less, and leave what ran alone."""
    values = []
    for seed in range(VALIDATION, VALIDATION + 6):
        env = Environment(poisson(seed, jobs=40, share=0.5, load=2.0))
        for _ in range(6):
            ScoreRule("lb", together=True).place(env)
            env.end_interval()
        one, many = env.fork(), env.fork()
        Joint(env.case.truth, 2.0, tries=1).place(one)
        policy = Joint(env.case.truth, 2.0, tries=12)
        policy.place(many)
        values.append((policy.value(one), policy.value(many)))
        assert many.running[: len(env.running)] == env.running
        assert all(many.rows(job) == env.rows(job) for job in env.running)
        assert (many.free >= -1e-9 * many.size).all()
    first, best = np.array(values).T
    assert (best <= first * (1 + 1e-9)).all() and (best < first * (1 - 1e-6)).any()


def test_outcomes_hold() -> None:
    """Whole cases under the true speeds pass the check, twice the same."""
    found = [
        evaluate(Interference(jobs=30), {"joint": lambda case, seed: Joint(case.truth, 2.0)}, [VALIDATION])
        for _ in range(2)
    ]
    assert found[0][0].figures["mean_jct"] == found[1][0].figures["mean_jct"]
