"""Rules for a simulated cluster by family: what clients do, what processes, networks and sessions suffer, how
leaders fall, and time.

Owns the rules and their choices. Must not know oracles. Each family is a mix-in over ClusterSteps; a machine
is a choice of families (machines.py has six), and a machine of yours takes those that it wants. A choice is
small and explicit: roles, a few waits, a few durations; nothing is drawn for what the simulated cluster does
by itself.
"""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fencepost.machines.cluster.steps import ClusterSteps
from fencepost.traces.events import Name

WAITS = st.sampled_from((2, 60, 300, 1_000, 3_000, 7_000))
"""From one round trip of a near network to more than a session."""
DURATIONS = st.sampled_from((51, 401, 1_501, 4_001, 9_001))
LEADER, FIRST, SECOND = "leader of t-0", "follower 1 of t-0", "follower 2 of t-0"
ROLES = st.sampled_from((LEADER, FIRST, SECOND, "controller", "broker 1", "broker 2", "broker 3"))
OTHERS = st.sampled_from(("", LEADER, FIRST, SECOND, "controller"))
"""The other end of a link; "" is all other brokers."""
PROCESSES = st.sampled_from((0, 1, 2))
FIRST_NEW = 100
"""Clients that ask once have numbers from here on."""

STEPS = (
    Name.BECAME_LEADER,
    Name.BECAME_FOLLOWER,
    Name.PARTITION_STATE,
    Name.CONTROLLER_ZNODE,
    Name.CONTROLLER_ELECTED,
    Name.BROKER_REGISTERED,
    Name.APPENDED,
    Name.HIGH_WATERMARK,
    Name.TRUNCATED,
    Name.ISR_PROPOSED,
    Name.ISR_UPDATED,
    Name.SESSION_EXPIRED,
)
"""Protocol steps that an example can wait for."""


class TimeRules(ClusterSteps):
    """Time passes, by the clock or up to a step of the protocol."""

    @rule(wait_ms=WAITS)
    def time_passes(self, wait_ms: int) -> None:
        """Nothing happens from outside."""
        self.wait(wait_ms)

    @rule(step=st.sampled_from([str(name) for name in STEPS]))
    def protocol_goes_on_until(self, step: str) -> None:
        """The cluster goes on until some broker, or ZooKeeper, takes this step."""
        self.until(Name(step))


class AppendRules(ClusterSteps):
    """Appends; a client that is busy queues them."""

    @rule(process=PROCESSES, times=st.sampled_from((1, 4, 12)), acks=st.sampled_from((-1, 1)), wait_ms=WAITS)
    def append(self, process: int, times: int, acks: int, wait_ms: int) -> None:
        """Append records one after another. The client is busy while other things happen.

        Args:
            process: the client's number.
            times: how many records.
            acks: as Kafka's producers have it: -1, 1 or 0.
            wait_ms: virtual milliseconds until the next rule.
        """
        for _ in range(times):
            self.live.begin("append", process=process, acks=acks)
        self.wait(wait_ms)


class ClientRules(AppendRules):
    """Appends, reads, ends; a client that is busy queues them."""

    @rule(process=PROCESSES, records=st.sampled_from((2, 5)), wait_ms=WAITS)
    def append_a_batch(self, process: int, records: int, wait_ms: int) -> None:
        """Of several records."""
        self.begin_operation("append", process=process, records=records, wait_ms=wait_ms)

    @rule(process=PROCESSES, wait_ms=WAITS)
    def poll(self, process: int, wait_ms: int) -> None:
        """Read on from the client's position.

        Args:
            process: the client's number.
            wait_ms: virtual milliseconds until the next rule.
        """
        self.begin_operation("poll", process=process, wait_ms=wait_ms)

    @rule(process=PROCESSES, wait_ms=WAITS)
    def list_offsets(self, process: int, wait_ms: int) -> None:
        """Ask for the end of the log.

        Args:
            process: the client's number.
            wait_ms: virtual milliseconds until the next rule.
        """
        self.begin_operation("list_offsets", process=process, wait_ms=wait_ms)


class RestartRules(ClusterSteps):
    """Brokers crash and come back, before or after their session ends."""

    @rule(who=ROLES, duration_ms=DURATIONS)
    def crash(self, who: str, duration_ms: int) -> None:
        """kill -9, and a start later.

        Args:
            who: a role or a broker, as plans name them.
            duration_ms: how long it is down, in virtual milliseconds.
        """
        self.fault("crash", who, duration_ms=duration_ms)

    @rule(who=ROLES)
    def bounce(self, who: str) -> None:
        """kill -9, and back before its session expires."""
        self.fault("bounce", who, parameter=101)


