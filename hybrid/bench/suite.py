"""The instances of GapBench: specifications in suite.toml, what is known of each in the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.documents import content_hash
from gangplan.instances.errors import unknown
from gangplan.instances.intake import parse_toml, read_text
from gangplan.instances.kinds import GRAPHS, PROBLEMS
from gangplan.instances.outlet import write_whole
from gangplan.instances.verify import Problem

from . import makers
from .makers import GroundDraw
from .rows import ONLINE, line_of, read_lines

_HOME = Path(__file__).parent
MANIFEST = _HOME / "manifest.jsonl"
SET_FILE = "instances.jsonl"
"""The instances of a set, in its folder."""
SIZES = ("toy", "small", "medium", "large", "huge")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": (*PROBLEMS, ONLINE), "partition": GRAPHS, "placement": ("placement",), "schedule": ("schedule",),
    "pipeline": ("pipeline",),
    ONLINE: (ONLINE,),
}  # fmt: skip
"""Suites that are no size: the objectives of each."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A line of the manifest: how an instance is made, and the best that is known of it.

    Attributes:
        id: objective, family, size and number.
        generator: a function of `gangplan.hybrid.bench.makers`.
        arguments: of it, besides objective and family; the seed is one.
        hash: the content hash of the problem, a SHA-256.
        value: of the best known plan, as the verifier says; None if none is known.
        bound: no plan is better, as `bound_by` claims; None if nobody does.
        by, bound_by: the methods, or who submitted the plan.
        seconds: of the solve that found the better of the two last, None if it was submitted.
        zero: what gaps are counted from, see `gangplan.Result`.
        held_out: the seed of the set that `held_out` drew it for, None of the published set.
    """

    id: str
    objective: str
    family: str
    size: str
    generator: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""
    value: float | None = None
    bound: float | None = None
    by: str = ""
    bound_by: str = ""
    seconds: float | None = None
    zero: float = 0.0
    held_out: int | None = None

    @property
    def proved(self) -> bool:
        """Whether the best known plan is optimal within a millionth, as `bound_by` claims."""
        from gangplan.solvers.result import relative_gap
        from gangplan.solvers.run import OPTIMAL_GAP

        gap = relative_gap(self.value, self.bound, self.zero)
        return gap is not None and gap <= OPTIMAL_GAP

    def better(self, value: float | None, bound: float | None, by: str, seconds: float | None) -> Instance:
        """Return the instance with a verified value or a bound that is better; a bound that a plan disproves goes."""
        new = self
        if value is not None and (self.value is None or value < self.value):
            new = replace(new, value=value, by=by, seconds=seconds)
        if bound is not None and (self.bound is None or bound > self.bound):
            new = replace(new, bound=bound, bound_by=by, seconds=seconds)
        if new.value is not None and new.bound is not None and new.bound > new.value:
            # proofs are in floating point
            close = new.bound - new.value <= 1e-6 * max(new.value - self.zero, 1e-300)
            new = replace(new, bound=new.value if close else None, bound_by=new.bound_by if close else "")
        return new


def make(instance: Instance, *, check: bool = True) -> Problem | GroundDraw:
    """Generate the problem of an instance, or the ground of one that is online."""
    generator = getattr(makers, instance.generator)
    problem: Problem | GroundDraw = generator(instance.objective, instance.family, **instance.arguments)
    if check and instance.hash and hash_of(problem) != instance.hash:
        raise InstanceError(instance.id, f"generated, its hash is {hash_of(problem)}, not {instance.hash}")
    return problem


def hash_of(problem: Problem | GroundDraw) -> str:
    """Return the hash that the manifest has."""
    return problem.hash if isinstance(problem, GroundDraw) else content_hash(problem)


def from_file(path: str, objective: str = "") -> Instance:
    """Return a problem of one's own as an instance of family and size ``file``; a published one, say."""
    problem = makers.read_file(objective, "file", path=path)
    name, arguments = f"{problem.objective}-{Path(path).stem}", {"path": str(Path(path).resolve())}
    return Instance(name, problem.objective, "file", "file", "read_file", arguments, content_hash(problem))


