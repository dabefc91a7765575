"""A ground: jobs that arrive on a cluster, the policies that may decide there, and the checked figures of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError

from .metrics.compare import interval
from .picking import Picks, require_seen

Maker = Callable[[Any, int], Any]
"""Makes a policy for what was drawn, and its seed."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run.

    Attributes:
        unit: ``s`` for seconds, which are shown in a unit that suits them, ``%`` for a share, else as it is.
        aside: whether it stands in a table of its own, and only if some policy has it.
    """

    words: str
    unit: str = ""
    aside: bool = False


def setting(default: Any, about: str, *, metavar: str = "", many: bool = False, shown: Any = None) -> Any:
    """Return a field of a ground, bool, int, float or str, with what `--help` says; `shown`: its default there."""
    more = {"metavar": metavar} if metavar else {}
    return field(default=default, metadata={"about": about, "many": many, "shown": shown, **more})


@dataclass(frozen=True, slots=True)
class GroundRun:
    """One policy on what was drawn of one seed; `figures` by name."""

    policy: str
    case: str
    seed: int
    figures: Mapping[str, float]

    @property
    def row(self) -> dict[str, Any]:
        """All of it in one dict."""
        return {"policy": self.policy, "case": self.case, "seed": self.seed, **self.figures}


class Ground(ABC):
    """Jobs that arrive on a cluster: a dataclass, the fields of which are its settings, see `setting`.

    Attributes:
        figures: by name; policies are compared by the first, of which less is better.
        sees: what it shows of jobs that wait to a policy that picks one, see `gangplan.simulator.picking`.
        usual: policies of a run that names none.
        case: what arrives, by name.
    """

    figures: ClassVar[Mapping[str, Figure]]
    sees: ClassVar[tuple[str, ...]] = ()
    usual: tuple[str, ...]
    case: str

    @abstractmethod
    def draw(self, seed: int) -> Any:
        """Return what arrives with a seed: what policies are made for."""

    @abstractmethod
    def arrays(self, drawn: Any) -> Sequence[NDArray[Any]]:
        """Return all that was drawn, first when jobs arrive, (n,)."""

    @classmethod
    def policies(cls) -> str:
        """Return the names that `policy` takes, in words for `--help`."""
        return ", ".join(cls.usual)

    @abstractmethod
    def policy(self, name: str) -> Maker:
        """Return what makes the policy of a name."""

    def always(self, policy: Any) -> Maker:
        """Return what gives this policy for all that is drawn."""
        return lambda drawn, seed: policy

    def find(self, name: str) -> Maker:
        """Return what makes the policy of a name, or of ``FILE.py:Class``, which picks the next job."""
        if ":" not in name:
            return self.policy(name)
        from gangplan.instances.torch_model.load import find_object

        try:
            made = find_object(name)
        except InstanceError as error:
            raise InstanceError("policy", error.problem) from None
        if not all(hasattr(made, x) for x in ("act", "needs")):
            raise InstanceError("policy", f"{name!r} is no class with `needs` and `act`")
        return self.picks(made)

    def picks(self, make: Callable[[], Picks]) -> Maker:
        """Return what makes of a policy that picks the next job one of this ground, a new one for all that is drawn."""
        try:
            policy = make()
        except TypeError as error:
            raise InstanceError("policy", f"cannot be made without arguments: {error}") from None
        require_seen(policy, self.sees, f"the ground of {self.case!r}")
        return lambda drawn, seed: self.native(make())

    def native(self, policy: Picks) -> Any:
        """Return a policy that picks as one of this ground."""
        raise NotImplementedError

    @abstractmethod
    def play(self, policy: Any, drawn: Any) -> Mapping[str, float]:
        """Let a policy decide, check the outcome, and return its figures."""

    @abstractmethod
    def bound(self, drawn: Any, time_limit: float) -> float:
        """Return what the first figure of no policy is below, whatever it knows of the future."""

    def run(self, policy: Any, drawn: Any) -> tuple[Any, ...]:
        """Let a policy decide, and return the `Outcome` first: a ground that has this can draw its schedules."""
        raise NotImplementedError

    def about(self, drawn: Any) -> str:
        """Return jobs and cluster in words."""
        return f"{len(self.arrays(drawn)[0])} jobs"


def evaluate(
    ground: Ground,
    policies: Mapping[str, Maker],
    seeds: Sequence[int],
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> list[GroundRun]:
    """Play every policy on what is drawn of every seed, the same for all.

    Raises:
        RuntimeError: if an outcome does not hold, which is a defect of the policy or of this library.
    """
    if not seeds:
        raise InstanceError("seeds", "there is none")
    runs: list[GroundRun] = []
    for seed in seeds:
        drawn = ground.draw(seed)
        for name, make in policies.items():
            try:
                runs.append(GroundRun(name, ground.case, seed, ground.play(make(drawn, seed), drawn)))
            except RuntimeError as error:
                raise RuntimeError(f"{name}, seed {seed}: {error}") from error
            progress(len(runs) / (len(seeds) * len(policies)))
    return runs


def check_ground(
    make: Callable[[], Ground], seeds: Sequence[int] = (0, 1), *, policies: Sequence[str] = (), time_limit: float = 10.0
) -> None:
    """Check a ground, and policies that decide there, on some seeds.

    Checked: a seed draws the same twice, and no other seed does; arrivals ascend; a policy has the declared figures,
    the first finite and the same again, none of it less than the bound; what was drawn is not written to.

    Args:
        make: returns the ground, a small one.
        seeds: two or more of it.
        policies: names, by default the usual ones.
        time_limit: seconds for a bound.

    Raises:
        AssertionError: saying what is wrong.
        RuntimeError: if an outcome does not hold.
    """
    ground, again = make(), make()
    assert len(seeds) > 1, f"{len(seeds)} seeds are less than two"
    assert ground.usual, "it has no usual policy"
    first, drawn = next(iter(ground.figures)), {seed: make().draw(seed) for seed in seeds}
    before = {seed: [np.array(x) for x in ground.arrays(case)] for seed, case in drawn.items()}
    for one, two in combinations(drawn, 2):
        assert not _alike(before[one], before[two]), f"seeds {one} and {two} draw the same"
    for seed, case in drawn.items():
        assert _alike(before[seed], again.arrays(again.draw(seed))), f"seed {seed} draws another thing each time"
        assert (np.diff(before[seed][0]) >= 0).all(), f"seed {seed}: arrivals do not ascend"
        bound = ground.bound(case, time_limit)
        for name in policies or ground.usual:
            mine, other = (dict(x.play(x.policy(name)(case, seed), case)) for x in (ground, again))
            value = mine[first]
            assert [*mine] == [*ground.figures], f"{name}: figures {[*mine]}, declared are {[*ground.figures]}"
            assert np.isfinite(value), f"{name}, seed {seed}: {first} is {value}"
            assert value == other[first], f"{name}, seed {seed}: {first} is {value}, then {other[first]}"
            assert value >= bound - 1e-9 * abs(bound), f"{name}, seed {seed}: {value} is below the bound {bound}"
            assert _alike(before[seed], ground.arrays(case)), f"{name}, seed {seed}: it writes to what was drawn"


def _alike(these: Sequence[NDArray[Any]], those: Sequence[NDArray[Any]]) -> bool:
    """Return whether arrays are equal, NaN to NaN."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(these, those, strict=False)]
    same = all(np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f") for a, b in pairs)
    return len(these) == len(those) and same


def refuse(faults: Sequence[str]) -> None:
    """Raise a RuntimeError if a check found something."""
    if faults:
        raise RuntimeError("; ".join(faults))


def values(runs: Sequence[GroundRun], policy: str, figure: str) -> NDArray[np.float64]:
    """Return a figure of a policy, seed by seed, float64 (seeds,)."""
    return np.array([run.figures[figure] for run in runs if run.policy == policy])


def against(runs: Sequence[GroundRun], policy: str, first: str, figure: str) -> tuple[float, float | None]:
    """Return by what share a policy's figure is above another's, paired by seed, and half the width of its interval."""
    return interval(values(runs, policy, figure) / values(runs, first, figure) - 1)
