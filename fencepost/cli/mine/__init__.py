"""`mine`, and `explain`, which looks closer at one bug of a mining."""
