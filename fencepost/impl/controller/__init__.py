"""The controller: the broker that decides about leaders and replicas, fenced at brokers and at ZooKeeper
(docs/spec/cluster.md, C)."""
