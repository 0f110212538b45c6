"""The swarm: a seed becomes a plan, within the bounds of a profile."""
