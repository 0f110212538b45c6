"""Scripts of faults from seeds.

Owns what is drawn, and how likely. Must not know any client or any bug: every verb, every error that a
correct broker may answer and every shape has its place, and each script leaves most of them out, so that what
it has comes often (swarm testing: Groce et al., ISSTA 2012).
"""

from collections.abc import Mapping

from attrs import field, frozen

from fencepost.proxy.faults.allowed import may_answer, why_illegal
from fencepost.proxy.faults.answers import EVERYWHERE
from fencepost.proxy.faults.chance import choice, drawn
from fencepost.proxy.faults.fault import RequestFault, checked
from fencepost.proxy.faults.verbs import ANY, OBSERVE, SHAPES, VERBS
from fencepost.traces.errors import PlanError

PRODUCING = frozenset({"Produce", "InitProducerId", "Metadata"})
CONSUMING = frozenset({"Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Metadata"})
GROUPS = frozenset(
    {"FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup"}
)
TRANSACTIONS = frozenset({"AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"})
MOST_FAULTS = 6
"""Of a script: more hide each other."""
ONE_IN = (2, 3, 5, 10, 30, 100)
DELAYS_MS = (5, 50, 200, 1_000)
MOVES_MS = (20, 200, 1_000)
ATTEMPTS = 50
"""Draws for one fault, of which most fit."""


@frozen(kw_only=True)
class Features:
    """What there is to be broken."""

    # Requests that clients send.
    apis: frozenset[str] = PRODUCING | CONSUMING | GROUPS
    # Partitions of each topic; empty: faults name no topic.
    topics: Mapping[str, int] = field(factory=dict)
    # Consumer groups; empty: faults name none.
    groups: tuple[str, ...] = ()
    # How long the run lasts; 0: faults have no times.
    for_ms: int = 0
    # Delays; one beyond a client's time-out makes it give up.
    slow_ms: tuple[int, ...] = DELAYS_MS
    # Hits of one fault: a client must be able to get through in the end.
    most: int = 20
    # Verbs that are drawn more often, once more for each time they are here: one with many errors needs more
    # scripts than one without.
    often: tuple[str, ...] = ()
    # One of so many errors is one that may answer any request; 0: no more often than others.
    unknown_one_in: int = 0
    # Whether requests may take effect after their client has gone on without them.
    holds: bool = False
    # Whether connections may fall silent: clients wait for their time-out then, often half a minute.
    silences: bool = False


def draw(seed: int, features: Features | None = None) -> tuple[RequestFault, ...]:
    """A legal script, the same for the same seed and features. Raises PlanError for features in which nothing
    can be broken."""
    features = Features() if features is None else features
    verbs = [
        name
        for name, verb in VERBS.items()
        if not verb.illegal
        and name != OBSERVE
        and (features.silences or not name.startswith("silence"))
        and (features.holds or not verb.outlives)
        and (not verb.apis or verb.apis & features.apis)
        and not (verb.needs == "partition" and not features.topics)
        and not (verb.needs == "group" and not features.groups)
    ]
    if not features.apis or not verbs:
        raise PlanError(expected="requests that can be broken", seen="none", where="the features of a script")
    verbs += [name for name in features.often if name in verbs]
    kinds = [choice(verbs, seed, "kind", place) for place in range(3)]
    count = 1 + drawn(MOST_FAULTS, seed, "count")
    return tuple(_fault(choice(kinds, seed, "verb", place), features, seed, place) for place in range(count))


def _fault(verb: str, features: Features, seed: int, place: int) -> RequestFault:
    for attempt in range(ATTEMPTS):
        cause = (seed, place, attempt)
        fault = _once(verb, features, cause)
        if not why_illegal(fault):
            return fault
    return checked(verb="cut before", most=1)


def _once(verb: str, features: Features, cause: tuple[int, int, int]) -> RequestFault:
    known = VERBS[verb]
    apis = sorted(known.apis & features.apis) if known.apis else sorted(features.apis)
    values: dict[str, object] = {"verb": verb, "api": choice(apis, *cause, "api")}
    if verb == "answer":
        after = may_answer(str(values["api"]), after_effect=True)
        values["after_effect"] = bool(after) and drawn(3, *cause, "after") == 0
        errors = after if values["after_effect"] else may_answer(str(values["api"]), after_effect=False)
        if features.unknown_one_in and drawn(features.unknown_one_in, *cause, "unknown") == 0:
            errors = EVERYWHERE
        values["error"] = choice(errors, *cause, "error")
    if "milliseconds" in known.takes:
        times = MOVES_MS if verb.startswith("move") else features.slow_ms
        values["milliseconds"] = choice(times, *cause, "time")
    if "shape" in known.takes:
        values["shape"] = choice(sorted(SHAPES), *cause, "shape")
    if verb.startswith("move"):
        values["api"] = ANY
    if known.needs == "group" or (features.groups and values["api"] in GROUPS and drawn(2, *cause, "g") == 0):
        values["group"] = choice(features.groups, *cause, "group")
    of_topics = values["api"] not in GROUPS | {"InitProducerId"} and verb != "move coordinator"
    if features.topics and (known.needs == "partition" or (of_topics and drawn(2, *cause, "t") == 0)):
        topic = choice(sorted(features.topics), *cause, "topic")
        values["topic"] = topic
        values["partition"] = drawn(max(1, features.topics[topic]), *cause, "partition")
    return checked(**values, **_schedule(features, cause))


def _schedule(features: Features, cause: tuple[int, int, int]) -> dict[str, int]:
    values = {"most": 1 + drawn(features.most, *cause, "most")}
    if drawn(3, *cause, "nth") == 0:
        values["nth"] = 1 + drawn(50, *cause, "which")
    else:
        values["one_in"] = choice(ONE_IN, *cause, "one in")
    if features.for_ms and drawn(2, *cause, "times") == 0:
        values["from_ms"] = drawn(features.for_ms, *cause, "from")
        values["until_ms"] = values["from_ms"] + 1 + drawn(features.for_ms, *cause, "until")
    return values
