"""A trace of one's own, a CSV with other names of columns and dates: read, summed up, simulated."""

import sys
from pathlib import Path

from gangplan.instances.readers.traces import read_trace
from gangplan.simulator.metrics import groups, summary
from gangplan.simulator.trace import simulate

SAMPLE = """\
job,owner,cards,submitted,seconds
train-1,ann,8,2026-03-02T09:00:00,7200
train-2,ann,4,2026-03-02T09:10:00,3600
eval-1,bob,1,2026-03-02T09:15:00,300
train-3,bob,8,2026-03-02T09:20:00,5400
short,ann,8,2026-03-02T09:30:00,600
broken,bob,many,2026-03-02T09:31:00,60
"""
COLUMNS = {"id": "job", "user": "owner", "gpus": "cards", "submit": "submitted", "duration": "seconds"}
"""Our name of each column, and the file's; `gangplan simulate --columns id=job,user=owner,...` takes the same."""


def main(path: str | Path) -> dict[str, float]:
    """Print what the trace holds, and return the mean job completion time under each policy, s."""
    trace = read_trace(path, columns=COLUMNS, skip_bad=True)
    jobs = trace.workload
    print(f"{jobs.n_jobs} jobs, {(jobs.gpus * jobs.duration).sum() / 3600:.1f} GPU-hours; skipped: {trace.skipped}")
    outcomes = {name: simulate(jobs, nodes=1, gpus=8, policy=name, discipline="easy") for name in ("fifo", "sjf")}
    for name, outcome in outcomes.items():
        waits = ", ".join(f"{group.name} {group.mean_wait:.0f} s" for group in groups(outcome, "user"))
        print(f"{name}: mean JCT {summary(outcome).mean_jct:.0f} s; mean wait of {waits}")
    return {name: summary(outcome).mean_jct for name, outcome in outcomes.items()}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        Path("own_trace.csv").write_text(SAMPLE, encoding="utf-8")
    main(sys.argv[1] if len(sys.argv) > 1 else "own_trace.csv")
