"""The online suites: no policy is below the bound, plug-ins play, and what is no policy costs its own row."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.hybrid.bench.makers import GROUNDS, SCHEDULERS, USUAL, GroundDraw, online
from gangplan.hybrid.bench.rows import FAILED, UNSUITED
from gangplan.hybrid.bench.run import run
from gangplan.hybrid.bench.submit import submit_plan
from gangplan.hybrid.bench.suite import hash_of, make, suite
from gangplan.hybrid.bench.task import BenchSettings
from gangplan.instances import InstanceError
from gangplan.scheduler.scheduler import RULES

SMALL: dict[str, dict[str, object]] = {
    "queue": {"trace": "philly", "jobs": 60, "gpus": 8},
    "proximity": {"suite": "small"},
    "interference": {"case": "ps", "jobs": 20},
    "agents": {"case": "flat", "jobs": 30},
    "ramp": {"distribution": "D", "jobs": 80},
}
PLUGINS = """
from gangplan.instances import InstanceError
from gangplan.systems.interference.baselines import ScoreRule

def packs(case):
    return ScoreRule("best", "shortest", together=True)

def breaks(case):
    raise InstanceError("rack", "is not mine")
"""


def drawn(name: str, **settings: object) -> GroundDraw:
    """Return a draw of a ground."""
    return online("online", name, ground=name, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GROUNDS)
def test_no_policy_is_below_the_bound(name: str) -> None:
    """Every usual policy is played, and the same again; its value is at least the bound, which is positive."""
    ground = drawn(name, **SMALL[name])
    bound, values = ground.bound(0.2), {}
    for policy in USUAL[name]:
        values[policy] = ground.play(ground.named(policy, 0))
        assert values[policy] >= bound * (1 - 1e-9)
    again = drawn(name, **SMALL[name])
    assert bound > 0 or name == "ramp"
    assert len(set(values.values())) > 1
    assert again.play(again.named(USUAL[name][0], 0)) == values[USUAL[name][0]] and again.hash == ground.hash


def test_scheduler_decides_on_topdrls_ground() -> None:
    """By name, the patient one does as that ground's own rule where nobody is due, and is told no more of durations."""
    assert {f"scheduler-{name}" for name in RULES} <= set(SCHEDULERS)
    ground = drawn("proximity", suite="small")
    values = {name: ground.play(ground.named(name, 0)) for name in (*SCHEDULERS, "patient")}
    assert values["scheduler-patient"] == pytest.approx(values["patient"])
    assert values["scheduler-patient"] < 0.95 * min(values["scheduler"], values["scheduler-far"])
    vague = drawn("proximity", suite="uncertain")
    assert vague.play(vague.named("scheduler-patient", 0)) == pytest.approx(vague.play(vague.named("patient", 0)))


@pytest.mark.parametrize("name", GROUNDS)
def test_a_seed_is_another_instance(name: str) -> None:
    """What was drawn is in the hash."""
    assert drawn(name, **SMALL[name]).hash != drawn(name, **SMALL[name], seed=1).hash


def test_a_policy_that_is_not_there() -> None:
    """It is named, with those that are."""
    for name, settings in SMALL.items():
        ground = drawn(name, **settings)
        with pytest.raises(InstanceError, match="'nobody'"):
            ground.named("nobody", 0)


def test_policies_of_others(tmp_path: Path) -> None:
    """A function of the case makes a policy; its row has a value and a bound of the ground."""
    file = tmp_path / "mine.py"
    file.write_text(PLUGINS)
    one = [x for x in suite("online") if x.id == "online-harmony-small-00"]
    settings = BenchSettings(
        tmp_path, ("lif",), (f"{file}:packs", f"{file}:breaks"), (0.2,), ledger=tmp_path / "own.jsonl"
    )
    found = {row.method: row for row in run(one, settings)}
    assert all(0 < (found[name].bound or 0) <= (found[name].value or 0) for name in ("lif", "packs"))
    assert found["breaks"].status == FAILED and found["breaks"].notes == "InstanceError: rack: is not mine"
    assert found["packs"].parts == 100


def test_apart_from_problems(tmp_path: Path) -> None:
    """A size has no online instance unless these are asked for, ``all`` has, and no plan is submitted for one."""
    assert {x.objective for x in (*suite("online"), *suite("small", objective="online"))} == {"online"}
    assert "online" not in {x.objective for x in suite("small")}
    assert {x.id for x in suite("online")} < {x.id for x in suite("all")}
    with pytest.raises(InstanceError, match="a policy plays it"):
        submit_plan(None, "online-pacml-small-00", by="me", ledger=tmp_path / "own.jsonl", folder=tmp_path)


def test_regenerated() -> None:
    """An instance of each family is made again with the hash of the manifest."""
    first = {x.family: x for x in reversed(suite("online"))}
    assert [x.id for x in first.values() if hash_of(make(x, check=False)) != x.hash] == []
    assert len(first) == 5


def test_policies_of_some_grounds(tmp_path: Path) -> None:
    """A policy is left out where the ground does not know it; one that no ground knows is told before the run."""
    two = [x for x in suite("online") if x.id in ("online-harmony-small-00", "online-scheduler-small-00")]
    found = {row.family: row.status for row in run(two, BenchSettings(tmp_path, ("srtf",), deadlines=(0.2,)))}
    assert found == {"scheduler": "FEASIBLE", "harmony": UNSUITED}
    with pytest.raises(InstanceError, match="methods: 'nobody' is not one of"):
        run(two, BenchSettings(tmp_path, ("srtf", "nobody")))
