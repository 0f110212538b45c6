"""`fencepost proxy`: between an unmodified application and any Kafka."""
