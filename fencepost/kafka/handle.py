"""What people hold in a test: an embedded cluster with its address, the verbs that break it, its record and
its verdict.

Owns the public surface, with one method for each verb of verbs.py, and what is done with a trace. Must not
know where the cluster lives: in this process (here.py) or in a child (child.py).
"""

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve, field

from fencepost.application.service_files import ServiceFiles
from fencepost.checkers.application.application_judge import claims_of
from fencepost.checkers.verdict import Verdict
from fencepost.kafka.assertions.asserting import Assertions
from fencepost.kafka.hosted import FOR_GOOD_MS
from fencepost.kafka.services import Service, Services, until
from fencepost.kafka.waiting import Waiting
from fencepost.run.faults.kind import MICROSECONDS
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import EnvironmentError_, PlanError
from fencepost.traces.jsonlines import read_traces, write_traces
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.kafka.topic_records import KafkaRecord
    from fencepost.proxy.faults import RequestFault

HEALTHY_S = 300.0
"""Longest wait for a healthy cluster, of the wall clock."""
PATIENCE_S = 300.0
"""Longest wait for a condition of a test: beyond the half minute that clients take to give up a
connection, and what that takes on a crowded machine."""
SIDES: Mapping[str, tuple[str, ...]] = {
    "brokers": ("partition",),
    "zookeeper": ("isolate_zookeeper",),
    "clients": ("client_partition",),
    "everybody": ("partition", "isolate_zookeeper", "client_partition"),
}
"""From whom a broker can be cut off, and the faults that do it."""
APPLICATION, CLUSTER = "application", "cluster"
"""Levels of chaos."""
LOOK_S = 0.005
"""Between two looks of a wait."""
Self = TypeVar("Self", bound="KafkaCluster")


