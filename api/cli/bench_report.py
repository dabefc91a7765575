"""The report of a run: the same sections as Markdown with pictures and tables beside it, and as one HTML file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from io import StringIO
from pathlib import Path

import numpy as np

from gangplan.hybrid.bench import statistics
from gangplan.hybrid.bench.rows import FAILED, ONLINE, BenchRow, read_rows
from gangplan.hybrid.bench.statistics import Results, exponent, grouped, interval, paired
from gangplan.hybrid.bench.suite import Instance
from gangplan.instances.arrays import FloatArray
from gangplan.instances.errors import InstanceError
from gangplan.instances.outlet import write_whole

from ..plot.colours import FEW
from ..plot.html import document, table
from ..plot.scene import Axis, Key, Lines, Panel, Scene
from ..plot.simulation import steps
from ..plot.svg import draw

Rows = Sequence[BenchRow]
FIRST = "auto"
"""The method that the others are compared with."""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of a report, `brief` in the short one too: a table if it has lines, words `below` it; `picture` is SVG."""

    name: str
    title: str
    words: str
    head: tuple[str, ...] = ()
    lines: Sequence[tuple[str, ...]] = ()
    picture: str = ""
    brief: bool = False
    below: str = ""


def write_report(folder: Path, known: Sequence[Instance], *, short: Path | None = None) -> tuple[Path, Path]:
    """Write ``report.md``, its pictures and ``report.html`` into the folder of a run; return the two paths.

    Folder ``tables`` has each table as CSV and LaTeX; pictures are PDF too where matplotlib is installed.

    Args:
        folder: of the rows.
        known: the instances with the best that is known of them.
        short: where a short report goes too, of the longest deadline, its pictures beside it.
    """
    rows = read_rows(folder)
    results = Results.of(rows, known)
    if not results.rows:
        raise InstanceError(
            "folder", "has no row of an instance with a plan: begin with gangplan bench run", str(folder)
        )
    parts = list(sections(results, rows))
    page, markdown = folder / "report.html", folder / "report.md"
    files = {markdown: _markdown(parts)} | {folder / f"{x.name}.svg": x.picture for x in parts if x.picture}
    for end, text_of in (("csv", _csv), ("tex", _tex)):
        files |= {folder / "tables" / f"{x.name}.{end}": text_of(x) for x in parts if x.lines}
    if short is not None:
        last = replace(results, rows=tuple(results.at(results.deadlines[-1])))
        brief = [replace(x, name=f"{short.stem}-{x.name}") for x in sections(last, rows) if x.brief]
        files |= {short: _markdown(brief)} | {short.with_name(f"{x.name}.svg"): x.picture for x in brief if x.picture}
    written = {page: _html(parts)} | {path: text.encode() for path, text in files.items()}
    with suppress(ImportError):
        from ..plot.image import pdf

        written |= {folder / f"{x.name}.pdf": pdf(x.picture) for x in parts if x.picture}
    write_whole(written, folders=True)
    return markdown, page


