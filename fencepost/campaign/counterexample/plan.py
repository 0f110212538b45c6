"""From a story of the model to a plan for the implementation: the same order of events, made by faults and
appends at their times.

Owns: what each step of the model becomes in a plan. Must not run anything, and must not know which protection
is missing.

The implementation does by itself what the model leaves to chance: followers fetch, leaders advance, the
controller tells everybody. So a plan has to *prevent* what does not happen in the story, and to end
leaderships when they end there:

    append(r)               an append with acks=1 by a client of its own
    elect(r) without l      the session of l ends at once; l is cut off from ZooKeeper, or dies, until it
                            hears of an election again
    elect(r) with l         r is made the preferred leader's broker and an operator asks for it; or as above,
                            so that l comes back later
    elect(l) again          the session of another broker ends
    shrink_isr(l, f)        the session of f ends, until f hears of an election again
    no fetch by f in an era f and the leader do not reach each other
    f lacks what l has      f's requests reach l, the answers do not reach f
    f's high watermark lags the same, from shortly after the last append on
    r does not hear         what others than the leader send to r is lost

How long things take in between is not in the story. It is drawn, keyed by an attempt's number; so is whatever
a step may become in more than one way.
"""

from fencepost.campaign.counterexample.draft import Draft, members
from fencepost.campaign.counterexample.silence import cut_links, deafen
from fencepost.campaign.counterexample.story import CONTROL, FOLLOWING, Story, StoryStep
from fencepost.campaign.swarm.draws import Draws
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import (
    BudgetOptions,
    ClientOptions,
    ClusterOptions,
    NetworkOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)

TOPIC, PARTITION = "t", "t-0"
WARM_MS = 300
"""A client asks for something so long before its first append, so that it knows a leader."""
SEED_BITS = 40


def draft_plan(story: Story, bugs: tuple[str, ...], seed: int, attempt: int) -> Plan:
    """One attempt at a plan of this story, with these bugs planted. The same for the same numbers."""
    draw = Draws(Randomness((seed << SEED_BITS) + attempt))
    replicas = story.constants.replicas
    order: list[int] = []
    for place in range(replicas):
        left = [number for number in range(1, replicas + 1) if number not in order]
        order.append(left[draw.between((0, len(left) - 1), "cx.broker", place)])
    far = draw.chance(40, "cx.far")
    draft = Draft(story, draw, order, draw.between((4_000, 40_000) if far else (100, 4_000), "cx.latency"))
    wait_ms = draw.between((60, 900), "cx.wait")
    _set_times(draft)
    _prologue(draft)
    for index, step in enumerate(story.steps):
        _tell(draft, index, step)
    for era in range(story.eras):
        cut_links(draft, era, wait_ms)
        deafen(draft, era)
    _epilogue(draft)
    return _assembled(draft, bugs, seed, attempt, wait_ms)


def _assembled(draft: Draft, bugs: tuple[str, ...], seed: int, attempt: int, wait_ms: int) -> Plan:
    draw, replicas = draft.draw, draft.story.constants.replicas
    latency_us = draft.latency_us
    return Plan(
        seed=seed * 1_000_003 + attempt,
        profile="counterexample",
        safety_ms=draft.end + draw.between((50, 2_000), "cx.tail"),
        cluster=ClusterOptions(
            brokers=draft.all_brokers,
            topics=(TopicOptions(name=TOPIC, replication_factor=replicas),),
            replica_lag_time_max_ms=60_000,
            replica_fetch_wait_max_ms=wait_ms,
            replica_fetch_backoff_ms=draw.between((20, 300), "cx.backoff"),
            zookeeper_session_timeout_ms=6_000,
            controller_request_timeout_ms=draw.between((100, 500), "cx.control_timeout"),
            isr_change_propagation_ms=draw.between((20, 500), "cx.propagation"),
            leader_imbalance_check_ms=0,
            bugs=bugs,
        ),
        network=NetworkOptions(
            latency_min_us=latency_us, latency_tail_us=latency_us // 4, latency_max_us=latency_us * 4
        ),
        client=ClientOptions(request_timeout_ms=300, delivery_timeout_ms=1_500, retry_backoff_ms=20),
        budget=BudgetOptions(brokers_down=replicas, isr_disks_lost=0, outside="allow"),
        operations=tuple(sorted(draft.operations, key=lambda one: (one.at_ms, one.op_id))),
        faults=tuple(sorted(draft.faults, key=lambda one: (one.at_ms, one.fault_id))),
    )


# ---- when


def _set_times(draft: Draft) -> None:
    """A pause before each step: long enough for an election, short between what is done in it."""
    draw = draft.draw
    now = 3_000
    for index, step in enumerate(draft.story.steps):
        if step.name in CONTROL:
            now += draw.between((50, 1_200), "cx.era", index)
        elif step.name == "append":
            now += draw.between((60, 500), "cx.append", index)
        else:
            now += draw.between((5, 250), "cx.step", index)
        draft.times.append(now)
    draft.end = now + draw.between((100, 1_500), "cx.end")


def _prologue(draft: Draft) -> None:
    """A topic's first leader is the first of its replicas; if the story begins with another one, those before
    it leave for a moment."""
    for replica, broker in enumerate(draft.brokers):
        if broker < draft.brokers[draft.story.steps[0].before.quorum[0][0]]:
            _lose_session(draft, 200, 700, replica, dies=False)


