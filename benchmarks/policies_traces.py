"""The traces on which policies are compared: jobs, cluster and policies of each, the same for all of its policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gangplan.instances.generators.fitted import fit_workload
from gangplan.instances.generators.jobs import PROCESSES, arrivals
from gangplan.instances.readers.gavel import read_gavel_trace, read_throughputs
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.simulator.rounds import ROUND_POLICIES, RoundJobs, parse_cluster
from gangplan.simulator.rounds.jobs import from_gavel, from_workload

QUEUED = tuple(("fifo", d) for d in ("head", "overtake", "easy", "conservative"))
ORDERS = tuple((name, "overtake") for name in ("sjf", "ljf", "smallest"))
BACKFILLED = (("sjf", "easy"),)
STOPPING = tuple((name, "overtake") for name in ("srtf", "tiresias"))
OTHERS = tuple((name, "overtake") for name in ("drf", "tetris", "gandiva"))
CLASSIC = QUEUED + ORDERS + BACKFILLED + STOPPING + OTHERS
ELASTIC = (("fifo", "head"), ("fifo", "overtake"), ("sjf", "overtake"), ("srtf", "overtake"), ("optimus", "overtake"))
SHARING = tuple(one for one in CLASSIC if one[1] not in ("easy", "conservative") and one[0] != "tetris")
"""Neither reservations nor Tetris, which places whole GPUs, go with shared ones."""
SEEDS = 5
CROSSCHECK = "crosscheck/philly_ee9e8c_1000.csv"
PHILLY = "philly/philly.csv.gz"
OPENB = "openb/openb_pod_list_default.csv"
MEASURED = "gavel/simulation_throughputs.json"
SIZES = "1:6,2:2,4:1,8:1"


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs on equal nodes, consolidated.

    Attributes:
        name: of the row.
        section: of the page.
        make: jobs by data folder and seed.
        needs: a file of the data folder, "" if none.
        nodes, gpus: how many, and GPUs of each.
        cpu, memory: cores and bytes of a node, None where they do not count.
        degrees: on offer to every job.
        policies: names with disciplines.
        time_indexed: whether the time-indexed LP bounds those that stop no job: a minute, up to 2,000 jobs.
        seeds: how many.
    """

    name: str
    section: str
    make: Callable[[Path, int], Workload]
    needs: str
    nodes: int
    gpus: int = 8
    cpu: float | None = None
    memory: float | None = None
    degrees: tuple[int, ...] = ()
    policies: tuple[tuple[str, str], ...] = CLASSIC
    time_indexed: bool = False
    seeds: int = 1

    @property
    def cluster(self) -> str:
        """The cluster in words."""
        cpu = "" if self.cpu is None else f", {self.cpu:g} cores"
        memory = "" if self.memory is None else f", {self.memory / 2**30:g} GiB"
        degrees = f", degrees {' '.join(map(str, self.degrees))}" if self.degrees else ""
        return f"{self.nodes}x{self.gpus}{cpu}{memory}{degrees}"

    @property
    def case(self) -> str:
        """Its name in the rows."""
        return f"{self.name} on {self.cluster}"

    @property
    def labels(self) -> tuple[str, ...]:
        """Its policies as the rows name them."""
        return tuple(map(" ".join, self.policies))


@dataclass(frozen=True, slots=True)
class RoundTrace:
    """Jobs on GPUs of several types, in rounds of leases of 360 s."""

    name: str
    make: Callable[[Path], RoundJobs]
    needs: str
    cluster: str
    labels: tuple[str, ...] = tuple(ROUND_POLICIES)
    section: str = "rounds"

    @property
    def case(self) -> str:
        """Its name in the rows."""
        return f"{self.name} on {self.cluster}"


def _file(name: str, data: Path, seed: int) -> Workload:
    return read_trace(data / name).workload


def _queue(name: str, data: Path, seed: int) -> Workload:
    return _file(PHILLY, data, seed).only(name)


def _drawn(process: str, data: Path, seed: int) -> Workload:
    mix = {"gpus": SIZES, "duration": "lognormal", "mean": 3600.0}
    return arrivals(2000, 0.8 * 64 / (2.2 * 3600.0), seed, process=process, **mix)  # type: ignore[arg-type]


def _fitted(data: Path, seed: int) -> Workload:
    """Draw jobs, then again with arrivals so much faster or slower that the load is 80%."""
    model = fit_workload(_queue("6214e9", data, seed))
    jobs = model.draw(2000, seed)
    load = float((jobs.duration * jobs.gpus).sum() / jobs.submit.max()) / 48
    return model.draw(2000, seed, 0.8 / load)


def _gavel(name: str, cluster: str, data: Path) -> RoundJobs:
    measured = read_throughputs(data / MEASURED)
    return from_gavel(read_gavel_trace(data / "gavel" / name), measured, parse_cluster(cluster))


def _typed(cluster: str, data: Path) -> RoundJobs:
    return from_workload(_file(CROSSCHECK, data, 0), {"v100": 1.0, "p100": 0.6}, parse_cluster(cluster))


_SMALL, _LARGE = "8xV100+8xP100+8xK80", "120xV100+80xP100"
TRACES: tuple[Trace | RoundTrace, ...] = (
    Trace("Philly, 1,000 jobs of ee9e8c", "philly", partial(_file, CROSSCHECK), CROSSCHECK, 20, time_indexed=True),
    Trace("Philly, virtual cluster 6214e9", "philly", partial(_queue, "6214e9"), PHILLY, 6),
    Trace("Philly, all virtual clusters", "philly", partial(_file, PHILLY), PHILLY, 60),
    Trace(
        "openb, pods that ended",
        "openb",
        partial(_file, OPENB),
        OPENB,
        4,
        cpu=128.0,
        memory=768.0 * 2**30,
        policies=SHARING,
    ),
    Trace(
        "Philly, 1,000 jobs of ee9e8c, elastic",
        "elastic",
        partial(_file, CROSSCHECK),
        CROSSCHECK,
        20,
        degrees=(1, 2, 4, 8),
        policies=ELASTIC,
    ),
    *(Trace(f"synthetic, {p}", "synthetic", partial(_drawn, p), "", 8, seeds=SEEDS) for p in PROCESSES),
    Trace("synthetic, fitted to 6214e9", "synthetic", _fitted, PHILLY, 6, seeds=SEEDS),
    RoundTrace("Gavel, minimize_makespan", partial(_gavel, "minimize_makespan.trace", _SMALL), MEASURED, _SMALL),
    RoundTrace("Gavel, max_min_fairness", partial(_gavel, "max_min_fairness.trace", _SMALL), MEASURED, _SMALL),
    RoundTrace("Gavel, Philly 0e4a51", partial(_gavel, "0e4a51_all.trace", _SMALL), MEASURED, _SMALL),
    RoundTrace("Philly, 1,000 jobs of ee9e8c, rounds", partial(_typed, _LARGE), CROSSCHECK, _LARGE),
)
