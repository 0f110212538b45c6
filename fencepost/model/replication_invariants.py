"""What must hold in the replication model, named as in the anomaly table.

Owns: COMMIT-SAFE, LOG-MATCH, EPOCH-MONO and one leader per epoch, on states of the model and on its steps; and the `sometimes`, what a useful
exploration reaches. Must not know the actions' bodies.
"""

from collections.abc import Callable, Mapping

from fencepost.model.explore.system import Action
from fencepost.model.replication_state import DOWN, State


def commit_safe(state: State) -> bool:
    """Each leader holds every record that an exposed high watermark of its epoch or an earlier one covered."""
    committed = state.committed
    if not committed:
        return True
    for number, replica in enumerate(state.replicas):
        if replica.leader != number:
            continue
        for offset, (epoch, value, exposed_in) in enumerate(committed):
            if exposed_in <= replica.epoch and replica.log[offset : offset + 1] != ((epoch, value),):
                return False
    return True


def exposes_one_content(before: State, action: Action, after: State) -> bool:
    """COMMIT-SAFE of a step: a high watermark never covers a record other than the one that an earlier high watermark covered."""
    if action[0] != "advance_high_watermark":
        return True
    leader = after.replicas[int(action[1])]
    return all(
        leader.log[offset] == (epoch, value)
        for offset, (epoch, value, _) in enumerate(before.committed[: leader.high_watermark])
    )


def log_match(state: State) -> bool:
    """(offset, epoch) names one value, and two logs agree below the lower of their high watermarks."""
    replicas = state.replicas
    for index, one in enumerate(replicas):
        for other in replicas[index + 1 :]:
            if one.log == other.log:
                continue
            lower = min(one.high_watermark, other.high_watermark)
            if one.log[:lower] != other.log[:lower]:
                return False
            if any(a[0] == b[0] and a != b for a, b in zip(one.log, other.log, strict=False)):
                return False
    return True


def epochs_grow_along_logs(state: State) -> bool:
    """EPOCH-MONO of a state: leader epochs never decrease along a log."""
    return all(
        earlier[0] <= later[0]
        for replica in state.replicas
        for earlier, later in zip(replica.log, replica.log[1:], strict=False)
    )


def one_leader_per_epoch(state: State) -> bool:
    """No two replicas lead in one epoch."""
    leading = [replica.epoch for number, replica in enumerate(state.replicas) if replica.leader == number]
    return len(leading) == len(set(leading))


def epochs_grow_at_brokers(before: State, action: Action, after: State) -> bool:
    """EPOCH-MONO of a step: a running broker's leader epoch never goes back."""
    return action[0] in ("crash", "restart") or all(
        one.epoch <= other.epoch for one, other in zip(before.replicas, after.replicas, strict=True)
    )


OF_STATES: Mapping[str, Callable[[State], bool]] = {
    "COMMIT-SAFE": commit_safe,
    "LOG-MATCH": log_match,
    "EPOCH-MONO": epochs_grow_along_logs,
    "ONE-LEADER": one_leader_per_epoch,
}
OF_STEPS: Mapping[str, Callable[[State, Action, State], bool]] = {
    "COMMIT-SAFE": exposes_one_content,
    "EPOCH-MONO": epochs_grow_at_brokers,
}
SOMETIMES: Mapping[str, Callable[[State], bool]] = {
    "a record is committed": lambda state: bool(state.committed),
    "two replicas lead at once": lambda state: (
        sum(replica.leader == number for number, replica in enumerate(state.replicas)) > 1
    ),
    "two logs fork": lambda state: any(
        one.log[: len(other.log)] != other.log[: len(one.log)]
        for one in state.replicas
        for other in state.replicas
        if one.leader != DOWN
    ),
    "the ISR shrank to its leader": lambda state: state.quorum[-1][1] == 1 << state.quorum[-1][0],
}
