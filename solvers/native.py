"""What compiled kernels share: types of numbers and arrays, random numbers, a heap, sorting; see native.pxd for C."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython import bint, cclass, cfunc, final, nogil
from cython.cimports.libc.math import log, sqrt
from numpy.typing import NDArray

if not cython.compiled:
    Float = float
    Int = int
    Word = int
    """Numbers of 64 bits, the last without a sign."""
    Floats = NDArray[np.float64]
    Floats2 = NDArray[np.float64]
    Floats3 = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Ints2 = NDArray[np.int64]
    Ints3 = NDArray[np.int64]
    Words2 = NDArray[np.uint64]
    Halves2 = NDArray[np.int32]
    Flags = NDArray[np.uint8]
    Flags2 = NDArray[np.uint8]
    FixedFloats = NDArray[np.float64]
    Single = float
    """A number of 32 bits."""
    Singles = NDArray[np.float32]
    Singles2 = NDArray[np.float32]
    Singles3 = NDArray[np.float32]
    Singles4 = NDArray[np.float32]
    """Arrays of one dimension, or of so many, in C order; only `FixedFloats` may be read-only. One of numpy's bools is
    `Flags` by ``view(np.uint8)``."""

WORDS = cython.declare(Int, 624)
UPPER = cython.declare(Word, 0x80000000)
LOWER = cython.declare(Word, 0x7FFFFFFF)
ALL = cython.declare(Word, 0xFFFFFFFF)
TWIST = cython.declare(Word, 0x9908B0DF)
TEMPER_B = cython.declare(Word, 0x9D2C5680)
TEMPER_C = cython.declare(Word, 0xEFC60000)
GROWTH = cython.declare(Word, 1812433253)
"""The generator's; C takes a literal of 2^31 or more for a Python number unless its type is declared."""
SMALL = cython.declare(Int, 15)
"""Keys at a stretch that insertion sorts faster."""


@final
@cclass
class Random:
    """The Mersenne Twister (Matsumoto and Nishimura 1998), begun and read as `numpy.random.RandomState` does."""

    def __init__(self, seed: Word) -> None:
        if not cython.compiled:
            self.state = [0] * WORDS
            self.paired, self.other = False, 0.0
        i: Int
        for i in range(WORDS):
            seed &= ALL
            self.state[i] = seed
            seed = GROWTH * (seed ^ (seed >> 30)) + i + 1
        self.at = WORDS

    def bits(self) -> Word:
        """Return 32 random bits."""
        k: Int
        y: Word
        if self.at >= WORDS:
            for k in range(WORDS):
                y = (self.state[k] & UPPER) | (self.state[k + 1 if k < WORDS - 1 else 0] & LOWER)
                self.state[k] = self.state[k + 397 if k < WORDS - 397 else k + 397 - WORDS] ^ (y >> 1)
                if y & 1:
                    self.state[k] ^= TWIST
            self.at = 0
        y = self.state[self.at]
        self.at += 1
        y ^= y >> 11
        y ^= (y << 7) & TEMPER_B
        y ^= (y << 15) & TEMPER_C
        return y ^ (y >> 18)

    def uniform(self) -> Float:
        """Return a number from 0 to 1, which it never is."""
        high: Word = self.bits() >> 5
        return (high * 67108864.0 + (self.bits() >> 6)) / 9007199254740992.0

    def below(self, n: Int) -> Int:
        """Return a whole number from 0 to n - 1, 0 if there is none."""
        most: Word = n - 1 if n > 0 else 0
        mask: Word = most
        shift: Int = 1
        while shift < 64:
            mask |= mask >> shift
            shift *= 2
        number: Word = 0
        while mask:
            number = (self.bits() & (mask >> 32)) << 32 if mask > ALL else 0
            number |= self.bits() & mask & ALL
            if number <= most:
                break
        return number

    def normal(self) -> Float:
        """Return a number with mean 0 and deviation 1, of two by the polar method (Marsaglia and Bray 1964)."""
        self.paired = not self.paired
        if not self.paired:
            return self.other
        x: Float = 0.0
        y: Float = 0.0
        square: Float = 0.0
        while square >= 1.0 or square == 0.0:
            x = 2.0 * self.uniform() - 1.0
            y = 2.0 * self.uniform() - 1.0
            square = x * x + y * y
        scale: Float = sqrt(-2.0 * log(square) / square)
        self.other = scale * x
        return scale * y


