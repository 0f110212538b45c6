"""Small faults, one at a time, and who notices: `python -m tools.mutation impl|checkers|model`.

    fault.py, finder.py, effects.py   which faults a source can be given; their names outlive edits elsewhere
    planting.py, workers.py           a fault is put into a forked process, never into the tree
    engine.py                         trial, ledger, counts and report of every subject
    impl/                             faults of the reference implementation, convicted by runs of the swarm
    checkers/                         faults of the judges' rules, noticed by their tests
    model/                            faults of the models' rules, compared with what TLC answered

docs/results/mutants.md and exactness.md have what came out. No part of the package.
"""
