"""Two topics of two clusters, compared record by record over Kafka's protocol."""
