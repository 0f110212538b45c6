"""The real implementation of the interfaces: what sim/ is for a simulated run, this is for a process on a
machine."""
