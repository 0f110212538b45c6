"""Apache Kafka's own shell tools, kcat and Kafka Streams against our brokers, and against Apache Kafka's."""
