"""`gangplan bench`: the suite, the runner and the report of GapBench, and its library of plans and certificates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any

from gangplan.hybrid.bench.archive import write_archive
from gangplan.hybrid.bench.best_known import certified
from gangplan.hybrid.bench.library import LIBRARY, InstanceCheck, check_all, read_library
from gangplan.hybrid.bench.passes import FELL, run_pass
from gangplan.hybrid.bench.rows import ONLINE, read_rows
from gangplan.hybrid.bench.run import run as run_all
from gangplan.hybrid.bench.submit import submit_bound, submit_plan
from gangplan.hybrid.bench.suite import SET_FILE, SIZES, Instance, from_file, make, read_manifest, suite, write_manifest
from gangplan.hybrid.bench.suite import held_out as redraw
from gangplan.hybrid.bench.task import BenchSettings
from gangplan.instances import InstanceError, dump
from gangplan.instances.errors import in_file
from gangplan.instances.outlet import write_whole

from . import options
from .app import commands
from .bench_report import write_report
from .output import Told, emit_blocks, progress, table, tell


@dataclass(frozen=True)
class Chosen:
    """Which instances of a suite."""

    objective: Annotated[str, "only instances of this objective"] = ""
    size: Annotated[str, "only instances of this size"] = ""
    family: Annotated[str, "only instances of this family"] = ""

    def of(self, name: str, ledger: Path | None, sample: int = 0) -> list[Instance]:
        """Return the instances of a suite."""
        return suite(name, **vars(self), ledger=ledger, sample=sample)


Folder = Annotated[str, "of rows, plans, ledger and report", "FOLDER"]


@dataclass(frozen=True)
class Place:
    """Where rows and best known values are kept."""

    folder: Folder = "gapbench"
    ledger: Annotated[str | None, "best known values of your own  [default: FOLDER/ledger.jsonl]", "FILE"] = None

    @property
    def best(self) -> Path:
        """Return the ledger, by default that of the folder."""
        return Path(self.folder) / "ledger.jsonl" if self.ledger is None else Path(self.ledger)


Library = Annotated[str | None, "of plans and certificates  [default: the package's]", "--library", "FOLDER"]
Suite = Annotated[str, "see `gangplan bench run --help`", "--suite"]
_SUITES = "toy, small, medium, large, huge; partition, placement, schedule, pipeline, online; all; a FOLDER of generate"
Sample = Annotated[int, "at most so many of each objective; 0 means all", (0, 100_000)]
Threads = Annotated[int, "threads of a solve", (1, 1024)]
Memory = Annotated[float | None, "that a solve may have", "GIB"]


def _settings(place: Place, deadlines: Sequence[float], seeds: int, memory: float | None, **more: Any) -> Any:
    """Return how instances are run: so many seeds, `memory` in GiB."""
    limits: dict[str, Any] = {"deadlines": deadlines, "memory": None if memory is None else memory * 2**30}
    return BenchSettings(Path(place.folder), seeds=tuple(range(seeds)), ledger=place.best, **limits, **more)


def list_(
    name: Suite = "all", *, chosen: Chosen, place: Place, each: Annotated[bool, "a line an instance"] = False
) -> Told:
    """List the instances, and what is known of them."""
    found = chosen.of(name, place.best)
    blocks = [_counts(found), f"{len(found)} instances, {sum(x.proved for x in found)} optimal as a method claims"]
    if each:
        lines = [(x.id, _number(x.value), _number(x.bound), x.by, _number(x.seconds)) for x in found]
        blocks = [table(("instance", "best known", "bound", "by", "s"), lines)]
    return tell([asdict(x) for x in found], *blocks)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _counts(found: Sequence[Instance]) -> Any:
    """Return a table: of each objective and family how many are of each size, with optima claimed and certified."""
    records = read_library()
    groups: dict[tuple[str, str], list[Instance]] = {}
    for x in found:
        groups.setdefault((x.objective, x.family), []).append(x)
    lines = []
    for names, own in groups.items():
        sizes = [str(sum(x.size == size for x in own) or "") for size in SIZES]
        sure = [x.proved and certified(x, records.get(x.id)) for x in own]
        counts = (sum(x.value is not None for x in own), sum(x.proved for x in own), sum(sure))
        lines.append((*names, *sizes, *map(str, counts)))
    return table(("objective", "family", *SIZES, "plans", "optima", "proved"), lines, left=2)


def generate(
    instance: Annotated[list[str] | None, "instances; none means the suite", "[ID]..."] = None,
    name: Suite = "toy",
    *,
    chosen: Chosen,
    sample: Sample = 0,
    held_out: Annotated[bool, "fresh ones of the same families instead, drawn by --seed"] = False,
    seed: Annotated[int | None, "of the held-out set: draw it when methods are final", (0, 2**31 - 1)] = None,
    folder: Folder = "gapbench",
) -> None:
    """Generate the problems of a suite in FOLDER/instances; --suite FOLDER runs them.

    They are, bit for bit, those of the manifest. A held-out set has no best known values.
    """
    if held_out != (seed is not None):
        raise InstanceError("seed", f"{seed} and --held-out go together")
    found = suite("all") if instance else chosen.of(name, None, sample)
    wanted = [x for x in found if not instance or x.id in instance]
    if missing := set(instance or ()) - {x.id for x in wanted}:
        raise InstanceError("instance", f"there is no {min(missing)!r}; see gangplan bench list --each")
    if not held_out and (online := [x.id for x in wanted if x.objective == ONLINE]):
        if instance or name == ONLINE:
            raise InstanceError("instance", f"{online[0]!r} is online: it has no problem in a file, policies play it")
        wanted = [x for x in wanted if x.objective != ONLINE]
    wanted = [x if seed is None else redraw(x, seed) for x in wanted]
    place = _write_problems(wanted, Path(folder) / "instances")
    write_manifest(wanted, Path(folder) / SET_FILE)
    kind = "as in the manifest" if seed is None else f"held out, seed {seed}"
    emit_blocks(f"{place}: {len(wanted)} problems, {kind}")


def _write_problems(instances: Sequence[Instance], place: Path) -> Path:
    with progress("generating") as bar:
        for i, x in enumerate(instances):
            if x.objective != ONLINE:
                write_whole({place / f"{x.id}.json": f"{dump(make(x))}\n".encode()}, folders=True)
            bar((i + 1) / len(instances))
    return place


def export(
    folder: Annotated[str, "that takes it", "DIR"], name: Suite = "toy", *, chosen: Chosen, sample: Sample = 0
) -> None:
    """Write a suite as files that need no gangplan: problems, plans, values, schemas, checksums, licence, citation."""
    found = [x for x in chosen.of(name, None, sample) if x.objective != ONLINE]
    if not found:
        raise InstanceError("suite", f"{name!r} has no problem in a file")
    place = Path(folder)
    _write_problems(found, place / "problems")
    plans, files = write_archive(found, place)
    emit_blocks(f"{place}: {len(found)} problems, {plans} plans, {files} files")


_PLUGIN = "a solver of yours, an executable too, or an installed one; may be repeated"


def run(
    name: Annotated[str, _SUITES, "--suite"] = "toy",
    *,
    chosen: Chosen,
    sample: Sample = 0,
    file: Annotated[list[str] | None, "a problem of yours instead of the suite; may be repeated", "FILE"] = None,
    methods: Annotated[str, "joined by commas  [default: auto and three of each objective]"] = "",
    plugin: Annotated[list[str] | None, _PLUGIN, "FILE.py:FUNCTION"] = None,
    time_limit: Annotated[Sequence[float], "of a solve; several deadlines joined by commas", "SECONDS"] = (0.5,),
    seeds: Annotated[int, "how many, of the methods", (1, 10_000)] = 1,
    jobs: Annotated[int, "solves at a time", (1, 100_000)] = 1,
    workers: Threads = 1,
    engine: Annotated[str, "joblib's: loky (processes here), ray or dask"] = "loky",
    memory: Memory = None,
    cpu: Annotated[float | None, "processor seconds that a solve may have"] = None,
    place: Place,
    report: Annotated[bool, "write the report too", "--report/--no-report"] = True,
) -> None:
    """Run methods on a suite, a row each.

    What FOLDER has already is not run again, whatever ended the last run. Plans better than the best known are kept in
    FOLDER/plans, their verified values in the ledger.
    """
    options.require_positive(time_limit=time_limit, memory=memory, cpu=cpu)
    chosen_methods = tuple(filter(None, methods.split(",")))
    how: dict[str, Any] = {"methods": chosen_methods, "plugins": tuple(plugin or ()), "engine": engine, "cpu": cpu}
    settings = _settings(place, time_limit, seeds, memory, jobs=jobs, workers=workers, **how)
    found = [from_file(path, chosen.objective) for path in file or ()]
    found = found or chosen.of(name, place.best, sample)
    before = {(row.key, row.date) for row in read_rows(settings.folder)}
    with progress(f"{len(found)} instances") as bar:
        rows = run_all(found, settings, bar)
    had = sum((row.key, row.date) in before for row in rows)
    kept = f", {had} of them from before" * bool(had)
    emit_blocks(f"{place.folder}: {len(rows)} rows of {len(found)} instances{kept}")
    if report:
        write_reports(place)


def write_reports(
    place: Place, short: Annotated[str | None, "write a short report in Markdown too", "FILE"] = None
) -> None:
    """Write FOLDER/report.md and FOLDER/report.html from the rows, each table as CSV and LaTeX in FOLDER/tables."""
    held_out = [x for x in read_manifest(place.best).values() if x.held_out is not None]
    folder, known = Path(place.folder), [*suite("all", ledger=place.best), *held_out]
    written = write_report(folder, known, short=None if short is None else Path(short))
    emit_blocks(f"{written[0]} and {written[1]}")


def pass_(
    name: Suite = "all",
    *,
    chosen: Chosen,
    sample: Sample = 0,
    time_limit: Annotated[float, "of a solve", "SECONDS"] = 60.0,
    certify: Annotated[float | None, "for a certificate  [default: as long as a solve]", "SECONDS"] = None,
    seeds: Annotated[int, "how many passes, each with a seed", (1, 10_000)] = 1,
    jobs: Annotated[int, "instances at a time", (1, 100_000)] = 1,
    workers: Threads = 1,
    memory: Memory = None,
    place: Place,
    library: Annotated[str | None, "that takes what is better  [default: none]", "FOLDER"] = None,
) -> None:
    """Improve plans and certificates of a suite, small instances first.

    Leaves alone what is certified optimal, and what FOLDER has a record of, whatever ended the last call. Solves what
    may be improved from the best plan on file; then looks for a certificate. FOLDER keeps records; ledger and library
    take what is better.
    """
    certify = time_limit if certify is None else certify
    options.require_positive(time_limit=time_limit, certify=certify, memory=memory)
    settings = _settings(place, (time_limit,), seeds, memory, methods=("auto",), jobs=jobs, workers=workers)
    found = [x for x in chosen.of(name, place.best, sample) if x.objective != ONLINE]
    with progress(f"{len(found)} instances") as bar:
        done = run_pass(found, settings, certify, None if library is None else Path(library), bar)
    words = f"{done.steps} steps of {len(found)} instances, {done.fell} values fell by more than {FELL:.1%}"
    emit_blocks(f"{place.folder}: {words}", "\n".join(f"no certificate: {x}" for x in done.failed))


def verify(
    name: Suite = "all",
    *,
    chosen: Chosen,
    library: Library = None,
    ledger: Annotated[str | None, "best known values of your own", "FILE"] = None,
    jobs: Annotated[int, "instances at a time", (1, 1000)] = 2,
    longest: Annotated[float | None, "leave out certificates that took more seconds to check"] = None,
) -> Told:
    """Check every plan of the library by the verifier and every certificate by the checker.

    Instances are generated anew. Exit code: 0 if all hold, 1 if not, with the names.
    """
    found = [x for x in chosen.of(name, None if ledger is None else Path(ledger)) if x.objective != ONLINE]
    records = read_library(LIBRARY if library is None else Path(library))
    with progress(f"checking {len(found)} instances") as bar:
        checks = check_all(found, records, jobs, bar, inf if longest is None else longest)
    failed = [x for x in checks if x.failed]
    lines = [f"{x.instance}: plan {x.plan}; certificate {x.certificate}" for x in failed]
    left = [f"certificate left out: {x.instance}" for x in checks if x.certificate == "left out"]
    last = f"{len(checks)} instances, {len(failed)} failed; {sum(x.seconds for x in checks):.0f} s of checks"
    own = {of: [x for x in checks if of in (x.objective, "all")] for of in [*{x.objective: 0 for x in checks}, "all"]}
    counts = [(name, *(f"{sum(map(of, some))}" for of in COUNTED.values())) for name, some in own.items()]
    words = "\n".join([*left, *lines, last])
    return tell([asdict(x) for x in checks], table(("objective", *COUNTED), counts), words, code=1 if failed else 0)


COUNTED: dict[str, Callable[[InstanceCheck], bool]] = {
    "instances": lambda x: True,
    "plans": lambda x: x.plan == "ok",
    "best known": lambda x: x.best,
    "certificates": lambda x: x.certificate == "ok",
    "claimed": lambda x: x.optimal,
    "certified": lambda x: x.certified,
    "failed": lambda x: x.failed,
}
"""What is counted of the checks of each objective, and of all."""


def submit(
    *,
    plan: Annotated[str | None, "what a solver wrote, or you did", "[PLAN]"] = None,
    instance: Annotated[str, "id of the instance that it answers", "ID", "--instance"],
    bound: Annotated[str | None, "a certificate of a bound, beside a plan or alone", "FILE"] = None,
    by: Annotated[str, "who found it"] = "submitted",
    place: Place,
) -> None:
    """Score a plan, or check a certificate of a bound; the ledger takes what is better.

    FOLDER keeps the plan or the certificate among its records; nothing is sent anywhere.
    """
    kept: dict[str, Any] = {"by": by, "ledger": place.best, "folder": Path(place.folder)}
    if plan is not None and bound is None:
        known, value, better = submit_plan(options.read_result(plan)[0], instance, **kept)
        first = f"value {value:.6g}, verified"
    elif plan is None and bound is not None:
        with in_file(bound):
            known, proved, better = submit_bound(options.read_certificate(bound), instance, **kept)
        first = "no plan, checked" if proved == inf else f"bound {proved:.6g}, checked"
    else:
        raise InstanceError("plan", "give PLAN, or --bound FILE")
    best = "none" if known.value is None else f"{known.value:.6g} by {known.by}"
    before = "none" if known.bound is None else f"{known.bound:.6g}"
    noted = f"{'better: noted in' if better else 'not better: nothing is noted in'} {place.best}"
    emit_blocks(f"{first}; best known so far {best}; bound {before}", noted)


bench = commands(
    "bench",
    "Compare methods on instances with known bounds.",
    {
        "list": (list_, "--suite small --objective step"),
        "generate": (generate, "--held-out --seed 2718 --suite small --sample 10 --folder held-out"),
        "run": (run, "--suite toy --jobs 2"),
        "report": (write_reports, ""),
        "export": (export, "archive --suite small"),
        "pass": (pass_, "--suite toy --time-limit 5 --folder pass"),
        "verify": (verify, "--suite toy"),
        "submit": (submit, "plan.json --instance step-random-toy-00 --by me"),
    },
)
