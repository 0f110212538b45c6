"""The consumer: fetching, membership in a group, committed offsets, and its administration."""
