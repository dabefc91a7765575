"""`gangplan fit`: the cost model, and learned models of interference, against measured speeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from gangplan.instances.errors import in_file
from gangplan.instances.readers.measured import Pairs, Servers, read_measured
from gangplan.instances.readers.together import Together
from gangplan.learned.training.speed import Fit, fit_duty, fit_pairs, fit_servers, fit_steps

from .output import Told, listed, progress, tell


def fit(
    files: Annotated[list[str], "Gavel throughputs, DeepShare ratios, Pollux placements, CSV", "FILE..."],
    seed: Annotated[int, "of what is held out"] = 0,
    models: Annotated[bool, "fit the learned models to published pairs, too"] = False,
) -> Told:
    """Fit the cost model of placements to measurements and show its errors on a fifth held out.

    To a table of jobs alone and together, learned models of interference are fitted; whole combinations are held out.
    """
    found: list[Fit] = []
    judged: list[dict[str, Any]] = []
    with progress("fitting") as bar:
        for i, path in enumerate(files):
            for data in read_measured(path):
                with in_file(f"{path}: {data.name}"):
                    if isinstance(data, Pairs):
                        found += fit_pairs(data, seed=seed) + (fit_duty(data, seed=seed) if data.links else [])
                    elif not isinstance(data, Together):
                        found += fit_servers(data) if isinstance(data, Servers) else fit_steps(data, seed=seed)
                    if isinstance(data, Together) or (models and isinstance(data, Pairs)):
                        judged += _learned(data, seed, bar)
            bar((i + 1) / len(files))
    rows = [asdict(x) for x in found]
    of = {"data": "{data}", "model": "{model}"}
    errors = {"median error": "{median:.1%}", "p90 error": "{p90:.1%}"}
    fits = of | {"parameters": "{parameters}", "held out": "{held_out}"} | errors
    judgements = of | {"samples": "{samples}", "held out": "{held_out}", "MAPE": "{mape:.1%}"} | errors
    judgements |= {"rank": "{rank:.2f}", "in 80%": "{within[1]:.0%}"}
    return tell([*rows, *judged], listed(rows, fits, 2), listed(judged, judgements, 2))


def _learned(data: Pairs | Together, seed: int, bar: Callable[[float], None]) -> list[dict[str, Any]]:
    """Return what each learned model that is installed comes to on combinations held out."""
    from gangplan.learned.training.interference.judge import hold_out, judge
    from gangplan.learned.training.interference.measured import pair_samples, table_samples
    from gangplan.learned.training.interference.models import available, fit

    fitted, held_out = hold_out(pair_samples(data) if isinstance(data, Pairs) else table_samples(data), seed)
    found, names = [], available()
    for i, name in enumerate(names):
        score = judge(fit(fitted, seed, model=name), fitted, held_out)
        found.append({"data": data.name, "model": name, **asdict(score)})
        bar((i + 1) / len(names))
    return found
