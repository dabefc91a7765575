"""LEKIN's files (Pinedo, Scheduling): jobs with routes in ``.job``, work centres and their machines in ``.mch``."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike

from ..arrays import require_choice
from ..errors import InstanceError, in_file
from ..intake import read_text
from ..outlet import write_whole
from ..partition import StepProblem
from ..schedule import MoldableJob, Pool, ScheduleProblem, total
from .fields import whole_number
from .shops import chains, shop

Path = str | PathLike[str]
DUE = ("drop", "deadline")


@dataclass(slots=True)
class _LekinBlock:
    """A job or a work centre: its name, its line, numbers by key, and what is below it."""

    name: str
    line: int
    numbers: dict[str, float] = field(default_factory=dict)
    parts: list[tuple[int, str]] = field(default_factory=list)


def read_lekin(jobs: Path, machines: Path, due: str = "drop") -> ScheduleProblem | StepProblem:
    """Read a shop as LEKIN saves it.

    With one work centre it is a `ScheduleProblem` of jobs with one GPU each, releases and weights, for the sum of
    weight times completion. With several it is a `StepProblem`, a job or flow shop with parallel machines, for the
    makespan: weights and due dates are left out, releases are refused. Set-up times, machines that are released late
    and several operations on one work centre alone are refused: no problem here has them.

    Args:
        jobs: the ``.job`` file.
        machines: the ``.mch`` file.
        due: of one work centre: ``drop`` leaves due dates out, for which lateness is no goal here; ``deadline`` makes
            them strict.

    Raises:
        InstanceError: naming file, line, field and value.
    """
    require_choice(due, "due", DUE)
    texts = read_text(jobs), read_text(machines)
    with in_file(machines):
        centres = [(x.name, max(1, len(x.parts))) for x in _blocks(texts[1], "Workcenter", "Machine")]
    with in_file(jobs):
        return _problem(_blocks(texts[0], "Job", "Oper"), centres, due)


def _blocks(text: str, head: str, part: str) -> list[_LekinBlock]:
    found: list[_LekinBlock] = []
    for at, line in enumerate(text.splitlines(), 1):
        key, colon, value = (x.strip() for x in line.partition(":"))
        if not key and not colon:
            continue
        if not colon:
            raise InstanceError(f"line {at}", f"{line.strip()!r} has no colon")
        if key == head:
            if any(block.name == value for block in found):
                raise InstanceError(f"line {at}: {key}", f"{value!r} is a duplicate")
            found.append(_LekinBlock(value, at))
        elif key == "Setup" and value:
            raise InstanceError(f"line {at}: Setup", f"{value!r}: there are no set-up times here")
        elif found and key == part:
            found[-1].parts.append((at, value))
        elif found and key in ("Release", "Due", "Weight"):
            number = float(whole_number(value, f"line {at}: {key}"))
            if head == "Workcenter" and number:
                raise InstanceError(f"line {at}: {key}", f"{value!r} is not 0: machines are there from 0 on here")
            found[-1].numbers[key] = number
    if not found:
        raise InstanceError(head, "the file has none")
    return found


def _problem(jobs: list[_LekinBlock], centres: list[tuple[str, int]], due: str) -> ScheduleProblem | StepProblem:
    known, routes = {name for name, _ in centres}, []
    for job in jobs:
        if not job.parts:
            raise InstanceError(f"line {job.line}: Job", f"{job.name!r} has no Oper")
        route = []
        for at, words in job.parts:
            centre, *rest = (x.strip() for x in words.split(";"))
            if centre not in known:
                raise InstanceError(f"line {at}: Oper", f"{centre!r} is not one of {', '.join(sorted(known))}")
            route.append({centre: float(whole_number(rest[0] if rest else "", f"line {at}: Oper"))})
        routes.append(route)
    if len(centres) > 1:
        late = next((job for job in jobs if job.numbers.get("Release")), None)
        if late is not None:
            words = f"{late.numbers['Release']:g} is not 0: jobs of several operations have no release here"
            raise InstanceError(f"line {late.line}: Release", words)
        return shop([(job.name, route) for job, route in zip(jobs, routes, strict=True)], centres)
    made = []
    for job, route in zip(jobs, routes, strict=True):
        if len(route) > 1:
            raise InstanceError(f"line {job.line}: Job", f"{job.name!r} has {len(route)} operations on one work centre")
        deadline = job.numbers.get("Due") if due == "deadline" else None
        release, weight = job.numbers.get("Release", 0.0), job.numbers.get("Weight", 1.0)
        made.append(MoldableJob(job.name, (1,), tuple(route[0].values()), release, weight, deadline))
    return ScheduleProblem(tuple(made), Pool(centres[0][1]))


def write_lekin(problem: ScheduleProblem | StepProblem, jobs: Path, machines: Path) -> None:
    """Write what `read_lekin` reads: jobs of one GPU each on counted GPUs, or a shop.

    A job without a deadline gets the due date 0, for which its tardiness is its completion.

    Raises:
        InstanceError: if the problem has no such shape, a time or weight is not whole, as LEKIN has them, or a file
            cannot be written.
    """
    lines, centres = ["Shop:               Job"], [("W1", 1)]
    if isinstance(problem, ScheduleProblem):
        if not isinstance(problem.capacity, Pool):
            raise InstanceError("capacity", f"a {type(problem.capacity).__name__} is no group of parallel machines")
        centres, lines = [("W1", total(problem.capacity))], ["Shop:               Parallel"]
        for i, job in enumerate(problem.jobs):
            where = f"jobs[{i}]"
            if job.degrees != (1,) or job.value is not None:
                raise InstanceError(where, "holds other than one GPU, or may be left out: LEKIN has neither")
            lines += _job(job.name, job.release, job.deadline or 0.0, job.weight, where)
            lines.append(f"  Oper:               W1;{_text(job.durations[0], where)};A")
    else:
        counts = problem.cluster.counts().tolist()
        centres = [(kind.name, n) for kind, n in zip(problem.cluster.device_types, counts, strict=True)]
        for chain in chains(problem):
            lines += _job(chain[0][0].rpartition(".")[0] or chain[0][0], 0.0, 0.0, 1.0, "graph")
            lines += [f"  Oper:               {centre};{_text(seconds, op)};A" for op, centre, seconds in chain]
    rows = ["Ordering:           A"]
    for name, count in centres:
        rows += [f"Workcenter:         {name}", "  Release:            0", "  Status:             A"]
        for k in range(count):
            machine = f"  Machine:            {name}.{k + 1:02d}"
            rows += [machine, "    Release:            0", "    Status:             A"]
    write_whole({jobs: ("\n".join(lines) + "\n").encode(), machines: ("\n".join(rows) + "\n").encode()})


def _job(name: str, release: float, due: float, weight: float, where: str) -> list[str]:
    numbers = (("Release", release), ("Due", due), ("Weight", weight))
    return [f"Job:                {name}", *(f"  {key + ':':<20}{_text(x, where)}" for key, x in numbers)]


def _text(value: float, where: str) -> str:
    if value != int(value):
        raise InstanceError(where, f"{value:g} is not whole, as LEKIN's numbers are")
    return str(int(value))
