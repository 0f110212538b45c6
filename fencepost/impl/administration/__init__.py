"""A broker's answers to administration: what Kafka's admin clients ask for (impl/messages/admin_api.py). The
checks and writes are those of impl/admin."""
