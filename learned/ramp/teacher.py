"""The teacher: a table of what free blocks are worth, learned for one distribution, and rollouts that look ahead by it.

A state after a decision is worth the sum over degrees and levels of a table's entry at the number of blocks available
then. The entries solve the Bellman equation of the policy they define, by least squares (LSTD(lambda): Boyan, Machine
Learning 2002), again and again. The teacher is told the distribution, which the policy that learns from it is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray

from .history import SUMS, remember, turn_of
from .play import hold
from .rows import LEVELS, MOST, WIDTH, candidates, desk, known, level_of, see, take, write_rows
from .tables import DEGREES, Long
from .worlds import Episode, World

FIRST, LAST = 1, len(LEVELS) - 1
"""Levels that count: not what is free now, for the next job comes a turn later, nor what is far."""

STEPS = np.minimum(np.array([0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7]), 7)
"""The column for a number of blocks; from the last on there is one for all."""

SHAPE = len(DEGREES), LAST - FIRST, 8
"""Of a table: degrees, levels, columns."""

GAMMA, LAMBDA, RIDGE = 0.98, 0.7, 1e-4
EXPLORE = 0.03
TRIED, FUTURES, HORIZON = 6, 24, 24
"""Rows played on, futures of each, jobs in a future."""


class Labels(NamedTuple):
    """Decisions and what each of their rows is worth to the teacher; d decisions, A rows.

    Attributes:
        rows: float32 (A, WIDTH).
        first: int64 (d + 1,).
        kind: type of the job, int64 (d,).
        value: accepted jobs to come, discounted, this one included; float32 (A,).
    """

    rows: NDArray[np.float32]
    first: Long
    kind: Long
    value: NDArray[np.float32]


def value_table(
    world: World, draw: Any, rng: np.random.Generator, *, rounds: int = 10, episodes: int = 10, choose: bool = True
) -> Any:
    """Return the table of a distribution, float64 `SHAPE`.

    Args:
        world: where.
        draw: from a generator to an episode.
        rng: draws.
        rounds: of policy iteration.
        episodes: in a round.
        choose: see `gangplan.learned.ramp.rows.desk`.
    """
    table = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])  # more free blocks are better
    size = table.size + 1
    place = desk(world.tables, choose=choose)
    for i in range(rounds):
        a, b, n = np.zeros((size, size)), np.zeros(size), 0
        for _ in range(episodes):
            episode = draw(rng)
            columns, reward = _watch(*_case(episode), world.tables, world.menus, table, place, int(rng.integers(2**31)))
            _lstd(columns, reward, a, b)
            n += len(reward)
        solved = np.linalg.solve(a + RIDGE * n * np.eye(size), b)[:-1].reshape(SHAPE)
        table = solved if i == 0 else (table + solved) / 2
    return table


def label(
    world: World, episode: Episode, table: Any, keep: float, seed: int, *, ahead: Episode | None, choose: bool = True
) -> Labels:
    """Let the teacher play an episode, now and then at random, and label about a share `keep` of its decisions.

    Args:
        world: where.
        episode: what arrives.
        table: the teacher's.
        keep: share of the decisions.
        seed: of chance.
        ahead: jobs of which futures are drawn; None to go by the table alone, which is 500 times faster.
        choose: see `gangplan.learned.ramp.rows.desk`.
    """
    n = len(episode.kind)
    rows, first = np.zeros((round(n * keep * 45) + MOST, WIDTH), np.float32), np.zeros(n + 1, np.int64)
    value, kind = np.zeros(len(rows), np.float32), np.zeros(n, np.int64)
    future = (np.zeros(0, np.int64), np.zeros(0)) if ahead is None else (ahead.kind, ahead.beta)
    place, other = (desk(world.tables, choose=choose) for _ in range(2))
    d = _label(
        *_case(episode), *future, world.tables, world.menus, table, place, other, keep, seed, rows, first, kind, value
    )
    k = first[d]
    return Labels(rows[:k].copy(), first[: d + 1].copy(), kind[:d].copy(), value[:k].copy())


def accepted(world: World, episode: Episode, table: Any) -> FloatArray:
    """Return which jobs the teacher accepts by its table alone, float64 (n,)."""
    found = _watch(*_case(episode), world.tables, world.menus, table, desk(world.tables), -1)
    return np.asarray(found[1])


def _case(episode: Episode) -> tuple[Long, FloatArray, FloatArray]:
    return episode.kind, episode.beta, episode.gap


@njit(cache=True)
def column_of(count: int) -> int:
    """Return the column for a number of blocks."""
    return int(STEPS[min(count, len(STEPS) - 1)])


@njit(cache=True)
def worth(count: Any, table: Any) -> float:
    """Return what a state is worth by the numbers of blocks available, int64 (CLASSES, N_LEVELS)."""
    total = 0.0
    for q in range(table.shape[0]):
        for level in range(FIRST, LAST):
            total += table[q, level - FIRST, column_of(count[q, level])]
    return total


@njit(cache=True)
def weigh(
    end: Any, now: float, turn: float, tables: Any, jct: Any, limit: float, table: Any, desk: Any, out: Any
) -> int:
    """Write what each row of a decision is worth, the acceptance of the job included, and return their number.

    Rows and blocks are those of `write_rows`, but no features are written.
    """
    see(end, now, turn, tables, desk)
    out[0] = worth(desk.count, table)
    desk.block[0] = -1
    allowed = candidates(tables, jct, limit, desk)
    k, before = 1, -1
    for b in range(len(allowed)):
        if not allowed[b] or k == MOST or (desk.first and tables.degree[b] == before):
            continue
        before = tables.degree[b]
        take(b, level_of(jct[tables.shape[b]] / turn), tables, desk)
        if known(tables.shape[b], k, desk):
            continue
        desk.left[:] = desk.count - desk.taken
        out[k] = 1.0 + worth(desk.left, table)
        desk.block[k] = b
        k += 1
    return k


@njit(cache=True)
def _watch(kind: Any, beta: Any, gap: Any, tables: Any, menus: Any, table: Any, desk: Any, seed: int) -> Any:
    """Play an episode, without chance if the seed is below 0.

    Returns:
        The columns of each state after a decision, and the rewards.
    """
    np.random.seed(max(seed, 0))  # noqa: NPY002 - the only generator that compiled code has; it is its own
    n, width = len(kind), table.shape[0] * table.shape[1]
    columns, reward = np.zeros((n, width), np.int64), np.zeros(n)
    end, sums, out = np.full(tables.n, -1.0), np.zeros(SUMS), np.zeros(MOST)
    now = 0.0
    for i in range(n):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], menus.sequential[m], menus.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        k = weigh(end, now, turn, tables, menus.jct[m], beta[i] * menus.sequential[m], table, desk, out)
        a = int(np.argmax(out[:k]))
        if seed >= 0 and np.random.random() < EXPLORE:  # noqa: NPY002
            a = np.random.randint(k)  # noqa: NPY002
        desk.left[:] = desk.count
        if a > 0:
            b = desk.block[a]
            time = menus.jct[m, tables.shape[b]]
            take(b, level_of(time / turn), tables, desk)
            desk.left[:] -= desk.taken
            reward[i] = 1.0
            hold(end, b, now + time, tables)
        at = 0
        for q in range(table.shape[0]):
            for level in range(FIRST, LAST):
                columns[i, at] = at * table.shape[2] + column_of(desk.left[q, level])
                at += 1
    return columns, reward


@njit(cache=True)
def _lstd(columns: Any, reward: Any, a: Any, b: Any) -> None:
    """Add an episode to the equations; the last unknown is a constant."""
    size = len(b)
    trace = np.zeros(size)
    for i in range(len(reward) - 1):
        trace *= GAMMA * LAMBDA
        for j in columns[i]:
            trace[j] += 1.0
        trace[size - 1] += 1.0
        for k in range(size):
            z = trace[k]
            if z < 1e-6:
                continue
            for j in columns[i]:
                a[k, j] += z
            for j in columns[i + 1]:
                a[k, j] -= GAMMA * z
            a[k, size - 1] += z * (1 - GAMMA)
            b[k] += z * reward[i + 1]


@njit(cache=True)
def _label(
    kind: Any, beta: Any, gap: Any, future: Any, accept: Any, tables: Any, menus: Any, table: Any, desk: Any,
    ahead: Any, keep: float, seed: int, rows: Any, first: Any, kinds: Any, value: Any,
) -> int:  # fmt: skip
    np.random.seed(seed)  # noqa: NPY002
    end, sums, out = np.full(tables.n, -1.0), np.zeros(SUMS), np.zeros(MOST)
    now, d = 0.0, 0
    for i in range(len(kind)):
        now += gap[i]
        m = kind[i]
        remember(sums, beta[i], menus.sequential[m], menus.efficiency[m], gap[i])
        turn = turn_of(sums, tables.n)
        limit = beta[i] * menus.sequential[m]
        k = weigh(end, now, turn, tables, menus.jct[m], limit, table, desk, out)
        if k > 1 and future.shape[0] > 0:
            look_ahead(k, end, now, turn, m, future, accept, tables, menus, table, desk, ahead, out)
        at = first[d]
        if k > 1 and at + k <= len(rows) and np.random.random() < keep:  # noqa: NPY002
            write_rows(end, now, turn, tables, menus.jct[m], menus.sequential[m], beta[i], sums, desk)
            rows[at : at + k] = desk.row[:k]
            value[at : at + k] = out[:k]
            kinds[d] = m
            d += 1
            first[d] = at + k
        a = int(np.argmax(out[:k]))
        if np.random.random() < EXPLORE:  # noqa: NPY002
            a = np.random.randint(k)  # noqa: NPY002
        if a > 0:
            b = desk.block[a]
            hold(end, b, now + menus.jct[m, tables.shape[b]], tables)
    return d


@njit(cache=True)
def look_ahead(
    k: int, end: Any, now: float, turn: float, m: int, future: Any, accept: Any, tables: Any, menus: Any, table: Any,
    desk: Any, ahead: Any, out: Any,
) -> None:  # fmt: skip
    """Play on from the most promising rows by the table, and write what comes of them in place of what they seem worth.

    All are played on with the same futures: `FUTURES` times `HORIZON` jobs drawn from `future` and `accept`. Rows that
    are not played on are worth no more than before, and less than those that are.
    """
    order = np.argsort(-out[:k])[: min(k, TRIED)]
    block = desk.block[:k].copy()
    drawn = np.random.randint(0, len(future), (FUTURES, HORIZON))  # noqa: NPY002
    played = np.zeros(len(order))
    later, found = np.zeros_like(end), np.zeros(MOST)
    for a in range(len(order)):
        b = block[order[a]]
        for f in range(FUTURES):
            later[:] = end
            total, worth_of, t = 0.0, 1.0, now
            if b >= 0:
                total = 1.0
                hold(later, b, now + menus.jct[m, tables.shape[b]], tables)
            for h in range(HORIZON):
                t += turn * 32 / tables.n
                j = future[drawn[f, h]]
                limit = accept[drawn[f, h]] * menus.sequential[j]
                rows = weigh(later, t, turn, tables, menus.jct[j], limit, table, ahead, found)
                best = np.argmax(found[:rows])
                if best > 0:
                    total += worth_of
                    c = ahead.block[best]
                    hold(later, c, t + menus.jct[j, tables.shape[c]], tables)
                worth_of *= GAMMA
            see(later, t, turn, tables, ahead)
            played[a] += (total + worth_of * worth(ahead.count, table)) / FUTURES
    least = played.min()
    gap = out[order[len(order) - 1]] - least
    for i in range(k):
        out[i] = min(out[i] - gap, least)
    for a in range(len(order)):
        out[order[a]] = played[a]
