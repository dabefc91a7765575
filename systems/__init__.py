"""Published systems, a room each: its cluster, its rivals, its policy as published, ours, and how they compare."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from gangplan.instances.arrays import require_choice
from gangplan.simulator.ground import Ground


@dataclass(frozen=True, slots=True)
class System:
    """A published system.

    Attributes:
        ground: module and class of its ground, a dataclass the fields of which are its settings.
        about: what arrives there.
        example: options of a call of `gangplan system`.
    """

    ground: str
    about: str
    example: str


SYSTEMS = {
    "pacml": System(
        "pacml.ground:Pacml",
        "jobs arrive on a RAMP cluster, accepted at once or blocked",
        "--profiles profiles/ --seeds 2",
    ),
    "topdrl": System(
        "topdrl.ground:Topdrl",
        "gangs arrive where closer GPUs are faster",
        "--policy gnn --policy least_work --seeds 10",
    ),
    "harmony": System(
        "interference.ground:Interference",
        "jobs arrive that slow one another down, nobody knows how",
        "--case shared --policy lif --policy alone",
    ),
    "marl": System(
        "interference.ground:Agents",
        "the same in a data centre whose racks have agents",
        "--policy market --policy agents-lif --jobs 100",
    ),
}
"""By name. Importing a ground loads no heavy package."""


def ground_of(name: str) -> type[Ground]:
    """Return the ground of a system.

    Raises:
        InstanceError: if there is no such system.
    """
    require_choice(name, "system", SYSTEMS)
    module, _, kind = SYSTEMS[name].ground.partition(":")
    ground: type[Ground] = getattr(import_module(f"{__name__}.{module}"), kind)
    return ground
