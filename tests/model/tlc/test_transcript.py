"""model/tlc/transcript.py: what TLC's messages add up to."""

import pytest

from fencepost.model.tlc import Kind, RunOutcome, RunProgress
from fencepost.model.tlc.tlc_frames import ERROR, STATE, WARNING, TlcMessage
from fencepost.model.tlc.transcript import Transcript, read_counts

SUCCESS = TlcMessage(code=2193, text="Model checking completed. No error has been found.")
DONE = TlcMessage(code=2199, text="7 states generated, 6 distinct states found, 0 states left on queue.")
FINISHED = TlcMessage(code=2186, text="Finished in 3ms")
VIOLATED = TlcMessage(code=2110, kind=ERROR, text="Invariant Small is violated.")


def state(number: int, action: str, text: str) -> TlcMessage:
    return TlcMessage(
        code=2217,
        kind=STATE,
        text=f"{number}: <{action} line 1, col 2 to line 3, col 4 of module M>\n{text}\n",
    )


def result(
    *messages: TlcMessage, exit_code: int | None = 0, stopped: str | None = None, simulation: bool = False
):
    transcript = Transcript()
    for message in messages:
        transcript.add(message)
    return transcript.result(exit_code, stopped, simulation=simulation)


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        (
            "Progress(21) at 2026-01-02 03:04:05: 1,234,567 states generated (25,415 s/min), "
            "98,765 distinct states found (1,356 ds/min), 4,321 states left on queue.",
            RunProgress(diameter=21, generated=1_234_567, distinct=98_765, queue=4_321),
        ),
        (
            "Progress(6) at 2026-01-02 03:04:05: 7 states generated, 6 distinct states found, 0 states left "
            "on queue.",
            RunProgress(diameter=6, generated=7, distinct=6, queue=0),
        ),
        (
            "Progress(-1) at 2026-01-02 03:04:05: 16 states generated, -1 distinct states found, -1 states "
            "left on queue.",
            RunProgress(diameter=-1, generated=16, distinct=-1, queue=-1),
        ),
        (
            "1 states generated, 1 distinct states found, 0 states left on queue.",
            RunProgress(generated=1, distinct=1, queue=0),
        ),
        ("Progress(now) at noon", None),
    ],
)
def test_counts_are_read_from_progress_and_statistics(text, progress):
    """Rule: thousands separators, rates and missing fields are understood; what is not understood is no
    count."""
    assert read_counts(text) == progress


def test_a_run_holds_only_if_tlc_says_so_and_the_queue_is_empty():
    """Rule: exhaustive means 2193, an empty queue, an end, and exit code 0: each of them is necessary."""
    assert result(SUCCESS, DONE, FINISHED).outcome is RunOutcome.HOLDS
    left = TlcMessage(code=2199, text="7 states generated, 6 distinct states found, 2 states left on queue.")
    assert result(SUCCESS, left, FINISHED).outcome is RunOutcome.UNDECIDED
    assert result(DONE, FINISHED).outcome is RunOutcome.UNDECIDED
    assert result(SUCCESS, DONE).outcome is RunOutcome.FAILED
    assert result(SUCCESS, DONE, FINISHED, exit_code=255).outcome is RunOutcome.FAILED
    assert result(SUCCESS, DONE, exit_code=None, stopped="at the limit").outcome is RunOutcome.UNDECIDED


def test_the_exit_code_alone_decides_nothing():
    """Rule: a violation that is told counts even with exit code 0 (TLC 2.15's simulation), one that is not
    told does not count even with 12."""
    assert result(VIOLATED, FINISHED, exit_code=0, simulation=True).outcome is RunOutcome.VIOLATED
    assert result(DONE, FINISHED, exit_code=12).outcome is RunOutcome.FAILED
    assert result(VIOLATED, exit_code=None, stopped="at the limit").outcome is RunOutcome.VIOLATED


