"""Weights: safetensors, and beside them a model card in JSON that says where they come from."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from gangplan.instances.errors import InstanceError, in_file, within
from gangplan.instances.intake import read_bytes, read_json
from gangplan.instances.outlet import write_whole
from gangplan.instances.typed import SETTINGS

if TYPE_CHECKING:
    import torch

Tensors: TypeAlias = "dict[str, torch.Tensor]"
C = TypeVar("C")
FORMAT = 1
LIMIT = 2_000_000
"""Bytes of one policy's weights at most."""

FOLDER = Path(__file__).parent.parent / "weights"
"""Where the weights that come with the package lie."""


@dataclass(frozen=True, slots=True)
class Card:
    """The model card of one set of weights.

    Attributes:
        name: of the weights.
        policy: the recipe that made them and can load them.
        about: what they are for, a sentence.
        data: what they were trained on: instances, labels, traces.
        seeds: of training and of validation.
        commit: of the code that trained them.
        settings: the hyper-parameters, as in the configuration file.
        validation: figures on the validation seeds; of ``score``, smaller is better.
        training: updates, seconds and why it ended, of each stage.
        parameters: how many numbers there are; `save` enters it.
        sha256: of the file of tensors; `save` enters it.
        format: version of this format.
    """

    name: str
    policy: str
    about: str = ""
    data: str = ""
    seeds: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    parameters: int = 0
    sha256: str = ""
    format: int = FORMAT

    def __post_init__(self) -> None:
        for name in ("name", "policy"):
            if not getattr(self, name):
                raise InstanceError(name, "is empty")
        if self.format != FORMAT:
            raise InstanceError("format", f"{self.format!r} is not {FORMAT}: another version of gangplan wrote this")


def files(path: str | Path) -> tuple[Path, Path]:
    """Return the files of tensors and of the card, given either of them or what their names have in common."""
    path = Path(path)
    stem = path.with_suffix("") if path.suffix in (".safetensors", ".json") else path
    return stem.with_name(f"{stem.name}.safetensors"), stem.with_name(f"{stem.name}.json")


def save(path: str | Path, tensors: Tensors, card: Card) -> Card:
    """Write weights of up to 2 MB of finite numbers, and the card, and return that as written."""
    from safetensors.torch import save as serialise

    weights, beside = files(path)
    _check_finite(tensors, weights)
    content = serialise({name: x.detach().cpu().contiguous() for name, x in tensors.items()})
    if len(content) > LIMIT:
        raise InstanceError("tensors", f"are {len(content)} bytes, more than {LIMIT}", str(weights))
    card = dataclasses.replace(
        card, parameters=sum(x.numel() for x in tensors.values()), sha256=hashlib.sha256(content).hexdigest()
    )
    text = json.dumps(dataclasses.asdict(card), indent=2, allow_nan=False)
    write_whole({weights: content, beside: f"{text}\n".encode()}, durable=True)
    return card


def read_card(path: str | Path) -> Card:
    """Return the card alone; needs no torch."""
    path = files(path)[1]
    found = read_json(path)
    with in_file(path):
        if not isinstance(found, dict):
            raise InstanceError("card", "is no JSON object")
        return SETTINGS.read(Card, found)


def load(path: str | Path) -> tuple[Tensors, Card]:
    """Return tensors and card, see `load_arrays`."""
    import torch

    arrays, card = load_arrays(path)
    return {name: torch.from_numpy(x) for name, x in arrays.items()}, card


def load_arrays(path: str | Path) -> tuple[dict[str, NDArray[Any]], Card]:
    """Return tensors as arrays, and the card, without torch.

    Args:
        path: of either file, or what their names have in common.

    Raises:
        InstanceError: naming the file and what is wrong: missing, truncated, not the one of the card, not finite.
    """
    card, weights = read_card(path), files(path)[0]
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialise

    content = read_bytes(weights)
    if len(content) > LIMIT:
        raise InstanceError("tensors", f"are {len(content)} bytes, more than {LIMIT}", str(weights))
    try:
        arrays = deserialise(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise InstanceError("tensors", f"are broken or cut off: {error}", str(weights)) from None
    _check_finite(arrays, weights)
    if hashlib.sha256(content).hexdigest() != card.sha256:
        raise InstanceError("sha256", "the tensors are not those that the card beside them is about", str(weights))
    return arrays, card


def load_for(recipe: str, config: type[C], path: str | Path) -> tuple[dict[str, NDArray[Any]], Card, C]:
    """Return tensors as arrays, card and settings of a recipe's weights; settings in `config.RETIRED` are left out.

    Raises:
        InstanceError: if they are missing, broken or of another policy.
    """
    arrays, card = load_arrays(path)
    if card.policy != recipe:
        raise InstanceError("policy", f"{card.policy!r} is not {recipe}", str(path))
    retired = getattr(config, "RETIRED", ())
    with in_file(path), within("settings"):
        return arrays, card, SETTINGS.read(config, {key: x for key, x in card.settings.items() if key not in retired})


def match(tensors: Tensors, shapes: dict[str, tuple[int, ...]], path: str | Path) -> None:
    """Raise an error that names the first tensor that a network lacks, has of another shape, or has not."""
    for name, shape in shapes.items():
        if name not in tensors:
            raise InstanceError(f"tensors[{name!r}]", "is missing", str(path))
        if tuple(tensors[name].shape) != tuple(shape):
            words = f"has shape {tuple(tensors[name].shape)}, not {shape}: train weights of other versions anew"
            raise InstanceError(f"tensors[{name!r}]", words, str(path))
    for name in tensors:
        if name not in shapes:
            raise InstanceError(f"tensors[{name!r}]", "is none of the network's", str(path))


def shipped() -> dict[str, Path]:
    """Return the weights that come with the package, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.safetensors"))}


def named(name: str, suffix: str = "", folder: Path = FOLDER) -> Path | None:
    """Return the file of weights: ``NAME.safetensors`` itself, or of a name in a folder, ``NAME-SUFFIX`` preferred."""
    if name.endswith(".safetensors"):
        return Path(name)
    return next((path for x in (f"{name}-{suffix}", name) if (path := folder / f"{x}.safetensors").is_file()), None)


def find(name: str) -> Path:
    """Return the file of weights, given a file or the name of weights that come with the package."""
    known = shipped()
    if name in known:
        return known[name]
    path = files(name)[0]
    if path.exists() or files(name)[1].exists():
        return path
    raise InstanceError(
        "weights", f"{name!r} is no file, and not one of {', '.join(known) or '(none come with this version)'}"
    )


def _check_finite(tensors: Mapping[str, Any], path: Path) -> None:
    if not tensors:
        raise InstanceError("tensors", "there are none", str(path))
    for name, x in tensors.items():
        # a sum is finite only if all of its terms are
        if not math.isfinite(float(abs(x).sum())):
            raise InstanceError(f"tensors[{name!r}]", "holds a number that is not finite", str(path))
