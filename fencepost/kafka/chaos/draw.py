"""Which strike comes at which moment: a pure function of a seed and of what was seen.

Owns when a pair in hand (hands.py) is played, and the parameters of a strike. Must not know any service or
any mistake.

A run has a few rounds, each of one strike. A round aims at the first pair in hand, at the n-th moment of its
kind since the round began. As a service may show that kind rarely, it aims at one pair more after each few
moments, and after an idle one at all in hand. The end of the input is struck where nothing was before it, so
that no run is without a strike.
"""

from collections.abc import Mapping

from attrs import evolve, frozen

from fencepost.kafka.chaos.hands import (
    AROUND,
    COSTLY,
    DELAY,
    DELAY_ANSWER,
    FAIL,
    FAIL_ALL,
    FOR_GOOD,
    HAND,
    KILL,
    REFUSE,
    REFUSE_ALL,
    STOP,
    Pair,
    Shows,
    hand,
)
from fencepost.kafka.chaos.moments import BETWEEN, COMMIT, END, HANDED_OUT, IDLE, RESULT
from fencepost.proxy.faults.chance import choice
from fencepost.wire.names import asks_for_retry

NTH = (1, 1, 2, 3)
"""The n of the n-th moment: services of tests handle about a dozen records, some in three batches."""
PATIENCE = 10
"""Moments of a round until it aims at one more of what is in hand: two records of a service, or three."""
SETTLED = 40
"""Moments after which a service that neither commits nor idles has shown what it does."""
WORK = frozenset({HANDED_OUT, RESULT, COMMIT, BETWEEN})
"""Kinds of moments that come once for each record, or for a batch of them."""
DELAYS_MS = (1_000, 2_000, 300)
"""Of the copies of a pair: above and below the time that services wait for an answer, which is a second or
less where tests are to be quick."""
STOPS_MS = (1_500, 1_500, 300)
"""Of the copies of a pair: how much later a request takes effect whose client is asked to end. A service
polls for up to a second before it looks whether it should."""
HOLDS_MS = (0, 0, 50, 700)
"""How long a request hangs before its client is killed."""


@frozen(kw_only=True)
class Strike:
    """What is done at a moment."""

    # Of the moment.
    kind: str
    act: str
    # Kafka's error; of a refusal and of a failure for good.
    error: str = ""
    # Whether the request takes effect first.
    after_effect: bool = False
    # Of a delay; of a kill, how long the request hangs before; of a stop, how much later it takes effect.
    milliseconds: int = 0

    @property
    def name(self) -> str:
        """What it is without its parameters: a run has each once."""
        return f"{self.act}, {self.kind}"

    def __str__(self) -> str:
        more = [self.error, "after effect" if self.after_effect else ""]
        more.append(f"{self.milliseconds} ms" if self.milliseconds else "")
        words = ", ".join(filter(None, more))
        return f"{self.act}{f' ({words})' if words else ''}, {self.kind}"


@frozen(kw_only=True)
class Answers:
    """Errors that a correct broker may answer to the request at hand."""

    before: tuple[str, ...] = ()
    # Once it has taken effect.
    after: tuple[str, ...] = ()


@frozen(kw_only=True)
class Seen:
    """What a run has shown so far."""

    # Moments since the round began, by kind, with the present one.
    since: Mapping[str, int]
    # Moments of the whole run, by kind.
    shown: Mapping[str, int]
    # Strikes so far.
    strikes: tuple[Strike, ...] = ()
    # Whether there is a process to strike.
    process: bool = True
    # These two as of Shows.
    member: bool = True
    transactional: bool = True

    @property
    def now(self) -> Shows:
        """What the service is known to be so far; any kind of moment may come."""
        return Shows(process=self.process, member=self.member, transactional=self.transactional)

    def may(self, pair: Pair) -> bool:
        """Whether a pair in hand may be played now."""
        return evolve(self.now, kinds=frozenset({pair.kind})).has(pair)

    @property
    def shows(self) -> Shows:
        """What the service is known to show. Everything may come until it has done its first work: otherwise
        its hand would change while it starts."""
        known = any(kind in self.shown for kind in (BETWEEN, IDLE, END))
        if not known and sum(self.shown.values()) <= SETTLED:
            return Shows(process=self.process)
        # it will be idle, and come to an end
        return evolve(self.now, kinds=frozenset({*self.shown, IDLE, END}))

    def left(self, seed: int) -> list[Pair]:
        """What is in hand and was not played."""
        played = {(one.kind, one.act) for one in self.strikes}
        rest = [pair for pair in hand(seed, self.shows) if (pair.kind, pair.act) not in played]
        return rest[: HAND - len(self.strikes)]


def decide(seed: int, kind: str, answers: Answers, seen: Seen) -> Strike | None:
    """The strike at this moment, or None.

    Args:
        seed: of the chaos.
        kind: of the moment.
        answers: to the request that shows it.
        seen: so far, with this moment.
    """
    place = len(seen.strikes)
    if place >= HAND:
        return None
    left = seen.left(seed)
    idle = seen.since.get(IDLE, 0) + seen.since.get(END, 0) > 0
    aimed = left if idle else left[: 1 + sum(seen.since.values()) // PATIENCE]
    fits = [pair for pair in aimed if pair.kind == kind and seen.may(pair)]
    if not seen.strikes and kind == END:
        fits.append(_at_the_end(seed, seen))
    if kind in WORK and not idle and seen.since[kind] < choice(NTH, seed, place, "nth"):
        return None
    strikes = (_strike(seed, place, pair, answers) for pair in fits)
    return next((strike for strike in strikes if strike is not None), None)


def _at_the_end(seed: int, seen: Seen) -> Pair:
    had = {one.act for one in seen.strikes}
    spared = COSTLY if had & COSTLY else frozenset()
    acts = [act for act in AROUND if seen.now.has(Pair(END, act)) and act not in spared]
    acts = [act for act in acts if act not in had] or acts
    return Pair(END, choice(acts, seed, len(seen.strikes), "end"))


def _strike(seed: int, place: int, pair: Pair, answers: Answers) -> Strike | None:
    kind, act = pair.kind, pair.act
    after_effect = pair.copy % 3 == 1
    if act in (FAIL, FAIL_ALL, REFUSE, REFUSE_ALL):
        # what fails again and again has no effect: otherwise the first one would do
        for after in (False,) if act in FOR_GOOD else (after_effect, not after_effect):
            errors = answers.after if after else answers.before
            wanted = [error for error in errors if asks_for_retry(error) is (act in (REFUSE, REFUSE_ALL))]
            if wanted:
                error = choice(wanted, seed, place, "error")
                return Strike(kind=kind, act=act, error=error, after_effect=after)
        return None
    if act in (DELAY, DELAY_ANSWER):
        return Strike(kind=kind, act=act, milliseconds=DELAYS_MS[pair.copy % len(DELAYS_MS)])
    if act == STOP and kind in (RESULT, COMMIT):
        return Strike(kind=kind, act=act, milliseconds=STOPS_MS[pair.copy % len(STOPS_MS)])
    if act == KILL:
        held = choice(HOLDS_MS, seed, place, "hold")
        return Strike(kind=kind, act=act, after_effect=after_effect, milliseconds=held)
    return Strike(kind=kind, act=act)
