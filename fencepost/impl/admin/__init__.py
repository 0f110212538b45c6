"""An operator's requests to a cluster through ZooKeeper: topics, reassignments, preferred elections
(docs/spec/cluster.md C13 to C15)."""
