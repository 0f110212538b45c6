"""Records and batches for Hypothesis, and one way to say what a batch holds whoever read it."""

from typing import Any

from hypothesis import strategies as st

from fencepost.impl.log.batch.record_batch import CODECS, Header, Record

NULLABLE = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.builds(Header, st.text(max_size=8), NULLABLE), max_size=3).map(tuple)
TIMES = st.integers(0, 1 << 45)
CODEC_NAMES = st.sampled_from(CODECS)


@st.composite
def records(draw: Any, *, base_offset: int = 0, gaps: bool = True, least: int = 1) -> tuple[Record, ...]:
    """Records with ascending offsets from base_offset; values long enough now and then for a codec to have
    work."""
    offset, made = base_offset, []
    for _ in range(draw(st.integers(least, 6))):
        value = draw(NULLABLE | st.integers(0, 2_000).map(lambda size: b"abcdefgh" * size))
        made.append(Record(offset, draw(TIMES), draw(NULLABLE), value, draw(HEADERS)))
        offset += draw(st.integers(1, 300)) if gaps else 1
    return tuple(made)


PRODUCERS = st.just({}) | st.fixed_dictionaries(
    {
        "producer_id": st.integers(0, (1 << 63) - 1),
        "producer_epoch": st.integers(0, (1 << 15) - 1),
        "base_sequence": st.integers(0, (1 << 31) - 1),
        "transactional": st.booleans(),
    }
)
