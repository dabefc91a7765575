"""Published systems, a room each: its cluster, its rivals, its policy as published, ours, and how they compare."""

from __future__ import annotations

from importlib import import_module

from gangplan.instances.arrays import require_choice
from gangplan.simulator.ground import Ground

SYSTEMS = {
    "pacml": "gangplan.systems.pacml.ground:Pacml",
    "topdrl": "gangplan.systems.topdrl.ground:Topdrl",
    "harmony": "gangplan.systems.interference.ground:Interference",
    "marl": "gangplan.systems.interference.ground:Agents",
}
"""The ground of each, by name. Importing one loads no heavy package."""


def ground_of(name: str) -> type[Ground]:
    """Return the ground of a system: a dataclass, the fields of which are its settings.

    Raises:
        InstanceError: if there is no such system.
    """
    require_choice(name, "system", SYSTEMS)
    module, _, kind = SYSTEMS[name].partition(":")
    found: type[Ground] = getattr(import_module(module), kind)
    return found
