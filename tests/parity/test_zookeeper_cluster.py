"""The same short plan in the simulator and on real processes: the same verdict, and the same final ZooKeeper
tree."""

import asyncio
import json
import time

import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.impl.client.client import Client
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.core_interface import Invoke
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Children, Create, Created, Data, GetChildren, GetData
from fencepost.run.simulated.run import Run
from fencepost.sim.zookeeper import NO_SESSION
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.trace import Trace

pytestmark = pytest.mark.java
BROKERS, PARTITIONS, CRASH_MS, DOWN_MS, BOUND_S = (1, 2, 3), 2, 600, 3_000, 600
APPENDS = tuple(
    PlannedOperation(
        op_id=number, process=0, at_ms=number * 200, function="append", partition=number % PARTITIONS
    )
    for number in range(16)
)
PLAN = Plan(
    seed=1,
    safety_ms=12_000,
    cluster=ClusterOptions(
        topics=(TopicOptions(name="t", partitions=PARTITIONS, replication_factor=3, min_insync_replicas=2),),
        zookeeper_session_timeout_ms=1_500,
        leader_imbalance_check_ms=0,
    ),
    operations=APPENDS,
    faults=(Fault(fault_id=0, kind="crash", at_ms=CRASH_MS, duration_ms=DOWN_MS, target="broker 1"),),
)
FINAL = 1_000


def tree_of(ask):
    """Every node below Kafka's roots with its content, as far as it does not tell when, or who was elected
    controller.

    The controller's epoch counts elections, which are races; a leader's epoch counts what happened to its
    partition, and stays.
    """
    tree, paths = {}, ["/brokers", "/admin", "/isr_change_notification"]
    while paths:
        path = paths.pop()
        data, children = ask(GetData(path)), ask(GetChildren(path))
        assert isinstance(data, Data) and isinstance(children, Children)
        tree[path] = shown(path, data.data) if data.data else b""
        paths += [f"{path}/{name}" for name in children.names]
    return tree


def shown(path, data):
    """The content of a node, without what may differ."""
    content = json.loads(data)
    if znodes.partition_of_state_path(path):
        content["isr"] = sorted(content["isr"])
        del content["controller_epoch"]
    for field in ("timestamp", "port", "endpoints"):
        if isinstance(content, dict):
            content.pop(field, None)
    return content


def in_sync(ask):
    """Whether every partition has a leader and all its replicas in the ISR."""
    states = [
        json.loads(reply.data)
        for key in range(PARTITIONS)
        if isinstance(reply := ask(GetData(state(key))), Data)
    ]
    return len(states) == PARTITIONS and all(it["leader"] > 0 and len(it["isr"]) == 3 for it in states)


def state(partition):
    return f"/brokers/topics/t/partitions/{partition}/state"


def simulated(plan=PLAN):
    """The trace and the final tree in the simulator."""
    run = Run(plan)
    trace = run.run()
    tree = run.cluster.world.zookeeper.tree
    return trace, tree_of(lambda request: tree.apply(NO_SESSION, request).reply)


class RealClient:
    """A client core over TCP. operations: completed ones, with times of this host."""

    def __init__(self, addresses):
        from fencepost.impl.runtime.core_driver import Driver, HostClock
        from fencepost.impl.runtime.network import Network

        self.operations, self.done, self.clock = [], asyncio.Event(), HostClock()
        core = Client(0, PLAN.client, ClientMetadata(BROKERS))
        self.driver = Driver(
            1000,
            core,
            self.clock,
            asyncio.get_running_loop(),
            lambda event: None,
            pytest.fail,
            self._completed,
        )
        self.network = self.driver.network = Network(1000, addresses, self.driver.receive)
        self.driver.start()

    def _completed(self, operation):
        ended = None if operation.completion_time is None else self.clock.now()
        self.operations.append(evolve(operation, invoke_time=self.invoked, completion_time=ended, clock_id=0))
        self.done.set()

    async def do(self, operation):
        self.done.clear()
        self.invoked = self.clock.now()
        self.driver.accept(Invoke(operation))
        await asyncio.wait_for(self.done.wait(), BOUND_S)
        return self.operations[-1]


