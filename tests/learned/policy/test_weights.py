"""Weights and their cards, configurations, and a recipe from the one to the other."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.instances.typed import SETTINGS
from gangplan.learned.policy import Card, find, load, read_card, save, shipped
from gangplan.learned.policy.settings import read_config, shipped_configs
from gangplan.learned.policy.weights import match
from gangplan.learned.training import TrainingStage
from gangplan.learned.training.recipe import RECIPES, SEEDS, Recipe, recipe, train_policy

TENSORS = {"net.weight": torch.arange(6.0).reshape(2, 3), "net.bias": torch.tensor([0.5, -0.5])}
CARD = Card("small", "toy", "adds", "numbers", {"training": 3, "validation": [1, 2]}, "abc", {"width": 2}, {"score": 1})


def test_weights_come_back(tmp_path: Path) -> None:
    """Tensors and card are read as they were written, by either file or their stem; the card counts the numbers."""
    written = save(tmp_path / "small.safetensors", TENSORS, CARD)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["small.json", "small.safetensors"]
    for name in ("small", "small.json", "small.safetensors"):
        tensors, card = load(tmp_path / name)
        assert card == written == read_card(tmp_path / name)
        assert set(tensors) == set(TENSORS) and all(torch.equal(tensors[k], TENSORS[k]) for k in TENSORS)
    assert (written.parameters, len(written.sha256)) == (8, 64)
    assert dataclasses.replace(written, parameters=0, sha256="") == CARD


def other_tensors(path: Path) -> None:
    """Put the tensors of other weights beside the card."""
    save(path.with_name("other"), {"net.weight": torch.ones(2, 3)}, CARD)
    path.write_bytes(path.with_name("other.safetensors").read_bytes())


def not_finite(path: Path) -> None:
    """Write NaN where a number was."""
    content = path.read_bytes()
    path.write_bytes(content[:-4] + b"\xff\xff\xff\x7f")


def edit(**changes: Any) -> Callable[[Path], None]:
    """Return what changes the card so."""

    def change(path: Path) -> None:
        card = path.with_suffix(".json")
        card.write_text(json.dumps(json.loads(card.read_text()) | changes))

    return change


@pytest.mark.parametrize(
    ("damage", "suffix", "words"),
    [
        (Path.unlink, ".safetensors", "file: no such file"),
        (lambda p: p.with_suffix(".json").unlink(), ".json", "file: no such file"),
        (lambda p: p.write_bytes(p.read_bytes()[:-9]), ".safetensors", "broken or cut off"),
        (lambda p: p.write_bytes(b""), ".safetensors", "broken or cut off"),
        (lambda p: p.write_bytes(b"\x00" * 3_000_000), ".safetensors", "3000000 bytes, more than 2000000"),
        (not_finite, ".safetensors", "tensors['net.weight']: holds a number that is not finite"),
        (other_tensors, ".safetensors", "not those that the card"),
        (lambda p: p.with_suffix(".json").write_bytes(b"\x80{"), ".json", "byte 0x80 at offset 0 is not UTF-8 text"),
        (lambda p: p.with_suffix(".json").write_text("[1]"), ".json", "is no JSON object"),
        (lambda p: p.with_suffix(".json").write_text('{"validation": {"score": NaN}}'), ".json", "NaN is not a number"),
        (edit(format=2), ".json", "format: 2 is not 1"),
        (edit(name=""), ".json", "name: is empty"),
        (edit(parameters="8"), ".json", "parameters: '8' is not a whole number"),
        (edit(validation={"score": None}), ".json", "validation.score: None is not a number"),
        (edit(extra=1), ".json", "extra: is unknown"),
    ],
)
def test_broken_weights(damage: Callable[[Path], None], suffix: str, words: str, tmp_path: Path) -> None:
    """Each way of being broken is an error that names the file and says what is wrong."""
    path = tmp_path / "small.safetensors"
    save(path, TENSORS, CARD)
    damage(path)
    with pytest.raises(InstanceError) as found:
        load(path)
    assert found.value.source == str(path.with_suffix(suffix))
    assert words in str(found.value)


def test_what_is_not_written(tmp_path: Path) -> None:
    """Weights that are too large, not finite or none at all are refused, and leave what was there before."""
    save(tmp_path / "small", TENSORS, CARD)
    before = {x.name: x.read_bytes() for x in tmp_path.iterdir()}
    for tensors in ({"x": torch.zeros(500_001)}, {"x": torch.tensor([1.0, torch.inf])}, {}):
        with pytest.raises(InstanceError, match="tensors"):
            save(tmp_path / "small", tensors, CARD)
    assert {x.name: x.read_bytes() for x in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"net.weight": (2, 3), "net.bias": (2,), "more": (1,)}, "'more'.: is missing"),
        ({"net.weight": (3, 2), "net.bias": (2,)}, r"'net.weight'.: has shape \(2, 3\), not \(3, 2\)"),
        ({"net.weight": (2, 3)}, "'net.bias'.: is none of the network's"),
    ],
)
def test_mismatch(shapes: dict[str, Any], words: str) -> None:
    """Tensors that are not the network's are pointed out by name."""
    match(TENSORS, {"net.weight": (2, 3), "net.bias": (2,)}, "small")
    with pytest.raises(InstanceError, match=words):
        match(TENSORS, shapes, "small")


