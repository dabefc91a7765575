"""The learned policy as a method of the suite for placement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.solvers import Run
from gangplan.solvers.placement.prepare import Batch

if TYPE_CHECKING:
    from .policy import PlacementPolicy

SAMPLES = 64
"""Placements that are drawn at most."""
_SAFE = 1.5
"""A placement is begun if so many times what the last one took is left."""
GOALS = ("slowdown", "throughput")


def learned(run: Run, prepared: Any) -> None:
    """Offer the greedy plan of the learned policy, then sampled ones that are better.

    Returns with a note where it cannot help: without torch or weights, for goals that it knows nothing of, with scores
    that are no numbers.
    """
    batch: Batch = prepared
    if batch.problem.goal not in GOALS:
        run.note(f"learned left out: it is for the goals {', '.join(GOALS)}")
    elif not run.stopped and run.can_import("torch"):
        try:
            from .shipped import shipped_policy

            _place(run, batch, shipped_policy())
        except ImportError as error:
            run.note(f"learned left out: {error.name or 'torch'} is not installed")
        except InstanceError as error:
            run.note(f"learned left out: weights {error}")
        except FloatingPointError as error:
            run.note(f"learned left out: {error}")


def warm() -> None:
    """Read the weights, so that no deadline pays for it."""
    from .shipped import shipped_policy

    shipped_policy()


def _place(run: Run, batch: Batch, policy: PlacementPolicy) -> None:
    """Offer placements as long as there is time for one more."""
    if run.stopped:
        return
    from .decode import Decoder

    decoder = Decoder(policy, batch, until=lambda: run.stopped)
    settings, rng = policy.settings, np.random.default_rng(run.seed)
    best, before = np.inf, run.remaining()
    for i in range(1 + SAMPLES):
        cost = decoder.place(rng, settings.noise, settings.order_noise) if i else decoder.place()
        if not run.stopped and cost is not None and cost < best * (1 - 1e-9):
            best, plan = cost, decoder.builder.state.plan()
            run.propose(plan)
            if run.objective is None or cost < run.objective:
                run.offer(plan, "learned")
        spent, before = before - run.remaining(), run.remaining()
        if run.stopped or before < _SAFE * spent:
            return
