"""Records of `__cluster_metadata`, which the controllers of a KRaft cluster write (KIP-500, KIP-631).

Owns the frame and the table of types with their fields, up to Kafka 4.0, and of 4.4 the types that a new
cluster writes. Must not know files, or what the records mean together.

A value is three unsigned varints (frame version, type, version of the type), then the fields in order, in the
protocol's flexible form (KIP-482): compact strings and arrays, and at the end the tagged fields. The table is
our own, because the classes of the wire protocol do not contain these types. An unknown type or version is
named by its number, and its bytes are not decoded.
"""

import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from attrs import frozen

TOPIC = "__cluster_metadata"
FRAME_VERSION = 1
_VARINT_BYTES_MAX = 5
"""An unsigned varint has 32 bits."""


@frozen
class _Field:
    """name, kind: a type, or [type] for an array. since: the first version of the record with this field.
    tag: -1 if it is not tagged."""

    name: str
    kind: str
    since: int
    tag: int


def _fields(text: str) -> tuple[_Field, ...]:
    """Fields as `name:kind`, with `+2` from version 2 on, and `@3` under tag 3."""
    made = []
    for word in text.split():
        name, _, rest = word.partition(":")
        rest, _, tag = rest.partition("@")
        kind, _, since = rest.partition("+")
        made.append(_Field(name, kind, int(since or 0), int(tag or -1)))
    return tuple(made)


_STRUCTS = {
    "endpoint": _fields("name:string host:string port:uint16 security_protocol:int16"),
    "feature": _fields("name:string min_supported_version:int16 max_supported_version:int16"),
    "entity": _fields("entity_type:string entity_name:string"),
}
_TABLE: dict[int, tuple[str, int, str]] = {
    0: (
        "RegisterBrokerRecord",
        4,
        "broker_id:int32 is_migrating_zk_broker:bool+2 incarnation_id:uuid broker_epoch:int64"
        " end_points:[endpoint]"
        " features:[feature] rack:string fenced:bool in_controlled_shutdown:bool+1 log_dirs:[uuid]+3@0"
        " cordoned_log_dirs:[uuid]+4@1",
    ),
    1: ("UnregisterBrokerRecord", 0, "broker_id:int32 broker_epoch:int64"),
    2: ("TopicRecord", 0, "name:string topic_id:uuid"),
    3: (
        "PartitionRecord",
        2,
        "partition_id:int32 topic_id:uuid replicas:[int32] isr:[int32] removing_replicas:[int32]"
        " adding_replicas:[int32] leader:int32 leader_recovery_state:int8@0 leader_epoch:int32"
        " partition_epoch:int32 directories:[uuid]+1 eligible_leader_replicas:[int32]+2@1"
        " last_known_elr:[int32]+2@2",
    ),
    4: ("ConfigRecord", 0, "resource_type:int8 resource_name:string name:string value:string"),
    5: (
        "PartitionChangeRecord",
        2,
        "partition_id:int32 topic_id:uuid isr:[int32]@0 leader:int32@1 replicas:[int32]@2"
        " removing_replicas:[int32]@3 adding_replicas:[int32]@4 leader_recovery_state:int8@5"
        " directories:[uuid]+1@8 eligible_leader_replicas:[int32]+2@6 last_known_elr:[int32]+2@7",
    ),
    7: ("FenceBrokerRecord", 0, "id:int32 epoch:int64"),
    8: ("UnfenceBrokerRecord", 0, "id:int32 epoch:int64"),
    9: ("RemoveTopicRecord", 0, "topic_id:uuid"),
    10: (
        "DelegationTokenRecord",
        0,
        "owner:string requester:string renewers:[string] issue_timestamp:int64 max_timestamp:int64"
        " expiration_timestamp:int64 token_id:string",
    ),
    11: (
        "UserScramCredentialRecord",
        0,
        "name:string mechanism:int8 salt:bytes stored_key:bytes server_key:bytes iterations:int32",
    ),
    12: ("FeatureLevelRecord", 0, "name:string feature_level:int16"),
    14: ("ClientQuotaRecord", 0, "entity:[entity] key:string value:float64 remove:bool"),
    15: ("ProducerIdsRecord", 0, "broker_id:int32 broker_epoch:int64 next_producer_id:int64"),
    17: (
        "BrokerRegistrationChangeRecord",
        3,
        "broker_id:int32 broker_epoch:int64 fenced:int8@0 in_controlled_shutdown:int8+1@1"
        " log_dirs:[uuid]+2@2 cordoned_log_dirs:[uuid]+3@3",
    ),
    18: (
        "AccessControlEntryRecord",
        0,
        "id:uuid resource_type:int8 resource_name:string pattern_type:int8 principal:string host:string"
        " operation:int8 permission_type:int8",
    ),
    19: ("RemoveAccessControlEntryRecord", 0, "id:uuid"),
    20: ("NoOpRecord", 0, ""),
    21: ("ZkMigrationStateRecord", 0, "zk_migration_state:int8"),
    22: ("RemoveUserScramCredentialRecord", 0, "name:string mechanism:int8"),
    23: ("BeginTransactionRecord", 0, "name:string@0"),
    24: ("EndTransactionRecord", 0, ""),
    25: ("AbortTransactionRecord", 0, "reason:string@0"),
    26: ("RemoveDelegationTokenRecord", 0, "token_id:string"),
    27: (
        "RegisterControllerRecord",
        0,
        "controller_id:int32 incarnation_id:uuid zk_migration_ready:bool end_points:[endpoint]"
        " features:[feature]",
    ),
    28: ("ClearElrRecord", 0, "topic_name:string"),
    29: ("UnregisterControllerRecord", 0, "controller_id:int32"),
}
_FIELDS = {number: _fields(text) for number, (_, _, text) in _TABLE.items()}
_PLAIN = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
}
SECRET = frozenset({"salt", "stored_key", "server_key"})
"""Only the length of these fields is shown."""


