"""Consumer groups and their committed offsets (docs/spec/cluster.md P3, P4). Every broker has this part; it
is active for the partitions of __consumer_offsets that the broker leads."""
