"""What a producer asks any broker: who leads, and for an id.

One question of a kind at a time, another broker each time, a rest after an answer that did not help. Owns
those requests and their time-outs. Must not know what the answers are used for.
"""

from attrs import define, field

from fencepost.impl.client.metadata import ClientMetadata
from fencepost.impl.core.broker_context import CAUSE_BUCKET, MILLISECOND
from fencepost.impl.core.core_interface import CancelTimer, Effect, Send, SetTimer, TimerKey
from fencepost.impl.messages.broker_api import InitProducerIdRequest, MetadataRequest
from fencepost.traces.plan import ClientOptions

NONE = -1
ASKING_IDS = 1 << 61
"""Correlation ids from here on are of requests that no batch sends."""
METADATA, IDENTITY = ("produce_metadata",), ("produce_identity",)
Question = type[MetadataRequest] | type[InitProducerIdRequest]
QUESTIONS: dict[TimerKey, Question] = {METADATA: MetadataRequest, IDENTITY: InitProducerIdRequest}


@define(eq=False)
class Asking:
    """turn: which broker is asked next. asked: correlation ids of the questions under way, by the timer that
    watches over them; resting: those that wait for their timer before they are asked again."""

    options: ClientOptions
    metadata: ClientMetadata
    turn: int = 0
    asked: dict[TimerKey, int] = field(factory=dict)
    resting: dict[TimerKey, None] = field(factory=dict)

    def ask(self, question: TimerKey, now: int) -> list[Effect]:
        """Ask, unless that is under way or rests. question: METADATA or IDENTITY."""
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
        """Whether this answers a question under way, which is over then."""
        question = next((key for key, asked in self.asked.items() if asked == correlation_id), None)
        if question is None:
            return False
        del self.asked[question]
        return True

    def settle(self, question: TimerKey, now: int, *, helped: bool) -> Effect:
        """After an answer: forget the timer, or rest."""
        if helped:
            return CancelTimer(question)
        self.resting[question] = None
        return SetTimer(question, now + self.options.retry_backoff_ms * MILLISECOND)

    def on_timer(self, question: TimerKey) -> None:
        """The rest is over, or nobody answered."""
        self.resting.pop(question, None)
        self.asked.pop(question, None)
