"""What `produce`, `consume` and `groups` share: clients of a running cluster, and the histories they
record."""