@define(eq=False, kw_only=True, repr=False)
class KafkaCluster(Assertions, Waiting, ABC):
    """An embedded cluster that runs. Its methods may be called from any thread.

    A broker is named by its id, from 1. Times are milliseconds of the cluster's time, which follows the wall
    clock except for stalls. A fault lasts for `for_ms`; with None, until `restart`, `resume` or `heal`. A
    method that cannot be carried out now raises FencepostError with one sentence, and changes nothing.
    """

    bootstrap_servers: str
    """For the clients' setting of that name: HOST:PORT of each broker, with commas."""
    brokers: tuple[int, ...]
    """The ids of all brokers."""
    folder: Path | None = field(default=None, init=False)
    """Where an assertion that fails keeps trace, page and report, unless it names another one; None:
    nowhere."""
    chaos_seed: int | None = field(default=None, init=False)
    """In place of the seed of every `chaos`; None: its own."""
    only_strikes: tuple[str, ...] | None = field(default=None, init=False)
    """Names of the strikes, such as `kill, idle`, that `chaos` at applications carries out; None: all."""
    claimed: Callable[[Trace], Trace] | None = field(default=None, init=False)
    """The trace with what the caller knows about it (record/claimed); None: only what was recorded."""
    last_chaos: int | None = field(default=None, init=False)
    """The seed of the last `chaos`; None: there was none."""
    aimed: bool = field(default=False, init=False)
    """Whether it was at applications."""
    _ended: Trace | None = field(default=None, init=False)
    _services: Services = field(factory=Services, init=False)
    _files: ServiceFiles = field(factory=ServiceFiles, init=False)

    @abstractmethod
    def _ask(self, verb: str, **arguments: Any) -> Any:
        """Carry out a verb of verbs.py."""

    @abstractmethod
    def close(self) -> None:
        """End it, and leave no thread, process or port. Closing again does nothing."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._files.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.brokers)} brokers at {self.bootstrap_servers}>"

    def _break(self, kind: str, broker: int, for_ms: int | None = None, parameter: int = 0) -> None:
        """Begin a fault of the table (run/faults/table.py) on a broker."""
        self.fault(kind, f"broker {broker}", for_ms=for_ms, parameter=parameter)

    # ---- topics and who leads

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> dict[int, tuple[int, ...]]:
        """Create a topic. Clients find its leaders when this returns.

        Parameters:
          replication_factor: None: 3, or the number of brokers if there are fewer.
          config: Kafka's settings of a topic, as text.
        Returns: each partition's replicas.
        """
        answer = self._ask(
            "create_topic",
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            config=config,
        )
        return {int(number): tuple(replicas) for number, replicas in answer.items()}

    def leader(self, topic: str, partition: int = 0) -> int:
        """Who leads a partition.

        Args:
            topic: the topic's name.
            partition: its number.

        Returns:
            The broker's number; -1 if no broker leads.
        """
        return int(self._ask("leader", topic=topic, partition=partition))

    def controller(self) -> int:
        """Who is the controller; -1 if nobody is."""
        return int(self._ask("controller"))

    def coordinator(self, group: str) -> int:
        """Who coordinates a consumer group; -1 while nobody does."""
        return int(self._ask("coordinator", group=group))

    def move_leader(self, topic: str, partition: int = 0, to: int | None = None) -> int:
        """Let another replica in sync lead.

        Args:
            topic: the topic's name.
            partition: its number.
            to: the broker; None: the next in the ISR.

        Returns:
            Which broker leads, once it does.
        """
        return int(self._ask("move_leader", topic=topic, partition=partition, to=to))

    def move_coordinator(self, group: str, to: int | None = None) -> int:
        """Let another broker coordinate a group.

        Args:
            group: the group's id.
            to: the broker; None: the next one.

        Returns:
            Which broker coordinates, once it does.
        """
        return int(self._ask("move_coordinator", group=group, to=to))

    def rebalance(self, group: str) -> None:
        """Let the members of a consumer group join again, as if one had come."""
        self._ask("rebalance", group=group)

    # ---- brokers

    def crash(self, broker: int, for_ms: int | None = None) -> None:
        """A broker's process dies at once (kill -9); its files stay as written.

        Args:
            broker: its number.
            for_ms: it starts again after so many milliseconds; None: when asked to.
        """
        self._break("crash", broker, for_ms)

    def pause(self, broker: int, for_ms: int | None = None) -> None:
        """A broker's process stops without ending (SIGSTOP, a long garbage collection). Connections stay
        open.

        Args:
            broker: its number.
            for_ms: it goes on after so many milliseconds; None: when asked to.
        """
        self._break("pause", broker, for_ms)

    def resume(self, broker: int) -> None:
        """A paused broker goes on."""
        self._ask("restart", broker=broker)

    def stop(self, broker: int) -> None:
        """It is asked to stop (SIGTERM): its leaders move away first, then it is down, until `restart`."""
        self._break("clean_restart", broker, parameter=FOR_GOOD_MS)

    def restart(self, broker: int) -> None:
        """It runs again."""
        self._ask("restart", broker=broker)

    def power_off(self, broker: int, for_ms: int | None = None) -> None:
        """A broker's host loses power: what its disk had not synced is lost. Not with a directory of real
        files.

        Args:
            broker: its number.
            for_ms: it starts again after so many milliseconds; None: when asked to.
        """
        self._break("power_loss", broker, for_ms)

    def expire_session(self, broker: int) -> None:
        """ZooKeeper ends its session now: it loses what it leads until it is back."""
        self._break("expire_session", broker, 0)

    # ---- links and anything else

    def cut_off(self, broker: int, side: str = "everybody", for_ms: int | None = None) -> None:
        """A broker and one side of its network do not reach each other.

        Args:
            broker: its number.
            side: "brokers" (the others), "zookeeper", "clients", or "everybody".
            for_ms: it ends after so many milliseconds; None: when asked to.
        """
        if side not in SIDES:
            raise PlanError(expected=f"one of {', '.join(SIDES)}", seen=repr(side), where="cut_off")
        for kind in SIDES[side]:
            self._break(kind, broker, for_ms)

    def slow(self, broker: int, delay_ms: int, for_ms: int | None = None) -> None:
        """What a broker sends to brokers and clients, and what they send to it, takes longer.

        Args:
            broker: its number.
            delay_ms: how much longer, in milliseconds each way.
            for_ms: it ends after so many milliseconds; None: when asked to.
        """
        kinds = ("slow_link", "slow_client_link")
        for kind in kinds[len(self.brokers) == 1 :]:  # one broker has no link to another
            self._break(kind, broker, for_ms, parameter=delay_ms * MICROSECONDS)

    def heal(self, broker: int | None = None) -> None:
        """End all faults of this broker, or of all; brokers that are down start. A host that lost data by
        `chaos` starts a few seconds later, when no ISR has it any more."""
        self._ask("heal", broker=broker)

    def fault(
        self, kind: str, target: str, *, for_ms: int | None = None, other: str = "", parameter: int = 0
    ) -> int:
        """Begin any fault of docs/reference/plans.md, e.g. `fault("disk_full", "leader of t-0")`.

        Args:
            kind: the fault.
            target: a role or a broker, as plans name them.
            for_ms: it ends after so many milliseconds; None: when asked to.
            other: the second target of a link.
            parameter: what the kind makes of it.

        Returns:
            Its number, for `end_fault`.
        """
        return int(
            self._ask("fault", kind=kind, target=target, for_ms=for_ms, other=other, parameter=parameter)
        )

    def end_fault(self, fault: int) -> None:
        """End a fault; nothing happens if it has ended."""
        self._ask("end_fault", fault=fault)

    def chaos(
        self,
        seed: int,
        for_ms: int = 10_000,
        *,
        level: str = APPLICATION,
        profile: str = "default",
        topic: str = "t",
        requests: bool = True,
    ) -> int:
        """Let the strikes or faults of a seed begin. `heal` ends them.

        Parameters:
          seed: of what is drawn. `pytest --fencepost-chaos` puts another one in its place.
          for_ms: over how long faults of the cluster begin.
          level: "application": a few strikes at the clients under test, at moments that their requests show
            (docs/reference/embedded.md). Their processes are those of `service`; without one, every client is
            under test. "cluster": faults of brokers, links, disks and requests, as a campaign draws them,
            within the budget that keeps what was acknowledged (docs/reference/plans.md).
          profile: from which faults of the cluster are drawn.
          topic: the leaders and followers of its partitions are the targets of those faults.
          requests: whether those of single requests are drawn, too.
        Returns: how many were drawn; of strikes, how many there are at most.
        Raises: PlanError for another level, and for cluster parameters with the level "application".
        """
        seed = seed if self.chaos_seed is None else self.chaos_seed
        self.last_chaos, self.aimed = seed, level == APPLICATION
        if level == APPLICATION and (profile, topic, requests) == ("default", "t", True):
            only = None if self.only_strikes is None else list(self.only_strikes)
            most = int(self._ask("chaos_at_applications", seed=seed, only=only))
            self._services.keep(self._ask)
            return most
        if level != CLUSTER:
            seen = "profile, topic or requests" if level == APPLICATION else f"level={level!r}"
            raise PlanError(
                expected='level="application" without, or level="cluster"', seen=seen, where="chaos"
            )
        return int(
            self._ask("chaos", seed=seed, for_ms=for_ms, profile=profile, topic=topic, requests=requests)
        )

    def reached(self) -> dict[str, Any]:
        """What chaos at applications has reached: moments (how many of each kind were seen), strikes (in
        words, in their order), names (of the strikes, without parameters), over (whether none is left)."""
        found: dict[str, Any] = self._ask("reached")
        return found

    # ---- single requests

    def request_fault(self, fault: "RequestFault | str") -> int:
        """Arm a fault of single requests, as a text (`"lose answer to Produce on orders-0, 1 in 500"`,
        docs/reference/request-faults.md) or as a value. Returns its number, for `end_request_fault`."""
        return int(self._ask("request_fault", text=str(fault)))

    def end_request_fault(self, number: int) -> None:
        """It strikes no more; nothing happens if it has ended."""
        self._ask("end_request_fault", number=number)

    def request_faults(self) -> list[dict[str, Any]]:
        """Those that are armed: number, fault (its text), hits."""
        found: list[dict[str, Any]] = self._ask("request_faults")
        return found

    def lose_answer(self, request: str = "Produce", target: str = "") -> int:
        """The next such request takes effect, and its connection ends without the answer. target: a topic, or
        a partition such as "orders-0"; empty: any."""
        return self.request_fault(f"lose answer to {request}{_on(target)}, once")

    def answer_with(
        self, error: str, request: str, target: str = "", *, times: int = 1, after_effect: bool = False
    ) -> int:
        """Answer the next requests of a kind with an error.

        Args:
            error: Kafka's name of the error.
            request: Kafka's name of the request.
            target: a topic or a partition; "": any.
            times: how many requests.
            after_effect: whether the request is carried out first; else it has no effect.

        Raises:
            PlanError: if no correct broker answers so.
        """
        effect = ", after effect" if after_effect else ""
        return self.request_fault(f"answer {error} to {request}{_on(target)}, at most {times} times{effect}")

    def delay(self, request: str, milliseconds: int, target: str = "", *, times: int = 1) -> int:
        """Answer the next requests of a kind later.

        Args:
            request: Kafka's name of the request.
            milliseconds: how much later.
            target: a topic or a partition; "": any.
            times: how many requests.
        """
        return self.request_fault(
            f"delay answer to {request}{_on(target)} by {milliseconds}ms, at most {times} times"
        )

    # ---- to look at

    def status(self) -> dict[str, Any]:
        """healthy, controller, running (brokers), time_ms (the cluster's), stalled_ms (wall time that did not
        count), events (recorded), full_at_ms (when the record was full, None while it is not), active (faults
        under way), failure (why it has stopped, empty)."""
        status: dict[str, Any] = self._ask("status")
        return status

    def wait_until_healthy(self, timeout_s: float = HEALTHY_S) -> None:
        """Wait until every broker runs, every partition has a leader and every ISR is full. Raises
        EnvironmentError_."""
        deadline = time.monotonic() + timeout_s
        while not (status := self.status())["healthy"]:
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"a healthy cluster within {timeout_s:g} s",
                    seen=str(status),
                    where=repr(self),
                    hint="heal() ends all faults",
                )
            time.sleep(LOOK_S)

    def service(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Service]:
        """The service under test, as a context manager: a process that runs for the block.

        Parameters:
          command: the program and its arguments. It finds the cluster in BOOTSTRAP_SERVERS, and in
            FENCEPOST_EVENTS a file of its own for events (docs/reference/events.md); what it writes there is
            part of the trace, and judged with it.
          environment: variables in addition to those of this process.
        Returns: a context manager; at its end the process is killed (kill -9). Under chaos at applications a
          service that is killed, or that ends with an exit code above 0, is started again.
        """
        variables = {**self._files.next_variables(), **(environment or {})}
        return self._services.service(command, self.bootstrap_servers, variables)

    def promise(self, promise: str, *, ordered_by: str = "key", allow: Sequence[str] = ()) -> None:
        """State what the services under test promise; at-least-once if nothing is stated.

        Parameters:
          promise: "at-least-once", "at-most-once" or "exactly-once".
          ordered_by: "key", "partition" or "none".
          allow: anomalies of applications that are legal here (docs/reference/events.md).
        Raises: PlanError for other words.
        """
        self._files.claims = claims_of(promise, ordered_by, allow)

    def until(self, condition: Callable[[], Any], timeout_s: float = PATIENCE_S) -> None:
        """Wait until a condition is true. timeout_s: how long it may stay false while nothing new is
        recorded. Raises AssertionError; at once if a service has ended with an exit code above 0."""
        until(condition, timeout_s, ended=self._services.ended, state=self.status)

    # ---- the record and the verdict

    def trace(self) -> Trace:
        """What was recorded so far, with the replicas' logs as they are now; after `end` the whole run."""
        return self._ended if self._ended is not None else self._known(self._read_trace(end=False))

    def end(self) -> Trace:
        """End the run: connections are cut, all faults end, the cluster has to make progress, every
        partition is read to its end, all replicas' logs are compared. This takes no time, as it does not wait
        for the wall clock. Returns the trace; ending again returns the same."""
        import fencepost.kafka.judgement  # noqa: F401 - before clients lose their connections: see there

        if self._ended is None:
            self._ended = self._known(self._read_trace(end=True))
        return self._ended

    def verdict(self, checks: tuple[str, ...] | None = None) -> Verdict:
        """What the judges say of `trace()`. checks: by name (docs/reference/verdicts.md); None: all."""
        from fencepost.kafka.judgement import verdict_of  # judges take a while to import

        return verdict_of(self.trace(), checks)

    def assert_ok(self, folder: Path | None = None) -> str:
        """End the run and judge it.

        Parameters:
          folder: where trace, page and report of a failure are kept; None: `self.folder`.
        Returns: in a sentence, what was exercised.
        Raises: RunFailedError (an AssertionError) with the whole report, unless the verdict is Ok.
        """
        from fencepost.kafka.judgement import assert_ok

        return assert_ok(self.end(), folder or self.folder)

    def records(self, topic: str, *, isolation: str = "read_uncommitted") -> "list[KafkaRecord]":
        """Every record of a topic below the high watermark, partition by partition, in the order of offsets.
        Records that the end of the run writes to show progress are left out.

        Args:
            topic: its name.
            isolation: "read_committed" leaves out records of transactions that were aborted or have not
                ended.

        Raises:
            PlanError: if there is no such topic or isolation.
        """
        from fencepost.kafka.topic_records import from_json

        found = [from_json(fields) for fields in self._ask("records", topic=topic, isolation=isolation)]
        own = self._own_values()
        return [one for one in found if (one.topic, one.partition, one.value_id) not in own]

    def _own_values(self) -> set[tuple[str, int, int]]:
        """What the end of the run has written, by topic, partition and value id."""
        if self._ended is None:
            return set()
        from fencepost.kafka.judgement import of_run

        return {
            (record.topic, record.partition, record.value)
            for row in of_run(self._ended)
            for record in row.records
            if row.function == "append"
        }

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that a consumer group has committed, by (topic, partition); empty for one that its
        coordinator does not know."""
        rows = self._ask("committed", group=group)
        return {(row["topic"], row["partition"]): row["offset"] for row in rows}

    def groups(self) -> list[str]:
        """Consumer groups that the cluster knows."""
        return list(self._ask("groups"))

    def save_trace(self, path: Path) -> None:
        """Write `trace()` as JSON lines, for `fencepost check`."""
        write_traces(Path(path), [self.trace()])

    def _read_trace(self, *, end: bool) -> Trace:
        with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
            path = Path(folder) / "trace.jsonl"
            self._ask("save_trace", path=str(path), end=end)
            return next(iter(read_traces(path)))

    def _known(self, trace: Trace) -> Trace:
        """The trace with what services wrote, and the claims of the caller."""
        trace = self._files.joined(trace)
        if self.claimed is None:
            return trace
        trace = self.claimed(trace)
        return evolve(trace, digest=digest_of(trace))


def _on(target: str) -> str:
    return f" on {target}" if target else ""
