"""Frames: cut anywhere, bounded by what has arrived."""

import pytest

from fencepost.wire.frames import FrameBuffer, ProtocolError, framed


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_frames_come_out_whole_however_they_were_cut(size):
    """TCP has no borders: three frames, one of them empty, come out as they were sent."""
    stream = framed(b"first") + framed(b"") + framed(b"third")
    buffer, taken = FrameBuffer(100), []
    for start in range(0, len(stream), size):
        buffer.feed(stream[start : start + size])
        while (frame := buffer.take()) is not None:
            taken.append(frame)
    assert taken == [b"first", b"", b"third"]
    assert len(buffer) == 0 and not buffer.complete


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_a_length_that_no_frame_has_is_refused(length):
    """Nothing is kept or waited for: the length alone is the mistake."""
    buffer = FrameBuffer(100)
    buffer.feed(length.to_bytes(4, "big", signed=True))
    assert buffer.complete
    with pytest.raises(ProtocolError, match=f"expected a length from 0 to 100, saw {length}"):
        buffer.take()


def test_a_length_is_believed_only_as_far_as_bytes_have_come():
    """An announced 100 MiB holds the 10 bytes that came."""
    buffer = FrameBuffer(100 * 1024 * 1024)
    buffer.feed((100 * 1024 * 1024).to_bytes(4, "big") + b"0123456789")
    assert buffer.take() is None and not buffer.complete
    assert len(buffer) == 14
    assert buffer._data.__sizeof__() < 1_000
