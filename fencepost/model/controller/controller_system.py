"""The control plane of ZooKeeper-era Kafka as a pure transition system: sessions, the election of a
controller, its writes and requests, and the brokers that obey.

Owns the actions and their effect on a state. Must not know an implementation, time, or records
(replication/replication_system.py has those).

The model has one topic with one partition. Atomicity. A ZooKeeper request is one step, and so is a multi. A
controller's work between two requests is one step with the second of them: it writes and sends its batch. A
batch that was never sent is equivalent to one that never arrives. A zombie is a broker that has not noticed
the end of its session: its process continues to read, write and send. (Kafka's client opens a new session
before the controller's thread notices.) A follower that fetches counts as caught up:
replication/replication_system.py models the data path. Sources: docs/spec/cluster.md C1-C12 and C14,
KAFKA-6082, KAFKA-532, KAFKA-1096, KAFKA-1188, KIP-380, KAFKA-708, docs/decisions/0001-restarted-leader.md.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from itertools import permutations
from typing import Any, ClassVar

from attrs import field, frozen

from fencepost.model.bounded_system import BoundedSystem
from fencepost.model.controller import brokers as brokers
from fencepost.model.controller import controller_invariants as invariants
from fencepost.model.controller import controller_rules as controller_rules
from fencepost.model.controller import sessions as sessions
from fencepost.model.controller import work as work
from fencepost.model.controller.controller_state import (
    NONE,
    Admin,
    Constants,
    ControllerState,
    Host,
    Membership,
    Partition,
    Replica,
    RequestBatch,
    renamed,
)
from fencepost.model.controller.controller_words import describe
from fencepost.model.controller.sessions import RESIGNED
from fencepost.model.explore.transition_system import Eventually, Part, Rule, Symmetry, rule_of


@frozen(eq=False, slots=False)
class Controller(BoundedSystem[ControllerState]):
    """The transition system for some constants (explore/slotted.py documents the methods).

    Slots: each broker's process, controller and replica; ZooKeeper's membership and partition; the requests
    so far; the leaders so far; crashes; ZooKeeper's assignment; the requests to stop.
    """

    STATE: ClassVar[Any] = ControllerState
    INVARIANTS: ClassVar[Any] = invariants
    IN_WORDS: ClassVar[Callable[[Any], str]] = describe

    constants: Constants
    checks: tuple[str, ...] = field(default=tuple(invariants.NAMES))

    @cached_property
    def eventually(self) -> Mapping[str, Eventually]:
        """LIVE: it is always still possible that a controller comes into office and that a leader changes its
        ISR. DEL-COMPLETE of runs: a requested deletion can still complete."""
        deletion = {"DEL-COMPLETE": invariants.deletion_ends(self.constants)}
        return {
            "LIVE": invariants.somebody_controls(self.constants),
            "LIVE-ISR": invariants.leader_writes(self.constants),
            **(deletion if self.constants.deletions else {}),
        }

    @cached_property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Brokers may be renumbered."""
        count = self.constants.brokers
        others = tuple(range(3 * count, 3 * count + 7))
        return tuple(
            Symmetry(
                (*(kind * count + number for kind in range(3) for number in numbers), *others),
                partial(renamed, numbers),
            )
            for numbers in permutations(range(count))
            if numbers != tuple(range(count))
        )

    @property
    def kinds(self) -> tuple[int, ...]:
        """All processes are of one kind, and so are controllers and replicas."""
        count = self.constants.brokers
        return (0,) * count + (1,) * count + (2,) * count + (3, 4, 5, 6, 7, 8, 9)

    @property
    def spread(self) -> tuple[int | None, ...]:
        """The brokers' processes, controllers and replicas, and the rest."""
        return (*(self.constants.brokers,) * 3, *(None,) * 7)

    def initial(self) -> Iterable[ControllerState]:
        """All brokers are registered, broker 0 leads, all replicas are in sync and got that from the
        controller of epoch 0, which has gone."""
        constants = self.constants
        count, assigned = constants.brokers, constants.brokers - constants.spare
        everybody, replicas = (0,) * count, (1 << assigned) - 1
        replica, none = Replica(0, 0, 0, 0, replicas, True), Replica(0, NONE, NONE, NONE, 0, False)
        yield ControllerState(
            hosts=(Host(True, 0, 0),) * count,
            controls=(RESIGNED,) * count,
            replicas=(replica,) * assigned + (none,) * constants.spare,
            membership=Membership(NONE, 0, everybody, 0),
            partition=Partition(0, 0, replicas, 0, 0, 0),
            sent=(RequestBatch(0, 0, 0, 0, replicas, (0,) * assigned + (NONE,) * constants.spare),),
            led=((0, 0, 0),),
            crashes=0,
            admin=Admin(replicas, 0, replicas, 0),
            stopping=(),
        )

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of each broker: its session and process, the election, its work as a controller, as a
        replica, and as a leader with each other one."""
        rule = partial(rule_of, self.constants)
        count = self.constants.brokers
        membership, zookeeper, sent, led, crashes, admin, _ = range(3 * count, 3 * count + 7)
        rules = []
        for number in range(count):
            host, control, replica = number, count + number, 2 * count + number
            in_office = Part((control,), controller_rules.in_office)
            own = (host, control, replica, membership)
            rules += [
                rule(("expire",), (membership,), (membership,), sessions.expire, number),
                rule(("notice", "restart"), own, own, sessions.register, number),
                rule(
                    ("elect", "elect_unheard"),
                    (host, control, membership),
                    (control, membership),
                    sessions.elect,
                    number,
                ),
                rule(("moved",), (control, membership), (control,), sessions.moved, number, when=in_office),
                rule(
                    ("load", "see_brokers"),
                    (control, membership, zookeeper, admin, sent),
                    (control, sent),
                    work.read,
                    number,
                    when=in_office,
                ),
                rule(
                    ("see_state",), (control, zookeeper), (control,), work.see_state, number, when=in_office
                ),
                rule(
                    ("elect_leader", "no_leader", "shrink_dead"),
                    (control, membership, zookeeper, sent),
                    (control, zookeeper, sent),
                    work.write,
                    number,
                    when=in_office,
                ),
                rule(("deliver",), (host, replica, sent, led), (replica, led), brokers.deliver, number),
                rule(
                    ("shrink_isr",),
                    (host, replica, zookeeper, membership),
                    (replica, zookeeper),
                    brokers.shrink_isr,
                    number,
                ),
            ]
            rules += [
                rule(
                    ("expand_isr",),
                    (host, replica, other, 2 * count + other, zookeeper, membership),
                    (replica, zookeeper),
                    brokers.expand_isr,
                    number,
                    other,
                )
                for other in range(count)
                if other != number
            ]
            if self.constants.unheard:
                rules += controller_rules.of_lost_replies(self.constants, number)
            if self.constants.reassignments:
                rules += controller_rules.of_reassignment(self.constants, number)
            if self.constants.deletions:
                rules += controller_rules.of_deletion(self.constants, number)
            if self.constants.shutdowns:
                rules += controller_rules.of_shutdown(self.constants, number)
            if self.constants.crashes:
                reads = (host, control, replica, crashes)
                rules.append(rule(("crash",), reads, reads, sessions.crash, number))
            if not self.constants.keeps("epoch_read_in_election_only"):
                adopt = partial(sessions.adopt, self.constants, number)
                rules.append(Rule(("adopt_epoch",), (control, membership), (control,), adopt, in_office))
        return tuple(rules)

    @property
    def action_names(self) -> tuple[str, ...]:
        """A restart needs a process that has ended."""
        absent = set() if self.constants.crashes or self.constants.shutdowns else {"restart"}
        if not self.constants.unheard:
            absent.add("elect_unheard")
        return tuple(name for name in super().action_names if name not in absent)
