"""franz-go's kfake as a system: a fake Kafka in one Go process."""
