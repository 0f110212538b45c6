"""Other people's brokers for tests, as systems under test: franz-go's kfake and librdkafka's mock cluster."""
