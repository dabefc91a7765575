"""Policies for jobs that slow one another down, by name: classic rules, oracles, learned ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.learned.policy.weights import FOLDER, named
from gangplan.learned.training.recipe import load_policy

from ..harmony.colocate.policy import Fitted, Joint, Slowdowns
from .agents import Team
from .baselines import CONSOLIDATE, PATIENCE, Maker, Places, alone, baselines, tuned
from .bidders import Actors, Local, Processes
from .case import InterferenceCase
from .greedy import Greedy, Packing
from .market import Market

BIDS = "colocate-leaf-spine"
"""Weights by which `market-learned` bids, in every data centre."""
SLACK = 0.4
"""Of its `Packing`: between .3 and .6, the best on validation seeds 0 to 2 of Poisson's and of Gavel's mix."""


def _bidder(case: InterferenceCase) -> Greedy:
    return Greedy(alone(case.truth), consolidate=CONSOLIDATE)


def _near(score: str) -> Maker:
    return lambda case: tuned(score, near=True)


def _agents(local: Maker, forward: str) -> Callable[..., Places]:
    return lambda case, **words: Team(case, local, forward, **words)


def _market(bidder: Local = _bidder, **given: Any) -> Callable[..., Places]:
    return lambda case, **words: Market(case, bidder, **given, **words)


def learned_bidder(case: InterferenceCase) -> Greedy:
    """Return what bids, by learned speeds, for places that break up least.

    Raises:
        InstanceError: if torch is not installed.
    """
    return Packing(Slowdowns(_fitted(), alone(case.truth)), consolidate=CONSOLIDATE, slack=SLACK)


@cache
def _fitted() -> Fitted:
    fitted: Fitted = load_policy("market-learned", FOLDER / f"{BIDS}.safetensors").fitted
    return fitted


_TEAMS: dict[str, Callable[..., Places]] = {
    "market": _market(),
    "market-packed": _market(lambda case: Packing(alone(case.truth), consolidate=CONSOLIDATE)),
    "market-learned": _market(learned_bidder),
    "market-ask-1": _market(ask=1),
    "market-ask-2": _market(ask=2),
    "agents-alone": _agents(_bidder, "emptiest"),
    "agents-random": _agents(_bidder, "random"),
    "agents-apart": _agents(_bidder, "nowhere"),
    **{f"agents-{name}": _agents(_near(name), "emptiest") for name in ("lif", "tetris", "lb")},
}


OTHERS: dict[str, Maker] = {
    "alone-joint": lambda case: Joint(alone(case.truth), consolidate=CONSOLIDATE),
    "oracle-joint": lambda case: Joint(case.truth, consolidate=CONSOLIDATE),
    "oracle-joint-patient": lambda case: Joint(case.truth, PATIENCE),
    "market-processes": _market(bidders=Processes),
    "market-ray": _market(bidders=Actors),
    **{f"{name}-near": _near(name) for name in ("lif", "tetris", "lb")},
    **_TEAMS,
    **{f"{name}-2-racks": partial(make, racks=2) for name, make in _TEAMS.items()},
}
"""The search of `colocate` with the speeds that jobs have alone (what is lost without learning) and with the true ones
(what more could be learned); rules that keep a job near where it began; and agents of a rack each, that bid for jobs,
pass them on to the emptiest or at random, or keep what they get; or of two racks each. The market's agents may bid for
places that break up least, or so by learned speeds; ask the owner and one or two others only; be processes of their
own, or on Ray."""


def make_policy(name: str, case: str = "", folder: Path = FOLDER) -> Maker:
    """Return what makes the policy of a name for a case.

    Args:
        name: one of `baselines` or `OTHERS`, or weights: a file, or the name of one in `folder`.
        case: name of the case: weights called ``NAME-CASE`` are preferred.

    Raises:
        InstanceError: naming the policy, if there is none of that name or it is for another problem.
    """
    known = baselines() | OTHERS
    if name in known:
        return known[name]
    path = named(name, case, folder)
    if path is None:
        raise InstanceError("policy", f"{name!r} is not one of {', '.join(known)}, nor weights")
    return lambda case: load_policy(name, path, "place")
