"""A broker's responses to Kafka's admin clients (impl/messages/admin_api.py). The checks and writes are those
of impl/admin."""
