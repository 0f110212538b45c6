"""Replication of partitions: leader and follower, ISR, high watermark, fetcher, purgatory (SPEC.md section R)."""
