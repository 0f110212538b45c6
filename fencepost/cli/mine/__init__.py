"""`mine`, and `explain`, which explains one bug of a mining."""
