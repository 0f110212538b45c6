# ruff: noqa: E501 (lines as tools write them)
"""Histories as different tools spell them: each kind in legal and illegal variants, by the command."""

import pytest

ONE_GAVE_UP = (
    '{"timestamp":1,"name":"startup_complete"}\n'
    '{"timestamp":2,"name":"producer_send_success","key":"k","value":"10","offset":0,"topic":"t","partition":0}\n'
    '{"timestamp":3,"name":"producer_send_error","key":null,"value":"11","topic":"t","exception":"class org.apache.kafka.common.errors.TimeoutException","message":"x"}\n'
    '{"timestamp":4,"name":"producer_send_success","key":"k","value":"12","offset":2,"topic":"t","partition":0}\n'
    '{"timestamp":5,"name":"shutdown_complete"}\n'
    '{"timestamp":6,"name":"tool_data","sent":3,"acked":2,"target_throughput":-1,"avg_throughput":1.0}\n'
    '{"timestamp":7,"name":"startup_complete"}\n'
    '{"timestamp":8,"name":"partitions_assigned","partitions":[{"topic":"t","partition":0}]}\n'
    '{"timestamp":9,"name":"record_data","key":"k","value":"10","topic":"t","partition":0,"offset":0}\n'
    '{"timestamp":10,"name":"record_data","key":null,"value":"11","topic":"t","partition":0,"offset":1}\n'
)
"""Of Kafka's tools: a producer that gave up on its second record of three; a consumer has read the first two."""
THE_LAST = (
    '{"timestamp":11,"name":"record_data","key":"k","value":"12","topic":"t","partition":0,"offset":2}\n'
)
READ = (
    '{"timestamp":12,"name":"records_consumed","count":3,"partitions":[{"topic":"t","partition":0,"count":3,"minOffset":0,"maxOffset":2}]}\n'
    '{"timestamp":13,"name":"offsets_committed","success":true,"offsets":[{"topic":"t","partition":0,"offset":3}]}\n'
)

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
    # files of tools
    "history.txt with a nemesis and a time-out that took effect": (
        ":nemesis\t:info\t:start-partition\tnil\n"
        "0\t:invoke\t:write\t1\n"
        "1\t:invoke\t:read\tnil\n"
        "1\t:ok\t:read\t1\n"
        "0\t:info\t:write\t1\t:timeout\n"
        ':nemesis\t:info\t:start-partition\t[:isolated {"n1" #{"n2"}}]\n'
        "1\t:invoke\t:read\tnil\n"
        "1\t:ok\t:read\tnil\n",
        ("--model", "register"),
        (1, "two values were current"),
    ),
    "history.txt with tabs at the end": (
        "0\t:invoke\t:write\t1\t\n"
        "0\t:ok\t:write\t1\t\n"
        "0\t:invoke\t:cas\t[1 2]\n"
        "0\t:ok\t:cas\t[1 2]\n"
        "1\t:invoke\t:read\tnil\n"
        "1\t:ok\t:read\t2\n",
        ("--model", "cas-register"),
        (0, "ok"),
    ),
    "a log of Jepsen with stack traces and keys": (
        '2024-01-02 03:04:05,006{UTC}\tWARN\t[jepsen node n1] jepsen.db: Something {:with "braces"\n'
        "java.lang.RuntimeException: a trace\n"
        "\tat jepsen.core$run.invoke(core.clj:1)\n"
        "2024-01-02 03:04:06,006{UTC}\tINFO\t[jepsen worker 0] jepsen.util: 0\t:invoke\t:write\t[:k 1]\n"
        "2024-01-02 03:04:06,106{UTC}\tINFO\t[jepsen worker 0] jepsen.util: 0\t:ok\t:write\t[:k 1]\n"
        "2024-01-02 03:04:06,206{UTC}\tINFO\t[jepsen worker 1] jepsen.util: 1\t:invoke\t:read\t[:k nil]\n"
        "2024-01-02 03:04:06,306{UTC}\tINFO\t[jepsen worker 1] jepsen.util: 1\t:ok\t:read\t[:k 1]\n",
        ("--model", "register"),
        (0, "3 lines of the log are no entries"),
    ),
    "a producer that gave up on a record which is there": (
        ONE_GAVE_UP + THE_LAST + READ,
        (),
        (0, "1 unknown but present"),
    ),
    "a consumer that ended early": (ONE_GAVE_UP + READ, (), (3, "in no last read")),
    "a record that became another one": (
        ONE_GAVE_UP + THE_LAST.replace('"value":"12"', '"value":"13"') + READ,
        (),
        (1, "1 lost"),
    ),
    "a dump with a path": (
        "Dumping /var/lib/kafka/data/demo-0/00000000000000000000.log\n"
        "Log starting offset: 0\n"
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1 size: 75 magic: 2 compresscodec: none crc: 1 isvalid: true\n",
        (),
        (2, "log dump FILE.log"),
    ),
    "a dump of an old release": (
        "offset: 0 position: 0 CreateTime: 1549368000000 isvalid: true keysize: -1 valuesize: 5 magic: 2 compresscodec: NONE producerId: -1 payload: hello\n",
        (),
        (2, "log dump FILE.log"),
    ),
    "a vector in the order of completion": (
        "[{:type :invoke, :f :read, :value nil, :process 1, :time 20}\n"
        " {:type :ok, :f :read, :value nil, :process 1, :time 50}\n"
        " {:type :invoke, :f :write, :value 1, :process 0, :time 10}\n"
        " {:type :ok, :f :write, :value 1, :process 0, :time 100}\n"
        " {:type :invoke, :f :read, :value nil, :process 1, :time 120}\n"
        " {:type :ok, :f :read, :value nil, :process 1, :time 150}]\n",
        ("--model", "register"),
        (1, "two values were current"),
    ),
    "tags, ratios, characters and exceptions": (
        "{:index 0, :time 1, :type :invoke, :process 0, :f :write, :value 1}\n"
        '{:index 1, :time 2, :type :info, :process 0, :f :write, :value 1, :error [:unknown #error {:cause "x" :via [{:type clojure.lang.ExceptionInfo :message "m" :data {:a #object[java.lang.Object 0x1 "o"]}}] :trace []}]}\n'
        "{:index 2, :time 3, :type :invoke, :process 1, :f :read, :value nil}\n"
        '{:index 3, :time 4, :type :ok, :process 1, :f :read, :value nil, :node #jepsen/node "n1", :at #inst "2024-01-01T00:00:00.000-00:00", :ratio 1/3, :big 10N, :ch \\a, :re #"a+b", :s #{1 2}}\n',
        ("--model", "register"),
        (0, "ok"),
    ),
    "a key-value log of Porcupine with text values": (
        '{:process 0, :type :invoke, :f :put, :key "0", :value "x 0 0 y"}\n'
        '{:process 0, :type :ok, :f :put, :key "0", :value "x 0 0 y"}\n'
        '{:process 1, :type :invoke, :f :get, :key "0", :value nil}\n'
        '{:process 1, :type :ok, :f :get, :key "0", :value "x 0 0 y"}\n'
        '{:process 0, :type :invoke, :f :append, :key "0", :value "z"}\n'
        '{:process 0, :type :ok, :f :append, :key "0", :value "z"}\n'
        '{:process 1, :type :invoke, :f :get, :key "0", :value nil}\n'
        '{:process 1, :type :ok, :f :get, :key "0", :value "x 0 0 yz"}\n',
        ("--model", "key-value"),
        (0, "ok"),
    ),
    "lists of Maelstrom with a time-out that took effect": (
        "{:index 0, :time 5106, :type :invoke, :process 0, :f :txn, :value [[:r 9 nil] [:append 9 1]]}\n"
        "{:index 1, :time 6106, :type :invoke, :process 1, :f :txn, :value [[:append 8 1]]}\n"
        "{:index 2, :time 7106, :type :ok, :process 0, :f :txn, :value [[:r 9 nil] [:append 9 1]]}\n"
        "{:index 3, :time 8106, :type :info, :process 1, :f :txn, :value [[:append 8 1]], :error :net-timeout}\n"
        "{:index 4, :time 9106, :type :invoke, :process 0, :f :txn, :value [[:r 9 nil] [:r 8 nil]]}\n"
        "{:index 5, :time 9206, :type :ok, :process 0, :f :txn, :value [[:r 9 [1]] [:r 8 [1]]]}\n",
        (),
        (0, "1 ok"),
    ),
    "lists of Maelstrom with a failed append that was read": (
        "{:index 0, :time 1, :type :invoke, :process 0, :f :txn, :value [[:append 9 1]]}\n"
        '{:index 1, :time 2, :type :fail, :process 0, :f :txn, :value [[:append 9 1]], :error [:txn-conflict "x"]}\n'
        "{:index 2, :time 3, :type :invoke, :process 1, :f :txn, :value [[:r 9 nil]]}\n"
        "{:index 3, :time 4, :type :ok, :process 1, :f :txn, :value [[:r 9 [1]]]}\n",
        (),
        (1, "failed_append_visible"),
    ),
    "lists with a write skew": (
        "{:type :invoke, :process 0, :f :txn, :value [[:r :x nil] [:append :y 1]]}\n"
        "{:type :invoke, :process 1, :f :txn, :value [[:r :y nil] [:append :x 1]]}\n"
        "{:type :ok, :process 0, :f :txn, :value [[:r :x []] [:append :y 1]]}\n"
        "{:type :ok, :process 1, :f :txn, :value [[:r :y nil] [:append :x 1]]}\n",
        ("--model", "list-append"),
        (1, "not_serializable"),
    ),
    "lists under names, in order": (
        '{"type":"invoke","process":"a","f":"txn","value":[["append","x",1],["r","x",null]]}\n'
        '{"type":"ok","process":"a","f":"txn","value":[["append","x",1],["r","x",[1]]]}\n',
        ("--model", "list-append", "--parameter", "realtime=true"),
        (0, "ok"),
    ),
    "a long fork in two reads": (
        "{:type :invoke, :f :write, :value [[:w 0 1]], :process 0}\n"
        "{:type :ok, :f :write, :value [[:w 0 1]], :process 0}\n"
        "{:type :invoke, :f :write, :value [[:w 1 1]], :process 1}\n"
        "{:type :ok, :f :write, :value [[:w 1 1]], :process 1}\n"
        "{:type :invoke, :f :read, :value [[:r 0 nil] [:r 1 nil]], :process 2}\n"
        "{:type :invoke, :f :read, :value [[:r 1 nil] [:r 0 nil]], :process 3}\n"
        "{:type :ok, :f :read, :value [[:r 0 1] [:r 1 nil]], :process 2}\n"
        "{:type :ok, :f :read, :value [[:r 1 1] [:r 0 nil]], :process 3}\n",
        ("--model", "long-fork"),
        (1, "the other way round"),
    ),
    "lin-kv of Maelstrom with a failed cas": (
        "{:process 0, :type :invoke, :f :write, :value [4 1], :index 0, :time 1}\n"
        "{:process 0, :type :ok, :f :write, :value [4 1], :index 1, :time 2}\n"
        "{:process 1, :type :invoke, :f :cas, :value [4 [1 3]], :index 2, :time 3}\n"
        '{:process 1, :type :fail, :f :cas, :value [4 [1 3]], :error [:precondition-failed "current value 1 is not 2"], :index 3, :time 4}\n'
        "{:process 0, :type :invoke, :f :read, :value [4 nil], :index 4, :time 5}\n"
        "{:process 0, :type :ok, :f :read, :value [4 1], :index 5, :time 6}\n",
        ("--model", "cas-register"),
        (0, "jepsen.independent"),
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
