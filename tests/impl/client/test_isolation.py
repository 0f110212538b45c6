"""What a reader of committed records is shown, against the rule word for word."""

from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.impl.client.isolation import committed_batches
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.batch.record_batch import Record, encode_batch

STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "commit", "abort", "plain"]), st.integers(1, 3)), max_size=14
)


@given(STEPS, st.integers(0, 13))
@example([("write", 1), ("write", 2), ("abort", 2), ("abort", 1)], 0)
def test_only_committed_records_are_shown(steps, start):
    """Rule (KIP-98): from any offset on, whatever is open at the end is left out by the leader (the last
    stable offset), and of the rest exactly the records of committed transactions and of none are shown. The
    aborted ones are named in the order of their markers, as Kafka's brokers do."""
    batches, open_since, fate, aborted = [], {}, {}, []
    for offset, (what, producer) in enumerate(steps):
        common = {"base_offset": offset, "leader_epoch": 0, "producer_id": producer, "producer_epoch": 0}
        if what in ("write", "plain"):
            mine = common if what == "write" else {**common, "producer_id": -1, "producer_epoch": -1}
            transactional = what == "write"
            batches.append(encode_batch([Record(offset, 1, None, b"1")], transactional=transactional, **mine))
            if transactional:
                open_since.setdefault(producer, []).append(offset)
            else:
                fate[offset] = True
            continue
        marker = EndTransaction(commit=what == "commit", coordinator_epoch=0)
        batches.append(end_transaction_batch(marker, timestamp_ms=1, **common))
        mine = open_since.pop(producer, [])
        fate.update(dict.fromkeys(mine, what == "commit"))
        if mine and what == "abort":
            aborted.append((producer, mine[0], offset))
    stable = min((offsets[0] for offsets in open_since.values()), default=len(steps))
    told = [(producer, first) for producer, first, last in aborted if last >= start and first < stable]
    data = b"".join(batches[start:stable])
    shown = [header.base_offset for header, is_shown in committed_batches(data, tuple(told)) if is_shown]
    assert shown == [offset for offset in range(start, stable) if fate.get(offset)]
