"""`fencepost log dump` of a partition of __consumer_offsets: commits and generations are told, not bytes."""

from pathlib import Path

from fencepost.impl.coordinator import group_records
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.consumer_protocol import encode_assignment
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.runtime.real_file_system import RealFiles

KEY = TopicPartition("orders", 3)


def test_commits_and_generations_are_decoded(fencepost, tmp_path: Path) -> None:
    """Rule (P4): offsets and groups in Kafka's formats are shown as what they say, in words and in JSON;
    tombstones as removals."""
    member = group_records.MemberValue(
        member_id="c-1", group_instance_id=None, client_id="c", client_host="", rebalance_timeout_ms=1,
        session_timeout_ms=1, subscription=b"", assignment=encode_assignment((KEY,)),
    )  # fmt: skip
    group = group_records.GroupValue(
        protocol_type="consumer", generation=4, protocol="range", leader="c-1", since_ms=0, members=(member,)
    )
    offset = group_records.OffsetKey("billing", KEY)
    pairs = [
        (
            group_records.encode_key(offset),
            group_records.encode_offset(group_records.OffsetValue(offset=17, commit_timestamp_ms=5)),
        ),
        (group_records.encode_key(group_records.GroupKey("billing")), group_records.encode_group(group)),
        (group_records.encode_key(offset), None),
        (b"some other key", b"and its value"),
    ]
    log = SegmentedLog.open(RealFiles(tmp_path), "__consumer_offsets-0", options=LogOptions())
    for key, value in pairs:
        log.append_as_leader(encode_batch([Record(0, 0, key, value)], base_offset=0, leader_epoch=-1), 0)
    log.close()
    told = fencepost("log dump", tmp_path / "__consumer_offsets-0", "--deep")
    assert told.code == 0, told
    assert "group billing offset of orders-3: 17\n" in told.out
    assert "group billing: generation 4 protocol range leader c-1; c-1 has orders-3\n" in told.out
    assert "group billing offset of orders-3: removed\n" in told.out
    files = fencepost("log dump", tmp_path / "__consumer_offsets-0", "--deep", "--json").json["files"]
    contents = [
        record
        for file in files
        if file["kind"] == "segment"
        for batch in file["content"]
        for record in batch["contents"]
    ]
    assert contents[0]["decoded"]["committed"]["offset"] == 17
    assert contents[1]["decoded"]["metadata"]["members"][0]["assignment"] == ["orders-3"]
    assert contents[2]["decoded"]["committed"] is None
    assert "decoded" not in contents[3]


def test_snapshots_of_metadata_are_decoded(fencepost, tmp_path: Path) -> None:
    """Rule: a snapshot of __cluster_metadata holds batches with offsets from 0 on, whatever its name says;
    they are shown as those of its log, damage too, and no segment has to follow it."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    topic = bytes.fromhex("010200076f72646572730000000000004000800000000000009100")
    head = encode_batch([Record(0, 0, b"\0\0\0\3", b"\0\0")], base_offset=0, leader_epoch=2, control=True)
    data = head + encode_batch([Record(1, 0, None, topic)], base_offset=1, leader_epoch=2)
    path = folder / "00000000000000000500-0000000002.checkpoint"
    path.write_bytes(data)
    (folder / "00000000000000000400.log").write_bytes(b"")
    told = fencepost("log dump", folder, "--deep")
    assert told.code == 0, told
    assert f"{path.name}: metadata snapshot, {len(data)} bytes" in told.out
    assert "TopicRecord v0: name orders topic_id AAAAAAAAQACAAAAAAAAAkQ\n" in told.out
    assert "snapshot header" in told.out
    path.write_bytes(data[:-1])
    assert fencepost("log dump", path).code == 1


def test_metadata_records_are_decoded(fencepost, tmp_path: Path) -> None:
    """Rule: records of __cluster_metadata are shown by type and field; a damaged one says where, and
    bytes of something else stay bytes."""
    topic = bytes.fromhex("010200076f72646572730000000000004000800000000000009100")
    log = SegmentedLog.open(RealFiles(tmp_path), "__cluster_metadata-0", options=LogOptions())
    for value in (topic, topic[:9], b"\x09something else"):
        log.append_as_leader(encode_batch([Record(0, 0, None, value)], base_offset=0, leader_epoch=-1), 0)
    log.close()
    told = fencepost("log dump", tmp_path / "__cluster_metadata-0", "--deep")
    assert told.code == 0, told
    assert "TopicRecord v0: name orders topic_id AAAAAAAAQACAAAAAAAAAkQ\n" in told.out
    assert "TopicRecord v0: nothing UNREADABLE: expected 6 bytes at byte 4 of the value, saw 5\n" in told.out
    files = fencepost("log dump", tmp_path / "__cluster_metadata-0", "--deep", "--json").json["files"]
    contents = [
        record
        for file in files
        if file["kind"] == "segment"
        for batch in file["content"]
        for record in batch["contents"]
    ]
    assert contents[0]["decoded"]["fields"]["name"] == "orders" and contents[0]["decoded"]["error"] is None
    assert contents[1]["decoded"]["error"] and not contents[2].get("decoded")
