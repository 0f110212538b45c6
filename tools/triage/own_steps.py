"""What each protection's own step looks like in a trace: words of which one must be in a feature, or in the
parting event.

Owns: the table, written from what each protection says (fencepost/traces/protections), and not from what
triage found. It is for measuring only: nothing in fencepost/ reads it. A bug without a row has no step of its
own in a trace, and cannot be counted as explained. T5, T6 and the phase of KAFKA-5600 were added after the
runs with seeds from 7,000,000 on had been looked at; R10, T7, T8, T9, T15, T26, KIP-447 and KIP-890 before
those from 27,000,000 on were.
"""

import re

OWN_STEP: dict[str, str] = {
    # replication
    "KIP-101": r"truncated",
    "KIP-279": r"truncated",
    "KIP-320": r"fetch_refused|appended follower",
    "KAFKA-7128": r"(isr_proposed|isr_updated) expand|partition_state.*ISR grows",
    "KAFKA-7415": r"truncated",
    "KIP-207": r"list_offsets|became_leader.*high watermark below",
    "KAFKA-1647": r"log_recovered|high watermark goes back",
    "KAFKA-3978": r"high watermark beyond|high_watermark|became_(leader|follower)",
    "KAFKA-9491": r"truncated full|log_start truncated",
    "KAFKA-5634": r"log_start retention",
    "KAFKA-13194": r"compacted",
    "KAFKA-6975": r"follower_failed|truncated full",
    # controller
    "KAFKA-532": r"control_request_applied.*controller epoch",
    "KAFKA-6082": r"partition_state.*(controller epoch behind|not the one)",
    "KAFKA-1096": r"partition_state.*(controller epoch|not the one)",
    "KAFKA-4443": r"live_brokers|control_request_(applied|refused) (LeaderAndIsr|UpdateMetadata)",
    "KAFKA-2729": r"isr_refused|control_request",
    "KAFKA-1382": r"isr_refused",
    "KAFKA-708": r"partition_state.*ISR empty",
    "KAFKA-340": r"partition_state.*(leader|ISR)",
    "KAFKA-1188": r"became_.*(same epoch again|older epoch)",
    "KIP-570": r"StopReplica|replica_deleted",
    "KIP-380": r"control_request_applied.*broker epoch",
    "KAFKA-1387": r"broker_znode|broker_registered",
    "KAFKA-13407": r"controller_znode|controller_elected",
    "KAFKA-3143": r"somebody gone|partition_state",
    "KAFKA-14140": r"(isr_proposed|isr_updated) expand|ISR (adds|grows)|somebody gone",
    "KAFKA-1097": r"unassigned",
    "KAFKA-5310": r"assignment",
    "KAFKA-6193": r"reassignment",
    "KAFKA-1681": r"topic_deletion|delete",
    "KAFKA-6650": r"topic_deletion|delete",
    "KAFKA-9946": r"topic_deletion|delete|StopReplica",
    "KAFKA-7235": r"stopp|shutdown|broker_state",
    # groups
    "KAFKA-10614": r"groups_(un)?loaded",
    "KAFKA-5600": r"groups_loaded|group_phase.*\(loaded\)",
    "KAFKA-4362": r"groups_(un)?loaded|COORDINATOR",
    "KAFKA-13636": r"group_offset_expired",
    "KAFKA-8069": r"group_offset_expired",
    "KAFKA-10284": r"group_phase|groups_loaded",
    "P3": r"operation: commit|ILLEGAL_GENERATION",
    "P5": r"operation: commit",
    "T7": r"fetch_committed",
    "T8": r"fetch_committed",
    "T9": r"fetch_committed",
    "KIP-447": r"operation: txn|operation: commit",
    # producers
    "KIP-98": r"operation: append|appended",
    "KIP-890": r"operation: append|appended",
    "R10": r"an id of two producers|another producer id",
    "KAFKA-7298": r"operation: append|appended|log_start",
    "KAFKA-6003": r"follower_failed",
    "KAFKA-6683": r"appended|log_directory_failed",
    "KAFKA-8484": r"appended",
    # transactions; T5 and T6 guard what readers of committed records get, of which no event speaks
    "T1": r"transaction_phase.*producer epoch",
    "T2": r"transaction_phase.*(loaded|producer epoch)",
    "KAFKA-16352": r"transaction_phase Prepare.*loaded|transactions_loaded",
    "T3": r"marker_|before all markers",
    "T4": r"marker_|before all markers",
    "T5": r"poll read_committed|a record of an open transaction",
    "T6": r"poll read_committed|a record of an aborted transaction",
    "T13": r"marker_|before all markers",
    "T14": r"transaction_phase.*producer epoch",
    "T15": r"transaction_phase PrepareAbort|left: a transaction that is open",
    "T26": r"transaction_phase.*producer epoch|another producer id",
}


def is_own(bug: str, words: str) -> bool:
    """Whether the words of a feature, or of an event as a step, are of the bug's own step."""
    return bug in OWN_STEP and re.search(OWN_STEP[bug], words) is not None
