"""The rows of `gangplan simulate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gangplan.cli.simulation_study import Study, cases_of
from gangplan.instances import InstanceError


def rows(policies: list[str], **engine: Any) -> list[str]:
    """Return the labels of rows on two clusters."""
    return [*cases_of(Study(trace="", cluster=["2x8", "3x8"], policy=policies, **engine))]


def test_labels() -> None:
    """Rows are named by their policy and by what they differ in."""
    assert rows(["fifo"]) == ["fifo 2x8", "fifo 3x8"]
    assert rows(["fifo", "gnn"], price=(0.0, 1.5))[:3] == ["fifo 2x8", "gnn 2x8 0", "gnn 2x8 1.5"]
    # what stops jobs or chooses places holds no reservations, so it has a row where none are held
    both = ["easy", "overtake"]
    assert rows(["sjf", "srtf", "tetris"], discipline=both)[:4] == [
        "sjf 2x8 easy",
        "sjf 2x8 overtake",
        "srtf 2x8 overtake",
        "tetris 2x8 overtake",
    ]
    assert rows(["srtf"], discipline=both, preemptive=False)[:2] == ["srtf 2x8 easy", "srtf 2x8 overtake"]
    with pytest.raises(InstanceError, match="discipline: 'easy' holds reservations, which tetris does not go with"):
        rows(["sjf", "tetris"], discipline=["easy"])


@pytest.mark.parametrize("estimates", ["known", "limits", "none"])
def test_what_the_scheduler_is_told(estimates: str) -> None:
    """`gangplan.Scheduler` is told durations only where they are known; limits it has as such."""
    made = cases_of(Study(trace="", cluster=["2x8"], policy=["patient"], estimates=estimates, price=(60.0,)))
    (row,) = made.values()
    assert isinstance(row.policy, partial)
    told = {} if estimates == "known" else {"told": False}
    assert row.policy.keywords == {"policy": "patient", "price": 60.0} | told
    assert row.about["price"] == 60.0


def test_racks_beside_equal_places(tmp_path: Path, cli: Any) -> None:
    """A cluster with racks and one without are two rows; a gang that is apart is slower in the first alone."""
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,num_gpu,submit_time,duration\na,8,0,100\n")
    done = cli("simulate", trace, "--cluster", "2x1x4,2x4")
    assert done.code == 0, done.err
    (racks,), (flat,) = (
        [line.split() for line in done.out.splitlines() if line.startswith(name)][:1] for name in ("2x1x4", "2x4")
    )
    assert float(racks[2].lstrip("*")) > float(flat[2].lstrip("*")) and flat[2].startswith("*")
