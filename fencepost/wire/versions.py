"""The one table of what is spoken: API key, its name, the versions that are advertised, who handles it.

Owns the table. Must not know how a request is handled. Versions are capped below topic ids (Fetch 13,
Metadata 10) and batched coordinators (FindCoordinator 4, OffsetFetch 8). AddPartitionsToTxn 4 is for brokers.
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from fencepost.wire.admin import cluster_admin, config_admin, replica_admin, topic_admin
from fencepost.wire.admin import group_admin as admin_groups
from fencepost.wire.admin import transaction_admin as admin_transactions
from fencepost.wire.apis import (
    api_versions,
    commit_apis,
    coordinator_apis,
    fetch,
    group_apis,
    metadata_api,
    offset_apis,
    produce,
    sasl,
    transaction_apis,
)
from fencepost.wire.handling import Call, Handling

Handler = Callable[[Call, Any], Handling]
API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
BEFORE_AUTHENTICATION = frozenset((API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE))
"""What a client may ask before it has said who it is."""


@frozen
class Api:
    """One row of the table of APIs."""

    # Kafka's API key.
    key: int
    # kio's name.
    name: str
    # Versions that our brokers advertise.
    lowest: int
    highest: int
    handler: Handler
    # If it is above `lowest`: versions below it are advertised and not spoken.
    lowest_decoded: int = -1

    def speaks(self, version: int) -> bool:
        """Whether a request of this version is read."""
        return max(self.lowest, self.lowest_decoded) <= version <= self.highest


def table(*apis: Api) -> Mapping[int, Api]:
    """The rows by key."""
    rows = {api.key: api for api in apis}
    assert len(rows) == len(apis), "two rows for one API"
    return rows


APIS = table(
    # librdkafka leaves compression out unless Produce 0 is advertised (KAFKA-18659); no client sends it.
    Api(0, "produce", 0, 12, produce.produce, lowest_decoded=3),
    Api(1, "fetch", 4, 12, fetch.fetch),
    Api(2, "list_offsets", 0, 6, offset_apis.list_offsets),
    Api(3, "metadata", 0, 9, metadata_api.metadata),
    Api(8, "offset_commit", 2, 8, commit_apis.offset_commit),
    Api(9, "offset_fetch", 1, 7, commit_apis.offset_fetch),
    Api(10, "find_coordinator", 0, 3, coordinator_apis.find_coordinator),
    Api(11, "join_group", 0, 5, group_apis.join_group),
    Api(12, "heartbeat", 0, 3, group_apis.heartbeat),
    Api(13, "leave_group", 0, 3, group_apis.leave_group),
    Api(14, "sync_group", 0, 3, group_apis.sync_group),
    Api(15, "describe_groups", 0, 5, admin_groups.describe_groups),
    Api(16, "list_groups", 0, 4, admin_groups.list_groups),
    Api(SASL_HANDSHAKE, "sasl_handshake", 0, 1, sasl.sasl_handshake),
    Api(API_VERSIONS, "api_versions", 0, 3, api_versions.api_versions),
    Api(19, "create_topics", 2, 4, topic_admin.create_topics),
    Api(20, "delete_topics", 1, 3, topic_admin.delete_topics),
    Api(21, "delete_records", 0, 1, topic_admin.delete_records),
    Api(22, "init_producer_id", 0, 5, coordinator_apis.init_producer_id),
    Api(23, "offset_for_leader_epoch", 2, 4, offset_apis.offset_for_leader_epoch),
    Api(24, "add_partitions_to_txn", 0, 3, transaction_apis.add_partitions),
    Api(25, "add_offsets_to_txn", 0, 4, transaction_apis.add_offsets),
    Api(26, "end_txn", 0, 5, transaction_apis.end),
    Api(28, "txn_offset_commit", 0, 5, transaction_apis.commit_offsets),
    Api(32, "describe_configs", 1, 4, config_admin.describe_configs),
    Api(33, "alter_configs", 0, 2, config_admin.alter_configs),
    Api(35, "describe_log_dirs", 1, 1, cluster_admin.describe_log_dirs),
    Api(SASL_AUTHENTICATE, "sasl_authenticate", 0, 1, sasl.sasl_authenticate),
    Api(37, "create_partitions", 0, 1, topic_admin.create_partitions),
    Api(42, "delete_groups", 0, 2, admin_groups.delete_groups),
    Api(43, "elect_leaders", 0, 1, replica_admin.elect_leaders),
    Api(44, "incremental_alter_configs", 0, 1, config_admin.incremental_alter_configs),
    Api(45, "alter_partition_reassignments", 0, 0, replica_admin.alter_partition_reassignments),
    Api(46, "list_partition_reassignments", 0, 0, replica_admin.list_partition_reassignments),
    Api(47, "offset_delete", 0, 0, admin_groups.offset_delete),
    Api(60, "describe_cluster", 0, 1, cluster_admin.describe_cluster),
    Api(61, "describe_producers", 0, 0, admin_transactions.describe_producers),
    Api(65, "describe_transactions", 0, 0, admin_transactions.describe_transactions),
    Api(66, "list_transactions", 0, 1, admin_transactions.list_transactions),
)
