"""OffsetForLeaderEpoch: where a leader epoch ends (KIP-101, KIP-320)."""

from functools import partial
from typing import Any

from fencepost.conformance.case import Facts, case, in_versions
from fencepost.conformance.cases.fetch_cases import filled
from fencepost.conformance.lab import Lab, Topic

OFFSET_FOR_LEADER_EPOCH = 23
CONSUMER = -1


async def _ask(lab: Lab, topic: Topic, part: dict[str, Any], version: int | None = None) -> Any:
    wanted = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0, **part}
    topics = [{"topic": topic.name, "partitions": [wanted]}]
    answer = await lab.ask(topic.leader, OFFSET_FOR_LEADER_EPOCH, version, replica_id=CONSUMER, topics=topics)
    return lab.facts(answer)["topics"]


async def _of(part: dict[str, Any], version: int | None, lab: Lab) -> Facts:
    return await _ask(lab, await filled(lab), part, version)


in_versions(
    "offset_for_leader_epoch.v%d",
    "The end of epoch 0, which lasts, in version %d.",
    range(2, 5),
    partial(_of, {}),
)
OF: dict[str, tuple[str, dict[str, Any]]] = {
    "later_epoch": ("The end of epoch 7, which has not begun.", {"leader_epoch": 7}),
    "negative_epoch": ("The end of epoch -1.", {"leader_epoch": -1}),
    "epoch_minus_2": ("The end of epoch -2.", {"leader_epoch": -2}),
    "unknown_current_epoch": (
        "The end of epoch 0, with current leader epoch 99.",
        {"current_leader_epoch": 99},
    ),
    "unknown_partition": ("The end of epoch 0 in partition 9.", {"partition": 9}),
}
for _name, (_what, _part) in OF.items():
    case(f"offset_for_leader_epoch.{_name}", _what)(partial(_of, _part, None))


@case("offset_for_leader_epoch.unknown_topic", "The end of epoch 0 of a topic that is not there.")
async def unknown_topic(lab: Lab) -> Facts:
    return await _ask(lab, Topic(lab.fresh("topic"), await lab.link()), {})


@case("offset_for_leader_epoch.fenced_epoch", "With current leader epoch 0 after the leader has changed.")
async def fenced(lab: Lab) -> Facts:
    return await _ask(lab, await lab.led_elsewhere(), {"current_leader_epoch": 0})


@case("offset_for_leader_epoch.empty_log", "The end of epoch 0 of a log without records.")
async def empty(lab: Lab) -> Facts:
    return await _ask(lab, await lab.topic(), {})


@case("offset_for_leader_epoch.from_a_broker_that_does_not_lead", "From a broker without a replica.")
async def elsewhere(lab: Lab) -> Facts:
    topic = await filled(lab)
    return await _ask(lab, Topic(topic.name, await lab.other(topic.leader)), {})
