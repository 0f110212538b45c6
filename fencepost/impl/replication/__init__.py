"""Replication of partitions: leader and follower, ISR, high watermark, fetcher, purgatory
(docs/spec/cluster.md, R)."""
