"""A broker's responses to admin clients. Owns the wiring. Must not know any rule.

topics      create, delete, add partitions          the controller
configs     describe, alter                         any broker; of a broker: that one
control     reassign, elect                         the controller
logs        describe log directories                each broker for itself
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define

from fencepost.impl.admin.requests.configs import ConfigRequests
from fencepost.impl.admin.requests.control_requests import ControlRequests
from fencepost.impl.admin.requests.desk import ADMIN_TIMER, AdminDesk
from fencepost.impl.admin.requests.log_dir_requests import LogRequests
from fencepost.impl.admin.requests.topic_requests import TopicRequests
from fencepost.impl.controller.controller import Controller
from fencepost.impl.coordinator.internal_topic import InternalTopic
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import Procedures
from fencepost.impl.messages import admin_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition


@define
class Administration:
    """handlers: by kind of request; timers: by name."""

    desk: AdminDesk
    topics: TopicRequests
    handlers: dict[type, Callable[[int, Any], None]]
    timers: dict[str | int, Callable[..., None]]


def make_administration(
    broker_context: BrokerContext,
    procedures: Procedures,
    controller: Controller,
    metadata: MetadataCache,
    partitions: Mapping[TopicPartition, Partition],
    internal_topics: Mapping[str, InternalTopic],
) -> Administration:
    """Assemble the administration. internal_topics: those that coordinators create, by name."""
    desk = AdminDesk(broker_context)
    topics = TopicRequests(broker_context, procedures, controller, metadata, desk, internal_topics)
    configs = ConfigRequests(broker_context, procedures, metadata, desk)
    control = ControlRequests(broker_context, controller, metadata, desk)
    handlers: dict[type, Callable[[int, Any], None]] = {
        kafka.CreateTopicsRequest: topics.create,
        kafka.DeleteTopicsRequest: topics.delete,
        kafka.CreatePartitionsRequest: topics.create_partitions,
        kafka.DescribeConfigsRequest: configs.describe,
        kafka.AlterConfigsRequest: configs.alter,
        kafka.AlterPartitionReassignmentsRequest: control.alter_reassignments,
        kafka.ListPartitionReassignmentsRequest: control.list_reassignments,
        kafka.ElectLeadersRequest: control.elect,
        kafka.DescribeLogDirsRequest: LogRequests(broker_context, partitions).describe,
    }
    return Administration(desk, topics, handlers, {ADMIN_TIMER: desk.on_timer})
