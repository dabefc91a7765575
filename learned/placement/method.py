"""The learned policy as a method of the suite for placement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.solvers import Run
from gangplan.solvers.placement.prepare import Batch
from gangplan.solvers.placement.state import State

if TYPE_CHECKING:
    from .policy import PlacementPolicy

SAMPLES = 8
"""Placements that are drawn at most."""
_SAFE = 1.5
"""A placement is begun if so many times what the last one took is left."""
GOALS = ("slowdown", "throughput")


def learned(run: Run, prepared: Any) -> None:
    """Offer the greedy plan of the learned policy, mended, then sampled ones that are better once they are.

    Returns with a note where it cannot help: without torch or weights, for goals that it knows nothing of, with scores
    that are no numbers.
    """
    batch: Batch = prepared
    if batch.problem.goal not in GOALS:
        run.note(f"learned left out: it is for the goals {', '.join(GOALS)}")
    elif not run.stopped and run.can_import("torch") and run.can_import("numba"):
        try:
            from .shipped import shipped_policy

            _place(run, batch, shipped_policy())
        except ImportError as error:
            run.note(f"learned left out: {error.name or 'torch or numba'} is not installed")
        except InstanceError as error:
            run.note(f"learned left out: weights {error}")
        except FloatingPointError as error:
            run.note(f"learned left out: {error}")


def kernels() -> tuple[Any, ...]:
    """Return what is compiled, see `Method.kernels`."""
    from gangplan.solvers.placement.mend.search import search

    return (search,)


def warm() -> None:
    """Read the weights and load compiled code, so that no deadline pays for it."""
    from gangplan.solvers.placement.mend import SHORT

    from .batches import small
    from .decode import Decoder
    from .shipped import shipped_policy

    decoder = Decoder(shipped_policy(), Batch(small("train", 0)))
    decoder.place()
    decoder.mend(SHORT)


def _place(run: Run, batch: Batch, policy: PlacementPolicy) -> None:
    """Offer placements as long as there is time for one more."""
    if run.stopped:
        return
    from gangplan.solvers.placement.mend import LONG, SHORT

    from .decode import Decoder

    decoder = Decoder(policy, batch, until=lambda: run.stopped)
    settings, rng = policy.settings, np.random.default_rng(run.seed)
    before = run.remaining()
    for i in range(1 + SAMPLES):
        cost = decoder.place(rng, settings.noise, settings.order_noise) if i else decoder.place()
        if cost is not None and not run.stopped:
            if not i:
                run.propose(decoder.builder.state.plan())
            _offer(run, decoder.builder.state, cost)
            for rounds in (SHORT, LONG):
                found = None if run.stopped else decoder.mend(rounds, run.seed)
                if found is not None and not run.stopped:
                    _offer(run, decoder.mended.state, found)
        spent, before = before - run.remaining(), run.remaining()
        if run.stopped or before < _SAFE * spent:
            return


def _offer(run: Run, state: State, cost: float) -> None:
    if run.objective is None or cost < run.objective * (1 - 1e-9):
        run.offer(state.plan(), "learned")
