"""Settings: a dataclass whose fields say what they may be, and the TOML file that a policy is trained with."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from gangplan.instances import InstanceError
from gangplan.instances.errors import JSON_BYTES, in_file
from gangplan.instances.intake import parse_toml, read_text

C = TypeVar("C")
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


def build(cls: type[C], table: Mapping[str, Any]) -> C:
    """Return the dataclass `cls` with the values of a table.

    Fields may be of type int, float, bool, str, Any, Literal, tuple[X, ...] and dict[str, X]. A whole number will do
    for a float.

    Raises:
        InstanceError: naming the key, if it is unknown or missing, or its value is of the wrong type.
    """
    hints = get_type_hints(cls)
    fields = {x.name: x for x in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            raise InstanceError(key, f"is unknown; known are {', '.join(fields)}")
    for name, x in fields.items():
        if name not in table and x.default is dataclasses.MISSING and x.default_factory is dataclasses.MISSING:
            raise InstanceError(name, "is missing")
    return cls(**{name: _value(hints[name], value, name) for name, value in table.items()})


_WORDS = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", tuple: "a list", dict: "a table",
}  # fmt: skip


def _value(kind: Any, value: Any, key: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or (kind in (int, bool, str) and type(value) is kind):
        return value
    if origin is Literal:
        if value in arguments:
            return value
        raise InstanceError(key, f"{value!r} is not one of {', '.join(map(repr, arguments))}")
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_value(arguments[0], x, f"{key}[{i}]") for i, x in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {name: _value(arguments[1], x, f"{key}.{name}") for name, x in value.items()}
    if kind is float and type(value) in (int, float):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise InstanceError(key, f"{value!r} is not finite")
        return found
    raise InstanceError(key, f"{value!r} is not {_WORDS[origin or kind]}")
