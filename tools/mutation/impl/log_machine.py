"""The log machine as a second court, for mutants of impl/log that no run of the swarm convicts; with it the
comparison of the batch format with its documentation.

Owns the number of examples of a round, and what a complaint makes of a mutant. Must not know how a mutant is
put into the process.
"""

import signal
from pathlib import Path

from tools.mutation.impl.trial import EndlessRunError, Outcome, on_alarm

ROUND = 50
"""Examples of one round, as in a hunt: Hypothesis begins each with small ones."""
BATCHES = 2_000
"""Random batches that are compared before the first example: they take a second."""
ROUND_CPU_S = 60.0
"""Processor time of one round: a healthy one takes a second."""
MACHINES = "fencepost/machines"
"""A complaint that is raised here is a judge's."""


def by_log_machine(examples: int) -> tuple[Outcome, str] | None:
    """Let the machine run over the log as it is in this process.

    Args:
        examples: to try at most.

    Returns:
        the outcome with the complaint; None if there is none. An error that the log itself raises is no
        judge's merit.
    """
    from fencepost.machines.log.disk_rot import DiskMachine
    from fencepost.machines.log.hunt import run_round
    from tests.selfcheck.log.batch_comparison import complaints

    signal.signal(signal.SIGPROF, on_alarm)
    done = number = 0
    try:
        signal.setitimer(signal.ITIMER_PROF, ROUND_CPU_S)
        for complaint in complaints(0, BATCHES):
            return Outcome.LOG_MACHINE, complaint[:200]
        while done < examples:
            signal.setitimer(signal.ITIMER_PROF, ROUND_CPU_S)
            found = run_round(DiskMachine, number, examples=min(ROUND, examples - done), shrink=False)
            if found.complaint:
                judged = MACHINES in Path(found.raised_in).as_posix()
                return (Outcome.LOG_MACHINE if judged else Outcome.RAISED), found.complaint[:200]
            done, number = done + found.examples, number + 1
    except EndlessRunError:
        return Outcome.LOG_MACHINE, "the example never ends"
    except Exception as error:
        return Outcome.RAISED, repr(error)[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None
