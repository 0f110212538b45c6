"""Faults of the Python models, each compared with what TLC answered for the TLA+ twin.

TLC's answers are those in the tables of answers/: they do not depend on the Python side,
so that a fault needs no JVM. It is told apart by the first row on which the explorer's answer is another one:
the result, the length of a shortest counterexample, the number of states, or the largest depth.
"""
