"""The zoo of services: the classic mistakes of applications, each a small program next to its correct form.

Owns the table: what each service does, what it promises, and the one fault under which its mistake shows.
Must not know pytest, nor how a service is run (running.py). A program is
`programs/with_LIBRARY/NAME.py`; with --mistake it makes its mistake.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from pathlib import Path

from attrs import frozen

from fencepost.kafka.topic_records import KafkaRecord
from tests.services.promises import AT_LEAST, AT_MOST, EXACTLY, IN_ORDER, Promise, Result
from tests.services.strikes import Strike, kill, lose_leader, nothing, pause, rebalance, stop

PROGRAMS = Path(__file__).parent / "programs"
FOLDERS: Mapping[str, str] = {
    "aiokafka": "with_aiokafka",
    "confluent-kafka": "with_confluent",
    "kafka-python": "with_kafka_python",
}
"""Of programs, by the library that they use."""
ORDERS, INVOICES, GROUP = "orders", "invoices", "billing"
Order = tuple[bytes, bytes | None]
Rule = Callable[[Iterable[KafkaRecord]], list[Result]]


def more_orders(first: int = 17) -> Iterator[Order]:
    """Orders without end. first: the number of the first one."""
    return ((b"customer %d" % (one % 3), b"%d" % one) for one in count(first))


SEVENTEEN: tuple[Order, ...] = tuple(islice(more_orders(0), 17))
TWELVE, FIVE_MORE = SEVENTEEN[:12], SEVENTEEN[12:]


def an_invoice_each(orders: Iterable[KafkaRecord]) -> list[Result]:
    """One for every order."""
    return [(one.key, b"invoice for " + (one.value or b"")) for one in orders]


@frozen(kw_only=True)
class Service:
    """A service and its mistake."""

    # Of its program.
    name: str
    # The library that it uses.
    client: str
    # What is wrong with it.
    mistake: str
    # How its results follow from its orders.
    promise: Promise = AT_LEAST
    # Under what its mistake shows.
    strike: Strike
    # What its results must be.
    rule: Rule = an_invoice_each
    # That are there when it starts.
    orders: tuple[Order, ...] = TWELVE
    # That come after the strike, or once it has started.
    later: tuple[Order, ...] = ()
    # That a transaction writes before the others, and aborts.
    aborted: tuple[Order, ...] = ()
    # Of the topic of orders.
    partitions: int = 1
    # That it needs besides those of orders and invoices.
    topics: tuple[str, ...] = ()
    # Whether its results are in its database, and not in the topic of invoices.
    in_database: bool = False
    # Whether it is done when its results are there; otherwise, when its group has committed every order.
    done_by_results: bool = False

    @property
    def program(self) -> Path:
        """Its file."""
        return PROGRAMS / FOLDERS[self.client] / f"{self.name}.py"


# ---- rules


def a_charge_each(orders: Iterable[KafkaRecord]) -> list[Result]:
    """One for every order, however often it was sent."""
    return list(dict.fromkeys((one.key, one.value) for one in orders))


def the_same(rows: Iterable[KafkaRecord]) -> list[Result]:
    """A copy."""
    return [(one.key, one.value) for one in rows]


def doubled(numbers: Iterable[KafkaRecord]) -> list[Result]:
    """Of each number; what is no number has none."""
    return [(one.key, b"%d" % (2 * int(one.value or b""))) for one in numbers if (one.value or b"").isdigit()]


# ---- the services

REFUSED = "answer UNKNOWN_SERVER_ERROR to Produce on invoices, 3rd"
HUNG = "silence Produce on invoices, 3rd"

with_aiokafka = partial(Service, client="aiokafka")
with_confluent = partial(Service, client="confluent-kafka")
with_kafka_python = partial(Service, client="kafka-python")

SERVICES = (
    with_aiokafka(
        name="commit_before_work",
        mistake="It commits an order before it has written the invoice.",
        strike=Strike(fault=HUNG, act=kill),
    ),
    with_confluent(
        name="auto_commit_threads",
        mistake="Commits are automatic, and threads have not done yet what is committed.",
        strike=Strike(fault=HUNG, committed=True, act=kill),
    ),
    with_kafka_python(
        name="swallowed_exception",
        mistake="An invoice that cannot be written is logged, and its order is committed.",
        strike=Strike(fault=REFUSED),
    ),
    with_confluent(
        name="unread_report",
        mistake="It does not read the reports of delivery.",
        strike=Strike(fault="answer UNKNOWN_SERVER_ERROR to Produce on invoices, once"),
    ),
    with_confluent(
        name="close_without_flush",
        mistake="It ends while invoices wait in the producer's queue.",
        strike=Strike(fault="silence Produce on invoices, once", act=stop),
    ),
    with_confluent(
        name="several_in_flight",
        mistake="Requests are sent again without idempotence while others are in flight.",
        promise=IN_ORDER,
        strike=Strike(fault="answer NOT_LEADER_OR_FOLLOWER to Produce on invoices, once"),
    ),
    with_aiokafka(
        name="dedupe_in_memory",
        mistake="What it has seen is forgotten when it ends.",
        promise=EXACTLY,
        rule=a_charge_each,
        later=TWELVE,
        in_database=True,
        strike=Strike(committed=True, act=kill),
    ),
    with_kafka_python(
        name="database_then_kafka",
        mistake="It writes to its database, then to Kafka, and may end between the two.",
        strike=Strike(fault=HUNG, act=kill),
    ),
    with_confluent(
        name="no_transaction",
        mistake="It consumes, transforms and produces without a transaction.",
        promise=EXACTLY,
        strike=Strike(fault="silence OffsetCommit of group billing, 3rd", act=kill),
    ),
    with_confluent(
        name="offsets_outside_transaction",
        mistake="The offsets are not part of its transaction.",
        promise=EXACTLY,
        strike=Strike(fault="silence OffsetCommit of group billing, 3rd", act=kill),
    ),
    with_aiokafka(
        name="read_uncommitted",
        mistake="It reads what transactions have written that were aborted.",
        aborted=((b"customer 1", b"aborted"),),
        strike=Strike(),
    ),
    with_kafka_python(
        name="transactional_id_of_process",
        mistake="Each process has a transactional id of its own, and does not fence the one before.",
        promise=EXACTLY,
        strike=Strike(fault="delay answer to Produce on invoices by 500ms, 3rd", act=pause),
    ),
    with_confluent(
        name="offsets_in_database",
        mistake="Its offsets are in its database, and it begins at those of the group.",
        promise=EXACTLY,
        later=FIVE_MORE,
        in_database=True,
        done_by_results=len(TWELVE),
        strike=Strike(results=len(TWELVE), act=kill),
    ),
    with_confluent(
        name="buffer_at_revocation",
        mistake="It commits at a revocation what is still in its buffer.",
        later=FIVE_MORE[:3],
        strike=Strike(results=10, act=rebalance),
    ),
    with_confluent(
        name="order_lost_in_pool",
        mistake="Any worker of its pool takes any order.",
        promise=IN_ORDER,
        strike=Strike(fault="delay Produce on invoices by 500ms, once"),
    ),
    with_aiokafka(
        name="latest_at_first_start",
        mistake="Before the first commit of its group it begins at the end.",
        later=FIVE_MORE,
        strike=Strike(fault="delay answer to Fetch on orders by 1ms, once", act=nothing),
    ),
    with_kafka_python(
        name="failed_commit_ignored",
        mistake="It goes on after a commit that has failed.",
        promise=AT_MOST,
        strike=Strike(
            fault="answer UNKNOWN_SERVER_ERROR to OffsetCommit of group billing, 3rd",
            then="silence OffsetCommit of group billing, 4th",
            act=kill,
        ),
    ),
    with_aiokafka(
        name="poison_record",
        mistake="It ends at a record that it cannot read, after every start.",
        topics=("unreadable",),
        rule=doubled,
        orders=(*TWELVE[:4], (b"customer 1", b"no number"), *TWELVE[4:]),
        strike=Strike(),
    ),
    with_aiokafka(
        name="offset_of_the_record",
        mistake="It commits the offset of the record that is done, not the next one.",
        promise=EXACTLY,
        later=FIVE_MORE,
        done_by_results=len(TWELVE),
        strike=Strike(results=len(TWELVE), act=kill),
    ),
    with_confluent(
        name="position_kept",
        mistake="After a rebalance it goes on at its own position, not at the commit.",
        later=FIVE_MORE[:3],
        strike=Strike(results=10, act=rebalance),
    ),
    with_confluent(
        name="acks_of_the_leader",
        mistake="It does not wait until the replicas have its invoices.",
        later=FIVE_MORE,
        strike=Strike(fault="delay Produce on invoices by 50ms", act=lose_leader),
    ),
    with_kafka_python(
        name="time_out_is_no_failure",
        mistake="It takes a time-out for a failure, and does the work again.",
        promise=AT_MOST,
        strike=Strike(fault="delay answer to Produce on invoices by 1s, 3rd"),
    ),
    with_aiokafka(
        name="retry_topic_overtaken",
        mistake="What could not be written comes back by another topic, after later records of its key.",
        topics=("retries",),
        promise=IN_ORDER,
        strike=Strike(fault=REFUSED),
    ),
    with_aiokafka(
        name="tombstones_dropped",
        mistake="It drops records without a value, and what was deleted stays.",
        promise=IN_ORDER,
        rule=the_same,
        orders=(*TWELVE[:6], (b"customer 1", None), *TWELVE[6:]),
        strike=Strike(),
    ),
    with_confluent(
        name="second_consumer_in_group",
        mistake="A second consumer for another purpose is in the same group.",
        orders=(),
        later=tuple((b"order %d" % number, b"%d" % number) for number in range(12)),
        partitions=4,
        strike=Strike(members=2),
    ),
)
BY_NAME: Mapping[str, Service] = {each.name: each for each in SERVICES}
