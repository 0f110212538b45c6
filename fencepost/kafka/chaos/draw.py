"""Which strike comes at which moment: a pure function of a seed and of what was seen.

Owns the draw and its weights. Must not know any service or any mistake: each act has its place at each moment
at which it can be carried out.

A run has a few rounds, each of one strike, and each does what no earlier one did. A round aims at a kind of
moment, at the n-th of them since it began, and after a while at a second kind, one of work, as a service may
never show the first. A round that came to an idle moment without a strike aims at the kinds that were seen,
too, and the end of the input is aimed at always, so that no run is without a strike.
"""

from collections.abc import Mapping

from attrs import frozen

from fencepost.kafka.chaos.moments import (
    BETWEEN,
    COMMIT,
    END,
    HANDED_OUT,
    IDLE,
    JOINING,
    RESULT,
    START,
)
from fencepost.proxy.faults.allowed import may_answer
from fencepost.proxy.faults.chance import choice, drawn
from fencepost.wire.names import asks_for_retry

KILL, REPLACE, STOP, REBALANCE, FENCE = "kill", "replace", "stop", "rebalance", "fence"
FAIL, REFUSE, LOSE, DELAY, DELAY_ANSWER = "fail", "refuse", "lose", "delay", "delay answer"
COSTLY = frozenset({KILL, REPLACE})
"""Acts after which a session has to end before the work goes on."""
PROCESS = COSTLY | {STOP}
"""Acts that need the service's process. A stop is a SIGTERM, and a start once it has ended."""
LEAST_STRIKES, MOST_STRIKES = 3, 6
"""Of a run. More leave a service no time to do harm."""
MOST_COSTLY = 1
"""Of these strikes: each costs a start and a session time-out, and with two a seed took 8 to 12 s. Then the
work was also done twice so often that what was lost came back."""
NTH = (1, 1, 1, 2, 2, 3, 5)
"""The n of the n-th moment: services of tests handle about a dozen records, some in three batches."""
PATIENCE = 10
"""Moments of a round until it also aims at its second kind: two records of a service, or three."""
WORK = frozenset({HANDED_OUT, RESULT, COMMIT, BETWEEN})
"""Kinds of moments that come once for each record, or for a batch of them."""
DELAYS_MS = (300, 1_000)
HOLDS_MS = (0, 0, 50, 700)
"""How long a request hangs before its client is killed."""
AIMS: tuple[str, ...] = (
    *(RESULT,) * 7,
    *(COMMIT,) * 4,
    *(HANDED_OUT,) * 3,
    *(BETWEEN, IDLE) * 2,
    *(JOINING, START, END),
)
"""Kinds of moments, by weight: most of what a service can do wrong shows around its results and commits."""
ON_REQUESTS = (FAIL, FAIL, FAIL, REFUSE, REFUSE, LOSE, DELAY, DELAY_ANSWER, DELAY_ANSWER)
AROUND = (KILL, KILL, REPLACE, STOP, REBALANCE, FENCE)
ACTS: Mapping[str, tuple[str, ...]] = {
    START: (KILL, REFUSE, LOSE, DELAY),
    HANDED_OUT: (KILL, REPLACE, STOP, REBALANCE, REBALANCE, FENCE),
    RESULT: (*ON_REQUESTS, KILL, KILL, KILL, REPLACE, REPLACE, STOP, STOP, REBALANCE),
    COMMIT: (*ON_REQUESTS, KILL, KILL, KILL, KILL, REPLACE, STOP),
    BETWEEN: AROUND,
    JOINING: (REFUSE, LOSE, DELAY_ANSWER),
    IDLE: (*AROUND, REBALANCE),
    END: AROUND,
}
"""What can be done at a moment, by weight."""


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

    def __str__(self) -> str:
        more = [self.error, "after effect" if self.after_effect else ""]
        more.append(f"{self.milliseconds} ms" if self.milliseconds else "")
        words = ", ".join(filter(None, more))
        return f"{self.act}{f' ({words})' if words else ''}, {self.kind}"


