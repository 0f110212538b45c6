"""What an operator asks of a cluster through ZooKeeper: topics, reassignments, preferred elections (SPEC.md C13 to C15)."""
