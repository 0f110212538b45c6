"""What a row of the table of anomalies says. Must not know any row."""

from attrs import field, frozen


@frozen(kw_only=True)
class Anomaly:
    """One row of the table."""

    name: str
    # Precedence: the lowest of a trace names it.
    rank: int
    definition: str
    # The invariant that it breaks.
    breaks: str
    # Anomalies of which this one is a consequence.
    implied_by: tuple[str, ...] = field(default=(), converter=tuple)
    # Its name in Jepsen's Kafka workload; None: none.
    jepsen: str | None = None
    # Claims or recorded facts under which it is no finding; "": never allowed. It also says so if the anomaly
    # is only counted, and never a finding.
    allowed: str = ""
