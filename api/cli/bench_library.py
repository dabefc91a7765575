"""`gangplan bench pass`, `verify`, `best` and `submit`: the library of plans and certificates of GapBench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.hybrid.bench.library import LIBRARY, Check, check_all, read_library
from gangplan.hybrid.bench.rows import ONLINE
from gangplan.hybrid.bench.suite import suite
from gangplan.instances import InstanceError
from gangplan.instances.errors import in_file

from . import options
from .bench import CHOICE, RUN, SEE, Folder, Ledger, bench, check_positive, ledger_in
from .options import option, read_answer, read_certificate
from .output import Bar, emit_blocks, emit_either, table

Library = Annotated[
    str | None, typer.Option("--library", help="of plans and certificates  [default: the package's]", metavar="FOLDER")
]
PASS = {
    "sample": RUN["sample"],
    "time_limit": option(float, "of a solve", 60.0, metavar="SECONDS"),
    "certify": option(float, "for a certificate  [default: as long as a solve]", metavar="SECONDS"),
    "seeds": option(int, "how many passes, each with a seed", 1, **options.whole_from(1, 10_000)),
    "jobs": option(int, "instances at a time", 1, **options.whole_from(1, 100_000)),
    "workers": RUN["workers"],
    "memory": RUN["memory"],
}
"""Options of a pass."""


@bench.command(name="pass")
@options.with_tables(chosen=CHOICE, given=PASS)
def pass_(
    name: Annotated[str, typer.Option("--suite", help=SEE)] = "all",
    *,
    chosen: dict[str, Any],
    given: dict[str, Any],
    folder: Folder = "gapbench",
    ledger: Ledger = None,
    library: Annotated[
        str | None, typer.Option(help="that takes what is better  [default: none]", metavar="FOLDER")
    ] = None,
) -> None:
    """Improve plans and certificates of a suite, small instances first.

    Leaves alone what is certified optimal, and what FOLDER has a record of, whatever ended the last call. Solves what
    may be improved from the best plan on file; then looks for a certificate. FOLDER keeps records; ledger and library
    take what is better.
    """
    from gangplan.hybrid.bench.passes import FELL, run_pass
    from gangplan.hybrid.bench.task import BenchSettings

    limit, certify, memory, sample = (given.pop(x) for x in ("time_limit", "certify", "memory", "sample"))
    certify = limit if certify is None else certify
    check_positive(time_limit=limit, certify=certify, memory=memory)
    settings = BenchSettings(
        Path(folder), ("auto",), deadlines=(limit,), seeds=tuple(range(given.pop("seeds"))),
        memory=None if memory is None else memory * 2**30, ledger=ledger_in(folder, ledger), **given,
    )  # fmt: skip
    found = [x for x in suite(name, **chosen, ledger=settings.ledger, sample=sample) if x.objective != ONLINE]
    with Bar(f"{len(found)} instances", hidden=False) as bar:
        done = run_pass(found, settings, certify, None if library is None else Path(library), bar)
    emit_blocks(
        f"{folder}: {done.steps} steps of {len(found)} instances, {done.fell} values fell by more than {FELL:.1%}",
        *(["\n".join(f"no certificate: {words}" for words in done.failed)] if done.failed else []),
    )


@bench.command()
@options.with_tables(chosen=CHOICE)
def verify(
    name: Annotated[str, typer.Option("--suite", help=SEE)] = "all",
    *,
    chosen: dict[str, Any],
    library: Library = None,
    ledger: Annotated[str | None, typer.Option(help="best known values of your own", metavar="FILE")] = None,
    jobs: Annotated[int, typer.Option(help="instances at a time", **options.whole_from(1, 1000))] = 2,
    longest: Annotated[
        float | None, typer.Option(help="leave out certificates that took more seconds to check", **options.X)
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Check every plan of the library by the verifier and every certificate by the checker.

    Instances are generated anew. Exit code: 0 if all hold, 1 if not, with the names.
    """
    found = suite(name, **chosen, ledger=None if ledger is None else Path(ledger))
    found = [x for x in found if x.objective != ONLINE]
    records = read_library(LIBRARY if library is None else Path(library))
    with Bar(f"checking {len(found)} instances", hidden=as_json) as bar:
        checks = check_all(found, records, jobs, bar, inf if longest is None else longest)
    failed = [x for x in checks if x.failed]
    lines = [f"{x.instance}: plan {x.plan}; certificate {x.certificate}" for x in failed]
    left = [f"certificate left out: {x.instance}" for x in checks if x.certificate == "left out"]
    seconds = sum(x.seconds for x in checks)
    last = f"{len(checks)} instances, {len(failed)} failed; {seconds:.0f} s of checks"
    emit_either(as_json, [asdict(x) for x in checks], _checked(checks), "\n".join([*left, *lines, last]))
    return 1 if failed else 0


def _checked(checks: Sequence[Check]) -> Any:
    """Return a table: of each objective and of all how many plans and certificates hold."""
    names = dict.fromkeys(x.objective for x in checks)
    lines = []
    for name in (*names, "all"):
        own = [x for x in checks if name in (x.objective, "all")]
        counts = (
            len(own), sum(x.plan == "ok" for x in own), sum(x.best for x in own),
            sum(x.certificate == "ok" for x in own), sum(x.optimal for x in own),
            sum(x.certified for x in own), sum(x.failed for x in own),
        )  # fmt: skip
        lines.append((name, *map(str, counts)))
    heads = ("objective", "instances", "plans", "best known", "certificates", "claimed", "certified", "failed")
    return table(heads, lines)


@bench.command()
def submit(
    plan: Annotated[str | None, typer.Argument(metavar="[PLAN]", help="what a solver wrote, or you did")] = None,
    instance: Annotated[str, typer.Option(help="id of the instance that it answers", metavar="ID")] = ...,  # type: ignore[assignment]
    bound: Annotated[
        str | None, typer.Option(help="a certificate of a bound, beside a plan or alone", metavar="FILE")
    ] = None,
    by: Annotated[str, typer.Option(help="who found it")] = "submitted",
    folder: Folder = "gapbench",
    ledger: Ledger = None,
) -> None:
    """Score a plan, or check a certificate of a bound; the ledger takes what is better.

    FOLDER keeps the plan or the certificate among its records.
    """
    from gangplan.hybrid.bench.submit import submit_bound, submit_plan

    if (plan is None) == (bound is None):
        raise InstanceError("plan", "give PLAN, or --bound FILE")
    path = ledger_in(folder, ledger)
    if plan is not None:
        answer = read_answer(plan)
        known, value, better = submit_plan(answer, instance, by=by, ledger=path, folder=Path(folder))
        first = f"value {value:.6g}, verified"
    else:
        assert bound is not None
        with in_file(bound):
            known, proved, better = submit_bound(
                read_certificate(bound), instance, by=by, ledger=path, folder=Path(folder)
            )
        first = "no plan, checked" if proved == float("inf") else f"bound {proved:.6g}, checked"
    best = "none" if known.value is None else f"{known.value:.6g} by {known.by}"
    before = "none" if known.bound is None else f"{known.bound:.6g}"
    emit_blocks(
        f"{first}; best known so far {best}; bound {before}",
        f"{'better: noted in' if better else 'not better: nothing is noted in'} {path}",
    )
