"""One trace as the data of a page: everything by step, as small as it gets, cut to a window if it is too
large.

Owns: which facts of a trace a page holds, and the bound of their size. Must not know HTML.

docs/how-to/viewer.md describes the fields; page/data.js reads them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from attrs import define, field, frozen

from fencepost.checkers.verdict import Finding, Verdict
from fencepost.report.entries import ROUTINE, TURNING_POINTS
from fencepost.report.event_words import answer_in_words, event_in_words, partition_name, printable
from fencepost.report.spoken import Spoken
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace
from fencepost.viewer.cluster_tracks import Cluster
from fencepost.viewer.columns import Texts, columns, values_as_run, visible
from fencepost.viewer.faults import faults_of
from fencepost.viewer.finding_rows import FindingRows
from fencepost.viewer.known.application_processes import Processes
from fencepost.viewer.known.client_knowledge import HOWS, ClientLogs, Groups, Known
from fencepost.viewer.messages import Message, messages_of
from fencepost.viewer.moments import Kind, Moments, moments_of
from fencepost.viewer.operations import OperationRows, asked_in_words
from fencepost.viewer.replica_logs import Partition, ReplicaLogs
from fencepost.viewer.tracks import Window, windows
from fencepost.viewer.transaction_fates import TransactionRows, found_transactions

MOST_BYTES = 2_000_000
"""Size of one view's JSON. A browser reads it in about 20 ms, and the page is small enough for a mail."""
MOST_FINDINGS = 20
LONGEST_FAILURE = 600
"""Characters of what a test says."""
MOST_PARTITIONS = 200
"""Partitions of a page, those of the findings first."""
MOST_CLAIMS, MOST_UNREAD = 20, 50
ZOOKEEPER_FACTS = frozenset(
    {
        Name.CONTROLLER_EPOCH,
        Name.CONTROLLER_ZNODE,
        Name.PARTITION_STATE,
        Name.BROKER_ZNODE,
        Name.ASSIGNMENT,
        Name.REASSIGNMENT,
        Name.TOPIC_DELETION,
    }
)
"""Events on ZooKeeper's lane; their node is the writer."""
INVOKE, ANSWER = "invoke", "answer"


@frozen(kw_only=True)
class Shown:
    """What a page is to show of one trace."""

    trace: Trace
    verdicts: tuple[Verdict, ...] = ()
    # Of the view, where a page has several, such as healthy and broken.
    name: str = ""
    # The command that shows it again, "" if there is none.
    replay: str = ""
    # Of a test that failed by itself, in a line: what it says. "": the trace is of no such test.
    failure: str = ""
    # The picture of viewer/sequential.py.
    sequential: Mapping[str, Any] | None = None
    # What of the source could not be read, in sentences.
    unread: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The one that names the trace first."""
        found = [finding for verdict in self.verdicts for finding in verdict.findings]
        return tuple(sorted(found, key=lambda finding: BY_NAME[finding.anomaly].rank))


def view_of(shown: Shown, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The data of one view.

    Parameters: shown: the trace and what judges said of it. most_bytes: of its JSON; a trace that needs more
    is cut to a window around its first finding.
    Returns: what JSON can hold.
    """
    whole = _Whole(shown)
    view: dict[str, Any] = {}
    for window in windows(len(whole.moments.all), whole.targets()):
        view = whole.within(window)
        if len(msgspec.json.encode(view)) <= most_bytes:
            break
    return view


def partitions_of(trace: Trace, findings: Sequence[Finding]) -> tuple[Partition, ...]:
    """All that the trace names: those of findings first, clients' before Kafka's own."""
    seen = {(event.topic, event.partition) for event in trace.events if event.topic and event.partition >= 0}
    for operation in trace.operations:
        if operation.topic is not None and operation.partition is not None:
            seen.add((operation.topic, operation.partition))
        seen.update((spot.topic, spot.partition) for spot in operation.positions)
        seen.update((record.topic, record.partition) for record in operation.records)
    convicted = {(finding.topic, finding.partition) for finding in findings}
    convicted.update(place[:2] for finding in findings for place in finding.places)
    return tuple(sorted(seen, key=lambda key: (key not in convicted, key[0].startswith("__"), key)))


