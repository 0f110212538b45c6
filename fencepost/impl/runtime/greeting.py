"""Authentication of brokers: the credentials in the cluster's folder, the greeting with them, and the
messages that each side may send.

Owns the file, the comparison and the table of messages. Must not know sockets. Every broker process reads the
same file. Every process that can read it is trusted as a broker, so only its owner may read it. The secret is
sent in plain text: the inter-broker listeners are for the loopback interface.
"""

import base64
import hmac
import os
import secrets
from pathlib import Path

import msgspec
from attrs import field, frozen

from fencepost.impl.core.broker_context import FIRST_CLIENT
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages import transaction_api
from fencepost.impl.messages.group_api import GroupRequest
from fencepost.impl.runtime.codec import INT64, MalformedError
from fencepost.impl.runtime.tcp_frames import PROTOCOL, framed
from fencepost.traces.errors import EnvironmentError_

CREDENTIALS = "credentials.json"
"""The file in the cluster's folder; only its owner may read it."""
_OWNER_ONLY = 0o600
_OTHERS = 0o077
_ID_BYTES, _SECRET_BYTES = 16, 32

CLIENT_REQUESTS = (
    kafka.ProduceRequest,
    kafka.FetchRequest,
    kafka.ListOffsetsRequest,
    kafka.DeleteRecordsRequest,
    kafka.OffsetsForLeaderEpochRequest,
    kafka.MetadataRequest,
    transaction_api.InitProducerIdRequest,
    transaction_api.AddPartitionsToTxnRequest,
    transaction_api.AddOffsetsToTxnRequest,
    transaction_api.TxnOffsetCommitRequest,
    transaction_api.EndTxnRequest,
    transaction_api.DescribeTransactionRequest,
    transaction_api.ListTransactionsRequest,
    transaction_api.DescribeProducersRequest,
    *GroupRequest.__args__,
)
"""Messages that a client may send. Control requests, requests of replicas and responses come from brokers
only."""
BROKER_MESSAGES = (
    kafka.FetchRequest,
    kafka.FetchResponse,
    kafka.ListOffsetsRequest,
    kafka.ListOffsetsResponse,
    kafka.OffsetsForLeaderEpochRequest,
    kafka.OffsetsForLeaderEpochResponse,
    kafka.LeaderAndIsrRequest,
    kafka.UpdateMetadataRequest,
    kafka.StopReplicaRequest,
    kafka.ControlResponse,
    kafka.ControlledShutdownRequest,
    kafka.ControlledShutdownResponse,
    transaction_api.AddPartitionsToTxnRequest,
    transaction_api.AddPartitionsToTxnResponse,
    transaction_api.WriteTxnMarkersRequest,
    transaction_api.WriteTxnMarkersResponse,
)
"""Messages between brokers."""
NO_REPLICA = -1
"""The replica id of a client."""


@frozen(kw_only=True)
class Credentials:
    """The credentials that make a process a broker of this cluster."""

    # 22 characters, drawn when the cluster is created. A broker of another cluster is recognised by it.
    cluster_id: str
    # 64 hexadecimal digits; never logged.
    secret: str = field(repr=False)


def make_credentials(folder: Path) -> Credentials:
    """Draw credentials and write them into a new file that only its owner can read. An old file is replaced,
    so old processes are rejected."""
    drawn = Credentials(
        cluster_id=base64.urlsafe_b64encode(secrets.token_bytes(_ID_BYTES)).decode().rstrip("="),
        secret=secrets.token_hex(_SECRET_BYTES),
    )
    path = folder / CREDENTIALS
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as file:
        file.write(msgspec.json.encode(drawn))
    return drawn


def read_credentials(path: Path) -> Credentials:
    """Read the file. Raises EnvironmentError_ if it is missing, unreadable, or readable by others."""
    try:
        if path.stat().st_mode & _OTHERS:
            raise EnvironmentError_(
                expected="credentials that only their owner can read",
                seen=f"mode {path.stat().st_mode & 0o777:o}",
                where=str(path),
                hint=f"chmod 600 {path}",
            )
        read = msgspec.json.decode(path.read_bytes(), type=Credentials)
    except (OSError, msgspec.MsgspecError) as error:
        raise EnvironmentError_(
            expected="the credentials of a cluster", seen=str(error), where=str(path)
        ) from None
    if len(read.secret) != 2 * _SECRET_BYTES or not read.cluster_id:
        raise EnvironmentError_(
            expected=f"the credentials of a cluster with a secret of {2 * _SECRET_BYTES} characters",
            seen=f"one of {len(read.secret)}, and a cluster id of {len(read.cluster_id)} characters",
            where=str(path),
        )
    return read


def broker_greeting(node: int, credentials: Credentials) -> bytes:
    """The first frame of a connection from this broker to another one.

    Args:
        node: this broker.
        credentials: those of the cluster.

    Returns:
        the content of the frame.
    """
    return framed(msgspec.msgpack.encode([PROTOCOL, node, credentials.cluster_id, credentials.secret]))


def broker_of_greeting(data: bytes, credentials: Credentials | None) -> int:
    """The broker in a greeting.

    Args:
        data: the content of the first frame.
        credentials: those of the cluster; None: no broker is accepted.

    Returns:
        the broker id.

    Raises:
        MalformedError: if it is not valid. The text does not repeat the data, which may be close to the
            secret.
    """
    expected = "the greeting of a broker of this cluster"
    try:
        protocol, node, cluster_id, secret = msgspec.msgpack.decode(data, type=tuple[str, int, str, str])
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        raise MalformedError(f"expected {expected}, saw none") from None
    if protocol != PROTOCOL or not 1 <= node < FIRST_CLIENT or node not in INT64:
        raise MalformedError(f"expected {expected}, saw one of node {node}")
    if credentials is None or cluster_id != credentials.cluster_id:
        raise MalformedError(f"expected {expected}, saw one of another cluster")
    if not hmac.compare_digest(secret.encode(), credentials.secret.encode()):
        raise MalformedError(f"expected {expected}, saw node {node} with a wrong secret")
    return node


def check_client(message: object) -> None:
    """Check a message on the client listener. Raises MalformedError for messages that only brokers send."""
    if not isinstance(message, CLIENT_REQUESTS):
        raise MalformedError(f"expected a client's request, saw {type(message).__name__}")
    debugs = isinstance(message, kafka.ListOffsetsRequest) and message.replica_id == kafka.DEBUGGER
    if getattr(message, "replica_id", NO_REPLICA) != NO_REPLICA and not debugs:
        raise MalformedError(f"expected a client's request, saw {type(message).__name__} of a replica")


def check_broker(source: int, message: object) -> None:
    """Check a message on the inter-broker listener.

    Raises MalformedError for messages that brokers do not send to each other, for one that names another
    sender than its connection's, and for one that lists a client's number as a live broker (a follower would
    fetch from it).
    """
    if not isinstance(message, BROKER_MESSAGES):
        raise MalformedError(f"expected a message for a broker, saw {type(message).__name__}")
    for name in ("replica_id", "controller_id", "broker_id"):
        said = getattr(message, name, source)
        if said != source:
            raise MalformedError(
                f"expected a message of broker {source}, saw {type(message).__name__} with {name} {said}"
            )
    for name in ("live_brokers", "shutting_down"):
        for broker in getattr(message, name, ()):
            if not 1 <= broker < FIRST_CLIENT:
                raise MalformedError(
                    f"expected brokers from 1 to {FIRST_CLIENT - 1} in {name}, saw {broker} in "
                    f"{type(message).__name__}"
                )
