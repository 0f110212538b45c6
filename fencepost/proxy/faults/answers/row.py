"""A row of the table of answers: the errors of one API, in three columns, and their conditions.

Owns the form of a row, and words that several rows use. Must not know any API.
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

EVERYWHERE = ("UNKNOWN_SERVER_ERROR",)
"""Any request, at any time, and after the effect of what has one."""
MOVES = "NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS"
"""What every request to a coordinator may be answered: GroupCoordinator.validateGroupStatus."""
WRITTEN = "COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
"""What a coordinator makes of an append to its own log that was not replicated in time, and which a later
coordinator may find there (CoordinatorOperationExceptionHelper of groups, and
TransactionStateManager.appendTransactionToLog)."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@frozen(kw_only=True)
class Condition:
    """What a request must be so that a correct broker may answer it with an error."""

    # Its lowest and highest version; None: no bound.
    since: int | None = None
    until: int | None = None
    # What its body must be, and the same in words.
    holds: Callable[[Any], bool] | None = None
    says: str = ""

    def met(self, version: int, body: Any) -> bool:
        """Whether a request of this version, with this body of kio's, may be answered so."""
        if (self.since is not None and version < self.since) or (
            self.until is not None and version > self.until
        ):
            return False
        return self.holds is None or self.holds(body)

    def __str__(self) -> str:
        words = [] if self.since is None else [f"from version {self.since}"]
        words += [] if self.until is None else [f"up to version {self.until}"]
        return ", ".join([*words, *([self.says] if self.says else [])])


@frozen(kw_only=True)
class Row:
    """The errors of one API."""

    any_time: tuple[str, ...] = field(default="", converter=_words)
    after: tuple[str, ...] = field(default="", converter=_words)
    only_if: tuple[str, ...] = field(default="", converter=_words)
    # Beyond what Kafka documents for it.
    source: str = ""
    # Whether the request changes anything.
    effect: bool = False
    # By error: conditions of the errors in the first two columns.
    when: Mapping[str, Condition] = field(factory=dict)
    # Of every error after the effect but those of EVERYWHERE.
    after_when: Condition = Condition()

    def condition(self, error: str, *, after_effect: bool) -> Condition:
        """What a request must be to be answered this error."""
        if error in EVERYWHERE:
            return Condition()
        return self.after_when if after_effect else self.when.get(error, Condition())


LEADER = "NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION KAFKA_STORAGE_ERROR"
READ_IF = "TOPIC_AUTHORIZATION_FAILED FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH"
TXN_IF = (
    "INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING INVALID_PRODUCER_EPOCH PRODUCER_FENCED"
    " TRANSACTIONAL_ID_AUTHORIZATION_FAILED TRANSACTION_ABORTABLE"
)
GROUP_IF = (
    "GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST UNSUPPORTED_VERSION"
    " INVALID_GROUP_ID GROUP_ID_NOT_FOUND"
)
MEMBER_IF = f"{GROUP_IF} UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID GROUP_MAX_SIZE_REACHED"
SHARED_IF = (
    "GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST UNSUPPORTED_VERSION"
    " INVALID_RECORD_STATE UNKNOWN_TOPIC_ID SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH"
    " SHARE_SESSION_LIMIT_REACHED FENCED_LEADER_EPOCH"
)
ADMIN_IF = "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST POLICY_VIOLATION"
