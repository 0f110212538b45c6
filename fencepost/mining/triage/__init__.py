"""From findings to bugs: what each bad trace did that healthy ones do not, which of them go together, and
what they share."""
