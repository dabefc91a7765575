"""Recipes: how each policy is trained, loaded and judged; and training by one, in a folder that can be resumed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from gangplan.instances.addons import plugged
from gangplan.instances.errors import InstanceError, extra, in_file
from gangplan.instances.intake import read_json
from gangplan.instances.outlet import write_whole
from gangplan.instances.typed import SETTINGS
from gangplan.simulator.ground import Ground, evaluate

from ..policy.settings import read_config
from ..policy.weights import Card, files, read_card, save
from .checkpoint import locked, read_checkpoint, under
from .loop import INTERRUPTED, StageReports, TrainingStage, train_stages

RECIPES: dict[str, str] = {
    "offline-throughput": "gangplan.learned.training.offline.recipe:THROUGHPUT",
    "offline-placement": "gangplan.learned.training.offline.recipe:PLACEMENT",
    "gnn": "gangplan.learned.training.online.recipe:RECIPE",
}
for _more in plugged("recipes").values():
    RECIPES.update(_more)
"""Policies by name: where the recipe is. Importing one loads no heavy package. Add-ons plug in their own, and that of
`gnn` with the ground on which that is judged."""
SEEDS = {"training": "from 2000000", "validation": "from 1000000"}
"""Of the workloads of every policy, for model cards; those below a million are for tests."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one policy is made and used.

    Attributes:
        name: of the policy.
        about: what it decides, a phrase.
        config: a frozen dataclass, the fields of which are what a configuration may say besides ``policy``.
        stages: from configuration and seed to the stages of training.
        load: from a file of weights to the policy.
        judge: from the policy to the grounds on which it is compared, and the names of its rivals there; None where
            those lie to the right of the recipe.
        data: what it is trained on, for the model card; a phrase.
        verdict: from the policy and its settings to rows that say whether to use it, on what it was trained for.
        torch: whether the policy needs torch to decide.
        seeds: of training and of validation, for the model card.
    """

    name: str
    about: str
    config: type[Any]
    stages: Callable[[Any, int], list[TrainingStage]]
    load: Callable[[Path], Any]
    judge: Callable[[Any], tuple[Sequence[Ground], Sequence[str]]] | None = None
    data: str = ""
    verdict: Callable[[Any, Any], list[dict[str, Any]]] | None = None
    torch: bool = True
    seeds: Mapping[str, str] = field(default_factory=lambda: SEEDS)

    def options(self, policy: Any) -> list[str]:
        """Return the settings of the grounds on which it is compared, by name."""
        (ground, *_), _ = self._judged(policy)
        return [x.name for x in fields(ground) if x.metadata]  # type: ignore[arg-type]

    def evaluate(self, policy: Any, seeds: Sequence[int], **options: Any) -> list[dict[str, Any]]:
        """Return a row of figures for the policy, called ``learned``, and each rival, on each ground and seed.

        Args:
            options: settings of the grounds in the place of their own.
        """
        (grounds, rivals), found = self._judged(policy), list[dict[str, Any]]()
        for x in dict.fromkeys(replace(y, **options) for y in grounds):  # type: ignore[type-var]
            both = {"learned": x.always(policy), **{rival: x.policy(rival) for rival in rivals}}
            found += [run.row for run in evaluate(x, both, list(seeds))]
        return found

    def _judged(self, policy: Any) -> tuple[Sequence[Ground], Sequence[str]]:
        if self.judge is None:
            raise InstanceError("policy", f"{self.name} is judged on the grounds of a system, and none is imported")
        return self.judge(policy)


def recipe(name: str) -> Recipe:
    """Return the recipe of a policy."""
    if name not in RECIPES:
        raise InstanceError("policy", f"{name!r} is not one of {', '.join(RECIPES) or '(none in this version)'}")
    found: Recipe = resolve_name(RECIPES[name])
    return found


def load_policy(name: str, path: Path, decides: str = "") -> Any:
    """Return the policy of a file of weights, which must have the method `decides`; errors call it `name`."""
    made = recipe(read_card(path).policy)
    if made.torch and find_spec("torch") is None:
        raise InstanceError("policy", f"{name!r} needs torch; {extra('learn')}")
    policy = made.load(path)
    if decides and not hasattr(policy, decides):
        raise InstanceError("policy", f"{name!r} decides on another problem")
    return policy


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training came to.

    Attributes:
        reports: of the stages that were begun, by name.
        weights: the file of the last stage's best, None if no validation gave a number.
        card: its model card.
        interrupted: whether Ctrl-C ended it.
        verdict: see `Recipe`.
    """

    reports: StageReports
    weights: Path | None
    card: Card | None
    interrupted: bool
    verdict: tuple[dict[str, Any], ...] = ()


