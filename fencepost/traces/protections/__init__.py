"""The registry of protection names: one name for the same guard in impl, model, TLA+ and the zoo of bugs.

Each protocol protection of the implementation is a named method of a part; the key is the id of the bug that
its absence brings back (KIP-279 means KIP-279's protection). Rows are data, a line each, in
protections.jsonl. Some are names of the model only, since no one method of the implementation holds them:
undefined_has_no_end, what transactions of the first version assume, and what Kafka has had since 4.2.
"""

from pathlib import Path

from attrs import frozen

from fencepost.traces.decoding import rows_of


@frozen(kw_only=True)
class Protection:
    """A guard of the protocol."""

    # Kafka-style words, used as the model's parameter.
    name: str
    # The zoo's id (a KIP or KAFKA number), or the rule of docs/spec/cluster.md (P3) if no release is known
    # without it.
    bug: str
    # The invariant that breaks without it.
    breaks: str
    says: str


PROTECTIONS: tuple[Protection, ...] = rows_of(Path(__file__).parent / "protections.jsonl", Protection)

BY_BUG: dict[str, Protection] = {protection.bug: protection for protection in PROTECTIONS}
BY_NAME: dict[str, Protection] = {protection.name: protection for protection in PROTECTIONS}
