"""Judging the files of real brokers: compares the replicas of the same partitions in several data
directories, and each replica with its own files.

Only reads. One file per question: what a directory contains (directories, checkpoints), whether one replica's
files agree with its batches (replica, epochs, producers, indexes), whether replicas agree (compare,
compaction). partition.py asks all of them. What the bytes of a segment are is in impl/log/dump.
"""