def test_what_is_shipped() -> None:
    """Everything that comes with the package can be read, is of a known recipe and found by its name."""
    for name, path in shipped().items():
        assert load(path)[1].policy in RECIPES and find(name) == path
    for path in shipped_configs().values():
        policy, table = read_config(path)
        SETTINGS.read(recipe(policy).config, table)
    with pytest.raises(InstanceError, match="'nothing' is no file"):
        find("nothing")


@dataclass(frozen=True)
class Settings:
    """What the toy may be told."""

    updates: int
    width: int = 4
    rate: float = 0.1
    kind: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = (1, 2)
    rates: dict[str, float] = field(default_factory=dict)
    shuffle: bool = True


def test_config() -> None:
    """Values are taken where they are of the right type; a whole number is a number."""
    found = SETTINGS.read(Settings, {"updates": 3, "rate": 1, "kind": "b", "sizes": [5], "rates": {"a": 2}})
    assert found == Settings(3, 4, 1.0, "b", (5,), {"a": 2.0})
    assert isinstance(found.rate, float) and isinstance(found.rates["a"], float)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "updates: is missing"),
        ({"updates": 1, "widht": 3}, "widht: is unknown; known are updates, width"),
        ({"updates": 1.5}, "updates: 1.5 is not a whole number"),
        ({"updates": True}, "updates: True is not a whole number"),
        ({"updates": 1, "rate": "x"}, "rate: 'x' is not a number"),
        ({"updates": 1, "rate": float("nan")}, "rate: nan is not finite"),
        ({"updates": 1, "rate": 10**400}, "is not finite"),
        ({"updates": 1, "rate": True}, "rate: True is not a number"),
        ({"updates": 1, "kind": "c"}, "kind: 'c' is not one of 'a', 'b'"),
        ({"updates": 1, "rates": {"a": "x"}}, "rates.a: 'x' is not a number"),
        ({"updates": 1, "rates": 3}, "rates: 3 is not a table"),
        ({"updates": 1, "sizes": [1, "2"]}, r"sizes\[1\]: '2' is not a whole number"),
        ({"updates": 1, "sizes": 1}, "sizes: 1 is not a list"),
        ({"updates": 1, "shuffle": 1}, "shuffle: 1 is not true or false"),
    ],
)
def test_bad_config(table: dict[str, Any], words: str) -> None:
    """Unknown and missing keys and wrong types are errors that name the key."""
    with pytest.raises(InstanceError, match=words):
        SETTINGS.read(Settings, table)


