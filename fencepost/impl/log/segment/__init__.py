"""Segments: one, a readable one, and a log's list of them."""
