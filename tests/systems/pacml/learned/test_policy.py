"""The PAC-ML policy keeps the contract, on clusters of other sizes too; its ONNX form decides alike; weights load."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.cli import main
from gangplan.instances import InstanceError
from gangplan.learned import Case, check_policy
from gangplan.learned.policy import Card, read_card, shipped
from gangplan.learned.policy.weights import LIMIT, save
from gangplan.systems.pacml.arrivals import arrivals
from gangplan.systems.pacml.learned.network import BlockNetwork
from gangplan.systems.pacml.learned.onnx import OnnxRampPolicy, export
from gangplan.systems.pacml.learned.policy import RampObservation, RampPolicy
from gangplan.systems.pacml.learned.recipe import RECIPE, PacmlSettings
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.simulate import Acceptance, RampState, simulate

needs_onnx = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")), reason="gangplan[onnx] is absent"
)
SHIPPED = sorted(name for name, path in shipped().items() if read_card(path).policy == "pacml")


def policy(**settings: Any) -> RampPolicy:
    """Return a policy with random weights."""
    torch.manual_seed(3)
    return RampPolicy(BlockNetwork(24), PacmlSettings(**settings))


@pytest.fixture(scope="module")
def large(make_scenario: Callable[..., Scenario]) -> Scenario:
    """Return two made networks on 512 servers, 16 times as many as those of the published cluster."""
    return make_scenario((8, 8, 8), 2)


def observed(scenario: Scenario, made: RampPolicy, count: int) -> list[RampObservation]:
    """Return what the policy sees of the last jobs of a case it plays."""
    seen: list[RampObservation] = []

    class Watched(RampPolicy):
        def choose(self, observation: RampObservation, seed: int | None = None) -> int:
            seen.append(observation)
            return super().choose(observation, seed)

    simulate(arrivals(scenario.types, "D", 0, n=40), Watched(made.network, made.settings))
    return sorted(seen, key=lambda x: len(x.rows))[-count:]


def case(name: str, seen: RampObservation, larger: bool) -> Case:
    """Return a decision, and the same with other names of servers, which change the order of rows."""
    rng = np.random.default_rng(len(seen.rows))
    order = rng.permutation(len(seen.rows))  # row i becomes row order[i]
    back = np.argsort(order)
    rows = RampObservation(seen.rows[back], seen.block[back], seen.part[back])
    return Case(name, seen, np.ones(len(order), dtype=bool), [(rows, order)], larger)


def test_contract(scenario: Scenario, large: Scenario) -> None:
    """Names of servers, seeds, saving and clusters of 512 servers: all as the contract says."""
    made = policy()
    cases = [case(f"32 servers, {i}", x, False) for i, x in enumerate(observed(scenario, made, 3))]
    cases += [case(f"512 servers, {i}", x, True) for i, x in enumerate(observed(large, made, 2))]
    assert all(len(x.allowed) > 3 for x in cases)
    check_policy(made, cases)


class Judged:
    """Decides by one policy, and asks of the other that it finds no candidate better."""

    def __init__(self, decides: OnnxRampPolicy, judges: RampPolicy) -> None:
        self._decides, self._judges = decides, judges

    def decide(self, state: RampState) -> Acceptance | None:
        """Return the first one's choice."""
        seen = self._decides.observe(state)
        taken, scores = self._decides.choose(seen), self._judges.score(seen)
        assert scores[taken] >= scores.max() - 1e-5
        block = int(seen.block[taken])
        return None if block < 0 else Acceptance(int(state.blocks.degree[block]), block)


@needs_onnx
def test_onnx(scenario: Scenario, large: Scenario, tmp_path: Path) -> None:
    """The exported policy keeps the contract, and its scores are the network's to 1e-5, on one row too."""
    made = policy()
    written = export(made, tmp_path / "policy.onnx")
    assert [x.name for x in written] == ["policy.onnx"]
    found = OnnxRampPolicy.load(tmp_path / "policy.onnx")
    seen = [observed(scenario, made, 2)[0], observed(large, made, 1)[0]]
    seen.append(RampObservation(seen[0].rows[:1], seen[0].block[:1], seen[0].part[:1]))
    for x in seen:
        assert np.allclose(found.score(x), made.score(x), rtol=0, atol=1e-5)
    check_policy(found, [case("32 servers", seen[0], False), case("512 servers", seen[1], True)])
    jobs = arrivals(scenario.types, "A", 4, n=80)
    assert np.array_equal(simulate(jobs, found).degree, simulate(jobs, made).degree)
    simulate(jobs, Judged(found, made))


