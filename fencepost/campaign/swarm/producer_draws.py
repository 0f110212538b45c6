"""Pipelined producers in a campaign: what the swarm draws for them.

Must not know the rest of a plan or of a cluster.
"""

from attrs import evolve

from fencepost.campaign.swarm.draws import Draws
from fencepost.impl.client.partitioners import NAMES
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.operations import ACKS_ALL
from fencepost.traces.plan import (
    ClientOptions,
    ClusterOptions,
    Plan,
    PlannedOperation,
    ProducerOptions,
    TopicOptions,
)

ALL = 100
KEY_HASH = "key_hash"
"""The partitioner for which an append needs a key."""
CODECS = ["gzip", "snappy", "lz4", "zstd"]


def with_producers(plan: Plan, draw: Draws, percent: int) -> Plan:
    """The plan with pipelined producers, in so many plans of a hundred; in the others the plan as it is.
    Where all plans have them the topics are made for them, too: a profile that has some for variety keeps its
    own."""
    if not percent or not draw.chance(percent, "producer"):
        return plan
    idempotent = draw.chance(80, "idempotent")
    producer = ProducerOptions(
        pipelined=True,
        idempotent=idempotent,
        linger_ms=draw.between((1, 400), "linger") if draw.chance(60, "linger_on") else 0,
        batch_bytes=draw.between((80, 1_500), "batch_bytes"),
        max_in_flight=5 if draw.chance(60, "in_flight_most") else draw.between((1, 4), "in_flight"),
        partitioner=draw.choice(list(NAMES), "partitioner") if draw.chance(30, "partitioner_on") else "",
        compression=draw.choice(CODECS, "compression") if draw.chance(20, "compression_on") else "none",
        late_sends=idempotent and draw.chance(40, "producer.late_sends"),
    )
    bursts = draw.between((400, 4_000), "burst") if draw.chance(65, "bursts") else 0
    keyed = percent != ALL and producer.partitioner == KEY_HASH  # plans of older profiles stay as they are
    keys = draw.between((1, 12), "producer.keys") if keyed else 0
    operations = [
        _adapted(operation, draw, bursts, keys, idempotent=idempotent) for operation in plan.operations
    ]
    return evolve(
        plan,
        cluster=_restless_cluster(plan.cluster, draw) if percent == ALL else plan.cluster,
        client=evolve(
            plan.client,
            producer=producer,
            retry_unknown=plan.client.retry_unknown and not idempotent,
            delivery_timeout_ms=draw.between((4_000, 30_000), "producer_delivery_timeout"),
        ),
        operations=tuple(sorted(operations, key=lambda operation: (operation.at_ms, operation.op_id))),
    )


def with_limits(plan: Plan, draw: Draws) -> Plan:
    """The plan with topics whose largest batch has a few records, and appends below it and above. One record
    fits into each."""
    topics = tuple(
        topic
        if topic.name in (*INTERNAL_TOPICS, plan.transform.output)
        else evolve(topic, max_message_bytes=draw.between((100, 240), "limits.bytes", place))
        for place, topic in enumerate(plan.cluster.topics)
    )
    operations = tuple(
        evolve(one, records=draw.between((1, 14), "limits.records", one.op_id))
        if one.function == "append" and draw.chance(25, "limits.larger", one.op_id)
        else one
        for one in plan.operations
    )
    return evolve(plan, cluster=evolve(plan.cluster, topics=topics), operations=operations)


def with_different_clients(plan: Plan, draw: Draws) -> Plan:
    """The plan with clients that differ in their patience, in what they ask for at once, and in how they
    batch. What judges of all of them count with is the same: acks, idempotence, retries."""
    return evolve(
        plan,
        clients=tuple(
            _different(plan.client, draw, place) for place in range(draw.between((1, 2), "others"))
        ),
    )


def _different(client: ClientOptions, draw: Draws, place: int) -> ClientOptions:
    producer = client.producer
    if producer.pipelined:
        producer = evolve(
            producer,
            linger_ms=draw.between((0, 400), "other.linger", place),
            batch_bytes=draw.between((80, 1_500), "other.batch_bytes", place),
            max_in_flight=draw.between((1, 5), "other.in_flight", place),
            compression=draw.choice(["none", *CODECS], "other.compression", place),
        )
    return evolve(
        client,
        producer=producer,
        request_timeout_ms=client.request_timeout_ms
        * draw.between((100, 250), "other.patience", place)
        // 100,
        fetch_wait_max_ms=draw.between((0, client.fetch_wait_max_ms), "other.fetch_wait", place),
        max_poll_records=draw.between((1, 60), "other.max_poll", place),
    )


def _restless_cluster(cluster: ClusterOptions, draw: Draws) -> ClusterOptions:
    """Some logs forget records within seconds: sooner than their producers give up retrying."""
    topics = tuple(_restless(topic, draw) for topic in cluster.topics)
    if not draw.chance(15, "forgetful"):
        return evolve(cluster, topics=topics)
    return evolve(
        cluster,
        topics=tuple(
            evolve(
                topic,
                segment_bytes=draw.between((80, 400), "forgetful_segment_bytes"),
                retention_ms=draw.between((200, 2_500), "forgetful_retention"),
            )
            for topic in topics
        ),
        log_retention_check_interval_ms=draw.between((200, 1_000), "forgetful_check"),
    )


def _restless(topic: TopicOptions, draw: Draws) -> TopicOptions:
    """Some topics live on one broker, so that a retry meets the log that was interrupted; some roll a segment
    with nearly every batch."""
    if draw.chance(25, "alone"):
        topic = evolve(topic, replication_factor=1, min_insync_replicas=1)
    if draw.chance(45, "tiny_segments"):
        topic = evolve(topic, segment_bytes=draw.between((80, 400), "tiny_segment_bytes"))
    return topic


def _adapted(
    operation: PlannedOperation, draw: Draws, burst_ms: int, keys: int, *, idempotent: bool
) -> PlannedOperation:
    """An append at the beginning of its burst, with the acks that idempotence asks for, and one of so many
    keys where keys choose partitions."""
    if operation.function != "append":
        return operation
    at_ms, key = operation.at_ms, operation.key
    if keys and not key:
        key = "k" * draw.between((1, 6), "producer.key_length", operation.op_id)
        key += str(draw.between((1, keys), "producer.key", operation.op_id))
    if burst_ms:
        at_ms += draw.between((0, 40), "in_burst", operation.op_id) - at_ms % burst_ms
    return evolve(operation, at_ms=max(0, at_ms), key=key, acks=ACKS_ALL if idempotent else operation.acks)