def test_a_counterexample_with_a_loop():
    """Rule: states, actions, places and the way back are kept."""
    found = result(
        TlcMessage(code=2116, kind=ERROR, text="Temporal properties were violated.\n"),
        TlcMessage(code=2264, kind=ERROR, text="The following behavior constitutes a counter-example:"),
        TlcMessage(
            code=2217, kind=STATE, text="1: <Initial predicate>\n/\\ x = 0\n/\\ f = (0 :> 1 @@\n  1 :> 2)\n"
        ),
        TlcMessage(code=None, text="the specification prints"),
        state(2, "Inc", "/\\ x = 1\n/\\ f = SUBSET {1}"),
        TlcMessage(
            code=2122, kind=STATE, text="1: Back to state: <Inc line 1, col 2 to line 3, col 4 of module M>"
        ),
        FINISHED,
        exit_code=13,
    )
    assert (found.violation.kind, found.violation.name) == (Kind.TEMPORAL, "")
    one, two = found.counterexample.states
    assert (one.action, dict(one.variables)) == ("", {"x": 0, "f": {0: 1, 1: 2}})
    assert (two.action, two.location) == ("Inc", "line 1, col 2 to line 3, col 4 of module M")
    assert two.variables["f"].text == "SUBSET {1}"
    assert (found.counterexample.back_to, found.counterexample.stuttering) == (1, False)
    assert found.errors == ()
    assert found.output == ("the specification prints",)


def test_a_counterexample_that_stutters():
    """Rule: nothing happens any more is told as such."""
    found = result(
        TlcMessage(code=2116, kind=ERROR, text="Temporal properties were violated."),
        TlcMessage(code=2217, kind=STATE, text="1: <Initial predicate>\nx = 0\n"),
        TlcMessage(code=2218, kind=STATE, text="2: Stuttering"),
        exit_code=13,
    )
    assert found.counterexample.stuttering
    assert found.steps == 0
    assert dict(found.counterexample.states[0].variables) == {"x": 0}


def test_an_initial_state_that_violates():
    """Rule: the only state stands in the message itself."""
    found = result(
        TlcMessage(
            code=2107,
            kind=ERROR,
            text='Invariant Small is violated by the initial state:\n/\\ x = 9\n/\\ y = "a"\n',
        ),
        FINISHED,
        exit_code=12,
    )
    assert (found.violation.name, found.steps) == ("Small", 0)
    assert dict(found.counterexample.states[0].variables) == {"x": 9, "y": "a"}


def test_only_the_first_violation_counts():
    """Rule: with -continue the states of a later violation are not mixed into the first's."""
    found = result(
        VIOLATED,
        state(1, "A", "x = 1"),
        state(2, "A", "x = 2"),
        TlcMessage(code=2110, kind=ERROR, text="Invariant Other is violated."),
        state(1, "B", "x = 7"),
        exit_code=12,
    )
    assert found.violation.name == "Small"
    assert [one.variables["x"] for one in found.counterexample.states] == [1, 2]


def test_errors_warnings_and_memory():
    """Rule: what breaks a run is told in TLC's words; out of memory is undecided, not broken."""
    broken = result(TlcMessage(code=2171, kind=ERROR, text="Parsing failed.\nat line 3"), exit_code=150)
    assert (broken.outcome, broken.reason) == (RunOutcome.FAILED, "Parsing failed. at line 3")
    assert (
        result(TlcMessage(code=1001, kind=ERROR, text="Java ran out of memory"), exit_code=1).outcome
        is RunOutcome.UNDECIDED
    )
    assert result(
        TlcMessage(code=2401, kind=WARNING, text="collector"), SUCCESS, DONE, FINISHED
    ).warnings == ("collector",)
    silent = result(TlcMessage(code=None, text="Killed"), exit_code=-9)
    assert (silent.outcome, silent.reason) == (
        RunOutcome.FAILED,
        "TLC ended with exit code -9 before it was done: Killed",
    )


def test_output_is_bounded():
    """Rule: a specification that prints for ever does not fill the memory."""
    transcript = Transcript()
    for number in range(1_500):
        transcript.add(TlcMessage(code=None, text=str(number)))
    found = transcript.result(0, None, simulation=False)
    assert (len(found.output), found.output_left_out) == (1_000, 500)