class Toy:
    """Comes nearer to 1 with each update."""

    def __init__(self, settings: Settings, start: Any) -> None:
        self.x = torch.zeros(settings.width) if start is None else start["policy.x"].clone()

    def update(self, step: int) -> dict[str, float]:
        """Go half of the way."""
        self.x = (self.x + 1) / 2
        return {"loss": float(1 - self.x[0])}

    def validate(self) -> dict[str, float]:
        """Return what is left of the way."""
        return {"score": float(1 - self.x[0])}

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return where it is."""
        return {"policy.x": self.x, "other": torch.zeros(9)}, {}

    def load(self, tensors: dict[str, Any], plain: Any) -> None:
        """Go there."""
        self.x = tensors["policy.x"]


def stages(settings: Settings, seed: int) -> list[TrainingStage]:
    """Return two stages."""
    return [
        TrainingStage(name, lambda start: Toy(settings, start), settings.updates, 1) for name in ("first", "second")
    ]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter the toy's recipe."""
    made = Recipe(
        "toy",
        "goes to 1",
        Settings,
        stages,
        lambda path: load(path)[0]["x"],
        lambda policy: ([], lambda drawn, seed: policy, ()),
    )
    monkeypatch.setitem(sys.modules, "toy_recipe", SimpleNamespace(RECIPE=made))  # type: ignore[arg-type]
    monkeypatch.setitem(RECIPES, "toy", "toy_recipe:RECIPE")


def test_from_configuration_to_weights(toy: None, tmp_path: Path) -> None:
    """Both stages run, the policy's tensors alone are written, and the card says where they come from."""
    config = tmp_path / "toy.toml"
    config.write_text('policy = "toy"\nupdates = 2\nwidth = 3\n')
    done = train_policy(config, tmp_path / "run", seed=7)
    assert done.weights is not None and not done.interrupted
    assert recipe("toy").load(done.weights).tolist() == [1 - 2.0**-4] * 3
    card = read_card(done.weights)
    assert card == done.card
    assert (card.policy, card.parameters, card.seeds, card.validation) == (
        "toy",
        3,
        {**SEEDS, "run": 7},
        {"score": 2**-4},
    )
    assert card.settings["width"] == 3 and card.settings["rate"] == 0.1
    assert card.training["wall_seconds"] >= 0
    assert [card.training[stage]["updates"] for stage in ("first", "second")] == [2, 2]
    with pytest.raises(InstanceError, match="holds a run already"):
        train_policy(config, tmp_path / "run", seed=7)
    with pytest.raises(InstanceError, match="seed: is not that of the run"):
        train_policy(config, tmp_path / "run", seed=8, resume=True)
    again = train_policy(config, tmp_path / "run", seed=7, resume=True).card
    # how long all of it took is known of an unbroken run only
    stages = {name: card.training[name] for name in ("first", "second")}
    assert again == dataclasses.replace(card, training=stages)
    config.write_text('policy = "toy"\nupdates = 3\nwidth = 3\n')
    with pytest.raises(InstanceError, match="settings: is not that of the run"):
        train_policy(config, tmp_path / "run", seed=7, resume=True)


def test_a_run_that_never_began_is_no_run(toy: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first stage could not be made, the folder may be used again, with a configuration put right."""
    config = tmp_path / "toy.toml"
    config.write_text('policy = "toy"\nupdates = 2\nwidth = -3\n')
    with pytest.raises(RuntimeError):
        train_policy(config, tmp_path / "run")
    config.write_text('policy = "toy"\nupdates = 2\nwidth = 3\n')
    assert train_policy(config, tmp_path / "run").weights is not None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"updates = 3", "policy: None is not the name of a policy"),
        (b'policy = "toys"', "policy: 'toys' is not one of"),
        (b'policy = "toy"\nupdates = "3"', "updates: '3' is not a whole number"),
        (b"policy = ", "TOML: invalid value"),
        (b"\xff", "byte 0xff at offset 0 is not UTF-8 text"),
        (None, "is no file"),
    ],
)
def test_bad_configuration_file(toy: None, content: bytes | None, words: str, tmp_path: Path) -> None:
    """A wrong configuration is an error before anything is written."""
    config = tmp_path / "toy.toml"
    if content is not None:
        config.write_bytes(content)
    with pytest.raises(InstanceError, match=words):
        train_policy(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
