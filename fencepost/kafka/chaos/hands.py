"""What the seeds of a block have in hand: which pairs of a kind of moment and an act each strikes with.

Owns the families of pairs, their weights, and how they are dealt. Must not know any service or any mistake:
each act has its place at each kind of moment at which it can be carried out.

Ten seeds one after the other, 0 to 9, 10 to 19 and so on, are a block. Each of them has one pair of every
family, and together they have every pair of it: what a single seed leaves to luck, ten do not. A family is
shuffled anew for each block. Where a service never shows a kind of moment, or has no process, its pairs are
replaced by others of the same family, in turn, and then by those of the others.
"""

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from fencepost.kafka.chaos.moments import BETWEEN, COMMIT, END, HANDED_OUT, IDLE, JOINING, RESULT, START
from fencepost.proxy.faults.chance import T, drawn

KILL, REPLACE, STOP, PAUSE = "kill", "replace", "stop", "pause"
REBALANCE, FENCE, TAKE_OVER = "rebalance", "fence", "take over"
FAIL, REFUSE, LOSE, DELAY, DELAY_ANSWER = "fail", "refuse", "lose", "delay", "delay answer"
LOSE_LEADER = "lose leader"
REFUSE_ALL, SILENCE_ALL, FAIL_ALL = "refuse all", "silence all", "fail all"
PROCESS = frozenset({KILL, REPLACE, STOP, PAUSE})
"""Acts that need the service's process. A stop is a SIGTERM, and a start once it has ended; a pause lasts
longer than the session; a replacement is a pause in which another process is started."""
COSTLY = frozenset({KILL, REPLACE, PAUSE})
"""Acts after which a session has to end before the work goes on."""
OF_MEMBERS = frozenset({REBALANCE, FENCE, PAUSE})
"""Acts that only members of a group feel: it joins again, or one is removed or silent for too long. To take
over is to ask for the transactional id of a producer, which fences it."""
FOR_GOOD = frozenset({FAIL_ALL, REFUSE_ALL, SILENCE_ALL})
"""Acts that meet every request of a kind from now on, for a while."""
AROUND = (KILL, STOP, REBALANCE, FENCE)
"""Acts that need no request to strike: at the end of the input, whatever else is in hand."""
BLOCK = 10
"""Seeds of a block, and pairs of a family."""


@frozen
class Pair:
    """What is done, and at which kind of moment."""

    kind: str
    act: str
    # Its number among those of its kind and act in a family: each has other parameters (draw.py).
    copy: int = field(default=0, eq=False)


def _family(*rows: tuple[str, str, int]) -> tuple[Pair, ...]:
    """kind, act, how many."""
    pairs = tuple(Pair(kind, act, copy) for kind, act, count in rows for copy in range(count))
    assert len(pairs) == BLOCK
    return pairs


CRASHES, FAILURES = "crashes", "failures"
FAMILIES: Mapping[str, tuple[Pair, ...]] = {
    # Nothing more is done by this process, or by another one as well.
    CRASHES: _family(
        (RESULT, KILL, 4),
        (COMMIT, KILL, 2),
        (HANDED_OUT, KILL, 1),
        (RESULT, REPLACE, 1),
        (BETWEEN, REPLACE, 1),
        (HANDED_OUT, REPLACE, 1),
    ),
    # The client gives up: an error that it does not repeat, or nothing else beyond its patience.
    FAILURES: _family(
        (RESULT, FAIL, 4),
        (COMMIT, FAIL_ALL, 3),
        (RESULT, REFUSE_ALL, 1),
        (RESULT, SILENCE_ALL, 1),
        (COMMIT, SILENCE_ALL, 1),
    ),
    # The client repeats, or waits.
    "hitches": _family(
        (RESULT, REFUSE, 3),
        (RESULT, DELAY_ANSWER, 2),
        (RESULT, LOSE_LEADER, 2),
        (RESULT, DELAY, 1),
        (RESULT, LOSE, 1),
        (COMMIT, LOSE, 1),
    ),
    # The process, or its membership, ends in order.
    "leaving": _family(
        (RESULT, STOP, 3),
        (HANDED_OUT, REBALANCE, 2),
        (RESULT, REBALANCE, 1),
        (COMMIT, TAKE_OVER, 1),
        (HANDED_OUT, PAUSE, 1),
        (HANDED_OUT, FENCE, 1),
        (COMMIT, STOP, 1),
    ),
    # Before the work and after it.
    "edges": _family(
        (START, KILL, 1),
        (START, REFUSE, 1),
        (START, LOSE, 1),
        (JOINING, REFUSE, 1),
        (JOINING, LOSE, 1),
        (JOINING, DELAY_ANSWER, 1),
        (IDLE, STOP, 1),
        (IDLE, FENCE, 1),
        (IDLE, REBALANCE, 1),
        (END, KILL, 1),
    ),
}
"""By weight: most of what a service can do wrong shows around its results. Tuned on seeds 0 to 9 of the zoo
of services: a pair that shows a mistake each second or third time has three or four copies."""
HAND = len(FAMILIES)
"""Strikes of a run. More leave a service no time to do harm, and a seed is to stay below 6 s."""


