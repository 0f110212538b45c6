"""What a row of the table of anomalies says. Must not know any row."""

from attrs import frozen


@frozen(kw_only=True)
class Anomaly:
    """rank: precedence, lower wins. implied_by: anomalies of which this one is a consequence. jepsen: its
    name in Jepsen's Kafka workload. allowed: under which claims or recorded facts it is no finding ("":
    never); where it is only counted, and never a finding, says so."""

    name: str
    rank: int
    definition: str
    breaks: str
    implied_by: tuple[str, ...] = ()
    jepsen: str | None = None
    allowed: str = ""
