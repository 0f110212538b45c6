"""What procedures are handed of the replies that they wait for."""

from pathlib import Path

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.core_interface import AskZooKeeper, ZooKeeperReplied
from fencepost.impl.core.procedures import Pipelined, Procedures
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.impl.zookeeper.interface import Data, Failed, GetData, Reply, Stat, ZooKeeperError
from fencepost.traces.plan import ClusterOptions


def test_what_is_kept_of_a_reply_is_made_when_it_comes(tmp_path: Path) -> None:
    """Rule: a pipelined read hands its procedure what is kept of each reply, in the order of the requests,
    made of each when it comes and once; a reply that was lost is nothing to keep, but asked for again."""
    broker_context = BrokerContext(node=1, options=ClusterOptions(brokers=1), files=RealFiles(tmp_path))
    procedures = Procedures(broker_context, connected=True)
    seen: list[bytes] = []
    handed: list[list[bytes]] = []

    def kept(reply: Reply) -> bytes:
        assert isinstance(reply, Data)
        seen.append(reply.data)
        return reply.data.upper()

    def steps():
        handed.append((yield Pipelined((GetData("/a"), GetData("/b"), GetData("/c")), 2, kept)))

    def answer(request_id: int, reply: Reply) -> None:
        procedures.on_reply(ZooKeeperReplied(request_id, reply))

    procedures.start(steps())
    stat = Stat(1, 1, 0, 0, 0, 0)
    answer(2, Data(b"b", stat))
    assert seen == [b"b"] and handed == []
    answer(1, Failed(ZooKeeperError.CONNECTION_LOSS))
    answer(3, Data(b"c", stat))
    procedures.on_connected()
    asked = [effect for effect in broker_context.outbox if isinstance(effect, AskZooKeeper)]
    assert [ask.request.path for ask in asked] == ["/a", "/b", "/c", "/a"]
    answer(4, Data(b"a", stat))
    assert seen == [b"b", b"c", b"a"] and handed == [[b"A", b"B", b"C"]]