@define
class _Whole:
    """Everything of the trace by step; `within` cuts it to a window."""

    shown: Shown
    trace: Trace = field(init=False)
    # What an application wrote of itself.
    processes: Processes = field(init=False)
    moments: Moments = field(init=False)
    # Position of each partition on the page; and how many have none, for there are too many.
    partitions: dict[Partition, int] = field(init=False)
    more_partitions: int = field(init=False)
    logs: ReplicaLogs = field(factory=ReplicaLogs)
    # The logs as clients know them.
    clients: ClientLogs = field(factory=ClientLogs)
    groups: Groups = field(factory=Groups)
    cluster: Cluster = field(init=False)
    messages: list[Message] = field(init=False)
    transactions: TransactionRows = field(init=False)
    # Lanes from the top, and the position of each by name.
    lanes: list[dict[str, str]] = field(init=False)
    lane_numbers: dict[str, int] = field(init=False)
    # Whether its times are some; those of lines of an application alone are places in their order.
    timed: bool = field(init=False)
    spoken: Spoken = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.processes = Processes.of(self.shown.trace)
        self.trace = trace = self.processes.in_turn()
        self.moments = moments_of(trace)
        named = partitions_of(trace, self.shown.findings)
        drawn = sorted(named[:MOST_PARTITIONS], key=lambda key: (key[0].startswith("__"), key))
        self.partitions = {key: number for number, key in enumerate(drawn)}
        self.more_partitions = len(named) - len(drawn)
        brokers = sorted({event.node for event in trace.events if event.node >= 0})
        self.cluster = Cluster(partitions=tuple(self.partitions), brokers=tuple(brokers))
        transactions = found_transactions(trace, self.moments)
        parts = {index for one in transactions for index in one.parts}
        for step, moment in enumerate(self.moments.all):
            if moment.kind is Kind.EVENT:
                event = trace.events[moment.index]
                self.logs.apply(step, event)
                self.cluster.apply(step, event)
                self.groups.event(step, event)
                self.processes.apply(step, moment.index, event, self.clients, self.groups)
            elif moment.kind is Kind.ANSWER:
                one = trace.operations[moment.index]
                self.clients.answered(step, moment.index, one, in_transaction=moment.index in parts)
                self.groups.answered(step, one)
        self.messages = messages_of(trace, self.moments)
        processes = sorted({operation.process for operation in trace.operations})
        cluster = any(event.name is not Name.APPLICATION for event in trace.events)
        self.timed = cluster or bool(trace.operations)
        self.lanes = [{"id": "zk", "kind": "zookeeper", "label": "ZooKeeper"}] if cluster else []
        self.lanes += [{"id": f"b{node}", "kind": "broker", "label": f"broker {node}"} for node in brokers]
        self.spoken = Spoken(trace)
        self.lanes += [
            {"id": f"c{one}", "kind": "client", "label": self.spoken.client(one)} for one in processes
        ]
        self.lanes += self.processes.lanes()
        self.lane_numbers = {lane["id"]: number for number, lane in enumerate(self.lanes)}
        self.transactions = TransactionRows(
            transactions=transactions,
            operations=trace.operations,
            partitions=self.partitions,
            lanes=self.lane_numbers,
        )

    def targets(self) -> list[int]:
        """The steps that convict, of the first finding, ascending; of a test that failed by itself, the last
        thing that a client heard before."""
        if not self.shown.findings:
            return [max(self.moments.answer, default=0)] if self.shown.failure else []
        return self._findings.steps(self.shown.findings[0], Window(0, len(self.moments.all)))

    def within(self, window: Window) -> dict[str, Any]:
        """The data of a window."""
        texts = Texts(said=self.spoken)
        trace, shown = self.trace, self.shown
        times = [moment.time for moment in self.moments.all]
        origin = min(times, default=0)
        kept = [
            index
            for index in range(len(trace.operations))
            if self.moments.invoke[index] < window.end and not 0 <= self.moments.answer[index] < window.first
        ]
        numbers = {index: number for number, index in enumerate(kept)}
        view = {
            "name": shown.name,
            "replay": shown.replay,
            "failure": printable(shown.failure, LONGEST_FAILURE),
            "opens": [window.inside(step) for step in self.targets() if window.holds(step)][-1:],
            "trace": self._trace_facts(),
            "window": {"first": window.first, "end": window.end, "total": len(times)},
            "span": [0, max(times, default=0) - origin],
            "timed": self.timed,
            "partitions": [partition_name(topic, number) for topic, number in self.partitions],
            "lanes": self.lanes,
            "moments": self._moments(window, texts, origin, numbers),
            "names": self._names(),
            "replicas": self._replicas(window),
            "facts": self._facts(window),
            "clients": self._clients(window, numbers),
            "hows": HOWS,
            "groups": self._groups(window),
            "operations": self._operations(origin).within(window, kept, texts),
            "transactions": self.transactions.within(window, numbers),
            "messages": self._messages(window, texts, numbers),
            "faults": self._faults(window, texts, origin),
            "findings": [self._findings.row(finding, window) for finding in shown.findings[:MOST_FINDINGS]],
            "more_findings": max(0, len(shown.findings) - MOST_FINDINGS),
            "left_out": list(self._left_out(window, kept)),
            "verdicts": [
                {"check": one.check, "decision": one.decision.value, "reason": printable(one.says, 300)}
                for one in shown.verdicts
            ],
            "sequential": shown.sequential,
            "contents": self._contents(window, kept),
        }
        view["texts"] = texts.all
        found: dict[str, Any] = visible(view)
        return found

    # ---- parts

    @property
    def _findings(self) -> FindingRows:
        return FindingRows(trace=self.trace, moments=self.moments, partitions=self.partitions)

    def _contents(self, window: Window, kept: list[int]) -> dict[str, str]:
        """What the records of a window say, by value id."""
        contents = self.spoken.contents
        if not contents:
            return {}
        named = {record.value for index in kept for record in self.trace.operations[index].records}
        for log in self.logs.logs.values():
            for block in log.blocks:
                if block.born < window.end and (block.died is None or block.died >= window.first):
                    named.update(block.values)
        return {str(value): contents[value] for value in sorted(named & contents.keys())}

    def _left_out(self, window: Window, kept: list[int]) -> Iterator[str]:
        """What the page has not got, in sentences with numbers."""
        total = len(self.moments.all)
        if window.end - window.first < total:
            drawn = sum(one.kind is Kind.EVENT for one in self.moments.all[window.first : window.end])
            yield (
                f"moments before {window.first + 1} and after {window.end} of {total}, "
                f"with {len(self.trace.operations) - len(kept)} operations and "
                f"{len(self.trace.events) - drawn} events: the trace is cut to a window around the finding; "
                "what came before is in the state of the first moment"
            )
        for what, there, most in (
            ("partitions", len(self.partitions) + self.more_partitions, MOST_PARTITIONS),
            ("findings", len(self.shown.findings), MOST_FINDINGS),
            ("reasons of claims", len(self.trace.claims.reasons), MOST_CLAIMS),
        ):
            if there > most:
                yield f"{there - most} of {there} {what}"
        yield from (printable(one, LONGEST_FAILURE) for one in self.shown.unread[:MOST_UNREAD])
        if len(self.shown.unread) > MOST_UNREAD:
            yield f"and {len(self.shown.unread) - MOST_UNREAD} more that could not be read"

    def _trace_facts(self) -> dict[str, Any]:
        trace = self.trace
        return {
            "id": str(trace.trace_id),
            "target": printable(trace.target, 60),
            "profile": printable(trace.profile, 60),
            "version": printable(trace.software_version, 40),
            "digest": printable(trace.digest, 80),
            "operations": len(trace.operations),
            "events": len(trace.events),
            "claims": [printable(reason, 300) for reason in trace.claims.reasons[:MOST_CLAIMS]],
        }

    def _names(self) -> list[dict[str, Any]]:
        """What a moment can be, by number: events as in `Name`, then invocations and answers. level: 1
        turning points, 2 notable, 4 routine."""
        levels = {name: 1 if name in TURNING_POINTS else 4 if name in ROUTINE else 2 for name in Name}
        names: list[dict[str, Any]] = [
            {"name": name.value, "level": levels[name], "zk": name in ZOOKEEPER_FACTS} for name in Name
        ]
        return [*names, {"name": INVOKE, "level": 4, "zk": False}, {"name": ANSWER, "level": 4, "zk": False}]

    def _moments(
        self, window: Window, texts: Texts, origin: int, numbers: Mapping[int, int]
    ) -> dict[str, list[Any]]:
        order = {name: number for number, name in enumerate(Name)}
        rows, before = [], origin
        for moment in self.moments.all[window.first : window.end]:
            row: tuple[int, ...]
            if moment.kind is Kind.EVENT:
                event = self.trace.events[moment.index]
                lane = "zk" if event.name in ZOOKEEPER_FACTS else f"b{event.node}"
                lane = self.processes.lane(moment.index) or lane
                text = event_in_words(event)
                row = (order[event.name], self.lane_numbers.get(lane, -1), event.node, self._partition(event))
                ref = moment.index
            else:
                operation = self.trace.operations[moment.index]
                invoked = moment.kind is Kind.INVOKE
                text = asked_in_words(operation) if invoked else answer_in_words(operation)
                lane_number = self.lane_numbers[f"c{operation.process}"]
                node = -1 if invoked else operation.node
                row = (len(order) + (0 if invoked else 1), lane_number, node, self._partition(operation))
                ref = numbers[moment.index]
            rows.append((moment.time - before, *row, texts.number(text), ref))
            before = moment.time
        return columns(("wait", "name", "lane", "node", "partition", "text", "ref"), rows)

    def _partition(self, thing: Event | Operation) -> int:
        if thing.topic is None or thing.partition is None:
            return -1
        return self.partitions.get((thing.topic, thing.partition), -1)

    def _replicas(self, window: Window) -> list[dict[str, Any]]:
        found = []
        for (partition, node), log in sorted(self.logs.logs.items()):
            if partition not in self.partitions:
                continue
            rows = [
                (
                    block.base,
                    block.epoch,
                    window.inside(block.born),
                    -1 if block.died is None or block.died >= window.end else window.inside(block.died),
                    int(block.gone) if block.died is not None and block.died < window.end else 0,
                    values_as_run(block.values),
                    int(block.gone),
                )
                for block in log.blocks
                if block.born < window.end and (block.died is None or block.died >= window.first)
            ]
            facts = {
                name: track
                for name in ("high_watermark", "log_end", "log_start", "clean")
                if (track := self.logs.facts.within(window, ((partition, node), name)))
            }
            found.append(
                {
                    "partition": self.partitions[partition],
                    "broker": node,
                    "blocks": columns(("base", "epoch", "born", "died", "gone", "values", "fate"), rows),
                    "facts": facts,
                }
            )
        return found

    def _facts(self, window: Window) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for (subject, name), track in self.cluster.facts.by_key.items():
            if cut := track.within(window):
                found.setdefault(subject, {})[name] = cut
        return found

    def _clients(self, window: Window, numbers: Mapping[int, int]) -> list[dict[str, Any]]:
        found = []
        names = ("shown_end", "last_stable_offset", "log_start")
        for partition, number in self.partitions.items():
            known = self.clients.known.get(partition, {})
            facts = {
                name: cut for name in names if (cut := self.clients.facts.within(window, (partition, name)))
            }
            if known or facts:
                rows = [
                    (
                        run[0].offset,
                        run[0].epoch,
                        window.inside(run[0].step),
                        numbers.get(run[0].operation, -1),
                        HOWS.index(run[0].how),
                        int(run[0].rival),
                        values_as_run([one.value for one in run]),
                    )
                    for run in _runs(known.values())
                    if run[0].step < window.end
                ]
                columns_of = ("base", "epoch", "step", "operation", "how", "rival", "values")
                found.append({"partition": number, "known": columns(columns_of, rows), "facts": facts})
        return found

    def _groups(self, window: Window) -> dict[str, Any]:
        facts: dict[str, dict[str, Any]] = {}
        for (subject, name), track in self.groups.facts.by_key.items():
            if cut := track.within(window):
                facts.setdefault(subject, {})[name] = cut
        consumers = [[who, *of] for who, of in sorted(self.groups.consumers.items(), key=_by_number)]
        return {"names": self.groups.names, "consumers": consumers, "facts": facts}

    def _operations(self, origin: int) -> OperationRows:
        return OperationRows(
            operations=self.trace.operations,
            moments=self.moments,
            partitions=self.partitions,
            lanes=self.lane_numbers,
            origin=origin,
        )

    def _messages(self, window: Window, texts: Texts, numbers: Mapping[int, int]) -> dict[str, list[Any]]:
        rows = [
            (
                int(one.kind),
                self.lane_numbers.get(one.source, -1),
                window.inside(one.sent),
                self.lane_numbers.get(one.target, -1),
                window.inside(one.arrived),
                int(one.fate),
                int(one.sure),
                numbers.get(one.operation, -1),
                texts.number(one.words),
            )
            for one in self.messages
            if one.sent < window.end and one.arrived >= window.first
        ]
        names = ("kind", "source", "sent", "target", "arrived", "fate", "sure", "operation", "text")
        return columns(names, rows)

    def _faults(self, window: Window, texts: Texts, origin: int) -> list[dict[str, Any]]:
        found = []
        for bar in faults_of(self.trace):
            began = self.moments.event[bar.began]
            ended = None if bar.ended is None else self.moments.event[bar.ended]
            if began < window.end and (ended is None or ended >= window.first):
                found.append(
                    {
                        "kind": printable(bar.kind, 60),
                        "nodes": list(bar.nodes),
                        "broker": bar.broker,
                        "began": window.inside(began),
                        "ended": -2 if ended is None else window.inside(ended),
                        "from": self.moments.all[began].time - origin,
                        "until": -1 if ended is None else self.moments.all[ended].time - origin,
                        "text": texts.number(bar.words),
                    }
                )
        return found


def _by_number(consumer: tuple[str, Any]) -> tuple[int, str]:
    who = consumer[0]
    return int(who) if who.isdecimal() else -1, who


def _runs(known: Any) -> Iterator[list[Known]]:
    """Neighbouring offsets that were learned together."""
    run: list[Known] = []
    for one in known:
        last = run[-1] if run else None
        together = last is not None and (
            one.offset == last.offset + 1
            and (one.epoch, one.operation, one.how, one.rival)
            == (last.epoch, last.operation, last.how, last.rival)
        )
        if run and not together:
            yield run
            run = []
        run.append(one)
    if run:
        yield run
