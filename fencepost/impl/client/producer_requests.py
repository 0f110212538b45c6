"""A producer's requests to any broker: for metadata and for a producer id.

One request of a kind at a time, each to another broker, with a pause after an unhelpful response. Owns these
requests and their timeouts. Must not know how the responses are used.
"""

from attrs import define, field

from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.broker_context import CAUSE_BUCKET, MILLISECOND
from fencepost.impl.core.core_interface import CancelTimer, Effect, Send, SetTimer, TimerKey
from fencepost.impl.messages.broker_api import InitProducerIdRequest, MetadataRequest
from fencepost.traces.plan import ClientOptions

NONE = -1
ASKING_IDS = 1 << 61
"""Correlation ids from here on belong to requests that no batch sends."""
METADATA, IDENTITY = ("produce_metadata",), ("produce_identity",)
Question = type[MetadataRequest] | type[InitProducerIdRequest]
QUESTIONS: dict[TimerKey, Question] = {METADATA: MetadataRequest, IDENTITY: InitProducerIdRequest}


@define(eq=False)
class Asking:
    """The requests of one producer.

    Attributes:
        turn: which broker is asked next.
        asked: correlation ids of the requests in flight, by their timeout timer.
        resting: requests that wait for their timer before they are sent again.
    """

    options: ClientOptions
    metadata: ClientMetadata
    turn: int = 0
    asked: dict[TimerKey, int] = field(factory=dict)
    resting: dict[TimerKey, None] = field(factory=dict)

    def ask(self, question: TimerKey, now: int) -> list[Effect]:
        """Send a request, unless it is in flight or pausing. question: METADATA or IDENTITY."""
        if question in self.asked or question in self.resting:
            return []
        number = ASKING_IDS + now // MILLISECOND * len(QUESTIONS) + list(QUESTIONS).index(question)
        self.asked[question] = number
        target = self.metadata.whom_to_ask(self.turn)
        self.turn += 1
        patience = self.options.request_timeout_ms * MILLISECOND
        request = QUESTIONS[question](correlation_id=number)
        return [Send(target, request, (now // CAUSE_BUCKET,)), SetTimer(question, now + patience)]

    def is_answered_by(self, correlation_id: int) -> bool:
        """Whether this is the response to a request in flight, which is then complete."""
        question = next((key for key, asked in self.asked.items() if asked == correlation_id), None)
        if question is None:
            return False
        del self.asked[question]
        return True

    def settle(self, question: TimerKey, now: int, *, helped: bool) -> Effect:
        """After a response: cancel the timer, or pause.

        Args:
            question: METADATA or IDENTITY.
            now: host time in nanoseconds.
            helped: whether the response was useful.

        Returns:
            the effect.
        """
        if helped:
            return CancelTimer(question)
        self.resting[question] = None
        return SetTimer(question, now + self.options.retry_backoff_ms * MILLISECOND)

    def on_timer(self, question: TimerKey) -> None:
        """The pause is over, or no response came."""
        self.resting.pop(question, None)
        self.asked.pop(question, None)