def sections(results: Results, rows: Rows) -> Iterator[ReportSection]:
    """Yield the sections."""
    longest = results.deadlines[-1]
    last, at = results.at(longest), f"at {longest:g} s"
    by: tuple[str, ...] = ("objective, method",)
    yield _summary(results)
    yield _best(results)
    yield _by_family(results, last, at)
    words = (
        "Higher and further left is better: where a line crosses 1%, so many solves are within 1% of the best known."
    )
    yield ReportSection("profiles", f"Performance profiles {at}", words, picture=profiles(results, longest), brief=True)
    solved = replace(results, rows=tuple(row for row in results.rows if row.objective != ONLINE))
    if solved.rows:  # a policy has no plan before its last decision
        lines = _by_method(solved.at(longest), lambda own: (f"{statistics.integral(solved, own, longest):.2%}",))
        words = (
            "The mean gap while the solve goes on, 100% until there is a plan; its mean over time is the primal "
            "integral."
        )
        title, head = f"Anytime curves to {longest:g} s", (*by, "primal integral")
        yield ReportSection("anytime", title, words, head, lines, anytime(solved, longest))
    by_topic = grouped(last, lambda row: row.topic)
    pairs = {(of, method): x for of, own in by_topic.items() for method, x in paired(results, own, FIRST).items()}
    holm = statistics.holm({key: p for key, (*_, p) in pairs.items()})
    lines = [
        (f"{topic}, {method}", str(n), f"{mean:+.2%}", f"{low:+.2%} to {high:+.2%}", f"{p:.3g}", f"{sure:.3g}", word)
        for (topic, method), (n, mean, low, high, p) in pairs.items()
        for sure in [holm[topic, method]]
        for word in ["open" if sure >= 0.05 else "better" if mean > 0 else "worse"]
    ]
    words = (
        f"How much larger the gap of each method is than that of {FIRST}: mean over instances, bootstrap interval, p "
        f"of a two-sided permutation test of paired signs, and p by Holm's correction for all {len(lines)} tests."
    )
    head = (*by, "instances", "mean difference", "95% interval", "p", "p by Holm", f"{FIRST} is")
    yield ReportSection("paired", f"Paired tests {at}", words, head, lines)
    lines = [
        (f"{topic}, {method}", str(pairs), str(mine), str(theirs), f"{'≥ ' * (theirs < pairs)}{ratio:.3g}")
        for topic, own in by_topic.items()
        for method, (pairs, mine, theirs, ratio) in statistics.times_longer(own, FIRST).items()
        if theirs
    ]
    words = (
        f"How many times the processor seconds of {FIRST} a method needs to claim an optimum: geometric mean over the "
        "instances and seeds that both ran. To give up counts with the limit. Methods that claim none are left out."
    )
    head = (*by, "pairs", f"{FIRST} claims", "it claims", "times as long")
    yield ReportSection("optima", f"Time to optima, at most {longest:g} s", words, head, lines, brief=True)
    lines = _by_method(results.rows, lambda own: (x := exponent(own)) and (str(x[0]), f"{x[1]:.2f}", f"{x[2]:.2f}"))
    words = "Seconds to a claimed optimum grow like n to this power, n being ops, jobs and nodes, or jobs."
    none = "No optimum was claimed on eight instances of sizes far enough apart."
    head = (*by, "optimal", "exponent", "standard error")
    yield ReportSection("scaling", "Scaling", words if lines else none, head, lines)
    failed = (*(row for row in rows if row.status == FAILED), *results.refused)
    lines = [(r.instance, r.method, str(r.seed), f"{r.deadline:g}", r.notes) for r in failed]
    words = (
        "Solves that crashed, broke a limit, did not stop or offered an infeasible plan count as a gap of 100%; bounds "
        "that a verified plan disproves count as none."
    )
    head = ("instance", "method", "seed", "s", "why")
    yield ReportSection("failures", "Failures", words if lines else "None.", head, lines)
    yield _environment(rows)


def _by_method(rows: Rows, cells: Callable[[list[BenchRow]], tuple[str, ...] | None]) -> list[tuple[str, ...]]:
    """Return a line for each method of each objective of which there is something to say."""
    every = grouped(rows, lambda row: (row.topic, row.method))
    return [(f"{topic}, {method}", *x) for (topic, method), own in every.items() if (x := cells(own))]


def _summary(results: Results) -> ReportSection:
    known = list(results.best.values())

    def cells(own: list[BenchRow]) -> tuple[str, ...]:
        gaps = [(row.instance, 100 * results.gap(row)) for row in own]
        mean, low, high = interval(gaps)
        proved, none = np.mean([row.status == "OPTIMAL" for row in own]), sum(row.in_time is None for row in own)
        ours, _, _ = interval((row.instance, 100 * results.open(row)) for row in own)
        count, middle = len({name for name, _ in gaps}), float(np.median([gap for _, gap in gaps]))
        figures = (f"{x:.2f}" for x in (mean, low, high, middle, ours))
        return f"{own[0].deadline:g}", str(count), *figures, f"{proved:.0%}", str(none)

    every = grouped(results.rows, lambda row: f"{row.topic}, {row.method}")
    lines = [(name, *cells(x)) for name, own in every.items() for x in grouped(own, lambda row: row.deadline).values()]
    sets = ", ".join(f"{count} of the {name}" for name, count in Counter(_set(x) for x in known).items())
    words = (
        f"{len(known)} instances ({sets}), {sum(x.proved for x in known)} with a claimed optimum; {len(results.rows)} "
        "solves. Gap over best known: (value - best known) / (value - zero), where zero is 0 but for schedules, of "
        "which it is what waiting for the first job costs; gap to our bound: the same with the best bound that "
        "gangplan claims. Without a plan, and where a solve was skipped, both are 100%. Means, with 95% intervals, "
        "are over instances, the same of all methods of an objective; claimed are optima."
    )
    gaps = ("over best known, %", "from", "to", "median", "to our bound, %")
    head = ("objective, method", "s", "instances", *gaps, "claimed", "no plan")
    return ReportSection("gaps", "GapBench", words, head, lines, brief=True, below=" ".join(results.left))


