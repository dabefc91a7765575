"""`gangplan system`: policies on the ground of a published system; a command a system, made of its settings."""

from __future__ import annotations

from dataclasses import fields
from inspect import Parameter, getdoc
from math import isfinite
from typing import Annotated, Any

from gangplan.instances import InstanceError
from gangplan.instances.quantities import scale
from gangplan.simulator.ground import Ground, GroundRun, against, evaluate, values
from gangplan.simulator.metrics.compare import interval
from gangplan.simulator.outcome import Outcome
from gangplan.systems import SYSTEMS, ground_of

from ..units import plus_minus
from . import options
from .app import Group, made_of
from .output import Told, progress, table_of, tell, write


def _setting(field: Any) -> Parameter:
    """Return the option of a setting; one of which there may be several takes them joined by commas."""
    kind = next(x for x in (bool, int, float, str) if x.__name__ in f"{field.type}".split(" | "))
    told = [field.metadata["about"], *(x for k, x in field.metadata.items() if k == "metavar")]
    told += [f"--{field.name}/--no-{field.name}"] * (kind is bool)
    if field.metadata["many"]:
        told = [f"{told[0]}; several joined by commas", "NAME,..."]
    default = field.default if field.metadata["shown"] is None else field.metadata["shown"]
    hint: Any = kind if default is not None else kind | None
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, *told])


def _command(name: str) -> Any:
    """Return the command of a system: the settings of its ground, then what all ask for."""
    kind = ground_of(name)
    settings = [x for x in fields(kind) if x.metadata]  # type: ignore[arg-type]
    several = next((x.name for x in settings if x.metadata["many"]), "")
    own = ", or FILE.py:Class that picks jobs" if kind.sees else ""
    words = f"{kind.policies()}{own}; may be repeated  [default: {', '.join(kind.usual)}]"
    common: dict[str, tuple[Any, Any]] = {
        "policy": (Annotated[list[str] | None, words], None),
        "seeds": (Annotated[int, "how many draws", (1, 10_000)], 5),
        "first_seed": (options.FirstSeed, 0),
    }
    if kind.run is not Ground.run:  # it can draw schedules
        common |= {"plot": (options.Picture, None), "panel": (options.Panel, None)}
    more = [Parameter(x, Parameter.KEYWORD_ONLY, default=y, annotation=hint) for x, (hint, y) in common.items()]

    def command(**given: Any) -> Told:
        common = {x.name: given.pop(x.name) for x in more}
        listed = given.pop(several, None)
        names = dict.fromkeys(x.strip() for x in (listed or "").split(",") if x.strip())
        if several and not names:
            raise InstanceError(several, f"{listed!r} names none")
        cases = [{several: x} for x in names] or [{}]
        return _compare(name, [kind(**given, **case) for case in cases], **common)

    command.__doc__ = f"{getdoc(kind)}".partition("\n\nAttributes:")[0]
    return made_of(f"system {name}", command, SYSTEMS[name].example, [*map(_setting, settings), *more])


_ABOUT = "Compare policies on a published system's ground."
systems = Group("system", _ABOUT, {"Commands": SYSTEMS}, _command, lambda name: SYSTEMS[name].about, "system")


def _compare(
    name: str,
    grounds: list[Any],
    policy: list[str] | None,
    seeds: int,
    first_seed: int,
    plot: str | None = None,
    panel: str | None = None,
) -> Told:
    chosen = range(first_seed, first_seed + seeds)
    asked = {x.rpartition(":")[2]: x for x in policy or grounds[0].usual}
    names = list(asked)
    options.check_panel(panel, Outcome)
    made = [{name: ground.find(x) for name, x in asked.items()} for ground in grounds]
    cases: list[list[GroundRun]] = []
    with progress("simulating") as bar:
        for ground, makers in zip(grounds, made, strict=True):

            def step(share: float, done: int = len(cases)) -> None:
                bar((done + share) / len(grounds))

            cases.append(evaluate(ground, makers, chosen, progress=step))
    if plot is not None:  # the schedules of the first case and seed side by side
        drawn = grounds[0].draw(first_seed)
        lanes = {x: grounds[0].run(make(drawn, first_seed), drawn)[0] for x, make in made[0].items()}
        title = f"{grounds[0].case}, seed {first_seed}"
        write((plot, lambda path: options.drawn(path, lanes, None, name=title, panel=panel)))
    policies = [_data(runs, one, ground) for ground, runs in zip(grounds, cases, strict=True) for one in names]
    blocks: list[Any] = []
    for ground, runs in zip(grounds, cases, strict=True):
        about = ground.about(ground.draw(first_seed))
        blocks += [f"{ground.case}: {seeds} x {about}", *map(table_of, _tables(ground, runs, names))]
    return tell({"system": name, "seeds": list(chosen), "policies": policies}, *blocks)


def _tables(ground: Ground, runs: list[GroundRun], policies: list[str]) -> list[dict[str, list[str]]]:
    """Return the columns of two tables, of means and of those that stand aside.

    The first has half of its 95% interval, and how far each policy is from the first, paired by seed.
    """
    tables = {"policy": policies}, {"policy": policies}
    for i, (figure, of) in enumerate(ground.figures.items()):
        means = [interval(values(runs, name, figure)) for name in policies]
        if of.aside and not any(isfinite(mean) and mean for mean, _ in means):
            continue
        factor, unit = scale(max(mean for mean, _ in means), "s") if of.unit == "s" else (1.0, "")
        factor = 0.01 if of.unit == "%" else factor
        halves = [half / factor if half is not None and i == 0 else None for _, half in means]
        both = zip(means, halves, strict=True)
        cells = [plus_minus(x / factor, half, 3) if isfinite(x) else "" for (x, _), half in both]
        tables[of.aside][f"{of.words}, {unit}" if unit else of.words] = cells
        if i == 0 and len(policies) > 1:
            apart = [""]
            for name in policies[1:]:
                mean, half = against(runs, name, policies[0], figure)
                part = plus_minus(100 * mean, half and 100 * half, 3)
                apart.append(f"{'+' if mean > 0 else ''}{part}" if isfinite(mean) else "")
            tables[0]["against the first, %"] = apart
    return [columns for columns in tables if len(columns) > 1]


def _data(runs: list[GroundRun], policy: str, ground: Ground) -> dict[str, Any]:
    """Return the figures of a policy for machines; what it has none of is left out."""
    data: dict[str, Any] = {"policy": policy, "case": ground.case}
    for figure in ground.figures:
        mean, margin = interval(one := values(runs, policy, figure))
        if isfinite(mean):
            data[figure] = {"mean": mean, "margin": margin, "values": one.tolist()}
    return data
