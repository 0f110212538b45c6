"""Apache Kafka itself as a system: real brokers of any version, as processes of this machine."""
