"""Every run is one story, whatever it runs on."""

import pytest

from fencepost.kafka.hosted import HostedRun
from fencepost.run.real.real_run import RealRun
from fencepost.run.simulated.run import Run
from fencepost.run.story import Story, at_once
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions

PHASES = ("go_through", "set_up", "safety", "after_the_faults", "makes_progress")
APPENDS = tuple(
    PlannedOperation(op_id=number, process=number, at_ms=at, function="append", topic="t", partition=0)
    for number, at in ((1, 10), (2, 90))
)
PLAN = Plan(
    seed=1,
    safety_ms=80,
    cluster=ClusterOptions(topics=(TopicOptions(name="t"), TopicOptions(name="u", created_later=True))),
    operations=APPENDS,
    faults=(Fault(fault_id=0, kind="crash", at_ms=20, duration_ms=5, target="broker 1"),),
)


@pytest.mark.parametrize("kind", [Run, RealRun, HostedRun])
def test_no_system_has_an_order_of_its_own(kind):
    """Rule: what follows on what is the same in the simulation, in real time and in the fixture."""
    assert [name for name in PHASES if getattr(kind, name) is not getattr(Story, name)] == []


class Told(Story):
    """A run that only says what it is asked to do. Its time passes in `until`."""

    calm = in_safety = True

    def __init__(self, *, missing="", heals=True):
        super().__init__(PLAN)
        self.said, self.missing, self.heals, self.clock, self.timers = [], missing, heals, 0, []
        self.rounds = self.queues = self

    def __getattr__(self, name):
        return lambda *arguments, **options: self.said.append(name)

    @property
    def now(self):
        return self.clock

    def after(self, delay, call, *arguments):
        self.timers.append((self.clock + delay, call, arguments))

    async def until(self, reached, bound_ms):
        self.clock += bound_ms * 1_000_000
        for one in sorted(self.timers, key=lambda one: one[0]):
            if one[0] <= self.clock:
                self.timers.remove(one)
                one[1](*one[2])
        return True

    async def reach(self):
        self.said.append("reach")
        return self.missing

    async def create(self, topic):
        self.said.append(f"create {topic.name}")

    async def start_client(self, process):
        self.said.append(f"client {process}")

    async def led(self):
        self.said.append("led")
        return True

    def begin_phase(self, name):
        self.said.append(name)

    def strike(self, fault):
        self.said.append(fault.kind)

    async def never(self, what):
        self.stuck = what
        return False

    def begin(self):
        self.said.append("begin to ask")

    async def ask(self, *, last):
        self.said.append("ask last")

    async def end_faults(self):
        self.said.append("end faults")
        await self.until(lambda: True, 1_000)
        return self.heals

    async def last_answers(self):
        self.said.append("last answers")

    async def makes_progress(self):
        self.said.append("makes progress")
        return True

    async def final_reads(self):
        self.said.append("final reads")


SET_UP = ["reach", "create t", "client 1", "client 2", "led"]
SAFETY = ["safety", "due", "crash", "begin to ask", "begin to ask", "last answers"]
HEAL = ["heal", "clear", "end faults"]
SERVES = ["liveness", "client 3", "begin to ask", "makes progress", "final", "final reads", "ask last"]


def test_the_order_of_a_run():
    """Topics of a later time are not made; an operation that is due after the faults is forgotten; brokers
    are asked in the middle and at the end of a calm safety phase, when the cluster is healed, and last."""
    told = Told()
    at_once(told.go_through())
    assert told.said == [*SET_UP, *SAFETY, *HEAL, *SERVES]


def test_a_run_ends_where_something_never_comes():
    """Without brokers nothing is tried; a cluster that does not heal is not read, but asked."""
    told = Told(missing="a broker")
    at_once(told.go_through())
    assert (told.said, told.stuck, told.over) == (["reach"], "a broker", False)
    told = Told(heals=False)
    at_once(told.go_through())
    assert told.said == [*SET_UP, *SAFETY, *HEAL, "ask last"]
