"""Train the PAC-ML policy with parts left out, each a setting of its one recipe, and judge what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gangplan.simulator.ramp.step import Units

from .pacml import DATA, SHIPPED, missing, run
from .pacml_suites import PACML, Cell, PacmlRow

BUDGET = {
    "labels": 4000, "searched": 0, "planned_labels": 0, "rounds": 5, "corrected_updates": 0, "imitation_updates": 1500,
    "processes": 1,
}  # fmt: skip
"""Of all but the policy of degrees, in place of the shipped configuration's: a quarter of imitation, no correction."""

WHOLE, DEGREE = "imitation only", "degree only"
TRAINED: Mapping[str, dict[str, Any]] = {
    WHOLE: BUDGET,
    "no op graph": {**BUDGET, "variant": "no-graph"},
    "no history": {**BUDGET, "variant": "no-history"},
    "totals": {**BUDGET, "variant": "totals"},
    DEGREE: {"blocks": False, "planned": [], "processes": 1},
}
"""What differs from the shipped configuration."""

BEFORE = ("both", "RL only", "no choice of the block")
"""Rows of what is no longer made: imitation and then PPO, PPO alone, and both for the first free block of a degree, in
which the job was kept."""


def ablate(
    out: Path,
    units: Units,
    *,
    only: str = "",
    path: Path = PACML,
    seeds: int = 10,
    processes: int = 1,
    data: Path = DATA,
    say: Callable[[str], None] = print,
) -> list[PacmlRow]:
    """Train what is missing in the folder, one variant after the other, then judge all; return the new rows.

    Args:
        out: gets a folder for each of the units and variants; goes on where it was.
        units: to train and judge in.
        only: text in the names of the variants.
        path: of the rows.
        seeds: test seeds.
        processes: that simulate at once.
        data: folder of profiles.
        say: is told what is done.
    """
    names = [name for name in TRAINED if only in name]
    files = {(name, units): _trained(out / units / name.replace(" ", "_"), name, units, data, say) for name in names}
    tasks = missing([Cell(units, tuple(names), seeds=seeds)], path, files=files, folder=data, say=say)
    return run(tasks, path, processes=processes, say=say)


def _trained(folder: Path, name: str, units: Units, data: Path, say: Callable[[str], None]) -> Path:
    from gangplan.learned.policy.recipe import train_policy
    from gangplan.learned.policy.settings import read_config

    weights = folder / "pacml.safetensors"
    if not weights.exists():
        policy, settings = read_config(SHIPPED[units])
        table = {"policy": policy, **settings, "profiles": str(data), **TRAINED[name]}
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "config.toml"
        # JSON's way of writing text, numbers, truth and lists of these is TOML's, too
        config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()))
        say(f"{name}, {units}: training")
        train_policy(config, folder, resume=True)
    return weights
