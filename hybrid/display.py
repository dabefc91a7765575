"""The live log of a solve, in the manner of solvers' logs."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from gangplan.solvers import Result, Run
from gangplan.solvers.result import relative_gap

from .solve import VERSIONS

_LOG = logging.getLogger("gangplan")


class Display:
    """Logs what is solved, a line for every new plan or visibly better bound, and who ran; a star marks a new plan."""

    def __init__(self, run: Run, method: str) -> None:
        if not _LOG.handlers:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(message)s"))
            _LOG.addHandler(handler)
            _LOG.propagate = False
        _LOG.setLevel(logging.INFO)
        self.plans = 0
        self.last = float("-inf")
        self.zero = run.zero
        self.shown: tuple[float | None, float | None] = (None, None)
        _LOG.info("gangplan %(gangplan)s (OR-Tools %(ortools)s, HiGHS %(highspy)s)", VERSIONS)
        _LOG.info("%s", run.problem)
        _LOG.info("method %s, seed %d, %d workers, %.6g s", method, run.seed, run.workers, run.deadline - run.started)
        _LOG.info("\n  %9s  %14s  %14s  %9s  %s", "seconds", "objective", "bound", "gap", "by")

    def __call__(self, run: Run) -> None:
        """Log the state if it is visibly better than the line before, at most ten times a second."""
        new = len(run.trace) > self.plans
        if run.seconds() < self.last + 0.1 or not (new or self._moved(run.bound)):
            return
        self.last = run.seconds()
        self._line(run.seconds(), run.objective, run.bound, run.trace[-1].by if new else "bound")
        self.plans = len(run.trace)

    def _line(self, seconds: float, objective: float | None, bound: float | None, by: str) -> None:
        self.shown = (objective, bound)
        gap = relative_gap(objective, bound, self.zero)
        mark = " " if by == "bound" else "*"
        percent = "" if gap is None else f"{gap:.4%}"
        _LOG.info("%s %9.3f  %14s  %14s  %9s  %s", mark, seconds, _number(objective), _number(bound), percent, by)

    def end(self, result: Result) -> None:
        """Log the outcome, and the last line if it came too fast to be shown."""
        if len(result.trace) > self.plans:
            last = result.trace[-1]
            self._line(last.seconds, result.objective, result.bound, last.by)
        elif self._moved(result.bound):
            self._line(result.wall_seconds, result.objective, result.bound, "bound")
        _LOG.info("\n%s after %.3f s: %s\n", result.standing, result.wall_seconds, result.stop_reason)
        for line in _turns(result):
            _LOG.info(line)

    def _moved(self, now: float | None) -> bool:
        before = self.shown[1]
        return before != now and (before is None or now is None or abs(before - now) > 1e-4 * abs(now - self.zero))


def _turns(result: Result) -> Iterator[str]:
    """Yield a table of 80 columns: who had which seconds as planned, who ran for how long, and why others did not."""
    yield f"{'method':<18} {'where':<6} {'from':>7} {'until':>7} {'ran':>7} plans  why"
    plans = Counter(incumbent.by for incumbent in result.trace)
    for turn in result.turns:
        times = f"{turn.begin:7.3f} {turn.end:7.3f} {turn.ran:7.3f} {plans.pop(turn.method, 0):5}"
        yield f"{turn.method:<18.18} {turn.where:<6} {times}  {turn.why}"
    for name, why in result.left_out.items():
        yield from wrap(f"{name:<18} {why}", 80, subsequent_indent=" " * 19)
    yield ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.8g}"