def _epilogue(draft: Draft) -> None:
    """A bad state may be one that only the next leader shows: the last one may fail before anybody has
    recovered."""
    draw = draft.draw
    if draw.chance(35, "cx.epilogue"):
        at_ms = draft.end - draw.between((0, 150), "cx.epilogue_at")
        until = draft.end + draw.between((200, 1_200), "cx.epilogue_until")
        leader = draft.story.steps[-1].after.quorum[-1][0]
        _lose_session(draft, at_ms, until, leader, dies=draw.chance(50, "cx.epilogue_dies"))


# ---- what


def _tell(draft: Draft, index: int, step: StoryStep) -> None:
    if step.name == "append":
        _append(draft, index)
    elif step.name in CONTROL:
        _elect(draft, index, step)
    elif step.name == "shrink_isr":
        _shrink(draft, index, step)


def _append(draft: Draft, index: int) -> None:
    """By a process of its own, which has asked for the end of the log before. A leader's appends of one era
    may be one batch; one may be made again."""
    draw, steps = draft.draw, draft.story.steps
    alike = [
        at
        for at, step in enumerate(steps)
        if step.action == steps[index].action and step.era == steps[index].era
    ]
    records = len(alike) if draw.chance(50, "cx.batched", alike[0]) else 1
    if records > 1 and index != alike[-1]:
        return
    copies = 1 + draw.between((1, 2), "cx.copies", index) * draw.chance(25, "cx.copied", index)
    for copy in range(copies):
        at_ms = draft.times[index] + 15 * copy
        number = len(draft.operations) + 1
        draft.operations += [
            PlannedOperation(
                op_id=number, process=number, at_ms=max(0, at_ms - WARM_MS), function="list_offsets"
            ),
            PlannedOperation(
                op_id=number + 1, process=number, at_ms=at_ms, function="append", acks=1, records=records
            ),
        ]


def _elect(draft: Draft, index: int, step: StoryStep) -> None:
    """A replica that leaves the ISR here fails. A leader that stays in it was moved, if the broker of the new
    one is the preferred one; else it fails, too. One that leaves it may be moved as well: an implementation's
    leader that is alone in its ISR commits at once, the model's when it likes."""
    (leader, isr), (new_leader, new_isr) = step.before.quorum[-1], step.after.quorum[-1]
    left = members(isr) - members(new_isr)
    if leader != new_leader:
        preferred = draft.brokers[new_leader] == min(draft.brokers)
        moved = preferred and draft.draw.chance(30 if leader in left else 80, "cx.moved", index)
        left = left - {leader} if moved else left | {leader}
        if moved:
            draft.fault("preferred_election", draft.times[index], draft.times[index], f"topic {TOPIC}")
    for replica in sorted(left):
        _leave(draft, index, replica)
    if leader == new_leader and not left:
        others = [number for number in range(len(draft.brokers)) if number != leader]
        other = others[draft.draw.between((0, len(others) - 1), "cx.other", index)]
        draft.fault("expire_session", draft.times[index], draft.times[index], draft.broker(other))


def _shrink(draft: Draft, index: int, step: StoryStep) -> None:
    """The follower fails. One that has fetched nothing in this era may do so before anything is appended: its
    failure raises the leader epoch, and a follower that fetches then has to begin anew."""
    follower, at_ms = int(step.action[2]), draft.times[index]
    era = [(at, one) for at, one in enumerate(draft.story.steps) if one.era == step.era]
    fetched = any(one.name in FOLLOWING and one.actor == follower for _, one in era)
    first = next((draft.times[at] for at, one in era if one.name == "append"), at_ms)
    if not fetched and draft.draw.chance(60, "cx.early_shrink", index):
        at_ms = min(at_ms, first - draft.draw.between((50, 600), "cx.shrunk", index))
    _leave(draft, index, follower, at_ms)


def _leave(draft: Draft, index: int, replica: int, at_ms: int | None = None) -> None:
    """The replica's session ends, and it hears of nothing until the story says that it hears."""
    later = list(enumerate(draft.story.steps))[index + 1 :]
    back = next(
        (
            at
            for at, step in later
            if step.name in ("become_leader", "become_follower") and step.actor == replica
        ),
        len(draft.story.steps),
    )
    acts = any(
        step.actor == replica
        or (step.name in FOLLOWING and step.after.replicas[step.actor].leader == replica)
        for at, step in later
        if at < back and step.name not in CONTROL
    )
    until = draft.times[back] if back < len(draft.times) else draft.end
    dies = not acts and draft.draw.chance(50, "cx.dies", index, replica)
    _lose_session(draft, draft.times[index] if at_ms is None else at_ms, until, replica, dies=dies)


def _lose_session(draft: Draft, at_ms: int, until_ms: int, replica: int, *, dies: bool) -> None:
    target = draft.broker(replica)
    if dies:
        draft.fault("expire_session", at_ms, at_ms, target)
        draft.fault("crash", at_ms, until_ms, target)
    else:
        draft.fault("isolate_zookeeper", at_ms - 2, max(until_ms, at_ms), target)
        draft.fault("expire_session", at_ms, at_ms, target)