@needs_onnx
def test_onnx_that_is_none(tmp_path: Path) -> None:
    """Files that are missing, broken or another's are errors that name the file."""
    with pytest.raises(InstanceError, match=r"nothing\.onnx: file: no such file"):
        OnnxRampPolicy.load(tmp_path / "nothing.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"no graph")
    with pytest.raises(InstanceError, match=r"broken\.onnx: onnx: ONNX Runtime does not load it"):
        OnnxRampPolicy.load(tmp_path / "broken.onnx")
    import onnx

    (written,) = export(policy(), tmp_path / "policy.onnx")
    proto = onnx.load(written)
    other = onnx.load(written)
    del other.metadata_props[:]
    onnx.save(other, tmp_path / "other.onnx")
    with pytest.raises(InstanceError, match=r"other\.onnx: onnx: is no policy"):
        OnnxRampPolicy.load(tmp_path / "other.onnx")
    # versions until 2026-11 read what the op graph came to, besides
    more = onnx.helper.make_tensor_value_info("graph", onnx.TensorProto.FLOAT, [1])
    proto.graph.input.append(more)
    onnx.save(proto, tmp_path / "old.onnx")
    with pytest.raises(InstanceError, match=r"old\.onnx: onnx: reads rows, graph: export it again"):
        OnnxRampPolicy.load(tmp_path / "old.onnx")


def test_saved(tmp_path: Path) -> None:
    """Width and whether it chooses blocks come back; weights of another policy or width are refused."""
    made = policy(blocks=False, units=("physical",))
    made.save(tmp_path / "mine")
    again = RampPolicy.load(tmp_path / "mine")
    assert again.settings == PacmlSettings(blocks=False, width=24)
    tensors = made.network.state_dict()
    for card, words in (
        (Card("x", "another"), "policy: 'another' is not pacml"),
        (Card("x", "pacml", settings={"width": 32}), "tensors"),
        (Card("x", "pacml", settings={"width": -1}), "settings.width: -1 is not positive"),
        (Card("x", "pacml", settings={"widht": 24}), "settings.widht: is unknown"),
    ):
        save(tmp_path / "other", tensors, card)
        with pytest.raises(InstanceError, match=words):
            RampPolicy.load(tmp_path / "other")


@needs_onnx
def test_export_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes files that decide; bad input is exit code 2 and one line, and writes nothing."""
    policy().save(tmp_path / "mine")
    save(tmp_path / "other", policy().network.state_dict(), Card("x", "another"))
    assert main(["learn", "export", str(tmp_path / "mine"), "--out", str(tmp_path / "made.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": [str(tmp_path / "made.onnx")]}
    assert OnnxRampPolicy.load(tmp_path / "made.onnx")
    for name, out, words in (
        ("nothing", "a.onnx", "weights: 'nothing' is no file"),
        (tmp_path / "mine", "a.bin", "a.bin: out: '.bin' is not .onnx"),
        (tmp_path / "mine", "absent/a.onnx", "absent/a.onnx: file: the folder 'absent' does not exist"),
        (tmp_path / "other", "a.onnx", "policy: 'another' is not one of"),
    ):
        assert main(["learn", "export", str(name), "--out", out]) == 2
        told = capsys.readouterr()
        assert told.out == "" and words in told.err and len(told.err.splitlines()) == 1
    assert not Path("a.onnx").exists()


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped(name: str, data: Path) -> None:
    """Shipped weights are small, and on a seed block no more than the best rule on any distribution they are for."""
    path = shipped()[name]
    assert path.stat().st_size < LIMIT
    card = read_card(path)
    for units in card.settings.get("units", PacmlSettings().units):
        rows = RECIPE.evaluate(RECIPE.load(path), [0], profiles=str(data / "pipedream"), units=units)
        for distribution in "ABCD":
            here = {x["policy"]: x["blocked_or_running"] for x in rows if x["case"] == distribution}
            mine = here.pop("learned")
            assert mine <= min(here.values()), (units, distribution)
