"""`gangplan system`: policies on the ground of a published system; a command a system, made of its settings."""

from __future__ import annotations

from dataclasses import fields
from inspect import Parameter, getdoc, signature
from math import isfinite
from typing import Annotated, Any, get_type_hints

from gangplan.instances import InstanceError
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import scale
from gangplan.simulator.ground import Ground, GroundRun, against, evaluate, values
from gangplan.simulator.metrics.compare import interval
from gangplan.simulator.outcome import Outcome
from gangplan.systems import SYSTEMS, ground_of

from ..units import plus_minus
from . import options
from .app import Late, made_of
from .output import emit_blocks, emit_json, progress, table


def _setting(field: Any) -> Parameter:
    """Return the option of a setting; one of which there may be several takes them joined by commas."""
    words = f"{field.type}".split(" | ")
    kind = next(x for x in (bool, int, float, str) if x.__name__ in words)
    told = [field.metadata["about"], *(x for k, x in field.metadata.items() if k == "metavar")]
    told += [f"--{field.name}/--no-{field.name}"] * (kind is bool)
    if field.metadata["many"]:
        told = [f"{told[0]}; several joined by commas", "NAME,..."]
    default = field.default if field.metadata["shown"] is None else field.metadata["shown"]
    hint: Any = kind if default is not None else kind | None
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, *told])


def _command(name: str) -> Any:
    """Return the command of a system: the settings of its ground, then what `_compare` asks for."""
    kind = ground_of(name)
    settings = [x for x in fields(kind) if x.metadata]  # type: ignore[arg-type]
    several = next((x.name for x in settings if x.metadata["many"]), None)
    own = ", or FILE.py:Class that picks jobs" if kind.sees else ""
    words = f"{kind.policies()}{own}; may be repeated  [default: {', '.join(kind.usual)}]"
    hints = get_type_hints(_compare, include_extras=True) | {"policy": Annotated[list[str] | None, words]}
    parameters = [_setting(x) for x in settings]
    for x in [*signature(_compare).parameters.values()][2:]:
        if x.name not in ("plot", "panel") or kind.run is not Ground.run:
            parameters.append(x.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[x.name]))

    def command(**given: Any) -> int:
        common = {x: given.pop(x) for x in hints if x in given}
        if several is None:
            return _compare(name, [kind(**given)], **common)
        listed = given.pop(several)
        names = dict.fromkeys(x.strip() for x in listed.split(",") if x.strip())
        if not names:
            raise InstanceError(several, f"{listed!r} names none")
        return _compare(name, [kind(**given, **{several: x}) for x in names], **common)

    return options.signed(command, parameters, name, f"{getdoc(kind)}".partition("\n\nAttributes:")[0])


class Systems(Late):
    """Compare policies on a published system's ground."""

    groups, of = {"Commands": SYSTEMS}, "system"
    about = staticmethod(lambda name: SYSTEMS[name].about)
    make = staticmethod(lambda name: made_of(f"system {name}", _command(name), SYSTEMS[name].example))


def _compare(
    name: str,
    grounds: list[Any],
    policy: list[str] | None = None,
    seeds: Annotated[int, "how many draws", (1, 10_000)] = 5,
    first_seed: options.FirstSeed = 0,
    plot: options.Picture = None,
    panel: options.Panel = None,
    as_json: options.AsJson = False,
) -> int:
    chosen = range(first_seed, first_seed + seeds)
    asked = {x.rpartition(":")[2]: x for x in policy or grounds[0].usual}
    names = list(asked)
    if plot is not None:
        options.check_picture(plot, panel, Outcome)
    made = [{name: ground.find(x) for name, x in asked.items()} for ground in grounds]
    cases: list[list[GroundRun]] = []
    with progress("simulating", hidden=as_json) as bar:
        for ground, makers in zip(grounds, made, strict=True):

            def tell(share: float, done: int = len(cases)) -> None:
                bar((done + share) / len(grounds))

            cases.append(evaluate(ground, makers, chosen, progress=tell))
    if plot is not None:
        _draw(plot, panel, grounds[0], made[0], first_seed)
    if as_json:
        policies = [_data(runs, one, ground) for ground, runs in zip(grounds, cases, strict=True) for one in names]
        emit_json({"system": name, "seeds": list(chosen), "policies": policies})
        return 0
    blocks: list[Any] = []
    for ground, runs in zip(grounds, cases, strict=True):
        about = ground.about(ground.draw(first_seed))
        blocks += [f"{ground.case}: {seeds} x {about}", _means(ground, runs, names)]
        heads, columns = _columns(ground, runs, names, True)
        blocks += [table(("policy", *heads), zip(names, *columns, strict=True))] * bool(heads)
    emit_blocks(*blocks)
    return 0


def _draw(plot: str, panel: str | None, ground: Any, makers: dict[str, Any], seed: int) -> None:
    """Draw the schedules of the first case and seed side by side."""
    from ..plot import render

    drawn = ground.draw(seed)
    lanes = {name: ground.run(make(drawn, seed), drawn)[0] for name, make in makers.items()}
    write_whole({plot: render(plot, lanes, None, name=f"{ground.case}, seed {seed}", panel=panel)})


def _columns(ground: Ground, runs: list[GroundRun], policies: list[str], aside: bool) -> tuple[list[str], list[Any]]:
    """Return heads and columns of means, the first figure's with half of its 95% interval."""
    heads, columns, first = [], [], next(iter(ground.figures))
    for figure, of in ground.figures.items():
        means = [interval(values(runs, name, figure)) for name in policies]
        if of.aside != aside or (aside and not any(isfinite(mean) and mean for mean, _ in means)):
            continue
        factor, unit = scale(max(mean for mean, _ in means), "s") if of.unit == "s" else (1.0, "")
        factor = 0.01 if of.unit == "%" else factor
        heads.append(f"{of.words}, {unit}" if unit else of.words)
        halves = [half / factor if half is not None and figure == first else None for _, half in means]
        both = zip(means, halves, strict=True)
        columns.append([plus_minus(x / factor, half, 3) if isfinite(x) else "" for (x, _), half in both])
    return heads, columns


def _means(ground: Ground, runs: list[GroundRun], policies: list[str]) -> Any:
    """Return means, and how far the first figure is from that of the first policy, paired by seed."""
    heads, columns = _columns(ground, runs, policies, False)
    if len(policies) > 1:
        figure, apart = next(iter(ground.figures)), [""]
        for name in policies[1:]:
            mean, half = against(runs, name, policies[0], figure)
            part = plus_minus(100 * mean, None if half is None else 100 * half, 3)
            apart.append(f"{'+' if mean > 0 else ''}{part}" if isfinite(mean) else "")
        heads.insert(1, "against the first, %")
        columns.insert(1, apart)
    return table(("policy", *heads), zip(policies, *columns, strict=True))


def _data(runs: list[GroundRun], policy: str, ground: Ground) -> dict[str, Any]:
    """Return the figures of a policy for machines; what it has none of is left out."""
    data: dict[str, Any] = {"policy": policy, "case": ground.case}
    for figure in ground.figures:
        mean, margin = interval(one := values(runs, policy, figure))
        if isfinite(mean):
            data[figure] = {"mean": mean, "margin": margin, "values": one.tolist()}
    return data
