"""Judging the files of real brokers: the replicas of the same partitions in several data directories, held
against each other and against themselves.

Only reads. One file per question: what lies in a directory (directories, checkpoints), what a segment's bytes
are (segments), whether one replica's files agree with its batches (replica, epochs, producers, indexes),
whether replicas agree (compare, compaction). partition.py asks them all.
"""
