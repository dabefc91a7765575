"""`gangplan topdrl`: policies that pick jobs and close GPUs, on TopDRL's cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from gangplan.instances import InstanceError
from gangplan.instances.intake import cluster_sizes
from gangplan.instances.outlet import write_whole
from gangplan.instances.placement import Fleet
from gangplan.instances.quantities import scale
from gangplan.simulator.metrics import interval, paired
from gangplan.simulator.trace import Outcome
from gangplan.systems.topdrl.evaluate import FIGURES, Row, evaluate, run_policy
from gangplan.systems.topdrl.policies import OTHERS, PUBLISHED, make_policy
from gangplan.systems.topdrl.rules import SCORES
from gangplan.systems.topdrl.suites import DATA, MIXES, SUITES, TRACES, Suite, suite

from ..units import plus_minus
from . import options
from .files import check_picture
from .output import emit_blocks, emit_json, table
from .progress import Bar

_POLICY = f"""rules, each also as RULE+DISCIPLINE+ALLOCATOR: {", ".join(SCORES)}; {", ".join(OTHERS)}; or weights; \
may be repeated  [default: the published rules and least_work]"""
_SIZES: Any = {"rich_help_panel": "Sizes, instead of the suite's"}
_TIMES = {"mean_jct": "mean JCT", "p95_jct": "p95", "makespan": "makespan"}
_SHOWN = {**_TIMES, "throughput": "GPU s/s", "communication": "cost", "ms_per_decision": "ms a decision"}


def topdrl(
    policy: Annotated[list[str] | None, typer.Option(help=_POLICY)] = None,
    suite: Annotated[str, typer.Option(help=f"the workloads: {', '.join(SUITES)}")] = "small",
    data: Annotated[str, typer.Option(help=f"folder of traces, for {' and '.join(TRACES)}", metavar="FOLDER")] = DATA,
    cluster: Annotated[
        str | None, typer.Option(help="racks x nodes in a rack x GPUs  [default: 2x4x4]", metavar="RxNxG", **_SIZES)
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="that arrive", **options.N, **_SIZES)] = None,
    arrival: Annotated[
        float | None, typer.Option(help="probability that a job arrives in a step", **options.X, **_SIZES)
    ] = None,
    length: Annotated[int | None, typer.Option(help="of the longest job, steps", **options.N, **_SIZES)] = None,
    gpus: Annotated[int | None, typer.Option(help="of the largest job", **options.N, **_SIZES)] = None,
    seeds: Annotated[int, typer.Option(help="how many workloads", **options.whole_from(1, 10_000))] = 5,
    first_seed: options.FirstSeed = 0,
    plot: options.Picture = None,
    panel: options.Panel = None,
    as_json: options.AsJson = False,
) -> int:
    """Let gangs arrive on a cluster where closer GPUs are faster, and compare who picks the next job and its GPUs.

    The cluster and the jobs are TopDRL's (JPDC 204, 2025) unless a suite or a size says otherwise. Every schedule is
    checked. The picture is of the first seed.
    """
    check_picture(plot, panel, Outcome)
    sizes = {"jobs": jobs, "arrival": arrival, "length": length, "gpus": gpus}
    ground = _ground(suite, data, cluster, {name: x for name, x in sizes.items() if x is not None})
    made = {name: make_policy(name, suite=ground) for name in dict.fromkeys(policy or (*PUBLISHED, "least_work"))}
    chosen = range(first_seed, first_seed + seeds)
    with Bar("simulating", hidden=as_json) as bar:
        rows = evaluate(made, ground, chosen, progress=bar)
    if plot is not None:
        from ..plot import render

        drawn = {n: run_policy(p, ground, *ground.draw(first_seed))[0] for n, p in made.items()}
        write_whole({plot: render(plot, drawn, None, name=f"{suite}, seed {first_seed}", panel=panel)})
    if as_json:
        emit_json({"suite": suite, "seeds": list(chosen), "policies": [_data(rows, name) for name in made]})
        return 0
    number = len(ground.draw(first_seed)[0].submit)
    head = f"{suite}: {seeds} x {number} jobs on {ground.fleet.n_nodes} nodes, {ground.fleet.n_gpus} GPUs"
    emit_blocks(head, _means(rows, list(made)), *([_against(rows, list(made))] if len(made) > 1 else []))
    return 0


def _ground(name: str, data: str, cluster: str | None, sizes: dict[str, Any]) -> Suite:
    ground = suite(name, data)
    if name in TRACES and (cluster or sizes):
        raise InstanceError("cluster" if cluster else next(iter(sizes)), f"is that of the trace in suite {name!r}")
    if sizes:
        if name == "uncertain":
            raise InstanceError(next(iter(sizes)), f"is fixed in suite {name!r}")
        mix = replace(MIXES[name], **sizes)
        ground = replace(ground, draw=lambda seed: (mix.draw(seed), None))
    if cluster is not None:
        ground = replace(ground, fleet=Fleet.regular(*cluster_sizes(cluster, "racks x nodes x GPUs", "2x4x4")))
    return ground


def _values(rows: list[Row], policy: str, figure: str) -> np.ndarray:
    return np.array([getattr(row, figure) for row in rows if row.policy == policy])


def _means(rows: list[Row], policies: list[str]) -> Any:
    """Return means of figures, of the mean JCT with half of its 95% interval; times in a unit that suits them."""
    heads, columns = [], []
    for figure, words in _SHOWN.items():
        found = [interval(_values(rows, name, figure)) for name in policies]
        factor, unit = scale(max(mean for mean, _ in found), "s") if figure in _TIMES else (1.0, "")
        heads.append(f"{words}, {unit}" if unit else words)
        halves = [half / factor if half is not None and figure == "mean_jct" else None for _, half in found]
        columns.append([plus_minus(x / factor, half, 3) for (x, _), half in zip(found, halves, strict=True)])
    return table(("policy", *heads), zip(policies, *columns, strict=True))


def _against(rows: list[Row], policies: list[str]) -> Any:
    """Return differences from the first policy, of the same workloads, in percent of its mean."""
    first, *others = policies
    lines = []
    for name in others:
        found = [paired(rows, name, first, figure) for figure in ("mean_jct", "makespan", "throughput")]
        parts = [(100 * x.mean / x.base, None if x.margin is None else 100 * x.margin / x.base) for x in found]
        lines.append((name, *(f"{'+' if x > 0 else ''}{plus_minus(x, half, 3)}" for x, half in parts)))
    return table((f"against {first}, %", "mean JCT", "makespan", "GPU s/s"), lines)


def _data(rows: list[Row], policy: str) -> dict[str, Any]:
    found: dict[str, Any] = {"policy": policy}
    for figure in FIGURES:
        mean, margin = interval(values := _values(rows, policy, figure))
        found[figure] = {"mean": mean, "margin": margin, "values": values.tolist()}
    return found
