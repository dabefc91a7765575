"""`gangplan learn`: train learned policies, judge them, export them, and list what there is."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.intake import parse_json
from gangplan.instances.published import DATA
from gangplan.learned.policy import find, read_card, shipped
from gangplan.learned.policy.settings import shipped_configs
from gangplan.learned.training.recipe import recipe, train_policy
from gangplan.simulator.metrics.compare import interval
from gangplan.systems import RECIPES

from ..early import INTERRUPTED
from . import options
from .app import commands
from .output import emit_either, facts, progress, table

Weights = Annotated[str, "weights that come with the package, or a file of weights", "NAME|FILE"]
NEEDS = ("torch", "torch_geometric", "torchrl", "tensordict")
_NAMES = frozenset({"family", "seed", "size"})
"""Columns of an evaluation that say which instance it is."""


def train(
    config: Annotated[str, "a TOML file, or the name of one that comes with the package", "CONFIG"],
    out: Annotated[str, "folder for logs, checkpoints and weights", "FOLDER", "--out"],
    resume: Annotated[bool, "go on with the run in that folder"] = False,
    seed: Annotated[int, "of everything drawn"] = 0,
    minutes: Annotated[float | None, "of wall-clock time at most, those before --resume included"] = None,
    trace: Annotated[str | None, "of gnn: jobs of your own to learn from, as for `simulate`", "FILE"] = None,
    cluster: Annotated[str | None, "of these: 4x8x8 is racks x nodes x GPUs; or a TOML file", "RxNxM|FILE"] = None,
    as_json: options.AsJson = False,
) -> int:
    """Train a policy from a configuration to weights with a model card.

    With --trace and --cluster it ends with a verdict: whether to use the weights there, and what they save.

    Needs the extra learn. Ctrl-C ends it after the update under way, and --resume goes on to the same curve. Exit
    code: 0 when training has ended, 130 after Ctrl-C, 2 for bad input.
    """
    if minutes is not None and not minutes >= 0:
        raise InstanceError("minutes", f"{minutes!r} is not a number from 0 on")
    if (trace is None) != (cluster is None):
        raise InstanceError("cluster" if cluster is None else "trace", "is missing: --trace and --cluster go together")
    own: dict[str, Any] = {}
    if trace is not None:
        from gangplan.learned.online.own import OWN

        own = {**OWN, "trace": trace, "cluster": cluster}
    _check_needs()
    with progress("training", hidden=as_json) as bar, _lines(hidden=as_json):
        done = train_policy(config, out, instead=own, seed=seed, minutes=minutes, resume=resume, progress=bar)
    stages = [{"stage": x.name, **asdict(x.report)} for x in done.reports]
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
        blocks += _verdict(done.verdict)
        said["verdict"] = list(done.verdict)
    emit_either(as_json, said, *blocks)
    return INTERRUPTED if done.interrupted else 0


def evolve(
    out: Annotated[str, "folder for logs and checkpoints", "FOLDER", "--out"],
    resume: Annotated[bool, "go on with the run in that folder"] = False,
    seed: Annotated[int, "of everything drawn"] = 0,
    updates: Annotated[int, "at most"] = 2000,
    minutes: Annotated[float | None, "of wall-clock time at most, those before --resume included"] = None,
    data: Annotated[str, "folder of published traces", "FOLDER"] = DATA,
    as_json: options.AsJson = False,
) -> int:
    """Search for a rule, in two formulas, that has less mean JCT than `patient` on every ground of gangs.

    It is played on continuous runs of many clusters, and the best on validation grounds is shown with what it comes to
    on fresh runs of them.

    Needs the extra learn. Ctrl-C ends it after the update under way, and --resume goes on to the same curve. Exit
    code: 0 when it has ended, 130 after Ctrl-C, 2 for bad input.
    """
    from gangplan.learned.online.evolve import search

    _check_needs()
    with progress("searching", hidden=as_json) as bar, _lines(hidden=as_json):
        found = search(out, data, seed=seed, updates=updates, minutes=minutes, resume=resume, progress=bar)
    rows = [(x["ground"], f"{x['patient']:.5g}", _share(x["above"], x["margin"])) for x in found["grounds"]]
    shown = facts([("rule", "\n".join(found["formula"])), ("updates", f"{found['updates']}, {found['seconds']:.0f} s")])
    emit_either(as_json, found, table(("ground", "mean JCT of patient, s", "above"), rows, left=1), shown)
    return INTERRUPTED if found["interrupted"] else 0


def evaluate(
    name: Weights,
    seeds: Annotated[int, "how many test seeds"] = 5,
    option: Annotated[list[str] | None, "of the policy's own evaluation; may be repeated", "NAME=VALUE"] = None,
    as_json: options.AsJson = False,
) -> None:
    """Judge a policy on test seeds, none of which it was trained on. Needs the extra learn."""
    if seeds < 1:
        raise InstanceError("seeds", f"{seeds!r} is not a positive integer")
    path = find(name)
    made = recipe(read_card(path).policy)
    asked = _options(made.judge, option or [])
    _check_needs()
    with progress("judging", hidden=as_json):
        rows = made.evaluate(made.load(path), range(seeds), **asked)
    emit_either(as_json, rows, _rows_of(rows), "means, and half of their 95% intervals", _rows_of(means(rows)))


def export(
    name: Weights,
    out: Annotated[str, "for the graph that decides", "FILE.onnx", "--out"],
    as_json: options.AsJson = False,
) -> None:
    """Write a policy for ONNX Runtime, which runs it without PyTorch. Needs the extras learn and onnx."""
    path = find(name)
    made = recipe(read_card(path).policy)
    if made.export is None:
        raise InstanceError("policy", f"{made.name!r} has no ONNX form")
    if Path(out).suffix != ".onnx":
        raise InstanceError("out", f"{out!r} does not end with .onnx")
    if not Path(out).parent.is_dir():
        raise InstanceError("out", f"{str(Path(out).parent)!r} is no folder")
    _check_needs()
    try:
        files = [str(x) for x in made.export(made.load(path), Path(out))]
    except OSError as error:
        raise InstanceError("out", f"{out!r} cannot be written: {error.strerror}") from None
    emit_either(as_json, {"files": files}, facts([("written", ", ".join(files))]))


def list_policies(as_json: options.AsJson = False) -> None:
    """List what can be trained, and the weights there are."""
    policies = [{"policy": name, "about": recipe(name).about} for name in RECIPES]
    cards = [read_card(path) for path in shipped().values()]
    weights = [
        {"weights": x.name, "policy": x.policy, "about": x.about, "numbers": x.parameters, "validation": x.validation}
        for x in cards
    ]
    configs = list(shipped_configs())
    blocks: list[Any] = [table(("policy", "decides"), [tuple(x.values()) for x in policies], left=2)]
    rows = [(x.name, x.policy, f"{x.parameters}", _text(x.validation.get("score"))) for x in cards]
    blocks.append(table(("weights", "policy", "numbers", "score"), rows, left=2))
    blocks.append(facts([("configurations", ", ".join(configs) or "none")]))
    emit_either(as_json, {"policies": policies, "weights": weights, "configs": configs}, *blocks)


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


def _verdict(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return in words whether to use what was trained for one's own cluster."""
    *rules, mine = rows
    shown = [(x["rule"], f"{x['mean_jct']:.5g}", _share(x["gnn_less"], x["margin"])) for x in rules]
    best = next(x for x in rules if x["rule"] == mine["best"])
    by = f"its mean JCT is {_share(best['gnn_less'], best['margin'])} against {mine['best']}, the best rule"
    words = f"{'use it' if mine['use'] else 'do not use it'}: {by}, on the last fifth of the trace"
    return [table(("rule", "mean JCT, s", "gnn less"), shown, left=1), facts([("verdict", words)])]


