"""Read a network and the settings it was made with from weights and their card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gangplan.instances import InstanceError

from .settings import build
from .weights import Card, load, match

Settings = TypeVar("Settings")


def restore(
    path: str | Path, policy: str, settings: type[Settings], make: Callable[[Settings], Any]
) -> tuple[Any, Settings, Card]:
    """Return the network, the settings and the card of a file of weights.

    Args:
        path: of the weights.
        policy: the recipe they are to be of.
        settings: a dataclass; the card's are those it was trained with.
        make: from settings to a network, a torch module.

    Raises:
        InstanceError: naming the file, if it is missing, broken or of another policy.
    """
    tensors, card = load(path)
    if card.policy != policy:
        raise InstanceError("policy", f"{card.policy!r} is not {policy}", str(path))
    try:
        known = build(settings, card.settings)
    except InstanceError as error:
        raise error.within("settings").of(str(path)) from None
    network = make(known)
    match(tensors, {name: tuple(x.shape) for name, x in network.state_dict().items()}, path)
    network.load_state_dict(tensors)
    return network, known, card
