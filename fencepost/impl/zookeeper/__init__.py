"""The interface to ZooKeeper: requests and replies, Kafka's znodes, and requests in groups."""
