"""`gangplan pacml`: how many jobs each policy blocks on PAC-ML's cluster."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.intake import cluster_sizes
from gangplan.simulator.metrics.compare import half_width
from gangplan.systems.pacml.arrivals import DISTRIBUTIONS
from gangplan.systems.pacml.baselines import PUBLISHED_POLICIES
from gangplan.systems.pacml.blocks import Blocks
from gangplan.systems.pacml.evaluate import Rates, evaluate
from gangplan.systems.pacml.jobs import MODELS, read_types
from gangplan.systems.pacml.learned.policies import make_policy
from gangplan.systems.pacml.step import Units

from . import options
from .output import emit_blocks, emit_json, table
from .progress import Bar

UNITS = ("physical", "as-published")


def pacml(
    profiles: Annotated[
        str | None, typer.Option(help="folder of PipeDream profiles, one NAME.txt a model", metavar="FOLDER")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(PUBLISHED_POLICIES[:4])}, ..., smallest+best; plans (of past arrivals); learned, or "
            "weights, alone or with +plans; may be repeated  [default: the published]"
        ),
    ] = None,
    distribution: Annotated[
        str, typer.Option(help="of what users accept, joined by commas", metavar="LETTERS")
    ] = ",".join(DISTRIBUTIONS),
    seeds: Annotated[int, typer.Option(help="cases of each distribution", **options.N)] = 5,
    first_seed: Annotated[int, typer.Option(help="of the first case", **options.N)] = 0,
    units: Annotated[str, typer.Option(help="physical, or as-published: transfers 1000 times too cheap")] = "physical",
    models: Annotated[str, typer.Option(help="profiles, joined by commas", metavar="NAMES")] = ",".join(MODELS),
    cluster: Annotated[
        str, typer.Option(help="communication groups x racks x servers in a rack", metavar="CxRxS")
    ] = "4x4x2",
    jobs: Annotated[int, typer.Option(help="that arrive", **options.N)] = 1000,
    load: Annotated[
        float, typer.Option(help="offered work, as a multiple of the published", metavar="RATIO", parser=options.number)
    ] = 1.0,
    poisson: Annotated[bool, typer.Option("--poisson", help="arrivals at random instead of evenly")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Let jobs arrive on a RAMP cluster, accepted at once or blocked, and report how many of them each policy blocks.

    The protocol, and by default everything else, is PAC-ML's (arXiv 2301.13799). Every outcome is checked.
    """
    if profiles is None:
        raise InstanceError("profiles", "is not given: name a folder of PipeDream profiles, one NAME.txt a model")
    if units not in UNITS:
        raise InstanceError("units", f"{units!r} is not one of {', '.join(UNITS)}")
    for value, name, least, most in (
        (seeds, "seeds", 1, 10_000),
        (first_seed, "first_seed", 0, 2**31),
        (jobs, "jobs", 1, 1_000_000),
    ):
        if not least <= value <= most:
            raise InstanceError(name, f"{value!r} is not from {least} to {most}")
    if not 0 < load <= 100:
        raise InstanceError("load", f"{load!r} is not from 0 to 100")
    letters = _words(distribution) or ("",)
    for letter in letters:
        if letter not in DISTRIBUTIONS:
            raise InstanceError("distribution", f"{letter!r} is not one of {', '.join(DISTRIBUTIONS)}")
    blocks = Blocks(RampTopology(*cluster_sizes(cluster, "", "4x4x2")))
    kind = cast(Units, units)
    types = read_types(profiles, _words(models), blocks=blocks, units=kind)
    with Bar("simulating", hidden=as_json) as bar:
        found = evaluate(
            types,
            [(name, make_policy(name, kind)) for name in policy or PUBLISHED_POLICIES],
            distributions=letters,
            seeds=range(first_seed, first_seed + seeds),
            n=jobs,
            load=load,
            poisson=poisson,
            progress=bar,
        )
    about = {"units": units, "servers": blocks.n_servers, "jobs": jobs, "load": load, "poisson": poisson}
    if as_json:
        emit_json({**about, "seeds": [first_seed, first_seed + seeds], "rates": [_data(row) for row in found]})
        return 0
    many = f"{seeds} x {jobs} jobs of {len(types)} models"
    head = f"{many} on {blocks.n_servers} servers, {units} units, load {load:g}"
    constants = [row for row in found if row.policy.startswith("constant-") and "+" not in row.policy]
    by_rate = sorted(constants, key=lambda row: row.blocked_or_running.mean(), reverse=True)
    best = {row.distribution: row.policy for row in by_rate}
    words = ", ".join(f"{best[letter]} on {letter}" for letter in letters if letter in best)
    remarks = [f"the best constant is {words}"] if words else []
    shown = list(dict.fromkeys(row.policy for row in found))
    columns = ("policy", *letters)
    shares: list[Any] = []
    for title, field in (("were blocked", "blocked"), ("were blocked or had not ended", "blocked_or_running")):
        by = {(row.policy, row.distribution): getattr(row, field) for row in found}
        rows = [(name, *(_cell(by[name, letter]) for letter in letters)) for name in shown]
        shares += [f"percent of the jobs that {title}", table(columns, rows)]
    emit_blocks(head, *shares, *remarks)
    return 0


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _cell(values: Any) -> str:
    half = _margin(values)
    return f"{100 * values.mean():.2f}" + ("" if half is None else f" ± {100 * half:.2f}")


def _margin(values: Any) -> float | None:
    half = half_width(values)
    return None if half is None else float(half)


def _data(row: Rates) -> dict[str, Any]:
    return {
        "policy": row.policy,
        "distribution": row.distribution,
        **{
            name: {"mean": float(values.mean()), "margin": _margin(values), "values": values.tolist()}
            for name, values in (("blocked", row.blocked), ("blocked_or_running", row.blocked_or_running))
        },
        "seconds": row.seconds.tolist(),
    }
