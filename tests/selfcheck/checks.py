"""What a recorder, a disk and the steps of brokers owe, in the words of a list of complaints."""

from itertools import pairwise

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.impl.log.values import NO_VALUE
from fencepost.impl.messages import broker_api as kafka
from fencepost.sim.world import FIRST_CLIENT_NODE
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.traces.operations import Function, Outcome
from tests.selfcheck.lab import loaded, records_in


def recorder(watched):
    """Each acknowledged append, each read and each end of a log against the messages that its process sent
    and was sent while the operation went on."""
    asked, answered = {}, {}
    for time, source, target, message in watched.carried:
        if source >= FIRST_CLIENT_NODE and hasattr(message, "correlation_id"):
            asked[source, message.correlation_id] = message
        elif target >= FIRST_CLIENT_NODE and hasattr(message, "correlation_id"):
            answered.setdefault(target, []).append((time, message))
    wrong = []
    for operation in watched.trace.operations:
        rule = RULES.get(operation.function)
        if rule is None or operation.outcome is not Outcome.OK:
            continue
        node = FIRST_CLIENT_NODE + operation.process
        if operation.acks == 0:
            said = any(_sent(operation, request) for (by, _), request in asked.items() if by == node)
        else:
            of_group = operation.function is Function.POLL and operation.topic is None
            pairs = [
                (asked[node, answer.correlation_id], answer)
                for time, answer in answered.get(node, ())
                if (of_group or operation.invoke_time <= time)
                and time <= operation.completion_time
                and (node, answer.correlation_id) in asked
            ]
            said = (
                _all_fetched(operation, pairs) if of_group else any(rule(operation, *pair) for pair in pairs)
            )
        if not said:
            wrong.append(f"operation {operation.op_id}: no message says what its row says: {operation}")
    return wrong


def _sent(operation, request):
    if not isinstance(request, kafka.ProduceRequest) or not _is_of(operation, request.partition):
        return False
    wanted = [record.value for record in operation.records]
    return set(wanted) <= {value for _, value in records_in(request.records)}


def _all_fetched(operation, pairs):
    """A member of a group hands out what it fetched earlier, of several partitions."""
    came = {
        (each.partition.topic, each.partition.partition, *one)
        for _, answer in pairs
        if isinstance(answer, kafka.FetchResponse)
        for each in answer.partitions
        for one in records_in(each.records)
    }
    return {(one.topic, one.partition, one.offset, one.value) for one in operation.records} <= came


def _appended(operation, request, answer):
    if not isinstance(answer, kafka.ProduceResponse) or answer.error is not ErrorCode.NONE:
        return False
    sent = records_in(request.records)
    wanted = [(record.offset, record.value) for record in operation.records]
    carried = [(answer.base_offset + place, value) for place, value in sent]
    return _is_of(operation, request.partition) and set(wanted) <= set(carried)


def _read(operation, request, answer):
    """All records of the row, and none between them left out, but for those of brokers and, for who reads
    committed records, of aborted transactions."""
    if not isinstance(answer, kafka.FetchResponse):
        return False
    row = [(record.offset, record.value) for record in operation.records]
    for each in answer.partitions:
        if each.error is not ErrorCode.NONE or not _is_of(operation, each.partition):
            continue
        came = [one for one in records_in(each.records) if one[1] != NO_VALUE]
        if not row:
            return True
        between = [one for one in came if row[0][0] <= one[0] <= row[-1][0]]
        if row == between or (request.read_committed and set(row) <= set(between)):
            return True
    return False


def _listed(operation, request, answer):
    """A row of a question by time says no offset."""
    return (
        isinstance(answer, kafka.ListOffsetsResponse)
        and _is_of(operation, request.partition)
        and answer.error is ErrorCode.NONE
        and operation.offset in (None if operation.argument == "by_time" else answer.offset,)
    )


def _is_of(operation, partition):
    return (operation.topic, operation.partition) == (partition.topic, partition.partition)


RULES = {Function.APPEND: _appended, Function.POLL: _read, Function.LIST_OFFSETS: _listed}


def memory(watched):
    """The logs of each running broker against those that a fresh broker opens from its files."""
    wrong = []
    for broker in watched.run.cluster.broker_ids:
        host = watched.run.cluster.world.hosts[broker]
        if host.core is None or host.core.shutdown.shutting_down:
            continue
        fresh = loaded(host.disk, host.core)
        for key, partition in sorted(host.core.replicas.partitions.items()):
            for name, held, read in _sides(partition.log, fresh[key]):
                if held != read:
                    wrong.append(
                        f"{key} at broker {broker}: {name} is {held} in memory, {read} from the files"
                    )
    return wrong


def _sides(log, fresh):
    """(what, in memory, from the files). A log start is checkpointed late, an idle producer is forgotten at
    once in memory only, and an epoch whose first batches compaction took begins with the log once it is
    opened."""
    yield "its end", log.log_end_offset, fresh.log_end_offset
    below = next((header.base_offset for header, _ in log.batches()), 0)
    first = max(log.log_start_offset, fresh.log_start_offset, below)
    yield "its leader epochs", *(_written(side, first) for side in (log, fresh))
    both = sorted(set(log.producers.producers) & set(fresh.producers.producers))
    for producer in both:
        held, read = (side.producers.producers[producer] for side in (log, fresh))
        for name in ("epoch", "last_sequence", "open_since"):
            yield f"{name} of producer {producer}", getattr(held, name), getattr(read, name)
    missing = sorted(set(log.producers.producers) - set(both))
    yield "producers that the files lack", missing, []


def _written(log, first):
    """(epoch, its first offset from `first` on) of the epochs that have a record there: one without a record
    yet is given up when a log is opened."""
    entries = [(epoch, start) for epoch, start in log.epochs.entries if start < log.log_end_offset]
    return [
        (epoch, max(start, first))
        for (epoch, start), (_, end) in pairwise([*entries, (None, log.log_end_offset)])
        if end > first
    ]


def steps(watched):
    """The steps of partitions and of coordinators, against the models'."""
    return [
        str(verdict.findings[:1])
        for verdict in judge(watched.trace, ("conformance",))
        if verdict.decision is Decision.ILLEGAL
    ]
