"""Hunting planted bugs: how many seeds or examples each takes to be found."""
