"""`gangplan harmony`: policies that place gangs beside one another, on a cluster whose interference is hidden."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from gangplan.instances.quantities import scale
from gangplan.simulator.metrics import interval
from gangplan.systems.interference.cases import CASES, DATA, DATA_CASES, OF_AGENTS, maker
from gangplan.systems.interference.evaluate import Figures, baselines, evaluate
from gangplan.systems.interference.policies import OTHERS, make_policy

from ..units import plus_minus
from . import options
from .output import emit_blocks, emit_json, table
from .progress import Bar

_CASE = f"what arrives: {', '.join((*CASES, *DATA_CASES))}"
_NAMES = [name for name in (*baselines(), *OTHERS) if not name.endswith("-2-racks")]
_POLICY = f"""{", ".join(_NAMES)}; market and agents also as NAME-2-racks; or weights; \
may be repeated  [default: lif, tetris, lb, alone]"""
_FIGURES = {"mean_jct": "mean JCT", "p95_jct": "p95", "makespan": "makespan"}


def harmony(
    case: Annotated[str, typer.Argument(help=_CASE, metavar="CASE")] = "poisson",
    policy: Annotated[list[str] | None, typer.Option(help=_POLICY)] = None,
    data: Annotated[str, typer.Option(help=f"folder of data, for {', '.join(DATA_CASES)}", metavar="FOLDER")] = DATA,
    jobs: Annotated[int | None, typer.Option(help="how many  [default: as the case says]", **options.N)] = None,
    seeds: Annotated[int, typer.Option(help="how many workloads", **options.whole_from(1, 10_000))] = 5,
    first_seed: options.FirstSeed = 0,
    as_json: options.AsJson = False,
) -> int:
    """Let jobs arrive that slow one another down in ways nobody is told, and compare who places their tasks.

    The ground is Harmony's (INFOCOM 2019, ToN 2023); every outcome is checked. Oracles know the truth.
    """
    names = list(dict.fromkeys(policy or ("lif", "tetris", "lb", "alone")))
    make, made = maker(case, data, **({} if jobs is None else {"jobs": jobs})), {n: make_policy(n, case) for n in names}
    parts: list[dict[str, Figures]] = []
    with Bar("simulating", hidden=as_json) as bar:
        for at in range(seeds):
            parts.append(evaluate(made, make, [first_seed + at]))
            bar((at + 1) / seeds)
    found = {name: Figures.join([part[name] for part in parts]) for name in names}
    if as_json:
        chosen = list(range(first_seed, first_seed + seeds))
        emit_json({"case": case, "seeds": chosen, "policies": [_data(name, one) for name, one in found.items()]})
        return 0
    first = make(first_seed)
    nodes = "groups of GPUs" if case in OF_AGENTS else "servers"
    head = f"{case}: {seeds} x {len(first.jobs)} jobs on {first.fleet.n_nodes} {nodes}, {first.fleet.n_gpus} GPUs"
    said = {name: one for name, one in found.items() if one.messages.any()}
    emit_blocks(head, _means(found), *([_said(said)] if said else []))
    return 0


def _means(found: dict[str, Figures]) -> Any:
    """Return means, that of the JCT with half of its 95% interval, and its paired difference from the first policy."""
    first, heads, columns = next(iter(found.values())), [], []
    for figure, words in _FIGURES.items():
        means = [interval(getattr(one, figure)) for one in found.values()]
        factor, unit = scale(max(mean for mean, _ in means), "s")
        heads.append(f"{words}, {unit}")
        shown = [half / factor if half is not None and figure == "mean_jct" else None for _, half in means]
        columns.append([plus_minus(x / factor, half, 3) for (x, _), half in zip(means, shown, strict=True)])
    paired = (one.against(first) for one in found.values())
    against = [(100 * x, None if half is None else 100 * half) for x, half in paired]
    columns.insert(1, [f"{'+' if x > 0 else ''}{plus_minus(x, half, 3)}" for x, half in against])
    columns[1][0] = ""
    heads.insert(1, f"against {next(iter(found))}, %")
    return table(("policy", *heads), zip(found, *columns, strict=True))


def _said(found: dict[str, Figures]) -> Any:
    """Return what agents told one another, a job, and how long a round of a market takes."""
    rows = [
        (
            name,
            f"{one.messages.mean():.1f}",
            f"{one.size.mean():,.0f}",
            f"{one.wire.mean():,.0f}" if one.wire.any() else "",
            "" if np.isnan(one.round).all() else f"{1e3 * one.round.mean():.1f}",
        )
        for name, one in found.items()
    ]
    return table(("agents", "messages/job", "bytes/job", "sent/job", "round, ms"), rows)


def _data(name: str, one: Figures) -> dict[str, Any]:
    data: dict[str, Any] = {"policy": name}
    for figure in _FIGURES:
        mean, margin = interval(values := getattr(one, figure))
        data[figure] = {"mean": mean, "margin": margin, "values": values.tolist()}
    if one.messages.any():
        data |= {"messages": one.messages.tolist(), "bytes": one.size.tolist(), "sent_bytes": one.wire.tolist()}
        data |= {} if np.isnan(one.round).any() else {"round_seconds": one.round.tolist()}
    return data
