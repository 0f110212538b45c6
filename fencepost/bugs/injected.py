"""Bugs that are injected: nothing is taken away, the planted part adds what Kafka once did in addition.

Owns which bugs, and why. For every other planted bug the implementation has a guard, a method with a body of
its own, and the bug overrides it or what calls it (tests/bugs/test_guards.py proves both halves).
A bug of this table is as good a test of the judges as any other. It says nothing of a guard that could be
lost, since the implementation has only a place where nothing happens.
"""

INJECTED: dict[str, str] = {
    "KAFKA-1096": "the controller has no code that reads /controller_epoch again; the bug adds the read",
    "KAFKA-6003": "a follower has no check of sequence numbers; the bug adds it",
    "KAFKA-6650": "a deletion asks for no partition state; the bug adds the condition",
    "KAFKA-7298": "the deletion of records touches no producer; the bug adds the removal",
    "R1-COPIES": "a follower looks at no size; the bug adds the check",
    "KAFKA-8484": "batches wait in the order of their numbers and are taken so; the bug adds another order",
}
"""By bug: what the implementation does not do, and the bug does."""
