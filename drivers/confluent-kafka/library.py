"""What confluent-kafka calls settings, values and errors."""

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException
from lines import happened, one_of, setting

NAMES = {
    "bootstrap": "bootstrap.servers",
    "client_id": "client.id",
    "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
    "retry_backoff_ms": "retry.backoff.ms",
    "request_timeout_ms": "socket.timeout.ms",
    "acks": "acks",
    "idempotence": "enable.idempotence",
    "in_flight": "max.in.flight.requests.per.connection",
    "linger_ms": "linger.ms",
    "batch_bytes": "batch.size",
    "batch_records": "batch.num.messages",
    "compression": "compression.type",
    "retries": "message.send.max.retries",
    "delivery_timeout_ms": "message.timeout.ms",
    "transactional_id": "transactional.id",
    "transaction_timeout_ms": "transaction.timeout.ms",
    "group": "group.id",
    "group_instance_id": "group.instance.id",
    "isolation": "isolation.level",
    "assignor": "partition.assignment.strategy",
    "auto_commit": "enable.auto.commit",
    "auto_commit_interval_ms": "auto.commit.interval.ms",
    "session_timeout_ms": "session.timeout.ms",
    "heartbeat_interval_ms": "heartbeat.interval.ms",
    "max_poll_interval_ms": "max.poll.interval.ms",
    "offset_reset": "auto.offset.reset",
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "fetch_min_bytes": "fetch.min.bytes",
    "fetch_max_bytes": "fetch.max.bytes",
    "rack": "client.rack",
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
VALUES = {
    "compression": CODECS,
    "assignor": ASSIGNORS,
    "acks": (0, 1, -1),
    "offset_reset": ("earliest", "latest", "none"),
}
PLACES = {-2: OFFSET_BEGINNING, -1: OFFSET_END}
COMMIT_S = 30


def error_of(error):
    """The name and number that librdkafka gives."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if not isinstance(inner, KafkaError):
        return {"name": type(error).__name__, "text": str(error)}
    return {"name": inner.name(), "code": inner.code(), "text": inner.str(), "fatal": bool(inner.fatal())}


def properties(name, config, known):
    """In librdkafka's words, and what it does not have."""
    given, ignored = setting(config, [one for one in known if one in NAMES or one == "extra"])
    for what, values in VALUES.items():
        if what in given:
            one_of(given[what], dict.fromkeys(values), what)
    if given.get("offset_reset") == "none":
        given["offset_reset"] = "error"
    extra = given.pop("extra", {})
    made = {NAMES[what]: value for what, value in given.items()}

    def trouble(error):
        happened("trouble", name, error=error_of(error))

    return {**made, "error_cb": trouble, "log_level": 0, **extra}, ignored


def thrown(error):
    """Raise what was returned."""
    if error is not None:
        raise KafkaException(error)
