"""What kafka-python calls settings, values and errors."""

import importlib
import logging

from lines import one_of, setting

logging.disable(logging.CRITICAL)
NAMES = {
    "bootstrap": "bootstrap_servers",
    "idempotence": "enable_idempotence",
    "batch_bytes": "batch_size",
    "in_flight": "max_in_flight_requests_per_connection",
    "compression": "compression_type",
    "group": "group_id",
    "group_instance_id": "group_instance_id",
    "isolation": "isolation_level",
    "assignor": "partition_assignment_strategy",
    "auto_commit": "enable_auto_commit",
    "offset_reset": "auto_offset_reset",
    "rack": "client_rack",
}
PLACES = {"range": "range.RangePartitionAssignor", "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
          "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
          "cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor"}  # fmt: skip
ASSIGNORS = {}
for name, place in PLACES.items():
    module, kind = place.rsplit(".", 1)
    try:
        ASSIGNORS[name] = [getattr(importlib.import_module("kafka.coordinator.assignors." + module), kind)]
    except ImportError:
        continue
CODECS = {"none": None, "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
WAIT_MS = 30_000


def error_of(error):
    """The name and number of its exceptions."""
    return {"name": type(error).__name__, "code": getattr(error, "errno", None), "text": str(error)}


def configuration(config, known, defaults):
    """In kafka-python's words, and what this version does not have."""
    have = [one for one in known if NAMES.get(one, one) in defaults]
    given, ignored = setting(config, have)
    made = {NAMES.get(name, name): value for name, value in given.items()}
    made["bootstrap_servers"] = given["bootstrap"].split(",")
    if "compression" in given:
        made["compression_type"] = one_of(given["compression"], CODECS, "codec")
    if "assignor" in given:
        made["partition_assignment_strategy"] = one_of(given["assignor"], ASSIGNORS, "assignor")
    return made, ignored
