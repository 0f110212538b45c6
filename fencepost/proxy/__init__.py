"""Between clients and brokers of Kafka's protocol: passes, records, breaks."""