def held_out(instance: Instance, seed: int) -> Instance:
    """Return a fresh instance of the same family and size, of which nothing is known."""
    rng = np.random.default_rng([*instance.id.encode(), seed])
    name, arguments = f"{instance.id}-s{seed}", makers.redrawn(instance.generator, instance.arguments, rng)
    kind = instance.objective, instance.family, instance.size, instance.generator
    drawn = Instance(name, *kind, arguments, held_out=seed)
    return replace(drawn, hash=hash_of(make(drawn)))


def specified() -> Iterator[Instance]:
    """Yield the instances of suite.toml, without what is known of them."""
    for row in parse_toml(read_text(_HOME / "suite.toml"))["row"]:
        for objective, family in product(*(_listed(row[x]) for x in ("objective", "family"))):
            for size in SIZES:
                cases = [dict(zip(case, values, strict=True)) for case in row.get(size, ())
                         for values in product(*map(_listed, case.values()))]  # fmt: skip
                for i, case in enumerate(cases):
                    yield Instance(f"{objective}-{family}-{size}-{i:02}", objective, family, size, row["make"], case)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def read_manifest(path: Path = MANIFEST) -> dict[str, Instance]:
    """Return the lines of a manifest or a ledger by id, see `read_lines`."""
    return {x.id: x for x in read_lines(path, Instance)}


def write_manifest(instances: Iterable[Instance], path: Path) -> None:
    """Write a manifest, whole or not at all."""
    write_whole({path: b"".join(map(line_of, instances))}, durable=True, folders=True)


_shipped = cache(read_manifest)


def suite(
    name: str = "all",
    *,
    objective: str = "",
    size: str = "",
    family: str = "",
    ledger: Path | None = None,
    sample: int = 0,
) -> list[Instance]:
    """Return the instances of a suite with the best that is known, by the manifest and a ledger of one's own.

    Args:
        name: a size, which has online instances only if that is the objective asked for; one of `GROUPS`; or a folder
            of instances that were generated.
        objective, size, family: only those.
        ledger: lines that replace those of the manifest where they know more.
        sample: at most so many of each objective, at even steps through the manifest; 0 means all.
    """
    drawn = name not in (*SIZES, *GROUPS) and (Path(name) / SET_FILE).is_file()
    shipped = read_manifest(Path(name) / SET_FILE) if drawn else _shipped()
    name = "all" if drawn else name
    for argument, value, known in (("suite", name, (*SIZES, *GROUPS)), ("objective", objective, (*PROBLEMS, ONLINE)),
                                   ("size", size, SIZES)):  # fmt: skip
        if value and value not in known:
            raise InstanceError(argument, unknown(value, known))
    own = {} if ledger is None else read_manifest(ledger)
    shipped = shipped | {x.id: x for x in own.values() if x.family == "file"}
    families = {x.family for x in shipped.values()}
    if family and family not in families:
        raise InstanceError("family", unknown(family, sorted(families)))
    sized = GROUPS[ONLINE] if objective == ONLINE else tuple(PROBLEMS)
    wanted = [x for x in shipped.values() if x.objective in GROUPS.get(name, sized if x.size == name else ())
              and objective in ("", x.objective) and size in ("", x.size) and family in ("", x.family)]  # fmt: skip
    if sample:
        groups = [[x for x in wanted if x.objective == each] for each in dict.fromkeys(x.objective for x in wanted)]
        wanted = [x[i * len(x) // min(sample, len(x))] for x in groups for i in range(min(sample, len(x)))]
    return [_merged(x, own.get(x.id)) for x in wanted]


def _merged(shipped: Instance, own: Instance | None) -> Instance:
    if own is None or own.hash != shipped.hash:
        return shipped
    merged = replace(shipped, zero=own.zero or shipped.zero).better(own.value, None, own.by, own.seconds)
    return merged.better(None, own.bound, own.bound_by, own.seconds)
