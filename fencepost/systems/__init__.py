"""What is being broken: one file for each system. A system starts, stops and breaks brokers; it judges nothing."""
