"""What topics inherit from brokers, in Kafka's names (KIP-226)."""

from collections.abc import Mapping

EVERY_BROKER = "<default>"
"""What configurations call all brokers. No topic may be called so."""
INHERITED = "inherited"
"""The cause of an event in which a topic takes over what its broker has."""
DYNAMIC: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "flush.messages": "log.flush.interval.messages",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.message.bytes": "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The setting of a broker that a topic without an override has, by that of the topic. Each moves while
brokers run."""
