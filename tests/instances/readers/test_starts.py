"""When jobs started, as traces tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.starts import read_waits

SACCT = """JobID|Submit|Start|AllocTRES
1|2026-01-01T00:00:00|2026-01-01T00:00:30|gres/gpu=1
1.batch|2026-01-01T00:00:30|2026-01-01T00:00:30|cpu=1
2|2026-01-01T00:00:00|Unknown|gres/gpu=1
3+0|2026-01-01T00:00:00|2026-01-01T00:02:00|gres/gpu=1
3+1|2026-01-01T00:00:00|2026-01-01T00:01:00|gres/gpu=1
4|2026-01-01T00:00:00|2026-01-01T00:01:00|gres/gpu=1
4|2026-01-01T01:00:00|2026-01-01T01:00:05|gres/gpu=1
"""


def test_sacct(tmp_path: Path) -> None:
    """Steps and jobs that never started are left out; of parts the first counts, of attempts the last."""
    path = tmp_path / "sacct.csv"
    path.write_text(SACCT)
    assert read_waits(path) == {"1": 30.0, "3": 60.0, "4": 5.0}


def test_commas_and_what_is_wrong(tmp_path: Path) -> None:
    """Tables with commas are read as well; one without starts, or with a time that is none, is refused."""
    path = tmp_path / "trace.csv"
    path.write_text("job_id,submit_time,start_time\na,5,7.5\n")
    assert read_waits(path) == {"a": 2.5}
    path.write_text("job_id,submit_time,start_time\na,5,7.5\nb,5,later\n")
    with pytest.raises(InstanceError, match=r"trace\.csv: line 3\.start_time: 'later' is no time"):
        read_waits(path)
    path.write_text("job_id,submit_time\na,5\n")
    with pytest.raises(InstanceError, match="tells not when jobs started"):
        read_waits(path)
