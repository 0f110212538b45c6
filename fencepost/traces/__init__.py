"""The vocabulary: operations, protocol events, faults, plans, protections, anomalies and their codecs.

Owns the words that every other folder shares. Holds no behaviour of the system under test: `impl`,
`model` and `checkers` all import from here and never learn of each other through it.
"""
