"""The transaction coordinator (KIP-98, KIP-360, KIP-447, KIP-890): who may write, what belongs together, and
how a transaction ends in every partition."""