class ProcessRules(RestartRules):
    """Brokers also lose their power, pause, stop cleanly."""

    @rule(who=ROLES, duration_ms=DURATIONS, calls=st.sampled_from((0, 1, 2, 5)))
    def lose_power(self, who: str, duration_ms: int, calls: int) -> None:
        """The power fails inside a file call.

        Args:
            who: a role or a broker, as plans name them.
            duration_ms: how long the host is down, in virtual milliseconds.
            calls: which call from now on; 0: at once.
        """
        self.fault("power_loss", who, duration_ms=duration_ms, parameter=calls)

    @rule(who=ROLES, duration_ms=DURATIONS)
    def pause(self, who: str, duration_ms: int) -> None:
        """A long garbage collection. Then the process goes on as if nothing had happened.

        Args:
            who: a role or a broker, as plans name them.
            duration_ms: in virtual milliseconds.
        """
        self.fault("pause", who, duration_ms=duration_ms)

    @rule(who=ROLES, down_ms=st.sampled_from((1, 501, 5_001)))
    def stop_cleanly(self, who: str, down_ms: int) -> None:
        """SIGTERM: a controlled shutdown, and a start later.

        Args:
            who: a role or a broker, as plans name them.
            down_ms: how long it is down, in virtual milliseconds.
        """
        self.fault("clean_restart", who, parameter=down_ms)


class NetworkRules(ClusterSteps):
    """Links between brokers are cut, slow or lossy."""

    @rule(who=ROLES, other=OTHERS, way=st.sampled_from((0, 1, 2)), duration_ms=DURATIONS)
    def cut(self, who: str, other: str, way: int, duration_ms: int) -> None:
        """Cut the link between two targets.

        Args:
            who: a role or a broker, as plans name them.
            other: the other end; "": all others.
            way: 0: both ways; 1: what `who` sends; 2: what it receives.
            duration_ms: in virtual milliseconds.
        """
        self.fault("partition", who, other=other, parameter=way, duration_ms=duration_ms)

    @rule(who=ROLES, other=OTHERS, delay_ms=st.sampled_from((30, 300, 2_000)), duration_ms=DURATIONS)
    def slow_down(self, who: str, other: str, delay_ms: int, duration_ms: int) -> None:
        """Messages between two targets take longer.

        Args:
            who: a role or a broker, as plans name them.
            other: the other end; "": all others.
            delay_ms: how much longer, in virtual milliseconds.
            duration_ms: in virtual milliseconds.
        """
        self.fault("slow_link", who, other=other, parameter=1_000 * delay_ms, duration_ms=duration_ms)

    @rule(who=ROLES, lost_percent=st.sampled_from((30, 80)), duration_ms=DURATIONS)
    def lose_messages(self, who: str, lost_percent: int, duration_ms: int) -> None:
        """Some messages between a target and all others are lost.

        Args:
            who: a role or a broker, as plans name them.
            lost_percent: how many of a hundred.
            duration_ms: in virtual milliseconds.
        """
        self.fault("loss", who, parameter=10_000 * lost_percent, duration_ms=duration_ms)


class SessionRules(ClusterSteps):
    """Sessions of ZooKeeper end at once or by silence, replies are lost, answers come late: what makes
    zombies."""

    @rule(who=ROLES)
    def end_session(self, who: str) -> None:
        """ZooKeeper ends it at once; who had it goes on until it hears."""
        self.fault("expire_session", who)

    @rule(who=ROLES, duration_ms=DURATIONS)
    def fall_asleep(self, who: str, duration_ms: int) -> None:
        """The session ends in the moment in which the broker pauses: others take over, and it goes on as a
        zombie.

        Args:
            who: a role or a broker, as plans name them.
            duration_ms: of the pause, in virtual milliseconds.
        """
        self.live.fault("expire_session", who, duration_ms=1)
        self.fault("pause", who, duration_ms=duration_ms)

    @rule(who=ROLES, duration_ms=st.sampled_from((401, 4_001, 9_001, 20_001)), until_forgotten=st.booleans())
    def cut_from_zookeeper(self, who: str, duration_ms: int, until_forgotten: bool) -> None:
        """Its session may expire. until_forgotten: time passes until some broker is not registered any
        more."""
        self.fault("isolate_zookeeper", who, duration_ms=duration_ms)
        if until_forgotten:
            self.until(Name.BROKER_ZNODE)

    @rule(who=ROLES, delay_ms=st.sampled_from((30, 300, 1_000)), duration_ms=DURATIONS)
    def slow_zookeeper(self, who: str, delay_ms: int, duration_ms: int) -> None:
        """ZooKeeper answers late, so that the next fault interrupts what the broker does there.

        Args:
            who: a role or a broker, as plans name them.
            delay_ms: how much later, in virtual milliseconds.
            duration_ms: in virtual milliseconds.
        """
        self.fault("slow_zookeeper", who, parameter=1_000 * delay_ms, duration_ms=duration_ms)

    @rule(who=ROLES, replies=st.sampled_from((1, 2, 3)))
    def lose_replies(self, who: str, replies: int) -> None:
        """The broker's next writes are committed, but the connection breaks before the reply.

        Args:
            who: a role or a broker, as plans name them.
            replies: how many of them.
        """
        self.fault("lose_zookeeper_replies", who, parameter=replies)

    @rule()
    def lose_a_reply_each(self) -> None:
        """The ensemble fails over: everybody's next write is committed, and nobody hears."""
        for broker in self.live.run.cluster.broker_ids:
            self.fault("lose_zookeeper_replies", f"broker {broker}", parameter=1)


