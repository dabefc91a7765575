"""Classic files in and out: job shops, LEKIN, and the Standard Workload Format."""

from __future__ import annotations

from os import PathLike

from gangplan.instances import InstanceError, verify
from gangplan.instances.outlet import write_whole
from gangplan.instances.readers.lekin import read_lekin, write_lekin
from gangplan.instances.readers.shops import read_jobshop, write_jobshop
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.schedule import Capacity, Pool, SchedulePlan, ScheduleProblem, total

__all__ = ["read_jobshop", "read_lekin", "read_swf", "write_jobshop", "write_lekin", "write_swf"]

_COLUMNS = 18


def read_swf(path: str | PathLike[str], capacity: Capacity | int, goal: str = "mean_jct") -> ScheduleProblem:
    """Read a log in the Standard Workload Format as the problem of a scheduler that knows all arrivals.

    Jobs are rigid and released when they were submitted. `gangplan.instances.readers.traces.read_trace` reads the same
    file for simulations.

    Args:
        path: the file.
        capacity: what the jobs run on, or a number of GPUs (the processors of the log).
        goal: see `ScheduleProblem`.

    Raises:
        InstanceError: naming file, line, field and value; or if a job holds more than there is.
    """
    workload = read_trace(path).workload
    return ScheduleProblem.of(workload, Pool(capacity) if isinstance(capacity, int) else capacity, goal)


def write_swf(problem: ScheduleProblem, path: str | PathLike[str], plan: SchedulePlan | None = None) -> None:
    """Write jobs in the Standard Workload Format, version 2.2: what is not known is -1.

    Jobs are numbered from 1 in the order of the problem. With a plan, their waiting times and degrees are those of the
    plan; jobs that it leaves out are cancelled. Weights, deadlines, values and other degrees have no column.

    Raises:
        InstanceError: if there is no plan and a job has several degrees, the plan is infeasible, or the file cannot be
            written.
    """
    if plan is not None and not (verdict := verify(problem, plan)).ok:
        raise InstanceError("plan", verdict.violations[0])
    head = {"Version": 2.2, "UnixStartTime": 0, "MaxProcs": total(problem.capacity), "MaxJobs": len(problem.jobs)}
    lines = [f"; {name}: {value}" for name, value in head.items()]
    for j, job in enumerate(problem.jobs):
        degree = 0 if plan is None else int(plan.degree[j])
        if plan is None and len(job.degrees) > 1:
            raise InstanceError(f"jobs[{j}].degrees", f"{job.degrees} are several: give a plan that chooses")
        row = ["-1"] * _COLUMNS
        row[0], row[1] = str(j + 1), _text(job.release)
        if degree < 0:
            row[3], row[7], row[10] = "0", str(job.degrees[0]), "5"
        else:
            wait = -1.0 if plan is None else max(0.0, float(plan.start[j]) - job.release)
            row[2], row[3] = _text(wait), _text(job.durations[degree])
            row[4] = row[7] = str(job.degrees[degree])
            row[10] = "1"  # the status of a job that ran to its end
        lines.append(" ".join(row))
    write_whole({path: ("\n".join(lines) + "\n").encode()})


def _text(seconds: float) -> str:
    return str(int(seconds)) if seconds == int(seconds) else repr(float(seconds))