def train_policy(
    config: str | Path,
    folder: str | Path,
    *,
    instead: Mapping[str, Any] | None = None,
    seed: int = 0,
    minutes: float | None = None,
    resume: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> Trained:
    """Train the policy that a configuration is for; `folder` gets a folder a stage, and the weights so far best.

    Args:
        instead: settings in the place of the configuration's.
    """
    name, table = read_config(config)
    made = recipe(name)
    with in_file(config):
        settings = SETTINGS.read(made.config, {**table, **(instead or {})})
        stages = made.stages(settings, seed)
    folder, plain = Path(folder), json.loads(json.dumps(asdict(settings)))
    with locked(folder, "out"):
        _claim(folder, {"policy": name, "seed": seed, "settings": plain}, resume)
        began = time.monotonic()
        reports = train_stages(stages, folder, minutes=minutes, resume=resume, progress=progress)
        seconds = None if resume else time.monotonic() - began
        weights, card = _export(made, plain, seed, folder, reports, seconds)
    interrupted = any(x.reason == INTERRUPTED for x in reports.values())
    judged = made.verdict(made.load(weights), settings) if made.verdict and weights and not interrupted else ()
    return Trained(reports, weights, card, interrupted, tuple(judged))


def commit() -> str:
    """Return the commit of the code that runs, empty if it is not run from a clone."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _claim(folder: Path, run: dict[str, Any], resume: bool) -> None:
    """Write down what the folder is for, or check that it is for this."""
    path = folder / "run.json"
    if path.exists() and any(folder.glob("*/last.json")):  # else nothing was trained yet
        if not resume:
            raise InstanceError("folder", f"{folder} holds a run already; resume it, or choose another")
        found = read_json(path)
        if not isinstance(found, dict):
            raise InstanceError("run", "is no JSON object", str(path))
        for key, value in run.items():
            if found.get(key) != value:
                raise InstanceError(key, "is not that of the run which is to be resumed", str(path))
        return
    write_whole({path: json.dumps(run, indent=1).encode()}, durable=True)


def _export(
    made: Recipe, settings: dict[str, Any], seed: int, folder: Path, reports: StageReports, seconds: float | None
) -> tuple[Path | None, Card | None]:
    if not reports or (last := [*reports.values()][-1]).best is None:
        return None, None
    training: dict[str, Any] = {
        stage: {"updates": x.updates, "seconds": round(x.seconds, 1), "ended": x.reason} for stage, x in reports.items()
    }
    if seconds is not None:  # of a run that went on with another one, only a part would be known
        training["wall_seconds"] = round(seconds, 1)
    named = {k: Path(x).name if isinstance(x, str) and Path(x).is_absolute() else x for k, x in settings.items()}
    card = Card(
        made.name, made.name, made.about, made.data, {**made.seeds, "run": seed}, commit(), named,
        dict(last.validation), training,
    )  # fmt: skip
    path = files(folder / made.name)[0]
    tensors = under("policy", read_checkpoint(folder / [*reports][-1])[0])
    return path, save(path, tensors, card)
