"""Clients of the cluster: producer, consumer and admin requests, sans-IO like the brokers."""
