"""What Kafka's protocol promises, asked of any broker case by case, and compared with what Apache Kafka
answered."""
