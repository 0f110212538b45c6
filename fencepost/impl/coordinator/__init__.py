"""Consumer groups and their committed offsets (docs/spec/cluster.md P3, P4): a part of every broker, at work
where it leads a partition of __consumer_offsets."""
