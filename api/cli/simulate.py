"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.outlet import write_whole
from gangplan.simulator.engine.policies import POLICIES
from gangplan.simulator.metrics import columns, groups, to_csv, to_parquet
from gangplan.simulator.trace import Outcome

from ..early import INTERRUPTED
from ..plot import render
from . import options
from .output import emit_either, progress
from .simulation_runs import Setting, check_groups, play, setting_of
from .simulation_study import ONLINE, Engine, Leases, Reading, Shown, Study, cases_of, policies_of, several
from .simulation_tables import as_blocks, as_data, as_page

_CLUSTER = (
    "20x8: 20 nodes of 8 GPUs; 4x8x8: racks first, gangs apart are slower; several: 20x8,24x8; in rounds 8xV100+8xK80"
)
_POLICY = f"{', '.join((*POLICIES, *ONLINE))}; or FILE.py:Class; several: a,b  [default: fifo]"
_SEEDS = "so many from --seed on, or these: 1,5,9. Means, and intervals of 95%"


def simulate(
    trace: Annotated[str, "CSV with job_id, num_gpu, submit_time, duration; or as published", "TRACE"],
    cluster: Annotated[list[str], _CLUSTER, "NxM", "--cluster"],
    reading: Reading,
    engine: Engine,
    leases: Leases,
    shown: Shown,
    policy: Annotated[list[str] | None, _POLICY] = None,
    seed: options.Seed = 0,
    seeds: Annotated[str | None, _SEEDS, "N|N,N"] = None,
    out: Annotated[str | None, "write a row for each job, .csv or .parquet", "FILE"] = None,
    plot: options.Picture = None,
    panel: options.Panel = None,
    as_json: options.AsJson = False,
) -> int:
    """Run the jobs of TRACE on a cluster and show when they were done.

    With Ctrl-C it shows what has been simulated so far.
    """
    check_files(trace, out, plot, panel, shown.html)
    if shown.epoch is not None and plot is None and shown.html is None:
        raise InstanceError("epoch", "is of pictures: give --plot or --html")
    epoch, by, many = shown.zero, shown.groupings, seeds is not None
    policies = policies_of(several(policy, "policy") or ["fifo"], leases.rounds is not None)
    study = Study(trace, several(cluster, "cluster"), policies, reading, engine, leases)
    setting = setting_of(study)
    chosen = _seeds(seeds, seed, setting)
    check_groups(by, setting, many)
    with progress("simulating", hidden=as_json) as bar:
        found = play(setting, cases_of(study), chosen, bar, shown.gpu_hour_price)
    for label, outcome in found.outcomes.items():
        found.about[label] |= setting.about
        found.groups[label] = {name: groups(outcome, name, shown.gpu_hour_price) for name in by}
    epoch, pages = setting.epoch if epoch is None else epoch, {}
    if shown.html is not None:
        pages[shown.html] = as_page(found, setting, Path(trace).name, epoch, many)
    write_files(found.outcomes, trace, out, plot, panel, epoch=epoch, more=pages)
    emit_either(as_json, as_data(found, many), *as_blocks(found, setting, many))
    return INTERRUPTED if found.interrupted else 0


def _seeds(text: str | None, first: int, setting: Setting) -> list[int]:
    if not setting.random and (text is not None or first):
        one, words = ("seed", "changes") if text is None else ("seeds", "change")
        raise InstanceError(one, f"{words} nothing here: give --mtbf and --mttr, --rounds, or --like")
    if text is None:
        return [first]
    if "," in text and first:
        raise InstanceError("seed", "changes nothing beside a list of --seeds")
    found = options.wholes(text)
    chosen = list(found) if "," in text else list(range(first, first + found[0]))
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen) or len(chosen) > 10_000:
        raise InstanceError("seeds", f"{text!r} is not a number of seeds from 1 to 10000, nor a list of several")
    return chosen


ENDINGS = {".csv": to_csv, ".parquet": to_parquet}


def check_files(
    trace: str, out: str | None, plot: str | None, panel: str | None = None, html: str | None = None
) -> None:
    """Refuse, before any work is done, files that overwrite the trace, or whose ending or package is not there."""
    options.check_page(html, trace)
    if html is not None and html in (out, plot):
        raise InstanceError("html", "is the file of another option too", html)
    if out is not None:
        options.check_output(out, trace)
        suffix = Path(out).suffix.lower()
        if suffix not in ENDINGS:
            raise InstanceError("out", f"{suffix!r} is not one of {', '.join(ENDINGS)}", out)
        if suffix == ".parquet" and find_spec("pyarrow") is None:
            raise InstanceError("out", f"needs pyarrow; {extra('tables')}; .csv needs nothing", out)
    if panel is not None and plot is None:
        raise InstanceError("panel", "is of a picture: give --plot")
    options.check_picture(plot, panel, Outcome, trace)


def write_files(
    outcomes: Mapping[str, Outcome],
    trace: str,
    out: str | None,
    plot: str | None,
    panel: str | None = None,
    *,
    epoch: float | None = None,
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write all files, those of `more` by their path, or none."""
    files: dict[str, bytes] = dict(more or {})
    if out is not None:
        files[out] = ENDINGS[Path(out).suffix.lower()](columns(outcomes))
    if plot is not None:
        files[plot] = render(plot, outcomes, None, name=Path(trace).name, panel=panel, epoch=epoch)
    write_whole(files)
