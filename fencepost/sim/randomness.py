"""Cause-keyed, stateless randomness: the only source of chance in a simulated run.

Owns the integer mixer and the draws. Must not know the decisions.

A draw is a function of (seed, purpose, cause), never of the number of earlier draws. Removing one operation
of a plan leaves every other draw unchanged, so plans can be shrunk and replayed. Only integers are used: a
float from libm would tie a run to one machine. The mixer is a keyed xor-multiply-shift chain with
SplitMix64's finaliser (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). Final.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MIXER = 0xD6E8FEB86659FD93
MILLION = 1_000_000

_FRACTION_BITS = 10
_LN_2_Q16 = 45_426  # ln 2 in 1/65536


def mix(word: int, number: int) -> int:
    """Add the integer `number` of a cause to the key `word`."""
    word = ((word ^ (number & MASK)) * MIXER) & MASK
    return word ^ (word >> 32)


def finish(word: int) -> int:
    """The 64 random bits of a key."""
    word &= MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def stable_number(text: str) -> int:
    """64 bits derived from a text, the same in every process and on every machine."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def _binary_logarithm_fractions() -> tuple[int, ...]:
    """log2(1 + i/1024) in 1/65536, by repeated squaring of fixed-point integers."""
    fractions = []
    for index in range(1 << _FRACTION_BITS):
        value, fraction = ((1 << _FRACTION_BITS) + index) << 20, 0
        for _ in range(16):
            value = value * value >> 30
            fraction <<= 1
            if value >= 2 << 30:
                value >>= 1
                fraction |= 1
        fractions.append(fraction)
    return tuple(fractions)


_LOG2 = _binary_logarithm_fractions()


def exponential(bits: int, mean: int) -> int:
    """An exponential-like value with this mean from 64 random bits: mean * -ln(bits / 2^64), at most about 44
    means."""
    bits |= 1
    length = bits.bit_length()
    logarithm = ((length - 1) << 16) + _LOG2[(bits << (64 - length)) >> 53 & 1023]
    return mean * ((64 << 16) - logarithm) * _LN_2_Q16 >> 32


def latency(word: int, minimum: int, mean: int, maximum: int) -> int:
    """`minimum + exponential(finish(word), mean)`, at most `maximum`, for a key within 64 bits. Inlined,
    because every message draws its delay with it."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    word ^= word >> 31
    if word < 2048:
        return min(minimum + exponential(word, mean), maximum)
    length = word.bit_length()
    drawn = minimum + (mean * (((65 - length) << 16) - _LOG2[word >> (length - 11) & 1023]) * _LN_2_Q16 >> 32)
    return drawn if drawn < maximum else maximum


class Randomness:
    """Draws keyed by purpose (a text) and cause (integers)."""

    __slots__ = ("_purposes", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._purposes: dict[str, int] = {}

    def key(self, purpose: str) -> int:
        """The 64-bit key of a purpose under this seed. `mix` adds a cause to it, `finish` makes bits of
        it."""
        known = self._purposes.get(purpose)
        if known is None:
            known = self._purposes[purpose] = stable_number(f"{self.seed}:{purpose}")
        return known

    def draw(self, purpose: str, *cause: int) -> int:
        """64 random bits for `purpose` and `cause`."""
        word = self.key(purpose)
        for number in cause:
            word = ((word ^ (number & MASK)) * MIXER) & MASK
            word ^= word >> 32
        return finish(word)

    def below(self, bound: int, purpose: str, *cause: int) -> int:
        """An integer in [0, bound).

        Args:
            bound: the upper bound, at least 1.
            purpose: what the draw decides.
            cause: what caused it, as integers.

        Returns:
            the integer.
        """
        assert bound > 0, f"below needs a positive bound, got {bound}"
        return self.draw(purpose, *cause) * bound >> 64

    def chance(self, parts_per_million: int, purpose: str, *cause: int) -> bool:
        """True for `parts_per_million` of a million causes.

        Args:
            parts_per_million: the probability.
            purpose: what the draw decides.
            cause: what caused it, as integers.

        Returns:
            the decision.
        """
        return self.draw(purpose, *cause) * MILLION >> 64 < parts_per_million

    def choice(self, items: Sequence[T], purpose: str, *cause: int) -> T:
        """One of the items.

        Args:
            items: at least one.
            purpose: what the draw decides.
            cause: what caused it, as integers.

        Returns:
            the item.
        """
        return items[self.below(len(items), purpose, *cause)]

    def shuffle(self, items: Sequence[T], purpose: str, *cause: int) -> list[T]:
        """The items in another order (Fisher-Yates); the argument is not changed.

        Args:
            items: the items.
            purpose: what the draw decides.
            cause: what caused it, as integers.

        Returns:
            a new list.
        """
        shuffled = list(items)
        for last in range(len(shuffled) - 1, 0, -1):
            other = self.below(last + 1, purpose, *cause, last)
            shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        return shuffled
