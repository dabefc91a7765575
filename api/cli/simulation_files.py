"""What `gangplan simulate` writes: a row for each job, and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from gangplan.instances.errors import InstanceError, extra
from gangplan.instances.outlet import write_whole
from gangplan.simulator.metrics import columns, to_csv, to_parquet
from gangplan.simulator.trace import Outcome

from .files import check_output, check_picture

ENDINGS = {".csv": to_csv, ".parquet": to_parquet}


def check_files(trace: str, out: str | None, plot: str | None, panel: str | None = None) -> None:
    """Refuse, before any work is done, files that cannot be written, whose ending or package is not there.

    Args:
        trace: the input, not to be overwritten.
        out: for rows of jobs, .csv or .parquet.
        plot: for a picture, .png, .svg or .html.
        panel: of the picture, only this one.
    """
    if out is not None:
        check_output(out, trace)
        suffix = Path(out).suffix.lower()
        if suffix not in ENDINGS:
            raise InstanceError("out", f"{suffix!r} is not one of {', '.join(ENDINGS)}", out)
        if suffix == ".parquet" and find_spec("pyarrow") is None:
            raise InstanceError("out", f"needs pyarrow; {extra('tables')}; .csv needs nothing", out)
    if panel is not None and plot is None:
        raise InstanceError("panel", "is of a picture: give --plot")
    check_picture(plot, panel, Outcome, trace)


def write_files(
    outcomes: Mapping[str, Outcome], trace: str, out: str | None, plot: str | None, panel: str | None = None
) -> None:
    """Write the files that were asked for, whole or not at all."""
    files: dict[str, bytes] = {}
    if out is not None:
        files[out] = ENDINGS[Path(out).suffix.lower()](columns(outcomes))
    if plot is not None:
        from ..plot import render

        files[plot] = render(plot, outcomes, None, name=Path(trace).name, panel=panel)
    write_whole(files)