@final
@cclass
class Heap:
    """Items by value, the highest on top, of equals the first in `place`, by default of all: float64, int64 (n,).

    `items`: array that they are kept in, int64 (n,).
    """

    def __init__(self, value: Any, place: Any = None, items: Any = None) -> None:
        self.value, self.place, self.size = value, place, 0
        self.items = np.empty(len(value), np.int64) if items is None else items

    def first(self, x: Int, y: Int) -> bool:
        """Return whether x comes before y."""
        if self.value[x] != self.value[y]:
            return self.value[x] > self.value[y]
        return x < y if self.place is None else self.place[x] < self.place[y]

    def push(self, v: Int) -> None:
        """Enter an item."""
        i: Int = self.size
        up: Int = (i - 1) // 2
        self.size += 1
        while i > 0 and self.first(v, self.items[up]):
            self.items[i] = self.items[up]
            i = up
            up = (i - 1) // 2
        self.items[i] = v

    def pop(self) -> Int:
        """Take the top off and return it."""
        top: Int = self.items[0]
        self.size -= 1
        v: Int = self.items[self.size]
        i: Int = 0
        child: Int = 1
        while child < self.size:
            if child + 1 < self.size and self.first(self.items[child + 1], self.items[child]):
                child += 1
            if not self.first(self.items[child], v):
                break
            self.items[i] = self.items[child]
            i = child
            child = 2 * i + 1
        self.items[i] = v
        return top


@final
@cclass
class Sorting:
    """The order of up to n ascending keys, none of them nan, by quicksort (Hoare 1962) with medians of three.

    Attributes:
        keys: float64 (n,), which the caller writes.
        order: int64 (n,), the places of as many as were sorted.
    """

    def __init__(self, n: Int) -> None:
        self.keys, self.order = np.zeros(n), np.zeros(n, np.int64)

    def sort(self, count: Int, stable: bint) -> None:
        """Sort the first keys; equal ones keep their order if `stable`, else it is what the exchanges make of it."""
        i: Int
        for i in range(count):
            self.order[i] = i
        self.within(0, count - 1, stable)

    def within(self, low: Int, high: Int, stable: bint) -> None:
        """Sort what stands at these places and between."""
        i: Int
        j: Int
        x: Int
        while high - low >= SMALL:
            i = self.part(low, high, stable)
            if high - i > i - low:
                self.within(low, i - 1, stable)
                low = i + 1
            else:
                self.within(i + 1, high, stable)
                high = i - 1
        for i in range(low + 1, high + 1):
            x, j = self.order[i], i
            while j > low and self.before(x, self.order[j - 1], stable):
                self.order[j] = self.order[j - 1]
                j -= 1
            self.order[j] = x

    def before(self, x: Int, y: Int, stable: bint) -> bool:
        """Return whether key x comes before key y."""
        return self.keys[x] < self.keys[y] or (stable and self.keys[x] == self.keys[y] and x < y)

    def part(self, low: Int, high: Int, stable: bint) -> Int:
        """Move what is less than the median of first, middle and last before it, and the rest behind; return where."""
        middle: Int = (low + high) >> 1
        self.exchange(low, middle, stable)
        self.exchange(middle, high, stable)
        self.exchange(low, middle, stable)
        self.order[high], self.order[middle] = self.order[middle], self.order[high]
        pivot: Int = self.order[high]
        i: Int = low
        j: Int = high - 1
        while True:
            while i < high and self.before(self.order[i], pivot, stable):
                i += 1
            while j >= low and self.before(pivot, self.order[j], stable):
                j -= 1
            if i >= j:
                break
            self.order[i], self.order[j] = self.order[j], self.order[i]
            i, j = i + 1, j - 1
        self.order[i], self.order[high] = self.order[high], self.order[i]
        return i

    def exchange(self, i: Int, j: Int, stable: bint) -> None:
        """Exchange two places if the second comes first."""
        if self.before(self.order[j], self.order[i], stable):
            self.order[i], self.order[j] = self.order[j], self.order[i]


@cfunc
@nogil
def within(numbers: Ints, end: Int, ascending: bint) -> bint:
    """Return whether numbers are from 0 to `end` - 1, and if they have to be, ascending."""
    sound: bint = True
    for i in range(len(numbers)):
        sound = sound and (numbers[i - 1] if ascending and i > 0 else 0) <= numbers[i] < end
    return sound
