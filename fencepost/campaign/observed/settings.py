"""Whether a broker obeys the overrides of topics that it knows.

Owns Kafka's names of the settings that operators of a simulated cluster change, and how their values are
read, in the plainest form. Must not know how a broker reads them, nor when it is asked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MILLION = 1_000_000
FIELDS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "delete.retention.ms": ("delete_retention_ms", int),
    "flush.messages": ("flush_messages", int),
    "min.cleanable.dirty.ratio": ("min_cleanable_dirty_ppm", lambda text: round(float(text) * MILLION)),
    "min.insync.replicas": ("min_insync_replicas", int),
    "retention.bytes": ("retention_bytes", int),
    "retention.ms": ("retention_ms", int),
    "segment.bytes": ("segment_bytes", int),
    "segment.ms": ("segment_ms", int),
    "unclean.leader.election.enable": ("unclean_leader_election", {"true": True, "false": False}.get),
}
"""By Kafka's name: the option, and its value."""
OF_LOGS = frozenset(
    {
        "delete_retention_ms",
        "flush_messages",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_ms",
    }
)
"""Options that a log has, too."""


def misapplied(core: Any) -> Iterator[str]:
    """Overrides that are not in effect, each in one clause.

    Args:
        core: a broker.
    """
    for topic, config in sorted(core.config.configs.items()):
        options = core.broker_context.topic_options(topic)
        logs = [one.log for key, one in sorted(core.replicas.partitions.items()) if key.topic == topic]
        for name, text in sorted(config.items()):
            option, read = FIELDS.get(name, ("", str))
            places = (options, *(log.options for log in logs if option in OF_LOGS)) if option else ()
            wrong = [value for one in places if (value := getattr(one, option)) != read(text)]
            if wrong:
                yield f"{name}={text} of {topic} is in effect as {wrong[0]}"