async def play(cluster, addresses, ask):
    """The plan's operations at their times, its crash and restart, then reads of every partition to its
    end."""
    client, began = RealClient(addresses), time.monotonic()
    crash, restart = CRASH_MS, CRASH_MS + DOWN_MS
    for operation in APPENDS:
        passed = (time.monotonic() - began) * 1_000
        await asyncio.sleep(max(0, operation.at_ms - passed) / 1_000)
        if crash is not None and operation.at_ms >= crash:
            cluster.kill(1)
            crash = None
        await client.do(operation)
    await asyncio.sleep(max(0, restart / 1_000 - (time.monotonic() - began)))
    cluster.start(1)
    deadline = time.monotonic() + BOUND_S
    while not in_sync(ask) or len(ask(GetChildren(znodes.BROKER_IDS)).names) < len(BROKERS):
        assert time.monotonic() < deadline, "the replicas never came in sync"
        await asyncio.sleep(0.1)
    for partition in range(PARTITIONS):
        for poll in range(3):
            op_id = FINAL + partition * 10 + poll
            await client.do(
                PlannedOperation(op_id=op_id, process=0, at_ms=0, function="poll", partition=partition)
            )
    client.driver.stop()
    await client.network.close()
    return tuple(client.operations)


def real(directory):
    """The same on real processes."""
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper
    from fencepost.impl.runtime.zookeeper.server import HOST
    from fencepost.systems.processes import ProcessCluster

    cluster = ProcessCluster.up(directory, PLAN.cluster)
    try:
        addresses = {number: (HOST, broker.port) for number, broker in cluster.state.brokers.items()}
        with BlockingZooKeeper(cluster.state.zookeeper) as zookeeper:
            assignment = {0: (1, 2, 3), 1: (2, 3, 1)}
            assert isinstance(
                zookeeper.ask(Create("/brokers/topics/t", znodes.encode_topic(assignment))), Created
            )
            cluster.wait_until(lambda seen: seen.partitions == PARTITIONS and not seen.leaderless, "leaders")
            operations = asyncio.run(play(cluster, addresses, zookeeper.ask))
            tree = tree_of(zookeeper.ask)
    finally:
        cluster.stop()
    trace = Trace(
        trace_id=1, plan="", seed=1, target="processes", software_version="1", operations=operations
    )
    return trace, tree


@pytest.fixture(scope="module")
def on_processes(tmp_path_factory):
    """The trace and the final tree on real processes."""
    pytest.importorskip("kazoo")
    return real(tmp_path_factory.mktemp("cluster"))


def test_the_same_plan_gives_the_same_verdict_and_the_same_tree(on_processes):
    """Rule: a leader's crash and restart under appends ends in both worlds with every acknowledged record
    read, and with the same znodes."""
    (here, simulated_tree), (there, real_tree) = simulated(), on_processes
    for trace in (here, there):
        (verdict,) = judge(trace, ("log",))
        assert verdict.decision is Decision.OK, (trace.target, verdict)
        appended = [it for it in trace.operations if it.op_id < len(APPENDS)]
        acknowledged = {value.value for it in appended if it.outcome is Outcome.OK for value in it.records}
        read = {value.value for it in trace.operations if it.function == "poll" for value in it.records}
        assert len(appended) == len(APPENDS) and acknowledged and acknowledged <= read
    assert simulated_tree == real_tree


def test_another_history_leaves_another_tree(on_processes):
    """Rule: the comparison of trees notices a run in which nobody crashed."""
    assert simulated(evolve(PLAN, faults=()))[1] != on_processes[1]


def test_a_lost_record_of_the_real_run_is_noticed(on_processes):
    """Rule: the verdict on the real run would not be Ok if the first acknowledged record were missing from
    what was read."""
    trace, _ = on_processes
    first = next(it.records[0].value for it in trace.operations if it.outcome is Outcome.OK and it.records)
    planted = tuple(
        evolve(it, records=tuple(value for value in it.records if value.value != first))
        if it.function == "poll"
        else it
        for it in trace.operations
    )
    (verdict,) = judge(evolve(trace, operations=planted), ("log",))
    assert verdict.decision is not Decision.OK