def _share(mean: float, margin: float | None) -> str:
    return f"{mean:+.1%}" if margin is None else f"{mean:+.1%} ± {margin:.1%}"


def _check_needs() -> None:
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise InstanceError("learn", f"needs {', '.join(missing)}; {extra('learn')}")


def _options(function: Any, given: list[str]) -> dict[str, Any]:
    """Return the keyword arguments that NAME=VALUE say; values are JSON where they can be, else text."""
    known = [n for n, x in signature(function).parameters.items() if x.kind is Parameter.KEYWORD_ONLY]
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise InstanceError("option", f"{text!r} is not NAME=VALUE with a name of {', '.join(known) or 'none'}")
        try:
            found[name] = parse_json(value)
        except ValueError:
            found[name] = value
    return found


@contextmanager
def _lines(*, hidden: bool) -> Iterator[None]:
    """Show what training logs on stderr, above the bar."""
    log = logging.getLogger("gangplan.learned")
    handler = logging.NullHandler() if hidden else logging.StreamHandler(sys.stderr)
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
    "Train learned policies, judge them, export them, list them.",
    {
        "train": (train, "topdrl --out runs/topdrl"),
        "evolve": (evolve, "--out runs/rule --minutes 30"),
        "eval": (evaluate, "topdrl --seeds 10"),
        "export": (export, "pacml --out pacml.onnx"),
        "list": (list_policies, "--json"),
    },
)
