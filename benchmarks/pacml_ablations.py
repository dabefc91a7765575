"""Train the PAC-ML policy with parts left out, on equal budgets, and judge what comes of it on the same test seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gangplan.simulator.ramp.step import Units

from .pacml import DATA, Files, missing, run
from .pacml_curves import CURVES, collect, replace_run
from .pacml_rows import PACML, PacmlRow
from .pacml_suites import ABLATIONS, Cell

CONFIGS = {"physical": "pacml", "as-published": "pacml-as-published"}
BUDGET = {
    "labels": 4000, "searched": 0, "planned_labels": 0, "rounds": 5, "corrected_updates": 0,
    "imitation_updates": 1500, "rl_updates": 75, "warm": 15, "validate_every": 25, "processes": 1,
}  # fmt: skip
"""Of every variant, in place of the shipped configuration's: a quarter of imitation, some PPO."""

ALONE = 200
"""Updates of PPO where nothing was imitated: about as long as labels, imitation and PPO together take."""

TRAINED: Mapping[str, dict[str, Any]] = {
    "both": {},
    "RL only": {"imitation_updates": 0, "rl_updates": ALONE},
    "totals": {"variant": "totals"},
    "no choice of the block": {"blocks": False},
}
"""What differs; imitation only is the best of imitation from the first of them, before PPO."""

BEFORE = "imitation only"


def ablate(
    out: Path,
    units: Units,
    *,
    path: Path = PACML,
    curves: Path = CURVES,
    seeds: int = 10,
    processes: int = 1,
    data: Path = DATA,
    budget: Mapping[str, Any] = BUDGET,
    say: Callable[[str], None] = print,
) -> list[PacmlRow]:
    """Train what is missing in the folder, one variant after the other, then judge all; return the new rows."""
    files: dict[tuple[str, str], Path] = {}
    for name in TRAINED:
        folder = out / units / name.replace(" ", "_")
        files[name, units] = _trained(folder, name, units, data, budget, say)
        replace_run(f"{units}, {name}", collect(f"{units}, {name}", folder), curves)
    files[BEFORE, units] = _before(out / units / "both")
    return judge(files, units, path=path, seeds=seeds, processes=processes, data=data, say=say)


def judge(
    files: Files, units: Units, *, path: Path, seeds: int, processes: int, data: Path, say: Callable[[str], None]
) -> list[PacmlRow]:
    """Simulate every variant on the published cluster and loads."""
    cell = Cell(units, ABLATIONS, seeds=seeds)
    return run(
        missing([cell], path, files=files, folder=data / "pipedream", say=say), path, processes=processes, say=say
    )


def _trained(
    folder: Path, name: str, units: Units, data: Path, budget: Mapping[str, Any], say: Callable[[str], None]
) -> Path:
    from gangplan.learned.policy.recipe import train_policy
    from gangplan.learned.policy.settings import read_config

    weights = folder / "pacml.safetensors"
    if weights.exists():
        return weights
    policy, settings = read_config(CONFIGS[units])
    settings |= {"profiles": str(data / "pipedream"), **budget, **TRAINED[name]}
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(_toml({"policy": policy, **settings}))
    say(f"{name}, {units}: training")
    train_policy(config, folder, resume=True)
    return weights


def _before(folder: Path) -> Path:
    """Write the weights of the imitation stage at its best beside the others, and return the file."""
    from gangplan.learned.policy.weights import Card, save
    from gangplan.learned.training.checkpoint import read_checkpoint, under

    path = folder / "imitation.safetensors"
    if not path.exists():
        settings = json.loads((folder / "run.json").read_text())["settings"]
        tensors, plain = read_checkpoint(folder / "imitation")
        save(
            path,
            under("policy", tensors),
            Card("imitation", "pacml", settings=settings, validation=plain["validation"]),
        )
    return path


def _toml(table: Mapping[str, Any]) -> str:
    # JSON's way of writing text, numbers, truth and lists of these is TOML's, too
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
