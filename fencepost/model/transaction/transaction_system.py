"""Transactions as a pure transition system: one transactional id, its producers, its coordinators, and the
leaders of its partitions.

Owns the slots, and which steps read and write which. journal.py and producer_steps.py have the steps;
transaction_rules.py and leader.py have what a coordinator and a leader decide. Must not know an
implementation, or time.

The network keeps each request that was sent: it may arrive any number of times, at any time, also after the
transaction that it was sent in (KAFKA-17754). A request that is never taken is lost. An answer is what a
coordinator has in memory, because a request that is sent again is answered again. The partitions' replication
is the replication model's: here a leader's append is durable at once. The partition of __transaction_state is
replicated as in the group model: no election loses durable records, and one may lose the record after them.
A coordinator that has not heard of its successor writes nothing that counts; its markers may still arrive.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from attrs import field, frozen

from fencepost.model.bounded_system import BoundedSystem
from fencepost.model.explore.transition_system import Eventually, Part, Rule, Value, rule_of
from fencepost.model.transaction import journal as journal_steps
from fencepost.model.transaction import producer_steps as producer_steps
from fencepost.model.transaction import transaction_invariants as invariants
from fencepost.model.transaction.transaction_state import (
    EMPTY,
    NEW,
    NONE,
    OPEN,
    Constants,
    Coordinator,
    Ghost,
    Journal,
    Partition,
    Producer,
    Transaction,
    TransactionState,
    describe,
)


def _is_there(held: Value) -> bool:
    return held != ()


def _asks(producer: Producer, held: Value) -> bool:
    return held != () and bool(producer.requests)


@frozen(eq=False, slots=False)
class Transactions(BoundedSystem[TransactionState]):
    """The transition system for some constants (explore/slotted.py documents the methods).

    Slots: the journal, each coordinator, each producer, each partition, the markers, the ghost.
    """

    STATE: ClassVar[Any] = TransactionState
    INVARIANTS: ClassVar[Any] = invariants
    IN_WORDS: ClassVar[Callable[[Any], str]] = describe

    constants: Constants
    checks: tuple[str, ...] = field(default=tuple(invariants.OF_STATES))

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of actions that these constants allow."""
        constants = self.constants
        absent = set()
        if constants.epochs == 0:
            absent |= {"elect", "load", "unload"}
        if constants.version == 2:
            absent |= {"ask_to_add", "added"}
            if constants.producers == 1:
                absent |= {"init", "given"}
        if not constants.keeps("is_needed"):
            absent.add("verify")
        names = dict.fromkeys(name for rule in self.rules for name in rule.names)
        return tuple(name for name in names if name not in absent)

    @property
    def eventually(self) -> Mapping[str, Eventually]:
        """What must stay possible."""
        return {"TXN-END": invariants.transactions_end(self.constants, self.action_names)}

    @property
    def kinds(self) -> tuple[int, ...]:
        """No two slots may exchange their values: producers begin differently."""
        constants = self.constants
        return tuple(range(constants.epochs + constants.producers + constants.partitions + 4))

    @property
    def spread(self) -> tuple[int | None, ...]:
        """The journal, coordinators, producers, partitions, markers, the ghost."""
        bounds = self.constants
        return (None, bounds.epochs + 1, bounds.producers, bounds.partitions, None, None)

    def initial(self) -> Iterable[TransactionState]:
        """Producer 0 has epoch 0, the others have none. Nothing is written."""
        bounds = self.constants
        value = Transaction(EMPTY, 0, 0, 0, 0)
        none = (0,) * bounds.partitions
        yield TransactionState(
            Journal(0, value, ()),
            (Coordinator(value, 0, False), *((),) * bounds.epochs),
            (
                Producer(OPEN, 0, 0, 0, 0, 0, none, ()),
                *(Producer(NEW, NONE, 0, 0, 0, 0, none, ()),) * (bounds.producers - 1),
            ),
            (Partition(NONE, NONE, NONE, False, (), ()),) * bounds.partitions,
            (),
            Ghost(0, 0, 0, 0, 0),
        )

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of coordinators, of producers, then of leaders."""
        bounds = self.constants
        rule = partial(rule_of, bounds)
        epochs = range(bounds.epochs + 1)
        rules = [
            rule(("elect",), (0, self._ghost), (0, self._ghost), journal_steps.elect),
            *(rule for epoch in epochs for rule in self._of_coordinator(epoch)),
            *(rule for number in range(bounds.producers) for rule in self._of_producer(number)),
        ]
        for at in range(bounds.partitions):
            rules += self._of_partition(at)
        return tuple(rules)

    @property
    def _markers(self) -> int:
        return self._partition(self.constants.partitions)

    @property
    def _ghost(self) -> int:
        return self._markers + 1

    def _producer(self, number: int) -> int:
        return 2 + self.constants.epochs + number

    def _partition(self, at: int) -> int:
        return self._producer(self.constants.producers) + at

    def _of_coordinator(self, epoch: int) -> list[Rule]:
        bounds, held = self.constants, 1 + epoch
        rule = partial(rule_of, bounds)
        markers, ghost = self._markers, self._ghost
        there = Part((held,), _is_there)
        return [
            rule(("load",), (0, held, markers), (held, markers), journal_steps.load, epoch),
            rule(("unload",), (0, held), (held,), journal_steps.unload, epoch, when=there),
            rule(
                ("replicate",),
                (0, held, markers, ghost),
                (0, held, markers, ghost),
                journal_steps.replicate,
                epoch,
                when=there,
            ),
            rule(("time_out",), (0, held), (0,), journal_steps.time_out, epoch, when=there),
            rule(("complete",), (0, held), (0,), journal_steps.complete, epoch, when=there),
        ]

    def _of_producer(self, number: int) -> list[Rule]:
        bounds, mine, ghost = self.constants, self._producer(number), self._ghost
        rule = partial(rule_of, bounds)
        rules = [
            rule(("ask_to_add",), (mine,), (mine,), producer_steps.ask_to_add, number),
            rule(("send",), (mine,), (mine,), producer_steps.send, number),
            rule(("ask_to_end",), (mine, ghost), (mine, ghost), producer_steps.ask_to_end, number),
        ]
        for epoch in range(bounds.epochs + 1):
            rules += self._of_pair(number, epoch)
        return rules

    def _of_pair(self, number: int, epoch: int) -> list[Rule]:
        """A producer and a coordinator."""
        bounds, mine, held = self.constants, self._producer(number), 1 + epoch
        rule = partial(rule_of, bounds)
        pair, both = (mine, 0, held), Part((mine, held), _asks)
        there = Part((held,), _is_there)
        markers, ghost = self._markers, self._ghost
        return [
            rule(("add",), pair, (0,), journal_steps.add, number, epoch, when=both),
            rule(("end",), (*pair, markers), (0, markers), journal_steps.end, number, epoch, when=both),
            rule(("init",), pair, (0,), journal_steps.init, number, epoch, when=there),
            rule(("added",), pair, (mine,), producer_steps.added, number, epoch, when=both),
            rule(("ended",), (*pair, ghost), (mine, ghost), producer_steps.ended, number, epoch, when=both),
            rule(("given",), (*pair, ghost), (mine, ghost), producer_steps.given, number, epoch, when=there),
        ]

    def _of_partition(self, at: int) -> list[Rule]:
        bounds, slot = self.constants, self._partition(at)
        rule = partial(rule_of, bounds)
        markers, ghost = self._markers, self._ghost
        rules = [rule(("deliver",), (markers, slot), (slot,), journal_steps.deliver, at)]
        for epoch in range(bounds.epochs + 1):
            held = 1 + epoch
            counted = () if bounds.keeps("is_written") else ("count_as_written",)
            rules.append(
                rule(
                    ("mark", "give_up", *counted),
                    (0, held, slot, markers),
                    (held, slot, markers),
                    journal_steps.mark,
                    at,
                    epoch,
                    when=Part((held,), _is_there),
                )
            )
            for number in range(bounds.producers):
                rules.append(
                    rule(
                        ("verify",),
                        (self._producer(number), slot, 0, held),
                        (slot,),
                        producer_steps.verify,
                        number,
                        at,
                        epoch,
                        when=Part((self._producer(number), held), _asks),
                    )
                )
        for number in range(bounds.producers):
            mine = self._producer(number)
            rules += [
                rule(("append",), (mine, slot, 0, ghost), (slot,), producer_steps.append, number, at),
                rule(("acked",), (mine, slot), (mine,), producer_steps.acked, number, at),
            ]
        return rules
