"""AlterPartitionReassignments, ListPartitionReassignments, ElectLeaders (KIP-455, KIP-460): requests that run
in the controller's own queue.

Owns Kafka's responses. Must not know how partitions are reassigned or leaders elected: impl/controller does
both. Each request is an event of the controller's queue, so the state that it reads does not change before it
has written. A broker that is not the controller, or resigns meanwhile, answers NOT_CONTROLLER.
"""

from collections.abc import Callable
from functools import partial

from attrs import define

from fencepost.impl.admin.requests.desk import AdminDesk, Ticket
from fencepost.impl.controller import elections, reassignment
from fencepost.impl.controller.controller import Controller
from fencepost.impl.controller.guards import Targets
from fencepost.impl.controller.preferred_election import eligible
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import UNCLEAN_REQUESTED, Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Refusal = tuple[ErrorCode, str]
LEAST_MS = 1_000
"""The shortest time that a request may wait in the queue, regardless of its own timeout."""


@define
class ControlRequests:
    """Requests to the controller on one broker."""

    broker_context: BrokerContext
    controller: Controller
    metadata: MetadataCache
    desk: AdminDesk

    def _ask(
        self,
        source: int,
        correlation_id: int,
        timeout_ms: int,
        whole: Callable[..., kafka.AdminResponse],
        steps: Callable[[Ticket, ControllerState], ZooKeeperSteps],
    ) -> None:
        """Queue a request. whole: makes the response from its error if the request fails as a whole."""
        overdue = partial(whole, error=ErrorCode.REQUEST_TIMED_OUT)
        ticket = self.desk.admit(source, correlation_id, overdue, max(timeout_ms, LEAST_MS))
        if ticket is not None:
            refused = whole(error=ErrorCode.NOT_CONTROLLER)
            self.controller.ask(partial(steps, ticket), partial(self.desk.answer, ticket, refused))

    # ---- reassignments

    def alter_reassignments(self, source: int, request: kafka.AlterPartitionReassignmentsRequest) -> None:
        """Begin, change or cancel reassignments. The response is sent when they are written and have begun,
        not when they are complete.

        Args:
            source: the client.
            request: the reassignments.
        """
        whole = partial(kafka.AlterPartitionReassignmentsResponse, correlation_id=request.correlation_id)
        self._ask(source, request.correlation_id, request.timeout_ms, whole, partial(self._alter, request))

    def _alter(
        self, request: kafka.AlterPartitionReassignmentsRequest, ticket: Ticket, controller: ControllerState
    ) -> ZooKeeperSteps:
        refused: dict[TopicPartition, Refusal] = {}
        targets: Targets = {}
        for each in request.partitions:
            refusal, target = self._target(controller, each)
            if refusal is not None:
                refused[each.partition] = refusal
            elif target is not None:
                targets[each.partition] = target
        if targets:
            problem = yield from reassignment.reassign(controller, targets)
            if problem:
                refused |= dict.fromkeys(targets, (ErrorCode.INVALID_REQUEST, problem))
        results = (
            kafka.PartitionResult(partition=key, error=error, message=message)
            for key in dict.fromkeys(each.partition for each in request.partitions)
            for error, message in (refused.get(key, (NO_ERROR, "")),)
        )
        response = kafka.AlterPartitionReassignmentsResponse(
            correlation_id=request.correlation_id, error=NO_ERROR, results=tuple(results)
        )
        self.desk.answer(ticket, response)

    def _target(
        self, controller: ControllerState, each: kafka.Reassigned
    ) -> tuple[Refusal | None, tuple[int, ...] | None]:
        """The error, or the target; neither if there is nothing to do."""
        context, key = controller.context, each.partition
        current = context.reassigning.get(key)
        if key in context.stopping:
            # the target leads already; only the deletion of the old replicas is left
            if each.replicas is None:
                return (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ""), None
            return (ErrorCode.REASSIGNMENT_IN_PROGRESS, "its old replicas are being deleted; ask again"), None
        if each.replicas is None:
            if current is None:
                return (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ""), None
            origin = context.origins.get(key)
            if origin is None:
                sentence = (
                    "it was begun under an earlier controller: its old replicas are not known; name them"
                )
                return (ErrorCode.INVALID_REQUEST, sentence), None
            return None, origin
        if key not in context.assignments or key.topic in context.deleting:
            return (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist"), None
        if current == each.replicas or (current is None and context.assignments[key] == each.replicas):
            return None, None
        reason = reassignment.why_not(controller, key, each.replicas, resuming=current is not None)
        return ((ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason), None) if reason else (None, each.replicas)

    def list_reassignments(self, source: int, request: kafka.ListPartitionReassignmentsRequest) -> None:
        """Answer with the current reassignments.

        Args:
            source: the client.
            request: the partitions.
        """
        whole = partial(kafka.ListPartitionReassignmentsResponse, correlation_id=request.correlation_id)
        self._ask(source, request.correlation_id, request.timeout_ms, whole, partial(self._list, request))

    def _list(
        self, request: kafka.ListPartitionReassignmentsRequest, ticket: Ticket, controller: ControllerState
    ) -> ZooKeeperSteps:
        reassigning = controller.context.reassigning
        keys = sorted(reassigning if request.partitions is None else set(request.partitions))
        response = kafka.ListPartitionReassignmentsResponse(
            correlation_id=request.correlation_id,
            error=NO_ERROR,
            reassignments=tuple(_ongoing(controller, key) for key in keys if key in reassigning),
        )
        self.desk.answer(ticket, response)
        yield from ()

    # ---- elections

    def elect(self, source: int, request: kafka.ElectLeadersRequest) -> None:
        """Elect leaders. The response is sent when metadata shows them.

        Args:
            source: the client.
            request: the partitions and the kind of election.
        """

        def whole(error: ErrorCode) -> kafka.ElectLeadersResponse:
            results = tuple(
                kafka.PartitionResult(partition=key, error=error) for key in request.partitions or ()
            )
            return kafka.ElectLeadersResponse(
                correlation_id=request.correlation_id, error=error, results=results
            )

        self._ask(source, request.correlation_id, request.timeout_ms, whole, partial(self._elect, request))

    def _elect(
        self, request: kafka.ElectLeadersRequest, ticket: Ticket, controller: ControllerState
    ) -> ZooKeeperSteps:
        context = controller.context
        asked = sorted(context.states if request.partitions is None else set(request.partitions))
        refused = {
            key: refusal for key in asked if (refusal := _why_no_election(controller, key, request.unclean))
        }
        keys = [key for key in asked if key not in refused]
        if request.unclean:
            for topic in dict.fromkeys(key.topic for key in keys):
                controller.broker_context.record(
                    Name.MARK,
                    TopicPartition(topic, -1),
                    controller_epoch=context.epoch,
                    cause=UNCLEAN_REQUESTED,
                )
            written = yield from elections.elect_unclean(controller, keys)
        else:
            written = yield from elections.elect_preferred(controller, keys)
        controller.channels.flush(context)
        absent = (
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            if request.unclean
            else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        )
        refused |= {key: (absent, "no replica that may lead is alive") for key in keys if key not in written}
        leaders = {key: context.states[key].leader for key in written}

        def answer(late: ErrorCode | None) -> kafka.ElectLeadersResponse | None:
            """The response. late: the error for partitions with a leader that metadata does not show yet;
            None: it is too early to answer."""
            missing = {key for key, leader in leaders.items() if self.metadata.leader_of(key) != leader}
            if missing and late is None:
                return None
            results = []
            for key in asked:
                error, message = refused.get(key, (NO_ERROR, ""))
                if key in missing:
                    error = late or error
                if request.partitions is not None or error is not ErrorCode.ELECTION_NOT_NEEDED:
                    results.append(kafka.PartitionResult(partition=key, error=error, message=message))
            return kafka.ElectLeadersResponse(
                correlation_id=request.correlation_id, error=NO_ERROR, results=tuple(results)
            )

        def time_is_up() -> kafka.ElectLeadersResponse:
            response = answer(ErrorCode.REQUEST_TIMED_OUT)
            assert response is not None
            return response

        self.desk.wait(ticket, request.timeout_ms, partial(answer, None), time_is_up)


def _ongoing(controller: ControllerState, key: TopicPartition) -> kafka.OngoingReassignment:
    """A reassignment in progress. If the original replicas are not known, replicas that are not caught up
    count as added."""
    context = controller.context
    assigned, target, origin = context.assignments[key], context.reassigning[key], context.origins.get(key)
    if origin is None:
        state = context.states.get(key)
        origin = state.isr if state is not None else ()
    return kafka.OngoingReassignment(
        partition=key,
        replicas=(*assigned, *(broker for broker in target if broker not in assigned)),
        adding=tuple(broker for broker in target if broker not in origin),
        removing=tuple(broker for broker in assigned if broker not in target),
    )


def _why_no_election(controller: ControllerState, key: TopicPartition, unclean: bool) -> Refusal | None:
    context = controller.context
    if key not in context.assignments:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the partition does not exist"
    if key.topic in context.deleting:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is being deleted"
    state = context.states.get(key)
    if state is None:
        absent = (
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        )
        return absent, "it never had a leader"
    if state.leader in context.live_brokers if unclean else state.leader == context.assignments[key][0]:
        return ErrorCode.ELECTION_NOT_NEEDED, ""
    if not unclean and not eligible(controller, key):
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "its replicas change"
    return None
