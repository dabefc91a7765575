"""Our own methods in the portfolio: in which order, and what each may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangplan.solvers import Run
from gangplan.solvers.method import Method

from .registry import Entry


def _throughput() -> Any:
    from gangplan.learned.throughput import method

    return method


def _step() -> Any:
    from gangplan.learned.step import method

    return method


def _placement() -> Any:
    from gangplan.learned.placement import method

    return method


def _schedule() -> Any:
    from gangplan.learned.schedule import method

    return method


def _learned(problem: str, module: Callable[[], Any], least: float = 0.04) -> Entry:
    def run_learned(run: Run, prepared: Any) -> None:
        module().learned(run, prepared)

    method = Method(run_learned, library="torch", warm=lambda: module().warm(), kernels=lambda: module().kernels())
    return Entry(problem, "learned", method, share=0.2, least=least, learned=True)


ENTRIES = (
    Entry("throughput", "greedy", quick=True),
    # a good pipeline is a good start for every variant
    Entry("throughput", "pipedream", variants=("free",), quick=True),
    _learned("throughput", _throughput, least=0.005),
    Entry("throughput", "convex", variants=("convex",)),
    Entry("throughput", "pipeline", variants=("contiguous",)),
    Entry("throughput", "local_search", share=0.45),
    Entry("throughput", "cpsat"),
    Entry("throughput", "neighbourhood", variants=("contiguous",)),
    Entry("latency", "greedy", quick=True),
    Entry("latency", "chain"),
    Entry("latency", "local_search"),
    Entry("latency", "cpsat"),
    Entry("latency", "neighbourhood"),
    Entry("stages", "ideals"),
    Entry("stages", "chain"),
    Entry("step", "heft", quick=True),
    # bounds and pipelines take tens of milliseconds
    Entry("step", "bounds", share=0.2, least=0.2, quick=True),
    Entry("step", "list_schedule", least=0.02, quick=True),
    Entry("step", "critical_path", least=0.02, quick=True),
    _learned("step", _step, least=0.005),
    Entry("step", "contiguous", share=0.1, least=0.2),
    Entry("step", "local_search", share=0.15),
    # from what the searches have found
    Entry("step", "cpsat", share=0.5, least=0.5),
    Entry("step", "lns"),
    Entry("step", "cpsat_below"),
    Entry("schedule", "lists", quick=True),
    _learned("schedule", _schedule),
    Entry("schedule", "starts", share=0.7, least=0.5),
    Entry("schedule", "local_search", share=0.1),
    Entry("schedule", "cpsat"),
    # local search begins with several of its kind, and is as quick on small problems
    Entry("placement", "topology", least=0.2, quick=True),
    Entry("placement", "local_search", share=0.1, quick=True),
    Entry("placement", "ruin_recreate", share=0.2, least=0.1),
    _learned("placement", _placement),
    Entry("placement", "patterns", share=0.7, proves=True, soon=4096),
    # from what the others have found, with more time
    Entry("placement", "ruin_recreate", share=0.5),
    Entry("placement", "local_search", share=0.3),
    Entry("placement", "lns", share=0.5),
    Entry("placement", "cpsat"),
)