@frozen(kw_only=True)
class MetadataRecord:
    """One record."""

    # Of its type, or `type 99`.
    name: str
    version: int
    # By name, in order, without missing tagged ones.
    fields: dict[str, Any]
    # Why they could not be read; empty if they could.
    wrong: str = ""


def decode_metadata(value: bytes | None) -> MetadataRecord | None:
    """The metadata record in a record's value; None if the value has no valid frame."""
    if not value:
        return None
    reader = _Reader(value)
    try:
        frame, number, version = reader.varint(), reader.varint(), reader.varint()
    except ValueError:
        return None
    if frame != FRAME_VERSION:
        return None
    name, newest, _ = _TABLE.get(number, (f"type {number}", -1, ""))
    if version > newest:
        known = "no such type" if newest < 0 else f"versions up to {newest}"
        wrong = f"expected {known} as this table has them, saw version {version} with {reader.left} bytes"
        return MetadataRecord(name=name, version=version, fields={}, wrong=wrong)
    fields: dict[str, Any] = {}
    try:
        reader.struct(_FIELDS[number], version, fields)
        if reader.left:
            raise ValueError(f"the end of the value, saw {reader.left} more bytes")
    except ValueError as error:
        return MetadataRecord(name=name, version=version, fields=fields, wrong=f"expected {error}")
    return MetadataRecord(name=name, version=version, fields=fields)


class _Reader:
    """The bytes of a value, from a position on. Every method raises ValueError ("what was expected, saw
    what") if the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.left:
            raise ValueError(f"{size} bytes at byte {self.at} of the value, saw {self.left}")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        """An unsigned varint."""
        value = 0
        for place in range(_VARINT_BYTES_MAX):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise ValueError(f"an unsigned varint of 32 bits before byte {self.at} of the value, saw more")

    def struct(self, fields: tuple[_Field, ...], version: int, into: dict[str, Any]) -> None:
        """The fields that this version has, then the tagged ones."""
        mine = [field for field in fields if field.since <= version]
        for field in mine:
            if field.tag < 0:
                into[field.name] = self.value(field.kind, version)
        tagged = {field.tag: field for field in mine if field.tag >= 0}
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            inner = _Reader(self.take(size))
            if tag in tagged:
                into[tagged[tag].name] = inner.value(tagged[tag].kind, version)

    def value(self, kind: str, version: int) -> Any:
        """One value of a type."""
        if kind in _PLAIN:
            plain = _PLAIN[kind]
            return plain.unpack(self.take(plain.size))[0]
        if kind == "uuid":
            return urlsafe_b64encode(self.take(16)).decode("ascii").rstrip("=")  # as in Kafka's tools
        if kind in _STRUCTS:
            made: dict[str, Any] = {}
            self.struct(_STRUCTS[kind], version, made)
            return made
        length = self.varint() - 1
        if length < 0:
            return None
        made_by: dict[str, Callable[[], Any]] = {
            "string": lambda: self.take(length).decode("utf-8", "backslashreplace"),
            "bytes": lambda: self.take(length),
        }
        if kind in made_by:
            return made_by[kind]()
        if length > self.left:  # each takes at least one byte
            raise ValueError(f"{length} values at byte {self.at} of the value, saw {self.left} bytes")
        return [self.value(kind[1:-1], version) for _ in range(length)]
