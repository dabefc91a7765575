"""Attack the checker: certificates that are made of a problem, each with something in it changed."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import inf
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.certificates import verify_bound
from gangplan.instances.certificates.document import write
from gangplan.solvers.certificates.make import _candidates
from gangplan.solvers.run import Run

MILLION = Fraction(1, 10**6)
_EACH = 40
"""Mutations of a certificate."""
_OTHERS, _KEPT = 4, 50
"""Certificates of other problems that are tried, lists of each that give an item; how many are kept."""


def certificates(problem: Any, plan: Any, seconds: float = 2.0) -> Iterator[Any]:
    """Yield the documents of all certificates that are made of a problem and its best plan."""
    run = Run(problem, time_limit=seconds)
    if plan is not None:
        run.offer(plan, "enumeration")
    for made in _candidates(run, run.remaining):
        certificate = getattr(made, "certificate", made)
        yield json.loads(json.dumps(write(certificate)))


def claim(problem: Any, document: Any) -> Fraction | float | None:
    """Return what the checker says that a document proves; `None` if it is refused."""
    try:
        return verify_bound(problem, document)
    except InstanceError:
        return None


def wrong(problem: Any, optimum: float | None, document: Any) -> str:
    """Return why the checker is wrong about a document; nothing if it is right."""
    bound = claim(problem, document)
    if bound is None or optimum is None or (bound != inf and bound <= Fraction(optimum)):
        return ""
    return f"{document['argument']}: {float(bound)!r} is proved, a plan has {optimum!r}"


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield where the numbers and lists of a document are, and what they are."""
    if isinstance(data, dict | list):
        if isinstance(data, list):
            yield path, data
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            if key != "argument":
                yield from places(value, (*path, key))
    else:
        yield path, data


def with_changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value at a place."""
    copy = inside = json.loads(json.dumps(document))
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


def _scaled(factor: Fraction) -> Callable[[Any, random.Random], Any]:
    return lambda x, _: str(Fraction(x) * factor) if isinstance(x, str) else int(Fraction(x) * factor)


NUMBERS: dict[str, Callable[[Any, random.Random], Any]] = {
    "raised by a millionth": _scaled(1 + MILLION),
    "lowered by a millionth": _scaled(1 - MILLION),
    "doubled": _scaled(Fraction(2)),
    "other sign": _scaled(Fraction(-1)),
    "nothing": _scaled(Fraction(0)),
    "huge": _scaled(Fraction(10) ** 30),
    "tiny": _scaled(Fraction(1, 10**30)),
    "one more": lambda x, _: str(Fraction(x) + 1) if isinstance(x, str) else x + 1,
    "one less": lambda x, _: str(Fraction(x) - 1) if isinstance(x, str) else x - 1,
    "any": lambda x, rng: (
        str(Fraction(x) * Fraction(rng.random() * 4)) if isinstance(x, str) else rng.randrange(-2, 40)
    ),
}
"""What is made of a number."""
LISTS: dict[str, Callable[[list[Any], random.Random], Any]] = {
    "item dropped": lambda x, rng: (
        [y for k, y in enumerate(x) if k != i] if (i := rng.randrange(len(x) or 1)) >= 0 else x
    ),
    "item twice": lambda x, rng: [*x, rng.choice(x)] if x else [0],
    "shuffled": lambda x, rng: rng.sample(x, len(x)),
    "emptied": lambda x, rng: [],
}
"""What is made of a list: a leaf, a split, a price, an op of a path dropped."""


def mutations(document: Any, rng: random.Random, most: int = _EACH) -> Iterator[tuple[str, Any]]:
    """Yield (kind, document), each with one thing changed."""
    found = [x for x in places(document) if x[0]]
    ways = [(name, path, value) for path, value in found for name in (LISTS if isinstance(value, list) else NUMBERS)]
    for name, path, value in rng.sample(ways, min(most, len(ways))):
        changed = (LISTS if isinstance(value, list) else NUMBERS)[name](value, rng)
        if changed != value:
            yield name, with_changed(document, path, changed)


def foreign(document: Any, others: Sequence[Any], rng: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield (kind, document) with what certificates of the same argument say of other problems: all, or one item."""
    for other in rng.sample(others, min(_OTHERS, len(others))):
        yield "of another problem", other
        theirs = dict(places(other))
        lists = [(path, x) for path, x in places(document) if path and isinstance(x, list) and x and theirs.get(path)]
        for path, value in rng.sample(lists, min(_OTHERS, len(lists))):
            i = rng.randrange(len(value))
            # a leaf, a split, a price in the same place if there is one
            yield "item of another problem", with_changed(document, (*path, i), theirs[path][i % len(theirs[path])])


def attack(
    problem: Any,
    optimum: float | None,
    plan: Any,
    rng: random.Random,
    counts: Counter[str],
    seen: dict[str, list[Any]] | None = None,
) -> list[str]:
    """Return what the checker gets wrong of the certificates of a problem and their mutations, and count them.

    `seen` holds certificates of the problems before by argument, and gets those of this one.
    """
    faults, seen = [], {} if seen is None else seen
    for document in certificates(problem, plan):
        counts[f"certificates: {document['argument']}"] += 1
        others = seen.setdefault(document["argument"], [])
        for kind, changed in [("as made", document), *mutations(document, rng), *foreign(document, others, rng)]:
            words = wrong(problem, optimum, changed)
            refused = claim(problem, changed) is None
            counts[f"{kind}: {'refused' if refused else 'weaker or still true'}"] += kind != "as made"
            counts["mutations"] += kind != "as made"
            faults += [f"{kind}: {words}: {json.dumps(changed)[:1000]}"] if words else []
        seen[document["argument"]] = [*others, document][-_KEPT:]
    return faults
