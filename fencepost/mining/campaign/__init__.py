"""Campaigns on Spark: seeds over executors."""
