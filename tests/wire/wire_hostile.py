"""A simulated broker core without sockets that is attacked by connections, one after the other."""

import itertools
import random
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, get_args, get_origin

from wire_values import _primitive

from fencepost.impl.broker.broker import make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.log.values import batch_of
from fencepost.impl.messages.broker_api import Request
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create
from fencepost.sim.host import Observer
from fencepost.sim.world import World
from fencepost.traces.plan import ClusterOptions, GroupOptions, NetworkOptions, TopicOptions
from fencepost.wire.connection import Action, Connection, Submit, Write
from fencepost.wire.handling import BrokerView
from fencepost.wire.schemas import request_schema
from fencepost.wire.versions import APIS

NAMES = (
    "t",
    "t",
    "t",
    "g",
    "",
    "..",
    "../../etc/passwd",
    "t\0",
    "ü",
    "a" * 300,
    "__consumer_offsets",
    "consumer",
    "range",
)
NUMBERS = (-1, 0, 0, 0, 1, 2, 3, 1_000, 2**31 - 1, -(2**31))
PATIENCE_MS = 60_000
"""Of virtual time that one exchange may take; a request that waits longer is left."""
BATCH = batch_of((1, 2, 3))


def hostile_request(key: int, version: int, rng: random.Random) -> Any:
    """A request whose fields take names that exist, ends of their ranges and nonsense."""
    return _entity(request_schema(key, version), rng)


def _entity(kind: Any, rng: random.Random) -> Any:
    made = kind(**{each.name: _field(each, rng) for each in fields(kind)})
    if "acks" in {each.name for each in fields(kind)} and rng.random() < 0.8:
        made = replace(made, acks=rng.choice((-1, 1, 0)), transactional_id=None)
    return made


def _field(each: Any, rng: random.Random) -> Any:
    if NoneType in get_args(each.type) and rng.random() < 0.2:
        return None
    bare = each.type
    if get_origin(bare) is not tuple:
        bare = next((it for it in get_args(bare) if it is not NoneType), bare)
    if get_origin(bare) is tuple:
        item = get_args(bare)[0]
        return tuple(_one(each, item, rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    return _one(each, bare, rng)


def _one(each: Any, bare: Any, rng: random.Random) -> Any:
    kafka_type = each.metadata.get("kafka_type")
    if kafka_type is None:
        assert is_dataclass(bare)
        return _entity(bare, rng)
    if kafka_type == "string":
        return rng.choice(NAMES)
    if kafka_type in ("int32", "int64") and rng.random() < 0.8:
        return rng.choice(NUMBERS)
    if kafka_type in ("records", "bytes"):
        data = bytearray(rng.choice((b"", BATCH, BATCH, rng.randbytes(80))))
        if data and rng.random() < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)
    return _primitive(kafka_type, rng)


class Attacked(Observer):
    """One broker of a simulated world with a topic t; `exchange` opens a connection, sends, and lets time
    pass."""

    def __init__(self) -> None:
        self.halts: list[str] = []
        options = ClusterOptions(
            brokers=1,
            topics=(TopicOptions(replication_factor=1),),
            groups=GroupOptions(offsets_topic_partitions=2),
        )
        network = NetworkOptions(latency_min_us=1, latency_tail_us=0, latency_max_us=1)
        self.world = World(1, network=network, maximum_events=1 << 60, observer=self)
        self.world.add_host(
            1, lambda files, now: make_broker(1, options, files, Parts(), now), zookeeper=True
        )
        self.world.start(1)
        self.sources = itertools.count(FIRST_WIRE_CLIENT)
        self._pass(2_000)
        self.world.admin(Create(znodes.topic_path("t"), znodes.encode_topic({0: (1,)})))
        self._pass(2_000)

    def halted(self, node: int, reason: str) -> None:
        """The broker gave up: a hostile request did it."""
        self.halts.append(reason)

    def _pass(self, milliseconds: int) -> None:
        self.world.run_until(self.world.now + milliseconds * 1_000_000)

    def exchange(self, data: bytes) -> list[Action]:
        """What a new connection does with these bytes, until it is idle or a minute of the broker's time has
        gone."""
        view = BrokerView(node=1, addresses=lambda: {1: ("127.0.0.1", 9092)})
        connection = Connection(source=next(self.sources), broker=view, apis=APIS)
        done: list[Action] = []
        desk = Desk(self, connection, done)
        self.world.network.attach(connection.source, desk)
        desk.carry_out(connection.receive(data))
        for _ in range(PATIENCE_MS // 1_000):
            if connection.idle or self.halts:
                break
            self._pass(1_000)
        assert self.halts or self.world.hosts[1].core is not None
        return done


class Desk:
    """A connection as a node of the network."""

    incarnation = 0

    def __init__(self, attacked: Attacked, connection: Connection, done: list[Action]) -> None:
        self.attacked, self.connection, self.done = attacked, connection, done

    def receive(self, _: int, message: Any) -> None:
        self.carry_out(self.connection.answered(message))

    def carry_out(self, actions: list[Action]) -> None:
        """Do what the connection wants; bytes and ends are only noted."""
        for action in actions:
            self.done.append(action)
            if isinstance(action, Submit):
                self._submit(action.message)
            else:
                assert isinstance(action, Write) or not isinstance(action, Submit)

    def _submit(self, message: Request) -> None:
        self.attacked.world.hosts[1].accept(MessageArrived(self.connection.source, message))
