"""Translations between Kafka's requests and the core's messages, one file for each family of requests."""
