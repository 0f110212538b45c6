"""What clients of an embedded cluster did, as its record has it."""
