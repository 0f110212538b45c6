"""What aiokafka calls settings, values and errors."""

import asyncio
import logging
import threading

from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from lines import one_of, setting

logging.disable(logging.CRITICAL)
COMMON = {"bootstrap": "bootstrap_servers", **{one: one for one in (
    "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms")}}  # fmt: skip
PRODUCER = {
    **COMMON,
    "acks": "acks",
    "idempotence": "enable_idempotence",
    "linger_ms": "linger_ms",
    "batch_bytes": "max_batch_size",
    "compression": "compression_type",
    "transactional_id": "transactional_id",
    "transaction_timeout_ms": "transaction_timeout_ms",
}
CONSUMER = {
    **COMMON,
    "group": "group_id",
    "group_instance_id": "group_instance_id",
    "isolation": "isolation_level",
    "assignor": "partition_assignment_strategy",
    "auto_commit": "enable_auto_commit",
    "offset_reset": "auto_offset_reset",
    **{
        one: one
        for one in (
            "auto_commit_interval_ms",
            "session_timeout_ms",
            "heartbeat_interval_ms",
            "max_poll_interval_ms",
            "fetch_max_wait_ms",
            "fetch_min_bytes",
            "fetch_max_bytes",
            "max_poll_records",
        )
    },
}
CODECS = {"none": None, "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
ASSIGNORS = {
    "range": [RangePartitionAssignor],
    "roundrobin": [RoundRobinPartitionAssignor],
    "sticky": [StickyPartitionAssignor],
}
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def run(coroutine):
    """Wait for it, in the thread of a client."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()


async def made(kind, *arguments, **options):
    """Some of its classes want to be made inside of the loop."""
    client = kind(*arguments, **options)
    try:
        await client.start()
    except BaseException:
        await (getattr(client, "stop", None) or client.close)()
        raise
    return client


def error_of(error):
    """The name and number of its exceptions."""
    return {"name": type(error).__name__, "code": getattr(error, "errno", None), "text": str(error)}


def configuration(config, names):
    """In aiokafka's words, and what it does not have."""
    given, ignored = setting(config, names)
    options = {names[name]: value for name, value in given.items()}
    if "compression" in given:
        options["compression_type"] = one_of(given["compression"], CODECS, "codec")
    if "assignor" in given:
        options["partition_assignment_strategy"] = one_of(given["assignor"], ASSIGNORS, "assignor")
    return options, ignored
