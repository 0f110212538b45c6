"""The settling table: how long each reaction may take that somebody is owed, as a sum of named settings.

Owns every bound; a rule names one, and has no number of its own. Who has not reacted when it is over is a
finding, not still disturbed. All results are nanoseconds. Where a real machine is asked, each step has the
slack that its scheduling needs, unless somebody was starved, which is recorded (timeline.py).
"""

from fencepost.record.settings import MILLISECOND, Settings
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC

SLACK_MS = 200
"""Steps that wait for others at their host in each reaction; a host without a free moment for half as long is
recorded, and disturbs."""


def _slack(of: Settings) -> int:
    return (SLACK_MS if of.real is None else of.real.slack_ms) * MILLISECOND


def session(of: Settings) -> int:
    """Until the others know that a broker is gone: ZooKeeper's session, or that of KRaft, which a controller
    checks eight times in its length, one broker a time."""
    length = of.cluster.zookeeper_session_timeout_ms * MILLISECOND
    eighth = length // 8 * of.cluster.brokers if of.has_quorum else 0
    return length + eighth + of.trips(4)


def quorum(of: Settings) -> int:
    """Until there is a controller after one has gone: its session, or four rounds of the quorum's election
    and the sessions that the new one counts anew."""
    if of.real is not None and of.has_quorum:
        return 8 * of.real.quorum_ms * MILLISECOND
    return session(of)


def registered(of: Settings) -> int:
    """From a process that runs again to its registration. The session of its former incarnation may have to
    end first, and a broker that notices late that its session is gone does so a session later."""
    start = 0 if of.real is None else of.real.start_ms * MILLISECOND
    return 2 * session(of) + start + of.trips(20) + of.syncs(20) + _slack(of)


def decided(of: Settings) -> int:
    """From a fact that the controller hears of to what it writes: it may be in the middle of something, and
    an answer that it waits for may have to be asked for twice."""
    return 2 * of.cluster.controller_request_timeout_ms * MILLISECOND + of.trips(30) + _slack(of)


def failed_over(of: Settings) -> int:
    """From the election of a controller to the end of its fail-over."""
    return decided(of) + of.trips(60)


def delivered(of: Settings) -> int:
    """From a decision to the last broker that it concerns."""
    wait = 2 * of.cluster.controller_request_timeout_ms * MILLISECOND
    return wait + of.trips(40) + of.syncs(20) + _slack(of)


def fetched(of: Settings) -> int:
    """From a record at the leader to its followers' next fetch: one that waits, one that timed out, and the
    pause after it."""
    cluster = of.cluster
    wait_ms = (
        cluster.replica_fetch_wait_max_ms
        + cluster.controller_request_timeout_ms
        + cluster.replica_fetch_backoff_ms
    )
    return wait_ms * MILLISECOND + of.trips(6) + of.syncs(12)


def shrunk(of: Settings) -> int:
    """From a follower's last word to an ISR without it: the leader looks twice in each lag."""
    return of.cluster.replica_lag_time_max_ms * 3 // 2 * MILLISECOND + of.trips(6)


def committed(of: Settings) -> int:
    """From an append to the high watermark above it: a follower that does not fetch has left the ISR then."""
    return shrunk(of) + 2 * fetched(of) + of.trips(12) + _slack(of)


def caught_up(of: Settings) -> int:
    """From a follower's role to its place in the ISR, without the time for what it must copy."""
    return delivered(of) + shrunk(of) + 3 * fetched(of) + of.trips(20) + 2 * _slack(of)


def led(of: Settings) -> int:
    """From a death that everybody knows of to a leader that serves."""
    return decided(of) + delivered(of)


def balanced(of: Settings) -> int:
    """From a preferred replica's return into the ISR to its election by the controller itself."""
    cluster = of.cluster
    interval = max(cluster.leader_imbalance_check_ms, cluster.leader_imbalance_interval_ms)
    return interval * MILLISECOND + led(of)


def answered(of: Settings) -> int:
    """From a client's operation to its answer, with one retry after stale metadata."""
    client = of.client
    wait_ms = max(client.fetch_wait_max_ms, of.cluster.replica_fetch_wait_max_ms) + client.retry_backoff_ms
    return wait_ms * MILLISECOND + way(of) + _slack(of)


def way(of: Settings) -> int:
    """What messages and disks take of a client's operation, copies and one retry included."""
    return of.trips(12) + of.syncs(24)


def given_up(of: Settings) -> int:
    """Until a client has given up what it asked of a broker that does not answer, and asks another one."""
    client = of.client
    return (client.request_timeout_ms + client.retry_backoff_ms) * MILLISECOND + answered(of)


def expelled(of: Settings) -> int:
    """From a member's last word to a group without it."""
    return of.consumer.session_timeout_ms * MILLISECOND + of.trips(6) + _slack(of)


def rejoined(of: Settings) -> int:
    """From the beginning of a rebalance to its end: each member hears of it with its next heartbeat, and
    joins after its poll and its work."""
    wait_ms = of.consumer.retry_backoff_ms + of.cluster.groups.initial_rebalance_delay_ms
    return wait_ms * MILLISECOND + _joined(of) + _slack(of)


def _joined(of: Settings) -> int:
    consumer = of.consumer
    wait_ms = consumer.heartbeat_interval_ms + consumer.poll_timeout_ms + consumer.processing_ms
    return wait_ms * MILLISECOND + of.trips(20) + of.syncs(20)


def settled(of: Settings) -> int:
    """From the beginning of a rebalance until each partition is assigned: where members give up first what
    others get, one more follows at once (KIP-429)."""
    return rejoined(of) + (_joined(of) if of.cooperative else 0)


def marked(of: Settings) -> int:
    """From a transaction's decision to its marker in every partition."""
    cluster = of.cluster
    wait_ms = 2 * (cluster.transactions.marker_backoff_ms + cluster.controller_request_timeout_ms)
    wait_ms += cluster.transactions.append_timeout_ms  # of the append that was under way
    return wait_ms * MILLISECOND + committed(of) + _slack(of)


def timed_out(of: Settings) -> int:
    """From the end of a transaction's time to the record that aborts it: the coordinator looks at intervals,
    and a record of its own may be under way."""
    transactions = of.cluster.transactions
    wait_ms = transactions.abort_check_ms + transactions.append_timeout_ms
    return wait_ms * MILLISECOND + committed(of) + _slack(of)


def loaded(of: Settings, topic: str, records: int) -> int:
    """From the election of a coordinator's partition to the end of its loading, by the records that it has:
    one step for each at most, after what it had of them before has gone. It counts the sessions of all
    members anew, of those too that have gone."""
    options = of.cluster.groups if topic == OFFSETS_TOPIC else of.cluster.transactions
    sessions = expelled(of) if topic == OFFSETS_TOPIC else 0
    return (options.unload_ms + (records + 1) * options.load_step_ms) * MILLISECOND + sessions + _slack(of)
