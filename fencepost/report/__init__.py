"""What a person reads: a text timeline of a trace, and a finding explained by the operations that prove
it."""