def _set(x: Instance) -> str:
    if x.held_out is not None:
        return f"held-out set of seed {x.held_out}"
    return "files of one's own" if x.family == "file" else "published set"


def _best(results: Results) -> ReportSection:
    """Say who found what the gaps are counted from: those judged here may be among them."""
    known, judged = results.best.values(), {row.method for row in results.rows}
    lines = [
        (x.id, f"{x.value:.6g}", x.by, f"{x.bound:.6g}" if x.bound_by else "", x.bound_by, "yes" if x.proved else "no")
        for x in known
    ]
    unsure = [x for x in known if not x.proved]
    own = sum(x.by.partition(":")[0] in judged for x in unsure)
    words = (
        f"{len(unsure)} of {len(lines)} best known values are not proved optimal, {own} of these found by a method "
        "that is judged here, which gaps flatter. For claims on such instances use a set that nobody could tune for: "
        "gangplan bench generate --held-out --seed S draws one."
    )
    head = ("instance", "best known", "found by", "our bound", "claimed by", "proved")
    return ReportSection("best-known", "Who found the best known values", words, head, lines)


def _by_family(results: Results, rows: Sequence[BenchRow], at: str) -> ReportSection:
    lines = []
    for topic, own in grouped(rows, lambda r: f"{r.size}, {r.objective}, {r.family}").items():
        methods = grouped(own, lambda row: row.method)
        means = {m: float(np.mean([results.gap(row) for row in x])) for m, x in methods.items()}
        best = min(means, key=lambda m: means[m])
        left = float(np.mean([results.open(row) for row in methods[best]]))
        count = str(len({row.instance for row in own}))
        lines.append((topic, count, best, f"{means[best]:.2%}", f"{left:.2%}", f"{max(means.values()):.2%}"))
    words = "Of the method with the least mean gap: that over the best known plan, and that to our bound."
    head = ("size, objective, family", "instances", "best method", "over best known", "to our bound", "worst method's")
    return ReportSection("families", f"Gap by size and family {at}", words, head, lines)


def _environment(rows: Sequence[BenchRow]) -> ReportSection:
    dates, loads = [row.date for row in rows], [row.load for row in rows]
    busy = [row.busy for row in rows if row.busy] or [0.0]
    cpu, memory = sum(row.cpu for row in rows), max(row.memory for row in rows)
    lines = [
        ("dates, UTC", f"{min(dates)} to {max(dates)}"),
        ("load before a solve", f"{min(loads):g} to {max(loads):g}"),
        ("processors busy during one", f"{min(busy):g} to {max(busy):g}, mean {np.mean(busy):.2f}"),
        ("seeds, threads", f"{sorted({r.seed for r in rows})}, {sorted({r.workers for r in rows})}"),
        ("processor time", f"{cpu:.0f} s in {len(rows)} solves"),
        ("largest process", f"{memory / 2**20:.0f} MiB"),
        *(("environment", text) for text in sorted({row.environment for row in rows})),
    ]
    words = "Seconds are of the wall clock: where the load is above the number of cores, they say little."
    return ReportSection("environment", "Environment", words, ("", "value"), lines, brief=True)


def _markdown(parts: Sequence[ReportSection]) -> str:
    blocks = []
    for i, part in enumerate(parts):
        blocks += [f"{'#' if not i else '##'} {part.title}", part.words]
        if part.picture:
            blocks.append(f"![{part.title}]({part.name}.svg)")
        if part.lines:
            rule = ("---", *("---:" for _ in part.head[1:]))
            blocks.append("\n".join(f"| {' | '.join(cells)} |" for cells in (part.head, rule, *part.lines)))
        blocks += [part.below] * bool(part.below)
    return "\n\n".join(blocks) + "\n"


def _html(parts: Sequence[ReportSection]) -> bytes:
    body = []
    for i, part in enumerate(parts):
        level = 2 if i else 1
        body.append(f"<h{level}>{escape(part.title)}</h{level}><p>{escape(part.words)}</p>\n")
        body += [f"<figure>{part.picture}</figure>"] if part.picture else []
        body += [table(part.head, part.lines)] if part.lines else []
        body += [f"<p>{escape(part.below)}</p>"] if part.below else []
    return document("GapBench", body, static=True)


