"""Translations of what admin clients ask for: one module for each kind of thing that is administered."""
