"""The live log of a solve, in the manner of solvers' logs."""

from __future__ import annotations

import logging
import sys

from gangplan.solvers import Result, Run

_LOG = logging.getLogger("gangplan")


class Display:
    """Logs a line for every new plan and for every bound that is visibly better; a star marks a new best plan."""

    def __init__(self) -> None:
        if not _LOG.handlers:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(message)s"))
            _LOG.addHandler(handler)
            _LOG.propagate = False
        _LOG.setLevel(logging.INFO)
        self.plans = 0
        self.shown: tuple[float | None, float | None] = (None, None)

    def start(self, run: Run, method: str) -> None:
        """Log what is solved and how."""
        from .solve import versions

        graph, cluster = run.problem.graph, run.problem.cluster
        kinds = ", ".join(
            f"{count} x {kind.name}" for kind, count in zip(cluster.device_types, cluster.counts(), strict=True)
        )
        used = versions()
        _LOG.info("gangplan %s (OR-Tools %s, HiGHS %s)", used["gangplan"], used["ortools"], used["highspy"])
        _LOG.info("%d ops, %d edges on %s, %s", graph.n_ops, graph.n_edges, kinds, run.problem.variant)
        _LOG.info("method %s, seed %d, %d workers, %.6g s", method, run.seed, run.workers, run.deadline - run.started)
        _LOG.info("\n  %9s  %14s  %14s  %9s  %s", "seconds", "objective", "bound", "gap", "by")

    def __call__(self, run: Run) -> None:
        """Log the state if it differs from the line before."""
        new = len(run.trace) > self.plans
        self.plans = len(run.trace)
        state = (run.objective, run.bound)
        if not new and _close(self.shown[1], run.bound):
            return
        self.shown = state
        by = run.trace[-1].by if new else "bound"
        _LOG.info(
            "%s %9.3f  %14s  %14s  %9s  %s",
            "*" if new else " ",
            run.seconds(),
            _number(run.objective),
            _number(run.bound),
            "" if run.gap is None else f"{run.gap:.4%}",
            by,
        )

    def end(self, result: Result) -> None:
        """Log the outcome."""
        for note in result.notes:
            _LOG.info("note: %s", note)
        _LOG.info("\n%s after %.3f s: %s\n", result.status, result.wall_seconds, result.stop_reason)


def _close(a: float | None, b: float | None) -> bool:
    return a == b or (a is not None and b is not None and abs(a - b) <= 1e-4 * abs(b))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.8g}"