def _csv(part: ReportSection) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows((part.head, *part.lines))
    return text.getvalue()


_LONG = 60
"""Characters of a cell that do not fit beside others."""
_TEX = str.maketrans({x: f"\\{x}" for x in "%_&#${}"} | {"\\": r"\textbackslash{}", "≥": r"$\ge$"})
_TEX |= str.maketrans({"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$"})
_MANY = 8
"""Columns beyond which a table is set in a small size."""
_STACK = {1: r"\shortstack[r]{", 2: r"\\", 3: "}"}
"""Begin, line break and end of a head of two lines."""


def _tex(part: ReportSection) -> str:
    """Return a table for LaTeX with the package booktabs; text longer than a line is broken.

    Many columns are narrow, with heads of two lines, so that they fit the class `article`.
    """
    head, *lines = (
        " & ".join(" ".join(x.split()).translate(_TEX) for x in cells) + r" \\" for cells in (part.head, *part.lines)
    )
    columns = [*zip(part.head, *part.lines, strict=True)][1:]
    others = (r"p{0.6\linewidth}" if max(map(len, cells)) > _LONG else "r" for cells in columns)
    end = r"\end{tabular}"
    begin = rf"\begin{{tabular}}{{l{''.join(others)}}}"
    if len(part.head) > _MANY:
        begin, end = rf"{{\scriptsize\setlength{{\tabcolsep}}{{2pt}}{begin}", r"\end{tabular}}"
        head = " & ".join(_stacked(x).translate(_TEX | _STACK) for x in part.head) + r" \\"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *lines, r"\bottomrule", end, ""])


def _stacked(head: str) -> str:
    """Return a head with a line break in the place of the space nearest its middle, between `_STACK`'s marks."""
    spaces = [i for i, x in enumerate(head) if x == " "]
    if not spaces:
        return head
    at = min(spaces, key=lambda i: abs(2 * i - len(head)))
    return f"\x01{head[:at]}\x02{head[at + 1 :]}\x03"


def profiles(results: Results, deadline: float) -> str:
    """Draw the share of the instances solved within a gap, a panel an objective."""
    within = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 120)])
    x = Axis(_NONE, 0, "gap to the best known plan", _GAPS, grid=True)
    y = Axis(0, 102, "solves within it, %", grid=True)

    def line(rows: Sequence[BenchRow]) -> FloatArray:
        return steps(_place(within), 100 * statistics.profile(results, rows, within + 1e-9))

    return _panels(f"Performance profiles at {deadline:g} s", results.at(deadline), line, x, y)


def anytime(results: Results, deadline: float) -> str:
    """Draw the mean gap over the time of the solve, a panel an objective."""
    times: FloatArray = np.geomspace(1e-3, deadline, 120)
    x = Axis(1e-3, deadline, "seconds", log=True, grid=True)
    y = Axis(_NONE, 0.1, "mean gap", _GAPS, grid=True)

    def line(rows: Sequence[BenchRow]) -> FloatArray:
        return steps(times, _place(statistics.curve(results, rows, times)))

    return _panels(f"Anytime curves to {deadline:g} s", results.at(deadline), line, x, y)


_NONE = -4.5
"""Where no gap stands on a logarithmic axis of gaps."""
_GAPS = ((_NONE, "0"), (-3, ".1%"), (-2, "1%"), (-1, "10%"), (0, "100%"))


def _place(gap: FloatArray) -> FloatArray:
    return np.log10(np.maximum(gap, 10**_NONE))


def _panels(title: str, rows: Rows, line: Callable[[Rows], FloatArray], x: Axis, y: Axis) -> str:
    others, panels = iter(FEW * 4), list[Panel]()
    colours = {row.method: "#000000" if row.method == "auto" else "" for row in rows}
    colours = {method: colour or next(others) for method, colour in colours.items()}
    keys = [Key(method, (colour,), "line") for method, colour in colours.items()]
    for objective, own in grouped(rows, lambda row: row.topic).items():
        methods, left = grouped(own, lambda row: row.method), 0.95 + 6.3 * (len(panels) % 2)
        marks = [Lines([line(x)], colours[m], 2.4 if m == "auto" else 1.5, name=m) for m, x in methods.items()]
        panels.append(Panel(objective, x, y, marks, keys, left, 5.3, 2.6, objective))
    return draw(Scene(title, "", [panels[i : i + 2] for i in range(0, len(panels), 2)]))
