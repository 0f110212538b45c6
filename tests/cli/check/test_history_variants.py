"""Histories as different tools spell them: each kind in legal and illegal variants, by the command."""

import pytest

VARIANTS = {
    # rw-register
    "a write without answer that was read": (
        "{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}\n"
        "{:type :info, :process 0, :f :txn, :value [[:w :x 1]], :error :timeout}\n"
        "{:type :invoke, :process 1, :f :txn, :value [[:r :x nil]]}\n"
        "{:type :ok, :process 1, :f :txn, :value [[:r :x 1]]}\n"
        "{:type :info, :process :nemesis, :f :start, :value nil}\n",
        ("--model", "rw-register"),
        (0, "ok"),
    ),
    "a lost update in one vector": (
        "[{:type :invoke, :f :txn, :value [[:r 1 nil] [:w 1 2]], :process 0, :index 0}\n"
        "{:type :ok, :f :txn, :value [[:r 1 nil] [:w 1 2]], :process 0, :index 1}\n"
        "{:type :invoke, :f :txn, :value [[:r 1 nil] [:w 1 3]], :process 0, :index 2}\n"
        "{:type :ok, :f :txn, :value [[:r 1 nil] [:w 1 3]], :process 0, :index 3}]\n",
        ("--model", "rw-register"),
        (1, "not_serializable"),
    ),
    "transactions as JSON of named processes": (
        '{"type":"invoke","process":"worker 0","f":"txn","value":[["w",3,1],["r",4,null]],"time":1}\n'
        '{"type":"ok","process":"worker 0","f":"txn","value":[["w",3,1],["r",4,null]],"time":2}\n',
        ("--model", "rw-register", "--parameter", "realtime=true"),
        (0, "ok"),
    ),
    "a failed transaction without value": (
        "{:type :invoke, :f :txn, :value [[:r 1 nil]], :process 0}\n"
        "{:type :fail, :f :txn, :value nil, :process 0, :error :conflict}\n"
        "{:type :invoke, :f :txn, :value [[:r 1 nil]], :process 0}\n"
        "{:type :ok, :f :txn, :value [[:r 1 nil]], :process 0}\n"
        "{:type :invoke, :f :txn, :value [[:w 1 9]], :process 1}\n",
        ("--model", "rw-register"),
        (0, "ok"),
    ),
    # queues
    "a drain that crashed may have all": (
        '{:type :invoke, :f :enqueue, :value {:id 1 :body "a"}, :process "p0", :time 1}\n'
        '{:type :ok, :f :enqueue, :value {:id 1 :body "a"}, :process "p0", :time 2}\n'
        '{:type :invoke, :f :drain, :value nil, :process "p0", :time 3}\n'
        '{:type :info, :f :drain, :value [{:id 1 :body "a"}], :process "p0", :time 4, :error :timeout}\n',
        ("--model", "total-queue"),
        (3, "nobody looked"),
    ),
    "a dequeue without answer may have one": (
        "{:type :invoke, :f :enqueue, :value 1, :process 0, :time 1}\n"
        "{:type :ok, :f :enqueue, :value 1, :process 0, :time 2}\n"
        "{:type :invoke, :f :dequeue, :process 0, :time 3}\n"
        "{:type :info, :f :dequeue, :process 0, :time 4, :error :timeout}\n"
        "{:type :invoke, :f :drain, :process 1, :time 5}\n"
        "{:type :ok, :f :drain, :value [], :process 1, :time 6}\n",
        ("--model", "total-queue"),
        (3, "without an answer"),
    ),
    "publish and fetch of strings": (
        '{"type":"invoke","f":"publish","value":"a","process":"x"}\n'
        '{"type":"ok","f":"publish","value":"a","process":"x","extra":{"n":1}}\n'
        '{"type":"invoke","f":"fetch","value":null,"process":"y"}\n'
        '{"type":"ok","f":"fetch","value":[],"process":"y"}\n',
        ("--model", "total-queue"),
        (1, "element_lost"),
    ),
    # registers
    "a keyed cas that failed": (
        "{:type :invoke, :f :write, :value [0 3], :process 0, :time 1}\n"
        "{:type :ok, :f :write, :value [0 3], :process 0, :time 2}\n"
        "{:type :invoke, :f :cas, :value [0 [3 4]], :process 0, :time 3}\n"
        '{:type :fail, :f :cas, :value [0 [3 4]], :process 0, :time 4, :error [:precondition-failed "x"]}\n'
        "{:type :invoke, :f :read, :value [0 nil], :process 0, :time 5}\n"
        "{:type :ok, :f :read, :value [0 3], :process 0, :time 6}\n",
        ("--model", "cas-register"),
        (0, "jepsen.independent"),
    ),
    # sets, banks, ids
    "a set literal and a read without answer": (
        "{:type :invoke, :f :add, :value 0, :process 0, :time 1}\n"
        "{:type :ok, :f :add, :value 0, :process 0, :time 2}\n"
        "{:type :invoke, :f :read, :value nil, :process 0, :time 3}\n"
        "{:type :ok, :f :read, :value #{0}, :final true, :process 0, :time 4}\n"
        "{:type :invoke, :f :read, :value nil, :process 0, :time 7}\n"
        "{:type :info, :f :read, :value nil, :process 0, :time 8}\n",
        ("--model", "final-set"),
        (0, "ok"),
    ),
    "a failed add that is read": (
        "{:type :invoke, :f :add, :value 5, :process 1, :time 1}\n"
        "{:type :fail, :f :add, :value 5, :process 1, :time 2}\n"
        "{:type :invoke, :f :read, :value nil, :process 0, :time 3}\n"
        "{:type :ok, :f :read, :value #{5}, :process 0, :time 4}\n",
        ("--model", "final-set"),
        (1, "element_from_nowhere"),
    ),
    "balances with a failed transfer": (
        "{:type :invoke, :f :transfer, :value {:from 0 :to 1 :amount 3}, :process 0, :time 1}\n"
        "{:type :fail, :f :transfer, :value {:from 0 :to 1 :amount 3}, :process 0, :time 2}\n"
        "{:type :invoke, :f :read, :value nil, :process 0, :time 3}\n"
        "{:type :ok, :f :read, :value {0 10, 1 10}, :process 0, :time 4}\n"
        "{:type :invoke, :f :read, :value nil, :process 0, :time 5}\n"
        "{:type :ok, :f :read, :value {0 7, 1 10}, :process 0, :time 6}\n",
        ("--model", "bank"),
        (1, "total_changed"),
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_history_as_a_tool_spells_it(fencepost, tmp_path, name: str) -> None:
    """Rule: what is spelled in another way gets the answer of what it says."""
    text, options, (code, says) = VARIANTS[name]
    path = tmp_path / "history"
    path.write_text(text)
    told = fencepost("check", path, *options)
    assert (told.code, says in " ".join((told.out + told.err).split())) == (code, True), told.out + told.err
