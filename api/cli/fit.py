"""`gangplan fit`: the cost model, and learned models of interference, against measured speeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from typing import Annotated, Any

from gangplan.instances.errors import InstanceError, extra, in_file
from gangplan.instances.readers.measured import Pairs, Servers, Steps, read_measured
from gangplan.instances.readers.together import Together
from gangplan.learned.speed import Fit, fit_duty, fit_pairs, fit_servers, fit_steps

from .output import Told, progress, table, tell


def fit(
    files: Annotated[list[str], "Gavel throughputs, DeepShare ratios, Pollux placements, CSV", "FILE..."],
    seed: Annotated[int, "of what is held out"] = 0,
    models: Annotated[bool, "fit the learned models to published pairs, too"] = False,
) -> Told:
    """Fit the cost model of placements to measurements and show its errors on a fifth held out.

    To a table of jobs alone and together, learned models of interference are fitted; whole combinations are held out.
    """
    if find_spec("scipy") is None:
        raise InstanceError("fit", f"needs scipy; {extra('fit')}")
    found: list[Fit] = []
    judged: list[dict[str, Any]] = []
    with progress("fitting") as bar:
        for i, path in enumerate(files):
            for data in read_measured(path):
                with in_file(f"{path}: {data.name}"):
                    if not isinstance(data, Together):
                        found += _cost_model(data, seed)
                    if isinstance(data, Together) or (models and isinstance(data, Pairs)):
                        judged += _learned(data, seed, bar)
            bar((i + 1) / len(files))
    rows = [(x.data, x.model, f"{x.parameters}", f"{x.held_out}", f"{x.median:.1%}", f"{x.p90:.1%}") for x in found]
    blocks = [table(("data", "model", "parameters", "held out", "median error", "p90 error"), rows, left=2)]
    blocks = blocks * bool(found) + [_judged(judged)] * bool(judged)
    return tell([*map(asdict, found), *judged], *blocks)


def _cost_model(data: Pairs | Steps | Servers, seed: int) -> list[Fit]:
    if isinstance(data, Pairs):
        return fit_pairs(data, seed=seed) + (fit_duty(data, seed=seed) if data.links else [])
    return fit_servers(data) if isinstance(data, Servers) else fit_steps(data, seed=seed)


def _learned(data: Pairs | Together, seed: int, bar: Callable[[float], None]) -> list[dict[str, Any]]:
    """Return what each learned model that is installed comes to on combinations held out."""
    from gangplan.learned.interference.judge import hold_out, judge
    from gangplan.learned.interference.models import available, fit
    from gangplan.systems.interference.samples import pair_samples, table_samples

    fitted, held_out = hold_out(pair_samples(data) if isinstance(data, Pairs) else table_samples(data), seed)
    found, names = [], available()
    for i, name in enumerate(names):
        score = judge(fit(fitted, seed, model=name), fitted, held_out)
        found.append({"data": data.name, "model": name, **asdict(score)})
        bar((i + 1) / len(names))
    return found


def _judged(rows: list[dict[str, Any]]) -> Any:
    columns = ("data", "model", "samples", "held out", "MAPE", "median error", "p90 error", "rank", "in 80%")
    cells = []
    for x in rows:
        errors = (f"{x[name]:.1%}" for name in ("mape", "median", "p90"))
        counts = f"{x['samples']}", f"{x['held_out']}"
        cells.append((x["data"], x["model"], *counts, *errors, f"{x['rank']:.2f}", f"{x['within'][1]:.0%}"))
    return table(columns, cells, left=2)
