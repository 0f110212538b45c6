"""The producers of a run: what they send, and when."""

from attrs import define, field

from fencepost.torture.driver_process import Command
from fencepost.torture.producing import Producers
from fencepost.torture.scenario import Scenario


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
