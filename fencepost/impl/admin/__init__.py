"""Administration of our brokers: topics, configurations, reassignments, elections. The modules here check,
and write through ZooKeeper, as an operator's tools do (docs/spec/cluster.md C13 to C15). requests/ has a
broker's answers to Kafka's admin clients, with the same checks and writes."""