class ElectionRules(ClusterSteps):
    """Leadership that moves faster than replicas follow."""

    @rule(
        times=st.sampled_from((1, 2, 3)),
        between_ms=st.sampled_from((2, 60, 180, 400)),
        records=st.sampled_from((0, 1)),
    )
    def leaders_fall(self, times: int, between_ms: int, records: int) -> None:
        """Leaders lose their sessions one after another, each as soon as ZooKeeper names it, with an append
        that perhaps no follower has fetched.

        Args:
            times: how many leaders.
            between_ms: virtual milliseconds between two of them.
            records: how many are appended to each.
        """
        for _ in range(times):
            if records:
                self.begin_operation("append", records=records, wait_ms=between_ms)
            self.fault("expire_session", LEADER)
            self.until(Name.PARTITION_STATE)
            self.wait(between_ms)

    @rule(
        times=st.sampled_from((1, 2, 3)),
        then=st.sampled_from((0, 6)),
        between_ms=st.sampled_from((2, 60, 400, 1_500)),
    )
    def leaders_fall_with_a_tail(self, times: int, then: int, between_ms: int) -> None:
        """Each has appended what the next in line did not get; then so many records go to its successor."""
        for _ in range(times):
            self.fault("partition", LEADER, other=FIRST, duration_ms=401)
            for _ in range(2):
                self.live.begin("append", acks=1)
            self.wait(60)
            self.fault("expire_session", LEADER)
            self.until(Name.BECAME_LEADER)
            for _ in range(then):
                self.live.begin("append", process=1)
            self.wait(between_ms)

    @rule(who=st.sampled_from((FIRST, SECOND)), wait_ms=st.sampled_from((2, 60, 180)))
    def leader_falls_when_a_follower_returns(self, who: str, wait_ms: int) -> None:
        """A follower restarts after an append; the leader fails when the follower has just found it again.

        Args:
            who: the follower, as plans name it.
            wait_ms: virtual milliseconds until the leader fails.
        """
        self.begin_operation("append", wait_ms=wait_ms)
        self.fault("bounce", who, parameter=101)
        self.until(Name.BECAME_FOLLOWER)
        self.wait(wait_ms)
        self.fault("expire_session", LEADER)

    @rule(
        falls=st.sampled_from(("expire_session", "crash")),
        cut_ms=st.sampled_from((0, 1_501, 9_001)),
        wait_ms=st.sampled_from((2, 60, 300)),
    )
    def look_around_an_election(self, falls: str, cut_ms: int, wait_ms: int) -> None:
        """A client that has just appended learns the end; the leader falls, while the other two may not reach
        each other; then a client that nobody knew yet asks for the end."""
        self.begin_operation("append", wait_ms=wait_ms)
        self.begin_operation("list_offsets", wait_ms=wait_ms)
        if cut_ms:
            self.fault("partition", FIRST, other=SECOND, duration_ms=cut_ms)
        self.fault(falls, LEADER, duration_ms=4_001)
        self.until(Name.BECAME_LEADER)
        self.begin_operation("list_offsets", process=FIRST_NEW + len(self.live.operations), wait_ms=wait_ms)

    @rule()
    def ask_for_the_preferred_leader(self) -> None:
        """An operator does."""
        self.fault("preferred_election", "topic t")
