"""Why nothing moves: what a diagnosis shows to be wrong, in sentences, the likeliest cause first.

Owns the comparison of what ZooKeeper has and what each broker said of itself.
Must not know how the state was read. Each sentence names a contradiction between two of these; that one
of them is the cause is for the reader to see.
"""

from collections.abc import Iterator

from fencepost.traces.diagnosis import Belief, BrokerSeen, Diagnosis, PartitionSeen


def reasons(diagnosis: Diagnosis) -> list[str]:
    """What contradicts what. Nothing if everybody agrees on a state that would do."""
    found = [*_brokers(diagnosis), *_controller(diagnosis)]
    for partition in diagnosis.partitions:
        found += _leader(partition)
        found += _followers(partition)
    found += [
        f"broker {refusal.broker}: {refusal.says}"
        + (f" ({refusal.count} times)" if refusal.count > 1 else "")
        for refusal in diagnosis.refusals
    ]
    found += diagnosis.waiting
    return found


def _brokers(diagnosis: Diagnosis) -> Iterator[str]:
    for broker in diagnosis.brokers:
        if broker.process != "up":
            yield f"broker {broker.broker} is {broker.process}"
        elif broker.broker_epoch < 0:
            yield f"broker {broker.broker} runs and is not registered in ZooKeeper"


def _controller(diagnosis: Diagnosis) -> Iterator[str]:
    named, acting = diagnosis.controller, diagnosis.acting
    if named < 0:
        yield "nobody is the controller: /controller does not exist"
    elif named not in acting:
        yield f"/controller names broker {named}, which does not act as controller"
    for other in acting:
        if other != named:
            yield f"broker {other} acts as controller, /controller names broker {named}"


def _leader(partition: PartitionSeen) -> Iterator[str]:
    name, leader, epoch = f"{partition.topic}-{partition.partition}", partition.leader, partition.leader_epoch
    if leader < 0:
        yield f"{name} has no leader in ZooKeeper, ISR {_set(partition.isr)}, leader epoch {epoch}"
        return
    belief = _belief(partition, leader)
    if belief is None:
        yield f"{name}: broker {leader} leads in ZooKeeper (epoch {epoch}), and has taken no role"
    elif (belief.leader, belief.leader_epoch) != (leader, epoch):
        yield f"{name}: broker {leader} leads in ZooKeeper (epoch {epoch}), and itself {_role(belief)}"
    elif 0 <= belief.zk_version != partition.zk_version:
        writer = "itself" if partition.written_by == leader else f"broker {partition.written_by}"
        yield (
            f"{name}: its leader, broker {leader}, knows version {belief.zk_version} of the state; ZooKeeper "
            f"has version {partition.zk_version}, written by {writer}: it can change the ISR no more"
        )


def _followers(partition: PartitionSeen) -> Iterator[str]:
    name, leader, epoch = f"{partition.topic}-{partition.partition}", partition.leader, partition.leader_epoch
    leads = _belief(partition, leader)
    for replica in partition.replicas:
        if replica == leader:
            continue
        belief = _belief(partition, replica)
        if belief is None:
            yield f"{name}: broker {replica} is assigned, and has taken no role"
        elif leader >= 0 and (belief.leader, belief.leader_epoch) != (leader, epoch):
            wanted = f"broker {leader} in epoch {epoch}"
            yield f"{name}: broker {replica} does not follow {wanted}: it {_role(belief)}"
        elif leads is not None and belief.log_end_offset < leads.log_end_offset:
            ends = f"{belief.log_end_offset} of {leads.log_end_offset}"
            yield f"{name}: broker {replica} follows, and its log ends at {ends}"
        elif replica not in partition.isr:
            yield f"{name}: broker {replica} has all that its leader has, and is not in the ISR"


def _belief(partition: PartitionSeen, broker: int) -> Belief | None:
    return next((belief for belief in partition.beliefs if belief.broker == broker), None)


def _role(belief: Belief) -> str:
    if belief.leader == belief.broker:
        return f"leads in epoch {belief.leader_epoch}"
    if belief.leader < 0:
        return "has no role" if belief.leader_epoch < 0 else f"has no leader in epoch {belief.leader_epoch}"
    return f"follows broker {belief.leader} in epoch {belief.leader_epoch}"


def _set(brokers: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, brokers)) + "}"


def state_lines(diagnosis: Diagnosis) -> list[str]:
    """The state as it was: controller, brokers, each partition as ZooKeeper has it and as each broker
    believes."""
    acting = ", ".join(f"broker {broker}" for broker in diagnosis.acting) or "nobody"
    lines = [
        f"controller: broker {diagnosis.controller} by /controller, epoch {diagnosis.controller_epoch}; "
        f"{acting} acts as controller"
    ]
    lines += [_broker_line(broker) for broker in diagnosis.brokers]
    for partition in diagnosis.partitions:
        lines.append(
            f"{partition.topic}-{partition.partition} in ZooKeeper: leader {partition.leader}, epoch "
            f"{partition.leader_epoch}, ISR {_set(partition.isr)} of {_set(partition.replicas)}, version "
            f"{partition.zk_version}, written by broker {partition.written_by}"
        )
        lines += [
            f"  as broker {belief.broker} believes: {_belief_line(belief)}" for belief in partition.beliefs
        ]
    if diagnosis.left_out:
        lines.append(f"and {diagnosis.left_out} more partitions")
    oldest = diagnosis.oldest
    if oldest is not None:
        asked = f", broker {oldest.asked} was asked last" if oldest.asked >= 0 else ""
        error = f" ({oldest.error})" if oldest.error else ""
        lines.append(
            f"the oldest operation that waits: op {oldest.op_id} of client {oldest.process}, "
            f"{oldest.function} {oldest.topic}-{oldest.partition}, since {oldest.since / 1e9:.3f} s"
            f"{asked}{error}"
        )
    return lines


def _broker_line(broker: BrokerSeen) -> str:
    registered = (
        f"registered (broker epoch {broker.broker_epoch})" if broker.broker_epoch >= 0 else "not registered"
    )
    return f"broker {broker.broker}: {broker.process}, {registered}, knows {_set(broker.knows)} to be alive"


def _belief_line(belief: Belief) -> str:
    text = f"{_role(belief)}, log end {belief.log_end_offset}, high watermark {belief.high_watermark}"
    if belief.leader == belief.broker:
        text += f", ISR {_set(belief.isr)}, version {belief.zk_version}"
    if belief.pending_isr is not None:
        text += f", proposed ISR {_set(belief.pending_isr)}"
    return text
