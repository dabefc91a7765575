"""`gangplan simulate`: a trace on a cluster, by one policy or several."""

from __future__ import annotations

from pathlib import Path

from gangplan.instances.outlet import write_whole
from gangplan.simulator.metrics import columns
from gangplan.simulator.trace import Outcome

from ..early import INTERRUPTED
from ..plot import check_panel, render
from .output import Told, progress, tell
from .simulation_runs import play
from .simulation_study import ENDINGS, Study
from .simulation_tables import as_blocks, as_data, as_page


def simulate(study: Study) -> Told:
    """Run the jobs of TRACE on a cluster and show when they were done.

    With Ctrl-C it shows what has been simulated so far.
    """
    check_panel(study.panel, Outcome)
    with progress("simulating") as bar:
        found = play(study, bar)
    epoch, name, files = found.setting.epoch if study.zero is None else study.zero, Path(study.trace).name, {}
    if study.html is not None:
        files[study.html] = as_page(found, name, epoch)
    if study.out is not None:
        files[study.out] = ENDINGS[Path(study.out).suffix.lower()](columns(found.outcomes))
    if study.plot is not None:
        files[study.plot] = render(study.plot, found.outcomes, None, name=name, panel=study.panel, epoch=epoch)
    write_whole(files)
    return tell(as_data(found), *as_blocks(found), code=INTERRUPTED if found.interrupted else 0)
