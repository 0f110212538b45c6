"""Checks any broker, case by case, against what Kafka's protocol promises and what Apache Kafka
answered."""
