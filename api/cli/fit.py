"""`gangplan fit`: the cost model against measured speeds."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from typing import Annotated

import typer

from gangplan.instances import InstanceError
from gangplan.instances.readers.measured import Pairs, Servers, read_measured

from . import options
from .output import emit_blocks, emit_json, table


def fit(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Gavel throughputs, DeepShare ratios, Pollux placements, CSV")
    ],
    seed: Annotated[int, typer.Option(help="of what is held out", **options.N)] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Fit the cost model of placements to measurements and show its errors on a fifth held out."""
    if find_spec("scipy") is None:
        raise InstanceError("fit", 'needs scipy: pip install "gangplan[fit]"')
    from gangplan.learned.speed import Fit, fit_duty, fit_pairs, fit_servers, fit_steps

    found: list[Fit] = []
    for path in files:
        for data in read_measured(path):
            try:
                if isinstance(data, Pairs):
                    found += fit_pairs(data, seed=seed)[0]
                    found += fit_duty(data, seed=seed)[0] if data.links else []
                else:
                    found += fit_servers(data)[0] if isinstance(data, Servers) else fit_steps(data, seed=seed)[0]
            except InstanceError as error:
                raise error.of(f"{path}: {data.name}") from None
    if as_json:
        emit_json([asdict(one) for one in found])
        return
    rows = [(x.data, x.model, f"{x.parameters}", f"{x.held_out}", f"{x.median:.1%}", f"{x.p90:.1%}") for x in found]
    emit_blocks(table(("data", "model", "parameters", "held out", "median error", "p90 error"), rows, left=2))
