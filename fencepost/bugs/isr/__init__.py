"""Planted bugs of the in-sync replicas: who is in the ISR, and who hears of it."""
