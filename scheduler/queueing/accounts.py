"""What queues and users hold of the cluster, and who comes before whom by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.typed import STATE

from ..settings import ROUNDING, Quota, Sharing, parent
from .request import Terms

Amounts = tuple[int, ...]
"""GPUs, millionths of a core and bytes of memory."""
ROOT = 0
"""The number of the account of the whole cluster."""
_LN2 = 0.6931471805599453


class QueueGroup(NamedTuple):
    """Those of the waiting jobs that are alike to queues, users and classes.

    Attributes:
        leaf: number of the account that pays for them.
        queue: number of the account of the queue.
        user: whose they are, "" where it makes no difference.
        level: their class.
    """

    leaf: int = ROOT
    queue: int = ROOT
    user: str = ""
    level: int = 0


ALIKE = QueueGroup()
"""That of all jobs where queues, users and classes make no difference."""
Position = tuple[int, float, str]
"""The place of an account among its siblings: whether it is over its guarantee, how far it is, its name."""
Rank = tuple[Position, ...]
"""The place of an account among others: the least of siblings is first, from the root down."""
Stamp = tuple[int, float]
"""How often an account changed, and the time where it matters."""


@dataclass(slots=True)
class Account:
    """What a queue, or a user of a queue, holds.

    Attributes:
        name: the queue's path, and the user's name behind a slash.
        above: numbers of the accounts on the way from below the root to this one, which is the last.
        quota: of the cluster.
        used: what its running jobs hold.
        leaving: what others hold still that count as if they had stopped; limits heed it.
        average: of its share in the past, the later the more it counts.
        at: when that was so.
        changes: how often it or one below was told something.
    """

    name: str
    above: tuple[int, ...]
    quota: Quota
    used: list[int] = field(default_factory=lambda: [0, 0, 0])
    leaving: list[int] = field(default_factory=lambda: [0, 0, 0])
    average: float = 0.0
    at: float = 0.0
    changes: int = 0


class Accounts:
    """The tree of queues with what each holds.

    A share is the largest of those of GPUs, cores and memory (dominant resource; Ghodsi et al., NSDI 2011). Among
    siblings that one is first which has the smallest part of its guarantee, then that one which has least above it by
    its weight. So, if jobs are small, what queues hold that want more becomes the weighted max-min fair shares.

    Args:
        sharing: the rules.

    Attributes:
        trivial: whether all queues and users are alike.
        bounded: whether something may keep a job from starting that has room.
        kept: whether it is told who holds what.
        queues: number of the queue that each account is or is in, int64 (accounts,).
        total: what the whole cluster has, whether or not its nodes are up.
        now: the time.
    """

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self.trivial = not (sharing.queues or sharing.fair_users)
        self.bounded = bool(sharing.queues or sharing.limits)
        self.kept = self.bounded or not self.trivial
        self.all = [Account("", (), Quota(share=1.0))]
        self.queues = np.zeros(1, np.int64)
        self._number: dict[str, int] = {}
        self._users: dict[str, list[int]] = {}  # GPUs and jobs
        self.total, self._up, self.now = [1, 1, 1], [0, 0, 0], 0.0
        self._places: dict[int, tuple[Stamp, Rank]] = {}
        self._positions: dict[int, tuple[Stamp, Position]] = {}
        self._borrows: dict[tuple[int, Amounts], tuple[int, bool]] = {}
        for path in sorted(sharing.queues, key=lambda path: path.count(".")):
            self._open(path, sharing.queues[path], self._number.get(parent(path), ROOT))
        self._keep = any(quota.share and quota.lends < 1.0 for quota in sharing.queues.values())

    def _open(self, name: str, quota: Quota, above: int) -> int:
        number = self._number[name] = len(self.all)
        self.all.append(Account(name, (*self.all[above].above, number), quota))
        self.queues = np.append(self.queues, above if "/" in name else number)
        return number

    def leaf(self, terms: Terms) -> int:
        """Return the number of the account that pays for a job, which is opened if it is the first."""
        if self.trivial:
            return ROOT
        queue = terms.queue if self.sharing.queues else ""
        number = self._number.get(queue, ROOT)
        if number == ROOT and self.sharing.queues:  # who names no queue has one without a guarantee
            number = self._number[""] if "" in self._number else self._open("", Quota(), ROOT)
        if not self.sharing.fair_users:
            return number
        name = f"{queue}/{terms.user}"
        return self._number[name] if name in self._number else self._open(name, Quota(), number)

    def top(self, number: int) -> int:
        """Return the account below the root on the way to one."""
        return self.all[number].above[0] if number else ROOT

    def group(self, terms: Terms, level: int) -> QueueGroup:
        """Return the group of a job of such a class."""
        leaf = self.leaf(terms)
        return QueueGroup(leaf, int(self.queues[leaf]), terms.user if self.sharing.limits else "", level)

    def capacity(self, total: Sequence[int], up: Sequence[int]) -> None:
        """Note what the whole cluster has, and the nodes that are up."""
        self.total, self._up = [max(1, int(x)) for x in total], [int(x) for x in up]
        for account in self.all:
            account.changes += 1

    def hold(self, terms: Terms, amounts: Sequence[int], sign: int = 1, *, limits: bool = True) -> None:
        """Note that a job holds so much from now on, or no longer if the sign is -1; `limits`: to limits too."""
        if terms.user and self.sharing.limits and limits:
            user = self._users.setdefault(terms.user, [0, 0])
            user[0] += sign * amounts[0]
            user[1] += sign
        for number in (ROOT, *self.all[self.leaf(terms)].above):
            account = self.all[number]
            account.average, account.at = self._level(account), self.now
            account.changes += 1
            for i, amount in enumerate(amounts):
                account.used[i] += sign * amount
                account.leaving[i] -= 0 if limits else sign * amount

    @contextmanager
    def without(self, held: Iterable[tuple[Terms, Sequence[int]]]) -> Iterator[None]:
        """Have jobs hold nothing within."""
        held = list(held)
        numbers = {number for terms, _ in held for number in (ROOT, *self.all[self.leaf(terms)].above)}
        some = [self.all[number] for number in sorted(numbers)]
        kept = [(account, account.used[:], account.average, account.at) for account in some]
        users = {terms.user: self._users[terms.user][:] for terms, _ in held if terms.user in self._users}
        for terms, amounts in held:
            self.hold(terms, amounts, -1)
        yield
        for account, used, average, at in kept:
            account.used, account.average, account.at, account.changes = used, average, at, account.changes + 1
        self._users |= users

    def share(self, number: int, more: Sequence[int] = (0, 0, 0)) -> float:
        """Return the share of the cluster that an account has, and would have with so much more."""
        used = self.all[number].used
        return max((have + add) / total for have, add, total in zip(used, more, self.total, strict=True))

    def _level(self, account: Account) -> float:
        """Return the share that counts in the order: what it has, or a decaying mean of what it had."""
        has = max(have / total for have, total in zip(account.used, self.total, strict=True))
        if self.sharing.halflife is None or has == account.average:
            return has
        return has + (account.average - has) * exp(-_LN2 * (self.now - account.at) / self.sharing.halflife)

    def place(self, leaf: int) -> Rank:
        """Return the place of an account in the order."""
        if self.trivial:
            return ()
        above = self.all[leaf].above
        stamp, kept = self._stamp(above[0]), self._places.get(leaf)
        if kept is None or kept[0] != stamp:
            kept = self._places[leaf] = stamp, tuple(self._among(number) for number in above)
        return kept[1]

    def _stamp(self, number: int) -> Stamp:
        """Return what changes when the place of an account, or of one below, may have."""
        return self.all[number].changes, self.now if self.sharing.halflife is not None else 0.0

    def _among(self, number: int) -> Position:
        account, stamp, kept = self.all[number], self._stamp(number), self._positions.get(number)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        level, quota = self._level(account), account.quota
        if level < quota.share - ROUNDING:
            position = 0, level / quota.share, account.name
        else:
            position = 1, (level - quota.share) / quota.weight, account.name
        self._positions[number] = stamp, position
        return position

    def borrows(self, leaf: int, amounts: Amounts) -> bool:
        """Return whether so much more takes a queue and all above it over their guarantees."""
        if not self.sharing.queues:
            return False
        above = self.all[self.queues[leaf]].above
        changes, kept = self.all[above[0]].changes, self._borrows.get((leaf, amounts))
        if kept is None or kept[0] != changes:
            kept = changes, not any(self.within(number, amounts) for number in above)
            self._borrows[leaf, amounts] = kept
        return kept[1]

    def within(self, number: int, amounts: Sequence[int] = (0, 0, 0)) -> bool:
        """Return whether an account has, with so much more, no more than it is guaranteed."""
        return self.share(number, amounts) <= self.all[number].quota.share + ROUNDING

    def owed(self, leaf: int, other: int, amounts: Sequence[int] = (0, 0, 0)) -> bool:
        """Return whether so much more is guaranteed to one account whatever another one has."""
        return any(self.within(x, amounts) for x in self.all[leaf].above if x not in self.all[other].above)

    def exceeds(self, number: int, more: Sequence[int] = (0, 0, 0), floor: float = 0.0) -> bool:
        """Return whether an account has, with so much more, more than it is guaranteed, and than a `floor`."""
        return self.share(number, more) > max(floor, self.all[number].quota.share) + ROUNDING

    def below(self, number: int) -> list[int]:
        """Return the accounts on whose way one is, itself among them."""
        return [leaf for leaf, account in enumerate(self.all) if number in account.above]

    def refuses(self, terms: Terms, amounts: Amounts) -> str | None:
        """Return which limit keeps a job that needs so much from starting, in words."""
        if (words := self.over_limit(terms, amounts)) is not None:
            return words
        leaf = self.leaf(terms)
        if self._keep and not self._lent(leaf, amounts):
            return "what is free is kept for queues that do not lend it"
        for number in self.capped(leaf, amounts):
            has, most = f"{self.share(number):.1%}", f"{self.all[number].quota.most:.1%}"
            return f"queue {self.all[number].name} has {has} of the cluster, at most {most}"
        return None

    def over_limit(self, terms: Terms, amounts: Sequence[int], count: int = 1) -> str | None:
        """Return what of its user's limit keeps so many jobs from starting, in words."""
        if (limit := self.sharing.limit(terms.user)) is not None:
            gpus, jobs = self._users.get(terms.user, (0, 0))
            if limit.gpus is not None and gpus + amounts[0] > limit.gpus:
                return f"user {terms.user} holds {gpus} GPUs of at most {limit.gpus}"
            if limit.jobs is not None and jobs + count > limit.jobs:
                return f"user {terms.user} runs {jobs} jobs of at most {limit.jobs}"
        return None

    def share_limits(self, terms: Terms, other: Terms) -> bool:
        """Return whether a limit of a user, or the most of a queue, is one for two jobs."""
        if self.sharing.limit(terms.user) is not None and terms.user == other.user:
            return True
        both = {*self.all[self.leaf(terms)].above}.intersection(self.all[self.leaf(other)].above)
        return any(self.all[number].quota.most < 1.0 for number in both)

    def capped(self, leaf: int, amounts: Sequence[int]) -> list[int]:
        """Return the accounts on the way to one that would hold more than the most, from the root down."""
        some = [number for number in self.all[leaf].above if self.all[number].quota.most < 1.0]
        held = {number: np.add(self.all[number].used, self.all[number].leaving) + amounts for number in some}
        most = {number: np.multiply(self.total, self.all[number].quota.most + ROUNDING) for number in some}
        return [number for number in some if (held[number] > most[number]).any()]

    def never(self, terms: Terms, amounts: Amounts, total: Sequence[int] = ()) -> str | None:
        """Return which limit keeps a job from starting even if nobody else runs, on so many nodes or those up."""
        alone = Accounts(self.sharing)
        alone.capacity(total or self.total, total or self.total)
        return alone.refuses(terms, amounts)

    def _lent(self, leaf: int, amounts: Sequence[int]) -> bool:
        """Return whether, with so much less free, all others have what they do not lend, or those below them do not."""
        kept = np.zeros((len(self.all), 3))
        for number in range(len(self.all) - 1, ROOT, -1):  # those below come later
            account = self.all[number]
            if number not in self.all[leaf].above:
                kept[number] = np.maximum(kept[number], np.subtract(self._unlent(number), account.used))
            kept[(ROOT, *account.above)[-2]] += kept[number]
        root = self.all[ROOT]
        rest = np.subtract(self._up, root.used) - root.leaving - amounts + np.multiply(self.total, ROUNDING)
        return bool(np.all((rest >= kept[ROOT]) | (np.array(amounts) == 0) | (kept[ROOT] == 0)))

    def _unlent(self, number: int) -> np.ndarray:
        """Return what of its guarantee an account does not lend."""
        quota = self.all[number].quota
        return np.array(self.total) * (quota.share * (1 - quota.lends))

    def owns(self, leaf: int, amounts: Sequence[int]) -> bool:
        """Return whether so much more is of what an account on the way to one does not lend."""
        way = self.all[leaf].above
        takes = [np.add(self.all[number].used, amounts) - self._unlent(number) for number in way]
        return any((x <= np.multiply(self.total, ROUNDING)).all() for x in takes)

    def floor(self, here: int, there: int, more: Sequence[int]) -> float:
        """Return the share to which one account may be brought down for so much more of another, its sibling.

        Its guarantee, and as much more by weight as the other would have above its own.
        """
        one, other = self.all[here].quota, self.all[there].quota
        return other.share + max(0.0, self.share(here, more) - ROUNDING - one.share) / one.weight * other.weight

    def fork(self, mine: int, other: int) -> tuple[int, int]:
        """Return the accounts on the ways to two leaves that are siblings: where the ways part."""
        pair = zip(self.all[mine].above, self.all[other].above, strict=False)
        return next((here, there) for here, there in pair if here != there)

    def save(self) -> list[list[Any]]:
        """Return what is remembered of the past, for JSON; what is held now follows from who runs."""
        if self.sharing.halflife is None:
            return []
        return sorted([x.name, x.average, x.at] for x in self.all[1:] if x.average or any(x.used))

    def load(self, saved: Sequence[Sequence[Any]]) -> None:
        """Take over what `save` returned.

        Raises:
            InstanceError: naming what of it is wrong.
        """
        for i, (name, average, at) in enumerate(STATE.read(tuple[tuple[str, float, float], ...], saved, "shares")):
            queue, slash, user = name.partition("/")
            if slash or not queue:
                self.leaf(Terms(queue=queue, user=user))  # opened if it is the first
            number = self._number.get(name, -1)
            if number < 0:
                raise InstanceError(f"shares[{i}]", f"{name!r} is no queue")
            self.all[number].average, self.all[number].at = float(average), float(at)
            self.all[number].changes += 1
