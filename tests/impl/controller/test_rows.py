"""Rows of the specification that no other file of tests names: the znodes as a running cluster has them (Z),
what a controller knows (C4), who serves (R1)."""

import json

from impl_lab import T0, Lab

from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.impl.zookeeper.znodes import ProducerIdBlock
from fencepost.traces.kafka_names.outcomes import ErrorCode


def node(lab, path: str):
    """The content of a node as JSON, and whether it goes with its session."""
    found = lab.tree.node(path)
    assert found is not None, path
    return json.loads(found.data), bool(found.owner)


def test_the_znodes_are_kafkas(lab: Lab) -> None:
    """Rule (Z): paths, fields, versions and types of the nodes of a running cluster are those that Kafka's
    own tools read."""
    controller, ephemeral = node(lab, "/controller")
    assert ephemeral and controller.keys() == {"version", "brokerid", "timestamp"}
    assert (controller["version"], controller["brokerid"], type(controller["timestamp"])) == (1, 1, str)
    assert node(lab, "/controller_epoch") == (1, False)
    broker, ephemeral = node(lab, "/brokers/ids/2")
    assert ephemeral and broker["version"] == 4
    assert broker.keys() == {
        "listener_security_protocol_map", "endpoints", "jmx_port", "host", "timestamp", "port", "version",
    }  # fmt: skip
    assert node(lab, "/brokers/topics/t") == ({"version": 1, "partitions": {"0": [2, 3]}}, False)
    assert node(lab, "/brokers/topics/t/partitions/0/state") == (
        {"version": 1, "leader": 2, "leader_epoch": 0, "controller_epoch": 1, "isr": [2, 3]},
        False,
    )


def test_the_nodes_of_requests_are_kafkas() -> None:
    """Rule (Z): what operators, leaders and producers write below /admin, /isr_change_notification and
    /latest_producer_id_block."""
    targets = {T0: (4, 5, 6)}
    told = json.loads(znodes.encode_reassignments(targets))
    assert told == {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [4, 5, 6]}]}
    partitions = {"version": 1, "partitions": [{"topic": "t", "partition": 0}]}
    assert json.loads(znodes.encode_partitions([T0])) == partitions
    assert json.loads(znodes.encode_isr_changes([T0])) == partitions
    assert json.loads(znodes.encode_configuration()) == {"version": 1, "config": {}}
    block = ProducerIdBlock(broker=1, start=0, end=999)
    assert json.loads(znodes.encode_producer_id_block(block)) == {
        "version": 1, "broker": 1, "block_start": "0", "block_end": "999",
    }  # fmt: skip


def test_a_controller_knows_what_it_decides_by(lab: Lab) -> None:
    """Rule (C4): live and stopping brokers with their epochs, assignments, leaders and ISRs, reassignments,
    topics to be deleted."""
    context = lab.core(1).controller.state.context
    epochs = {broker: lab.core(broker).broker_context.broker_epoch for broker in (1, 2, 3, 4)}
    assert context.live_brokers == epochs and context.shutting_down == {}
    assert context.assignments == {T0: (2, 3)}
    assert (context.states[T0].leader, context.states[T0].isr) == (2, (2, 3))
    lab.admin(Create(znodes.REASSIGN, znodes.encode_reassignments({T0: (3, 4)})))
    lab.settle(1, 2, 3)
    assert context.reassigning == {T0: (3, 4)} and context.assignments == {T0: (2, 3, 4)}
    lab.admin(Create(znodes.delete_topic_path("t")))
    lab.settle(1, 2, 3)
    assert list(context.deleting) == ["t"]


def test_a_stopping_broker_is_known_as_such(lab: Lab) -> None:
    """Rule (C4): it is alive, and not electable any more."""
    context, epoch = lab.core(1).controller.state.context, lab.core(2).broker_context.broker_epoch
    lab.step(2, StopRequested())
    lab.deliver(2, 1, kafka.ControlledShutdownRequest)
    assert context.shutting_down == {2: epoch} and 2 in context.live_brokers and 2 not in context.electable()


def test_only_the_leader_serves_and_an_old_leader_returns_as_follower(lab: Lab) -> None:
    """Rule (R1): a follower refuses producers and readers; whoever led before it died follows when it is
    back, and pulls what it missed."""
    assert lab.produce(2, 11).error is ErrorCode.NONE
    assert lab.produce(3, 12).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert lab.list_offsets(3).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    lab.come_to_rest()
    lab.crash(2).come_to_rest()
    assert lab.produce(3, 13).error is ErrorCode.NONE
    lab.start(2).come_to_rest()
    assert lab.partition(3).is_leader and not lab.partition(2).is_leader
    assert lab.values(2) == lab.values(3) == [11, 13]
