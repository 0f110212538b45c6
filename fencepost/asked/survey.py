"""Who leads and who has replicas, as the brokers' Metadata of this round say.

Owns the choice between contradicting answers: the highest leader epoch counts, and of one epoch the answer
that names a leader. Must not know what is asked with it.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from attrs import define, evolve, field

from fencepost.asked.step import NOBODY, Part, Reply, Scope, Step, alike, put, seen
from fencepost.impl.coordinator.group_records import partition_of
from fencepost.impl.messages.broker_api import MetadataRequest, MetadataResponse, PartitionMetadata
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Question
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC, STATE_TOPIC

INTERNAL = (OFFSETS_TOPIC, STATE_TOPIC)


@define(eq=False)
class Survey:
    """What Metadata say."""

    scope: Scope
    # Of every partition of the topics that were asked for.
    partitions: dict[TopicPartition, PartitionMetadata] = field(factory=dict)
    # Where the log of a replica begins, as it said in this round.
    log_starts: dict[tuple[TopicPartition, int], int] = field(factory=dict)
    # The high watermark of a leader, as it said in this round.
    high_watermarks: dict[TopicPartition, int] = field(factory=dict)
    # Where readers of committed records get as far as others, as the leader said in this round.
    stable: set[TopicPartition] = field(factory=set)

    def ask(self) -> Part:
        """Ask every broker."""
        topics = tuple(dict.fromkeys((*self.scope.topics, *INTERNAL)))
        answers = []
        for broker in self.scope.brokers:
            request = MetadataRequest(correlation_id=0, topics=topics)
            step = Step(broker=broker, question=Question.BROKERS, request=request)
            reply = yield from put(self.scope, step)
            if reply is not None:
                live = tuple(sorted(reply.message.live_brokers))
                yield seen(self.scope, step, reply, replicas=live)
                self._learn(reply.message)
                answers.append((step, reply))
        yield from alike(self.scope, self._views(answers))

    def _views(self, answers: list[tuple[Step, Reply]]) -> Iterator[tuple[Step, Reply, dict[str, Any]]]:
        """What each answer says of each partition of interest, and of each topic that it does not know."""
        wanted = set(self.of_interest())
        for step, reply in answers:
            of = partial(evolve, step, question=Question.PARTITION)
            for topic, error in reply.message.errors:
                if topic in self.scope.topics:
                    yield of(key=TopicPartition(topic, NOBODY)), reply, {"error": str(error)}
            for each in reply.message.partitions:
                if each.partition in wanted:
                    view = {
                        "leader": each.leader,
                        "leader_epoch": each.leader_epoch,
                        "isr": tuple(sorted(each.isr)),
                        "replicas": tuple(each.replicas),
                    }
                    yield of(key=each.partition), reply, view

    def _learn(self, answer: MetadataResponse) -> None:
        for each in answer.partitions:
            known = self.partitions.get(each.partition)
            if known is None or (each.leader_epoch, each.leader >= 0) > (
                known.leader_epoch,
                known.leader >= 0,
            ):
                self.partitions[each.partition] = each

    # ---- what is known

    def of_interest(self) -> list[TopicPartition]:
        """The partitions of the run's topics, and those of Kafka's own with records of the run's groups and
        transactional ids, sorted."""
        mine = [
            key for key in self.partitions if key.topic in self.scope.topics and key.topic not in INTERNAL
        ]
        return sorted({*mine, *self.coordinated()})

    def coordinated(self) -> dict[TopicPartition, list[str]]:
        """The groups and transactional ids of the run, by the partition of their records, in the order of
        INTERNAL."""
        found: dict[TopicPartition, list[str]] = {}
        for topic, names in zip(INTERNAL, (self.scope.groups, self.scope.transactional_ids), strict=True):
            count = sum(key.topic == topic for key in self.partitions)
            for name in names if count else ():
                found.setdefault(TopicPartition(topic, partition_of(name, count)), []).append(name)
        return found

    def leader(self, key: TopicPartition) -> int:
        """The leader of a partition; NOBODY if there is none, or it is not one of the brokers."""
        known = self.partitions.get(key)
        return known.leader if known is not None and known.leader in self.scope.brokers else NOBODY

    def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """The brokers that are asked about a partition, ascending: those that it is assigned to, or a part of
        them where the scope is to be spared."""
        known = self.partitions[key]
        return tuple(
            each
            for each in sorted(known.replicas)
            if each in self.scope.brokers
            and not (self.scope.spare and each in known.isr and each != known.leader)
        )
