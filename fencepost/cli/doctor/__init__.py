"""`fencepost doctor`: a live cluster, asked and judged."""
