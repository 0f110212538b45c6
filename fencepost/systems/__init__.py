"""What is being broken: one file for each system, all with the interface of system.py. Systems judge
nothing."""
