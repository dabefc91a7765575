"""`gangplan learn`: train learned policies, judge them, and list what there is."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.intake import parse_json
from gangplan.instances.published import DATA
from gangplan.learned.policy import find, read_card, shipped
from gangplan.learned.policy.settings import shipped_configs
from gangplan.learned.training.recipe import RECIPES, recipe, train_policy
from gangplan.simulator.metrics.compare import interval

from ..early import INTERRUPTED
from .app import commands
from .options import refuse
from .output import AS_JSON, Told, facts, listed, progress, table, tell

Weights = Annotated[str, "weights that come with the package, or a file of weights", "NAME|FILE"]
NEEDS = ("torch", "torch_geometric", "torchrl", "tensordict")
_NAMES = frozenset({"family", "seed", "size"})
"""Columns of an evaluation that say which instance it is."""


@dataclass(frozen=True)
class TrainingOptions:
    """What every training is told."""

    out: Annotated[str, "folder for logs, checkpoints and, of `train`, weights", "FOLDER", "--out"]
    resume: Annotated[bool, "go on with the run in that folder"] = False
    seed: Annotated[int, "of everything drawn"] = 0
    minutes: Annotated[float | None, "of wall-clock time at most, those before --resume included"] = None

    def __post_init__(self) -> None:
        wrong = self.minutes is not None and not self.minutes >= 0
        refuse(("minutes", wrong, f"{self.minutes!r} is not a number from 0 on"))

    def begin(self, run: Callable[..., Any], doing: str, *given: Any, **more: Any) -> Any:
        """Train, with a bar and what is logged on stderr."""
        _check_needs()
        how = {"resume": self.resume, "seed": self.seed, "minutes": self.minutes}
        with progress(doing) as bar, _lines():
            return run(*given, **how, **more, progress=bar)


def train(
    config: Annotated[str, "a TOML file, or the name of one that comes with the package", "CONFIG"],
    training: TrainingOptions,
    trace: Annotated[str | None, "of gnn: jobs of your own to learn from, as for `simulate`", "FILE"] = None,
    cluster: Annotated[str | None, "of these: 4x8x8 is racks x nodes x GPUs; or a TOML file", "RxNxM|FILE"] = None,
) -> Told:
    """Train a policy from a configuration to weights with a model card.

    With --trace and --cluster it ends with a verdict: whether to use the weights there, and what they save.

    Needs the extra learn. Ctrl-C ends it after the update under way, and --resume goes on to the same curve. Exit
    code: 0 when training has ended, 130 after Ctrl-C, 2 for bad input.
    """
    missing = "cluster" if cluster is None else "trace"
    refuse((missing, (trace is None) != (cluster is None), "is missing: --trace and --cluster go together"))
    own: dict[str, Any] = {}
    if trace is not None:
        from gangplan.learned.training.online.own import OWN

        own = {**OWN, "trace": trace, "cluster": cluster}
    done = training.begin(train_policy, "training", config, training.out, instead=own)
    stages = [{"stage": name, **asdict(x)} for name, x in done.reports.items()]
    rows = [
        [x["stage"], x["reason"], *map(_text, (x["updates"], round(x["seconds"], 1), x["best"], x["best_update"]))]
        for x in stages
    ]
    blocks = [table(("stage", "ended by", "updates", "seconds", "best score", "at update"), rows, left=2)]
    if done.weights is not None and done.card is not None:
        blocks.append(facts([("weights", f"{done.weights}, {done.card.parameters} numbers")]))
    weights = None if done.weights is None else str(done.weights)
    said = {"stages": stages, "weights": weights, "interrupted": done.interrupted}
    if done.verdict:
        said["verdict"] = list(done.verdict)
        *rules, mine = done.verdict
        shown = [(x["rule"], f"{x['mean_jct']:.5g}", _share(x["gnn_less"], x["margin"])) for x in rules]
        best = next(x for x in rules if x["rule"] == mine["best"])
        by = f"its mean JCT is {_share(best['gnn_less'], best['margin'])} against {mine['best']}, the best rule"
        words = f"{'use it' if mine['use'] else 'do not use it'}: {by}, on the last fifth of the trace"
        blocks += [table(("rule", "mean JCT, s", "gnn less"), shown), facts([("verdict", words)])]
    return tell(said, *blocks, code=INTERRUPTED if done.interrupted else 0)


def evolve(
    training: TrainingOptions,
    updates: Annotated[int, "at most"] = 2000,
    data: Annotated[str, "folder of published traces", "FOLDER"] = DATA,
) -> Told:
    """Search for a rule, in two formulas, that has less mean JCT than `patient` on every ground of gangs.

    It is played on continuous runs of many clusters, and the best on validation grounds is shown with what it comes to
    on fresh runs of them.

    Needs the extra learn. Ctrl-C ends it after the update under way, and --resume goes on to the same curve. Exit
    code: 0 when it has ended, 130 after Ctrl-C, 2 for bad input.
    """
    from gangplan.learned.training.online.evolve import search

    found = training.begin(search, "searching", training.out, data, updates=updates)
    rows = [(x["ground"], f"{x['patient']:.5g}", _share(x["above"], x["margin"])) for x in found["grounds"]]
    shown = facts([("rule", "\n".join(found["formula"])), ("updates", f"{found['updates']}, {found['seconds']:.0f} s")])
    grounds = table(("ground", "mean JCT of patient, s", "above"), rows)
    return tell(found, grounds, shown, code=INTERRUPTED if found["interrupted"] else 0)


def evaluate(
    name: Weights,
    seeds: Annotated[int, "how many test seeds", (1, 10**6)] = 5,
    option: Annotated[list[str] | None, "a setting of the ground; may be repeated", "NAME=VALUE"] = None,
) -> Told:
    """Judge a policy on test seeds, none of which it was trained on. Needs the extra learn."""
    path = find(name)
    _check_needs()
    made = recipe(read_card(path).policy)
    policy = made.load(path)
    known, asked = made.options(policy), dict[str, Any]()
    for text in option or ():
        key, equals, value = text.partition("=")
        wrong = f"{text!r} is not NAME=VALUE with a name of {', '.join(known) or 'none'}"
        refuse(("option", not equals or key not in known, wrong))
        try:  # JSON, or else text
            asked[key] = parse_json(value)
        except ValueError:
            asked[key] = value
    with progress("judging"):
        rows = made.evaluate(policy, range(seeds), **asked)
    return tell(rows, _rows_of(rows), "means, and half of their 95% intervals", _rows_of(means(rows)))


def list_policies() -> Told:
    """List what can be trained, and the weights there are."""
    policies = [{"policy": name, "about": recipe(name).about} for name in RECIPES]
    cards = [read_card(path) for path in shipped().values()]
    weights = [
        {"weights": x.name, "policy": x.policy, "about": x.about, "numbers": x.parameters, "validation": x.validation}
        for x in cards
    ]
    configs = list(shipped_configs())
    rows = [(x.name, x.policy, f"{x.parameters}", _text(x.validation.get("score"))) for x in cards]
    return tell(
        {"policies": policies, "weights": weights, "configs": configs},
        listed(policies, {"policy": "{policy}", "decides": "{about}"}, left=2),
        table(("weights", "policy", "numbers", "score"), rows, left=2),
        facts([("configurations", ", ".join(configs) or "none")]),
    )


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each combination of the text columns: how many ``rows``, and for each number a pair.

    The pair is the mean over the rows that have one and half the width of its 95% interval (Student's t), None for a
    single value. Columns that name instances are left out.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    texts = [c for c in columns if c not in _NAMES and any(isinstance(row.get(c), str) for row in rows)]
    numbers = [c for c in columns if c not in _NAMES and any(_is_number(row.get(c)) for row in rows)]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.get(c) for c in texts)].append(row)
    found = []
    for key, members in groups.items():
        about: dict[str, Any] = dict(zip(texts, key, strict=True)) | {"rows": len(members)}
        for c in numbers:
            values = [float(row[c]) for row in members if _is_number(row.get(c))]
            about[c] = interval(np.array(values)) if values else None
        found.append(about)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _share(mean: float, margin: float | None) -> str:
    return f"{mean:+.1%}" if margin is None else f"{mean:+.1%} ± {margin:.1%}"


def _check_needs() -> None:
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise InstanceError("learn", f"needs {', '.join(missing)}; {extra('learn')}")


@contextmanager
def _lines() -> Iterator[None]:
    """Show what training logs on stderr, above the bar."""
    log = logging.getLogger("gangplan.learned")
    handler = logging.NullHandler() if AS_JSON.get() else logging.StreamHandler(sys.stderr)
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]


def _rows_of(rows: list[dict[str, Any]]) -> Any:
    """Return the table of rows with their own columns, words first."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    words = sum(all(isinstance(row.get(c), str) for row in rows) for c in columns)
    return table(columns, ([_text(row.get(c)) for c in columns] for row in rows), left=max(words, 1))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        mean, margin = value
        return _text(mean) if margin is None else f"{mean:.5g} ± {margin:.2g}"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


learn = commands(
    "learn",
    "Train learned policies, judge them, list them.",
    {
        "train": (train, "topdrl --out runs/topdrl"),
        "evolve": (evolve, "--out runs/rule --minutes 30"),
        "eval": (evaluate, "topdrl --seeds 10"),
        "list": (list_policies, "--json"),
    },
)
