"""Records of __cluster_metadata. The bytes are those that Kafka 3.9.1's own MetadataRecordSerde wrote of
these values."""

import pytest

from fencepost.impl.log.metadata_records import decode_metadata

TOPIC_ID = "AAAAAAAAQACAAAAAAAAAkQ"
DIRECTORY = "EAAAAAAAQACAAAAAAAAAAQ"
WRITTEN = [
    (
        "010c00116d657461646174612e76657273696f6e001400",
        ("FeatureLevelRecord", 0, {"name": "metadata.version", "feature_level": 20}),
    ),
    (
        "010200076f72646572730000000000004000800000000000009100",
        ("TopicRecord", 0, {"name": "orders", "topic_id": TOPIC_ID}),
    ),
    (
        "0103020000000100000000000040008000000000000091040000000100000002000000030200000001010100000001"
        "000000070000000902100000000000400080000000000000010200010101050200000002",
        (
            "PartitionRecord",
            2,
            {
                "partition_id": 1, "topic_id": TOPIC_ID, "replicas": [1, 2, 3], "isr": [1],
                "removing_replicas": [], "adding_replicas": [], "leader": 1, "leader_epoch": 7,
                "partition_epoch": 9, "directories": [DIRECTORY], "leader_recovery_state": 1,
                "eligible_leader_replicas": [2],
            },
        ),
    ),
    (
        "01050200000001000000000000400080000000000000910300090300000001000000020104ffffffff07050200000003",
        (
            "PartitionChangeRecord",
            2,
            {
                "partition_id": 1, "topic_id": TOPIC_ID, "isr": [1, 2], "leader": -1, "last_known_elr": [3],
            },
        ),
    ),
    (
        "0100030000000400000000000000400080000000000000910000000000000037020a504c41494e544558540268fde8000000"
        "020e6b726166742e76657273696f6e00000001000001000100110210000000000040008000000000000001",
        (
            "RegisterBrokerRecord",
            3,
            {
                "broker_id": 4, "is_migrating_zk_broker": False, "incarnation_id": TOPIC_ID,
                "broker_epoch": 55,
                "end_points": [
                    {"name": "PLAINTEXT", "host": "h", "port": 65000, "security_protocol": 0}
                ],
                "features": [
                    {"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 1}
                ],
                "rack": None, "fenced": True, "in_controlled_shutdown": False, "log_dirs": [DIRECTORY],
            },
        ),
    ),
    (
        "01040002076f72646572730f636c65616e75702e706f6c69637908636f6d7061637400",
        (
            "ConfigRecord",
            0,
            {"resource_type": 2, "resource_name": "orders", "name": "cleanup.policy", "value": "compact"},
        ),
    ),
    ("01140000", ("NoOpRecord", 0, {})),
    (
        "011101000000040000000000000037020001ff010101",
        (
            "BrokerRegistrationChangeRecord",
            1,
            {"broker_id": 4, "broker_epoch": 55, "fenced": -1, "in_controlled_shutdown": 1},
        ),
    ),
    (
        "010e0002057573657200001370726f64756365725f627974655f7261746540900200000000000000",
        (
            "ClientQuotaRecord",
            0,
            {
                "entity": [{"entity_type": "user", "entity_name": None}],
                "key": "producer_byte_rate", "value": 1024.5, "remove": False,
            },
        ),
    ),
    (
        "010b00027501030102020302040000100000",
        (
            "UserScramCredentialRecord",
            0,
            {
                "name": "u", "mechanism": 1, "salt": b"\1\2", "stored_key": b"\3", "server_key": b"\4",
                "iterations": 4096,
            },
        ),
    ),
    ("01170001000707637265617465", ("BeginTransactionRecord", 0, {"name": "create"})),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), WRITTEN, ids=[said[0] for _, said in WRITTEN])
def test_what_kafka_wrote_is_read(data, said):
    """Rule: type, version and every field, tagged ones too, as Kafka's own class had them."""
    found = decode_metadata(bytes.fromhex(data))
    assert (found.name, found.version, found.fields, found.wrong) == (*said, "")


@pytest.mark.parametrize(("data", "said"), WRITTEN, ids=[said[0] for _, said in WRITTEN])
def test_every_cut_is_told(data, said):
    """Rule: a value that ends too early is never read as whole, and never raises; neither does one with
    more behind it."""
    whole = bytes.fromhex(data)
    for size in range(3, len(whole)):
        found = decode_metadata(whole[:size])
        assert found.name == said[0] and found.wrong.startswith("expected "), size
    assert "saw 1 more bytes" in decode_metadata(whole + b"\0").wrong


def test_what_is_not_known_is_named():
    """Rule: another type or a later version keeps its number; another frame is no metadata record."""
    assert decode_metadata(b"\x01\x63\x00\x01").name == "type 99"
    later = decode_metadata(b"\x01\x02\x01\x01")
    assert (later.name, later.version, later.fields) == ("TopicRecord", 1, {}) and "up to 0" in later.wrong
    for value in (None, b"", b"\x02\x02\x00", b"\x01", b"\xff" * 9):
        assert decode_metadata(value) is None


def test_a_length_that_lies_costs_nothing():
    """Rule: an array cannot have more members than there are bytes left."""
    found = decode_metadata(bytes.fromhex("010302" + "00000001" + "00" * 16 + "ffffffff0f"))
    assert "saw 0 bytes" in found.wrong
