"""Keyed randomness: stable, well spread, and blind to how many draws came before."""

from fencepost.sim.randomness import MASK, Randomness, exponential, finish, latency, mix, stable_number


def test_a_draw_is_a_function_of_seed_purpose_and_cause():
    """The same key gives the same bits, whatever was drawn before; another seed, purpose or cause gives
    others."""
    one, other = Randomness(7), Randomness(7)
    for cause in range(100):
        other.draw("noise", cause)
    assert one.draw("delay", 1, 2) == other.draw("delay", 1, 2)
    keys = [(7, "delay", (1, 2)), (8, "delay", (1, 2)), (7, "loss", (1, 2)), (7, "delay", (2, 1))]
    keys += [(7, "delay", (1,)), (7, "delay", (1, 2, 0)), (7, "delay", ()), (7, "delay", (-1, 2))]
    assert len({Randomness(seed).draw(purpose, *cause) for seed, purpose, cause in keys}) == len(keys)


def test_draws_are_the_same_on_every_machine():
    """These values are part of every stored digest: a change of the mixer would make old seeds mean other
    runs."""
    assert stable_number("delay") == 10_716_102_651_621_859_930
    assert Randomness(1).draw("delay") == 9_078_740_540_494_931_245
    assert Randomness(1).draw("delay", 1, -1, 1 << 70) == 12_935_654_018_628_331_695
    assert [exponential(bits, 1_000_000) for bits in (0, 1 << 32, 1 << 63, (1 << 64) - 1)] == [
        44_361_328,
        22_180_664,
        693_145,
        497,
    ]


def test_small_neighbouring_causes_spread_evenly():
    """Small integers as causes still fill every bucket evenly: the mixer has no visible pattern."""
    randomness, buckets = Randomness(3), [0] * 64
    for first in range(100):
        for second in range(64):
            buckets[randomness.below(64, "spread", first, second)] += 1
    assert sum((hits - 100) ** 2 for hits in buckets) / 100 < 110  # chi-square, 63 degrees: 99.98 %


def test_chance_choice_and_shuffle():
    """Rates are per million, extremes are certain, a shuffle loses nothing and leaves its argument alone."""
    randomness, items = Randomness(9), list(range(20))
    assert not any(randomness.chance(0, "never", cause) for cause in range(1_000))
    assert all(randomness.chance(1_000_000, "always", cause) for cause in range(1_000))
    assert 200 < sum(randomness.chance(250_000, "quarter", cause) for cause in range(1_000)) < 300
    shuffled = randomness.shuffle(items, "order")
    assert shuffled != items and sorted(shuffled) == items == list(range(20))
    assert {randomness.choice("abc", "letter", cause) for cause in range(50)} == {"a", "b", "c"}


def test_latency_is_the_bounded_exponential_draw_spelled_out():
    """Every message's delay goes through the short form; small and odd draws included."""
    for number in range(20_000):
        word = mix(number, 7) if number % 2 else number
        bits = finish(word)
        assert latency(word, 200, 300_000, 5_000_000) == min(200 + exponential(bits, 300_000), 5_000_000)


def test_latency_of_the_rarest_draws_is_right_too():
    """Of the smallest of 64 random bits: nothing but the inverse of the finaliser finds such a key."""
    for bits in range(5_000):
        word = _unfinish(bits)
        assert finish(word) == bits
        assert latency(word, 3, 10**6, 10**12) == 3 + exponential(bits, 10**6)


def _unfinish(bits: int) -> int:
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        word = bits
        for _ in range(64 // shift + 1):
            word = bits ^ (word >> shift)
        bits = word * pow(factor, -1, 1 << 64) & MASK
    return bits
