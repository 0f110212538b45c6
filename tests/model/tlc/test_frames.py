"""model/tlc/tlc_frames.py: which text belongs to which message."""

from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.tlc.tlc_frames import ERROR, STATE, Frames, TlcMessage


def read(text: str) -> list[TlcMessage]:
    frames = Frames()
    found = [message for line in text.split("\n") for message in frames.feed(line)]
    return found + list(frames.end())


def start(code: int, kind: int = 0) -> str:
    return f"@!@!@STARTMSG {code}:{kind} @!@!@"


def end(code: int) -> str:
    return f"@!@!@ENDMSG {code} @!@!@"


def test_frames_and_the_text_between():
    """Rule: a frame is a message with its class, a line outside any frame is a message without a code."""
    assert read(
        f"{start(2217, 4)}\n1: <Init>\n/\\ x = "
        f"1\n\n{end(2217)}\n<<1>>\n\n{start(2186)}\nFinished\n{end(2186)}"
    ) == [
        TlcMessage(code=2217, kind=STATE, text="1: <Init>\n/\\ x = 1"),
        TlcMessage(code=None, text="<<1>>"),
        TlcMessage(code=2186, text="Finished"),
    ]


def test_a_frame_in_a_frame_in_the_middle_of_a_line():
    """Rule: an error that quotes another is told with it, and the other as well."""
    text = f"{start(1000, 1)}\nThe exception was\n: {start(2266)}\nnot an integer\n{end(2266)}\n{end(1000)}"
    inner, outer = read(text)
    assert inner == TlcMessage(code=2266, text="not an integer", inside=(1000,))
    assert (outer.code, outer.kind, outer.text) == (1000, ERROR, "The exception was\n: not an integer")


def test_a_frame_that_never_ends():
    """Rule: what TLC was saying when it was stopped is told, and marked."""
    inner, outer = read(f"{start(1000, 1)}\na\n{start(2)}\nb")
    assert (inner.text, inner.complete, inner.inside) == ("b", False, (1000,))
    assert (outer.text, outer.complete) == ("a\nb", False)


def test_an_end_closes_what_was_left_open_inside():
    """Rule: one lost end does not swallow the rest."""
    messages = read(f"{start(1)}\n{start(2)}\nx\n{end(1)}\n{start(3)}\n{end(3)}")
    assert [(message.code, message.complete) for message in messages] == [(2, False), (1, True), (3, True)]


def test_an_end_without_a_beginning_is_text():
    """Rule: nothing is lost, nothing fails."""
    assert [message.code for message in read(f"{end(7)}\n{start(1)}\n{end(7)}\n{end(1)}")] == [None, 1]


def test_text_before_a_frame_on_its_line():
    """Rule: a Java exception may carry a frame."""
    first, second = read(f'Exception in thread "main" {start(2162)}\nbusy\n{end(2162)}')
    assert (first.code, second.code, second.text) == (None, 2162, "busy")


LINES = st.lists(
    st.one_of(
        st.sampled_from([start(1), start(2, 1), end(1), end(2), f"a{start(1)}b{end(1)}c", "", "  "]),
        st.text(alphabet="ab@! \t", max_size=6),
    ),
    max_size=30,
)


@given(LINES)
def test_any_sequence_of_marks_is_read(lines):
    """Rule: every beginning becomes exactly one message, whatever stands around it."""
    messages = read("\n".join(lines))
    assert sum(message.code is not None for message in messages) == sum(
        line.count("STARTMSG") for line in lines
    )