@frozen(kw_only=True)
class Seen:
    """What a run has shown so far."""

    # Moments since the round began, by kind, with the present one.
    since: Mapping[str, int]
    # Kinds of moments in the whole run.
    shown: frozenset[str]
    # Strikes so far.
    strikes: tuple[Strike, ...] = ()
    # Whether there is a process to strike.
    process: bool = True
    # Whether Kafka keeps two of its processes apart: it is a member of a group, or has a transactional id.
    # Without either, two at a time are a mistake of whoever starts them, so that none is replaced.
    kept_apart: bool = True


def strikes_of(seed: int) -> int:
    """How many rounds a run of this seed has."""
    return LEAST_STRIKES + drawn(MOST_STRIKES - LEAST_STRIKES + 1, seed, "rounds")


def aims(seed: int, place: int, shown: frozenset[str] = frozenset()) -> tuple[str, str]:
    """The kind of moment that a round aims at, and the one that it aims at where the first does not come.

    Args:
        seed: of the chaos.
        place: of the round, from 0.
        shown: kinds to choose from; empty: all of them.
    """
    kinds = [kind for kind in AIMS if not shown or kind in shown]
    first = choice(kinds, seed, place, "first", len(shown))
    others = [kind for kind in kinds if kind != first and kind in WORK] or kinds
    return first, choice(others, seed, place, "second", len(shown))


def decide(seed: int, kind: str, api: str, seen: Seen) -> Strike | None:
    """The strike at this moment, or None.

    Args:
        seed: of the chaos.
        kind: of the moment.
        api: Kafka's name of the request that shows it.
        seen: so far, with this moment.
    """
    place = len(seen.strikes)
    if place >= strikes_of(seed):
        return None
    first, second = aims(seed, place)
    aimed = {first}
    idle = seen.since.get(IDLE, 0) + seen.since.get(END, 0) > 0
    if idle or sum(seen.since.values()) > PATIENCE:
        aimed.add(second)
    if idle:  # nothing that the round was aimed at has come, or not often enough
        aimed |= set(aims(seed, place, seen.shown & (WORK | {IDLE})))
    if kind == END:
        aimed.add(END)
    nth = choice(NTH, seed, place, "nth")
    if kind not in aimed or (kind in WORK and seen.since[kind] < nth):
        return None
    return _strike(seed, place, kind, api, seen)


def _not_yet(acts: list[str], kind: str, seen: Seen) -> list[str]:
    """Those that the run has not had yet: one that is about a single request at this kind of moment, any
    other one at any moment."""
    had = {one.act for one in seen.strikes if one.act not in ON_REQUESTS or one.kind == kind}
    return [act for act in acts if act not in had]


def _strike(seed: int, place: int, kind: str, api: str, seen: Seen) -> Strike | None:
    costly = sum(one.act in COSTLY for one in seen.strikes)
    spared = PROCESS if not seen.process else COSTLY if costly >= MOST_COSTLY else frozenset()
    if not seen.kept_apart:
        spared = spared | {REPLACE}
    acts = [act for act in ACTS[kind] if act not in spared]
    acts = _not_yet(acts, kind, seen) or acts
    act = choice(acts, seed, place, "act", kind)
    after_effect = drawn(3, seed, place, "effect") == 0
    if act in (FAIL, REFUSE):
        errors = may_answer(api, after_effect=after_effect)
        errors = errors or may_answer(api, after_effect=False)
        wanted = [error for error in errors if asks_for_retry(error) is (act == REFUSE)]
        error = choice(wanted or errors, seed, place, "error")
        taken = error in may_answer(api, after_effect=after_effect)
        return Strike(kind=kind, act=act, error=error, after_effect=after_effect and taken)
    if act in (DELAY, DELAY_ANSWER):
        return Strike(kind=kind, act=act, milliseconds=choice(DELAYS_MS, seed, place, "delay"))
    if act == STOP and kind in (RESULT, COMMIT):
        return Strike(kind=kind, act=act, milliseconds=choice(DELAYS_MS, seed, place, "delay"))
    if act == KILL:
        held = choice(HOLDS_MS, seed, place, "hold")
        return Strike(kind=kind, act=act, after_effect=after_effect, milliseconds=held)
    return Strike(kind=kind, act=act)
