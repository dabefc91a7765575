"""Settings: a dataclass whose fields say what they may be, and the TOML file that a policy is trained with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import Checked, limited
from gangplan.instances.errors import JSON_BYTES, in_file
from gangplan.instances.intake import parse_toml, read_text

FOLDER = Path(__file__).parent.parent / "configs"
"""Where the configurations that come with the package lie."""


@dataclass(frozen=True, slots=True)
class PpoSettings(Checked):
    """What `gangplan.learned.training.ppo` reads.

    Attributes:
        rl_updates, rl_rate, critic_rate, gamma, lam, entropy, passes: of PPO.
        lanes, steps: episodes side by side, and decisions in each, from one update to the next.
        warm: updates that train the critic only.
    """

    rl_updates: int = 200
    rl_rate: float = limited(3e-4, positive=True)
    critic_rate: float = limited(2e-3, positive=True)
    gamma: float = limited(0.98, above=0, below=1)
    lam: float = limited(0.95, above=0, most=1)
    entropy: float = 1e-3
    passes: int = limited(2, positive=True)
    lanes: int = limited(128, positive=True)
    steps: int = limited(64, least=2)
    warm: int = 20


def shipped_configs() -> dict[str, Path]:
    """Return the configurations that come with the package, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def read_config(name: str | Path) -> tuple[str, dict[str, Any]]:
    """Return the policy a configuration is for, and the rest of it.

    Args:
        name: a TOML file whose key ``policy`` names a recipe, or the name of one that comes with the package.

    Raises:
        InstanceError: naming the file and what is wrong.
    """
    known = shipped_configs()
    path = known.get(str(name), Path(name))
    if not path.exists():
        words = f"is no file, and not one of {', '.join(known) or '(none come with this version)'}"
        raise InstanceError("config", words, str(path))
    text = read_text(path, empty=True, limit=JSON_BYTES)
    with in_file(path):
        found = parse_toml(text)
    policy = found.pop("policy", None)
    if not isinstance(policy, str):
        raise InstanceError("policy", f"{policy!r} is not the name of a policy", str(path))
    return policy, found
