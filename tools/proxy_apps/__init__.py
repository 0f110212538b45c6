"""Applications of others through the proxy against Apache Kafka: is everything that the log has in the
trace?"""
