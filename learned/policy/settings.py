"""Settings: a dataclass whose fields say what they may be, and the TOML file that a policy is trained with."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import JSON_BYTES, in_file
from gangplan.instances.intake import parse_toml, read_text

_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "least": (operator.ge, "is not {limit} or more"),
    "above": (operator.gt, "is not above {limit}"),
    "most": (operator.le, "is not {limit} or less"),
    "below": (operator.lt, "is not below {limit}"),
}
FOLDER = Path(__file__).parent.parent / "configs"
"""Where the configurations that come with the package lie."""


def limited(default: Any, **limits: float) -> Any:
    """Return a dataclass field with that default and limits: ``least``, ``above``, ``most``, ``below``."""
    return dataclasses.field(default=default, metadata=limits)


class RecipeSettings:
    """The base of dataclasses that hold settings: every number is within the limits of its field."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for x in dataclasses.fields(self):  # type: ignore[arg-type]  # what derives from this is a dataclass
            value = getattr(self, x.name)
            for name, (holds, words) in _LIMITS.items():
                if name in x.metadata and not holds(value, x.metadata[name]):
                    raise InstanceError(x.name, f"{value!r} {words.format(limit=x.metadata[name])}")


@dataclasses.dataclass(frozen=True, slots=True)
class PpoSettings(RecipeSettings):
    """What `gangplan.learned.training.ppo` reads.

    Attributes:
        rl_updates, rl_rate, critic_rate, gamma, lam, entropy, passes: of PPO.
        lanes, steps: episodes side by side, and decisions in each, from one update to the next.
        warm: updates that train the critic only.
    """

    rl_updates: int = limited(200, least=0)
    rl_rate: float = limited(3e-4, above=0)
    critic_rate: float = limited(2e-3, above=0)
    gamma: float = limited(0.98, above=0, below=1)
    lam: float = limited(0.95, above=0, most=1)
    entropy: float = limited(1e-3, least=0)
    passes: int = limited(2, least=1)
    lanes: int = limited(128, least=1)
    steps: int = limited(64, least=2)
    warm: int = limited(20, least=0)


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
