"""The states of a transaction as a table (Kafka's TransactionState): which may follow which. An illegal
transition is our own mistake."""

from enum import StrEnum


class TransactionPhase(StrEnum):
    """Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


_T = TransactionPhase

NUMBERS: dict[TransactionPhase, int] = {phase: number for number, phase in enumerate(TransactionPhase)}
"""As records name them."""
PHASES: dict[int, TransactionPhase] = {number: phase for phase, number in NUMBERS.items()}

PREVIOUS: dict[TransactionPhase, frozenset[TransactionPhase]] = {
    _T.EMPTY: frozenset({_T.EMPTY, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT}),
    _T.ONGOING: frozenset({_T.ONGOING, _T.EMPTY, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT}),
    _T.PREPARE_COMMIT: frozenset({_T.ONGOING}),
    _T.PREPARE_ABORT: frozenset(
        {_T.ONGOING, _T.PREPARE_EPOCH_FENCE, _T.EMPTY, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT}
    ),
    _T.COMPLETE_COMMIT: frozenset({_T.PREPARE_COMMIT}),
    _T.COMPLETE_ABORT: frozenset({_T.PREPARE_ABORT}),
    _T.DEAD: frozenset({_T.EMPTY, _T.COMPLETE_ABORT, _T.COMPLETE_COMMIT}),
    _T.PREPARE_EPOCH_FENCE: frozenset({_T.ONGOING}),
}
"""PrepareEpochFence is never written: it is pending while the abort that follows is prepared. In the second
version a transaction may be aborted that nothing was added to: PrepareAbort follows a state between."""

ENDING = frozenset({_T.PREPARE_COMMIT, _T.PREPARE_ABORT})
"""The end is decided, and not every marker is written."""
BETWEEN = frozenset({_T.EMPTY, _T.COMPLETE_COMMIT, _T.COMPLETE_ABORT})
"""No transaction is open."""
