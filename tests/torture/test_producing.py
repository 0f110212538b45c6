"""The producers of a run, and its members: what they send, and when."""

from types import SimpleNamespace

import pytest
from attrs import define, field

from fencepost.torture.consuming_members import Group
from fencepost.torture.copying import Copier
from fencepost.torture.driver_process import Command
from fencepost.torture.producing import Producers
from fencepost.torture.protocol import DriverError
from fencepost.torture.scenario import Scenario
from fencepost.torture.scenario_run import OPENS, Torture


@define
class Recorded:
    """Takes commands, and answers when it is asked to."""

    sent: list[Command] = field(factory=list)

    def send(self, name, client="", **fields):
        command = Command(number=len(self.sent), name=name, client=client, fields=fields, sent_ns=0)
        self.sent.append(command)
        return command

    def answer(self, *names, ok=True):
        for command in self.sent:
            if command.name in names and command.answer is None:
                command.answer = {"event": "done", "ok": ok}

    def names(self):
        return [(command.name, command.client) for command in self.sent if command.name != "append"]


def test_a_fenced_transaction_ends_after_the_producer_that_fences_it_has_opened():
    """Rule (KIP-98): who was replaced must hear it, so that it ends its transaction when it is too late."""
    driver = Recorded()
    producers = Producers(Scenario(seed=1, transactional=True, burst=3), driver, "b:1")
    (opening,) = producers.open()
    driver.answer("open")
    producers.fence(7)
    producers.send(0, 0)
    old = opening.client
    assert driver.names() == [("open", old), ("begin", old)] and not producers.turn()
    driver.answer("begin", "append")
    producers.turn()
    new = driver.sent[-1].client
    assert driver.names()[2:] == [("open", new)] and new != old
    assert (
        driver.sent[-1].fields["config"]["transactional_id"] == (opening.fields["config"]["transactional_id"])
    )
    producers.turn()
    assert driver.names()[3:] == []
    driver.answer("open")
    assert not producers.turn()
    end = driver.names()[3:]
    assert len(end) == 1 and end[0][0].endswith("_transaction") and end[0][1] == old
    driver.answer(end[0][0], ok=False)
    producers.turn()
    assert driver.names()[4:] == [("close", old)] and producers.turn()
    (transaction,) = producers.transactions
    assert transaction.ended == "" and old in producers.closed


def test_a_transaction_that_is_not_fenced_ends_in_its_producer():
    """Rule: nothing else opens."""
    driver = Recorded()
    producers = Producers(Scenario(seed=1, transactional=True, burst=3), driver, "b:1")
    (opening,) = producers.open()
    driver.answer("open")
    producers.send(0, 0)
    driver.answer("begin", "append")
    producers.turn()
    (end,) = driver.names()[2:]
    assert end[0].endswith("_transaction") and end[1] == opening.client
    driver.answer(end[0])
    assert producers.turn() and not producers.closed


@define
class Healed(Recorded):
    """Answers at once; there is one record, and clients that reported trouble get nothing."""

    failure: str = ""
    troubled: frozenset[str] = frozenset()
    ready = SimpleNamespace(roles=("producer", "consumer"), config=())

    def send(self, name, client="", **fields):
        command = Recorded.send(self, name, client, **fields)
        records = [] if client in self.troubled else [{"topic": "t", "partition": 0, "offset": 0}]
        command.answer = {"event": "done", "ok": True, "records": records}
        return command


def test_a_group_that_could_not_join_under_faults_joins_the_healed_cluster():
    """Rule: an application that has given up begins again after the heal, and its members are not stuck."""
    driver = Recorded()
    group = Group(Scenario(seed=1, members=1), driver, "b:1", most_joins=3)
    group.join()
    while group.members:
        driver.answer("open")
        driver.answer("subscribe", ok=False)
        group.turn()
    assert driver.names().count(("open", "c1-2")) == 1 and ("open", "c1-3") not in driver.names()
    group.driver = Healed()
    assert group.drain({("t-0", 0)}) and group.members == ["c1-3"]


def test_a_copier_whose_consumer_reported_trouble_begins_again(monkeypatch):
    """Rule: as a member of the group: a library that reports trouble is not stuck, its application is."""
    monkeypatch.setattr("fencepost.torture.copying.RESTART_S", 0.1)
    monkeypatch.setattr("fencepost.torture.copying.STUCK_S", 1.0)
    copier = Copier(Scenario(seed=1, copier={"acks": -1}), Healed(troubled=frozenset({"x1-0c"})), "b:1")
    copier.open()
    assert copier.drain({("t-0", 0)}) and copier.closed == {"x1-0c", "x1-0p"}


@define
class Crowded(Recorded):
    """Its first clients do not open."""

    fails: int = 0
    failure = ""
    name = "d"

    def wait(self, commands):
        for number, command in enumerate(self.sent):
            command.answer = command.answer or {"event": "done", "ok": number >= self.fails}

    def refuse_disturbed(self):
        pass


def test_what_does_not_open_before_the_faults_is_opened_again():
    """Rule: a broker of a crowded machine may be slower than a request time-out; a client that opens in none
    of OPENS attempts ends the run."""

    def opened(fails, **scenario):
        driver, kafka = Crowded(fails=fails), SimpleNamespace(bootstrap_servers="b:1")
        Torture(scenario=Scenario(seed=1, **scenario), driver=driver, kafka=kafka)._open()
        return len({one.client for one in driver.sent})

    assert [opened(fails, producers=2) for fails in range(5)] == [2, 3, 4, 5, 6]
    with pytest.raises(DriverError):
        opened(OPENS, producers=1)


class AnsweredLate(Torture):
    """Its one append is answered only after the log was read."""

    _set_up = _open = _arm = _with_faults = _heal = _after = lambda self: None

    def _finish(self, log):
        self.driver.answer("append")

    def _read(self, *, of_copies=True):
        return {"t-0": ("before",) if self.driver.sent[0].answer is None else ("before", "after")}

    _outcome = staticmethod(lambda log: log)


def test_the_log_is_read_again_if_an_append_was_answered_after_it_was_read():
    """Rule: a client that was closed at work may write, and be answered, when everybody else is done."""
    kafka = SimpleNamespace(bootstrap_servers="b:1")
    torture = AnsweredLate(scenario=Scenario(seed=1), driver=Crowded(), kafka=kafka)
    torture.producers.appends.append(torture.driver.send("append", "p1-0-0"))
    assert torture.go() == {"t-0": ("before", "after")}
