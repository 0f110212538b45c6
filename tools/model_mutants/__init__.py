"""Small faults in the Python models, each compared with what TLC answered for the TLA+ twin.

`python -m tools.model_mutants group --sample 100 --seed 7`. TLC's answers are those in the tables of
docs/explanation/model-*.md: they do not depend on the Python side, so a mutant needs no JVM. A mutant is told
apart by the first row on which the explorer's answer is another one: the result, the length of a shortest
counterexample, the number of states, or the largest depth.
"""
