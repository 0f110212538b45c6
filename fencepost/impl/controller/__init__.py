"""The controller: one broker that decides who leads what, fenced toward brokers and toward ZooKeeper
(docs/spec/cluster.md, C)."""
