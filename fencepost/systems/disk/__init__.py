"""A disk for real processes that can lose power, lie, fail and fill up: a file system in memory, mounted by
FUSE."""
