"""What mining writes: rows, checkpoints of a mining under way, summary, page, proofs."""
