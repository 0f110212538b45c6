"""The real world behind the seams: what sim/ is to a simulated run, this is to a process on a machine."""
