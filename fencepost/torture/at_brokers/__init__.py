"""What brokers hear from clients, and in what order they answer."""
