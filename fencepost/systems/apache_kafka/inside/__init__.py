"""What happened inside real brokers, as events for the judges: from the controllers' log, from ZooKeeper's
transaction log, and from what brokers wrote about themselves."""
