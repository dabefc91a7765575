"""Train the PAC-ML policy with parts left out, each a setting of its one recipe."""

from __future__ import annotations

import json
from pathlib import Path

from gangplan.systems.pacml.step import Units

from .pacml_suites import TRAINED

SHIPPED = {"physical": "pacml", "as-published": "pacml-as-published"}
"""The configuration, and the weights, that are judged in each of the units."""


def weights_of(name: str, units: Units, out: Path) -> Path:
    """Return where the weights of a variant lie."""
    return out / units / name.replace(" ", "_") / "pacml.safetensors"


def train(name: str, units: Units, out: Path, data: Path) -> None:
    """Train a variant if that has not been done; goes on where it was."""
    from gangplan.learned.policy.settings import read_config
    from gangplan.learned.training.recipe import train_policy

    weights = weights_of(name, units, out)
    if weights.exists():
        return
    own = TRAINED[name]
    policy, settings = read_config(SHIPPED[units])
    table = {"policy": policy, **settings, "profiles": str(data), **own}
    weights.parent.mkdir(parents=True, exist_ok=True)
    config = weights.with_name("config.toml")
    # JSON's way of writing text, numbers, truth and lists of these is TOML's, too
    config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()))
    print(f"{name}, {units}: training")
    train_policy(config, weights.parent, resume=True)