@frozen(kw_only=True)
class Shows:
    """What a service is known to show."""

    # Kinds of moments; None: not known yet, so that each may come.
    kinds: frozenset[str] | None = None
    # Whether there is a process to strike.
    process: bool = True
    # Whether it is a member of a group, and whether it has a transactional id. Without either, nothing keeps
    # two of its processes apart: they are a mistake of whoever starts them, so that none is replaced.
    member: bool = True
    transactional: bool = True

    def has(self, pair: Pair) -> bool:
        """Whether it can be struck so."""
        return (
            (self.kinds is None or pair.kind in self.kinds)
            and (self.process or pair.act not in PROCESS)
            and (self.member or self.transactional or pair.act != REPLACE)
            and (self.member or pair.act not in OF_MEMBERS)
            and (self.transactional or pair.act != TAKE_OVER)
            # a transactional producer always waits for the other brokers: nothing that it has is lost so
            and (self.kinds is None or not self.transactional or pair.act != LOSE_LEADER)
        )


def hand(seed: int, shows: Shows) -> tuple[Pair, ...]:
    """The pairs of a seed, in the order in which it aims at them: none twice, and none where the service
    shows nothing at all.

    Args:
        seed: of the chaos.
        shows: what can be struck.
    """
    block, place = divmod(seed, BLOCK)
    found: dict[str, Pair] = {}
    for name in FAMILIES:
        pair = _dealt(block, place, name, shows, [*found.values()])
        if pair is not None:
            found[name] = pair
    return tuple(found[name] for name in _order(seed, found))


def _dealt(block: int, place: int, name: str, shows: Shows, had: Sequence[Pair]) -> Pair | None:
    deck = _shuffled(FAMILIES[name], block, name)
    if shows.has(deck[place]) and deck[place] not in had:
        return deck[place]
    hole = sum(not shows.has(pair) for pair in deck[:place])
    others = [pair for each in FAMILIES if each != name for pair in _shuffled(FAMILIES[each], block, name)]
    for pairs in (deck, others):
        rest = [pair for pair in pairs if shows.has(pair) and pair not in had]
        if rest:
            return rest[hole % len(rest)]
    return None


def _order(seed: int, found: Mapping[str, Pair]) -> list[str]:
    """A crash comes after a failure that its client hears of: what was not written or not committed shows
    after the next start."""
    names = [name for name in _shuffled(tuple(found), seed, "order") if name != CRASHES]
    if CRASHES in found:
        names.insert(names.index(FAILURES) + 1 if FAILURES in names else 0, CRASHES)
    return sorted(names, key=lambda name: _when(found[name]))


def _when(pair: Pair) -> int:
    """First what comes at a start, then what is over soon, then what leaves the service little else to do in
    its time, last what comes when the work is over. A rebalance comes again after other strikes."""
    if pair.kind == START:
        return -1
    if pair.kind in (IDLE, END):
        return 2
    return int(pair.kind == JOINING or pair.act == SILENCE_ALL)


def _shuffled(items: Sequence[T], *cause: int | str) -> list[T]:
    keys = [(drawn(1 << 32, *cause, place), place) for place in range(len(items))]
    return [items[place] for _, place in sorted(keys)]
