"""Mutants of the reference implementation: small faults are put into impl/, one at a time, and the swarm's
judges must convict.

`python -m tools.mutants` (or `make mutants`); docs/explanation/mutants.md has what came out. A tool of the
repository, not part of the package. It measures the judges, faults and workloads together: no unit test is
asked.

    subjects.py  which sources are mutated, and which faults are left out
    effects.py   two faults more than tools/mutation knows: effects in the other order, the wrong one of two
                 names
    trial.py     what one mutant does: runs of the swarm until something convicts it
    workers.py   a forked process for each mutant; which lines the swarm reaches
    infection.py where a fault in an expression gives another value: only these runs are tried
    patch.py     the faulty code is put into functions that are imported already
    ledger.py    results as they come, resumed; the counts
"""
