"""The registry of protection names: one name for the same guard in impl, model, TLA+ and the zoo of bugs.

Each protocol protection of the implementation is a named method of a part; the key is the id of the bug that
its absence brings back (KIP-279 means KIP-279's protection). Later work adds rows. Some are names of the
model only, since no one method of the implementation holds them: undefined_has_no_end, what transactions of
the first version assume, and what Kafka has had since 4.2.
"""

from attrs import frozen


@frozen(kw_only=True)
class Protection:
    """A guard of the protocol."""

    # Kafka-style words, used as the model's parameter.
    name: str
    # The zoo's id (a KIP or KAFKA number), or the rule of docs/spec/cluster.md (P3) if no release is known
    # without it.
    bug: str
    # The invariant that breaks without it.
    breaks: str
    says: str


PROTECTIONS: tuple[Protection, ...] = (
    Protection(
        name="truncate_by_epoch",
        bug="KIP-101",
        breaks="COMMIT-SAFE",
        says="a follower truncates to the end offset of its last epoch on the leader, not to its high "
        "watermark",
    ),
    Protection(
        name="truncate_below_own_epoch",
        bug="KIP-279",
        breaks="LOG-MATCH",
        says="the leader answers (largest epoch <= asked, its end offset) and the follower repeats until "
        "they agree",
    ),
    Protection(
        name="assign_epoch_on_election",
        bug="KAFKA-7415",
        breaks="LOG-MATCH",
        says="a new leader enters (epoch, log end offset) in its epoch cache before it writes",
    ),
    Protection(
        name="fetch_fencing",
        bug="KIP-320",
        breaks="COMMIT-SAFE",
        says="fetches carry the leader epoch; a leader refuses older and newer ones",
    ),
    Protection(
        name="isr_expand_after_epoch_start",
        bug="KAFKA-7128",
        breaks="COMMIT-SAFE",
        says="a follower joins the ISR only at or past the start offset of the current leader epoch",
    ),
    Protection(
        name="offset_not_available",
        bug="KIP-207",
        breaks="HW-MONO",
        says="ListOffsets refuses while the high watermark is below the start of the leader's epoch",
    ),
    Protection(
        name="leader_epoch_fencing",
        bug="KAFKA-1188",
        breaks="EPOCH-MONO",
        says="a broker applies LeaderAndIsr for a partition only with a higher leader epoch",
    ),
    Protection(
        name="controller_epoch_fencing",
        bug="KAFKA-532",
        breaks="CTRL-FENCE",
        says="a broker refuses control requests of a controller epoch below the highest it has seen",
    ),
    Protection(
        name="fenced_zookeeper_write",
        bug="KAFKA-6082",
        breaks="CTRL-FENCE",
        says="each controller write is multi[check /controller_epoch version, write]",
    ),
    Protection(
        name="broker_epoch_fencing",
        bug="KIP-380",
        breaks="COMMIT-SAFE",
        says="a broker refuses control requests meant for an earlier incarnation of itself",
    ),
    Protection(
        name="accept_own_isr_write",
        bug="KAFKA-1382",
        breaks="LIVE",
        says="on BADVERSION the leader re-reads the state and accepts it if it is what it wrote",
    ),
    Protection(
        name="keep_last_isr_member",
        bug="KAFKA-708",
        breaks="ISR-NONEMPTY",
        says="when the last ISR member dies the leader becomes -1 and the ISR keeps that member",
    ),
    Protection(
        name="epoch_read_in_election_only",
        bug="KAFKA-1096",
        breaks="CTRL-FENCE",
        says="a controller keeps the epoch in which it was elected; an epoch that it reads later is not "
        "its own",
    ),
    Protection(
        name="re_elect",
        bug="ADR-1",
        breaks="EPOCH-MONO",
        says="at fail-over a leader that registered after the state was written leads in a new epoch",
    ),
    Protection(
        name="reset_on_resign",
        bug="KAFKA-5310",
        breaks="ASSIGN",
        says="a controller that resigns forgets all that it knew, so that it does not take up an old "
        "reassignment again",
    ),
    Protection(
        name="stop_replica_fencing",
        bug="KIP-570",
        breaks="COMMIT-SAFE",
        says="a broker refuses a StopReplica of an earlier leader epoch than it has obeyed",
    ),
    Protection(
        name="assigned_replicas_only",
        bug="KAFKA-1097",
        breaks="ISR-IN-AR",
        says="a leader takes only replicas of the assignment that it knows into the ISR",
    ),
    Protection(
        name="resend_until_answered",
        bug="KAFKA-2729",
        breaks="LIVE",
        says="a controller sends a LeaderAndIsr again until it is answered, so that no leader keeps a stale "
        "version of its state",
    ),
    Protection(
        name="own_registration",
        bug="KAFKA-1387",
        breaks="LIVE",
        says="a broker is registered only by a node of its present session; one of an earlier session goes "
        "with that",
    ),
    Protection(
        name="names_me",
        bug="KAFKA-13407",
        breaks="LIVE",
        says="a broker that finds itself in /controller, by an answer that was lost, takes over",
    ),
    Protection(
        name="dead_replicas_offline",
        bug="KAFKA-3143",
        breaks="ISR-ALIVE",
        says="a controller that takes over removes brokers from the ISRs that died while there was no "
        "controller",
    ),
    Protection(
        name="keep_pending",
        bug="KAFKA-6193",
        breaks="ASSIGN",
        says="an entry that is taken out of /admin/reassign_partitions leaves the others there",
    ),
    Protection(
        name="shutdown_fencing",
        bug="KAFKA-7235",
        breaks="INCARNATION",
        says="a controller refuses a controlled shutdown that an earlier incarnation of the broker asked for",
    ),
    Protection(
        name="resume_deletions",
        bug="KAFKA-1681",
        breaks="DEL-COMPLETE",
        says="a new controller resumes the deletions in /admin/delete_topics",
    ),
    Protection(
        name="offline_without_state",
        bug="KAFKA-6650",
        breaks="DEL-COMPLETE",
        says="a replica of a topic that is being deleted goes offline also if its partition has no state "
        "any more",
    ),
    Protection(
        name="answers_a_deletion",
        bug="KAFKA-9946",
        breaks="DEL-COMPLETE",
        says="a replica counts as deleted when a StopReplica that deletes was answered, not one that only "
        "stops",
    ),
    Protection(
        name="last_in_sync_stays",
        bug="KAFKA-340",
        breaks="COMMIT-SAFE",
        says="at controlled shutdown leadership moves to another ISR member that stays, or not at all",
    ),
    Protection(
        name="staying_isr_members_only",
        bug="KAFKA-14140",
        breaks="STOP-SAFE",
        says="a leader takes no replica into the ISR if it knows that the replica's broker is stopping",
    ),
    Protection(
        name="still_same_epoch",
        bug="KAFKA-7786",
        breaks="LOG-MATCH",
        says="a follower drops an answer whose question was asked in an earlier leader epoch",
    ),
    Protection(
        name="below_high_watermark",
        bug="KAFKA-5634",
        breaks="HW-BOUNDS",
        says="retention removes only segments that lie below the high watermark as a whole",
    ),
    Protection(
        name="clean_below",
        bug="KAFKA-13194",
        breaks="COMMIT-SAFE",
        says="compaction stops at the high watermark, the first open transaction and the active segment",
    ),
    Protection(
        name="high_watermark_follows_log_start",
        bug="KAFKA-9491",
        breaks="HW-BOUNDS",
        says="a full truncation sets the high watermark together with the log start",
    ),
    Protection(
        name="high_watermark_within_log",
        bug="KAFKA-3978",
        breaks="HW-BOUNDS",
        says="a high watermark is clamped into [log start, log end], wherever it comes from",
    ),
    Protection(
        name="introduce",
        bug="KAFKA-4443",
        breaks="LIVE",
        says="a new controller informs every broker which brokers are alive before it gives roles",
    ),
    Protection(
        name="keep_checkpointed",
        bug="KAFKA-1647",
        breaks="COMMIT-SAFE",
        says="a high watermark that was read at start-up is checkpointed again, though no replica has taken "
        "it over yet",
    ),
    Protection(
        name="undefined_has_no_end",
        bug="KAFKA-6857",
        breaks="COMMIT-SAFE",
        says="a leader without epochs has no end for the undefined epoch, so that the follower falls back "
        "to its high watermark",
    ),
    Protection(
        name="start_over_below_leaders_log",
        bug="KAFKA-7414",
        breaks="COMMIT-SAFE",
        says="a follower out of its leader's range drops its log only if it ends below the leader's log "
        "start",
    ),
    Protection(
        name="log_start_inside_batch",
        bug="KAFKA-6975",
        breaks="LIVE",
        says="the first batch of a log may begin below the log start offset",
    ),
    Protection(
        name="cut_epochs",
        bug="KAFKA-10706",
        breaks="LIVE",
        says="a truncation cuts the epoch cache even where it cuts no record",
    ),
    Protection(
        name="generation_fencing",
        bug="P3",
        breaks="GENERATION-FENCE",
        says="a coordinator takes commits of members of the group's present generation only",
    ),
    Protection(
        name="commit_async_not_retried",
        bug="P5",
        breaks="OFFSET-SAFE",
        says="commitAsync is not sent again: it could overwrite a commit that was sent later",
    ),
    Protection(
        name="coordinator_epoch_order",
        bug="KAFKA-10614",
        breaks="ONE-COORDINATOR",
        says="a group's load or unload is dropped if one of a later coordinator epoch has run",
    ),
    Protection(
        name="apply_whole_load",
        bug="KAFKA-5600",
        breaks="OFFSET-SAFE",
        says="a coordinator that loads a group applies every batch that it reads",
    ),
    Protection(
        name="no_expiry_while_rebalancing",
        bug="KAFKA-13636",
        breaks="OFFSET-SAFE",
        says="offsets of topics that a group consumes expire only while the group is empty",
    ),
    Protection(
        name="persist_static_member",
        bug="KAFKA-10284",
        breaks="ONE-INSTANCE",
        says="the new id of a returning static member is written before it is "
        "answered, so that the next coordinator knows it",
    ),
    Protection(
        name="replace_static_member",
        bug="KAFKA-8500",
        breaks="ONE-INSTANCE",
        says="a returning static member replaces its former self in any state of the group",
    ),
    Protection(
        name="deletable",
        bug="KAFKA-14505",
        breaks="OFFSET-SAFE",
        says="a group or an offset is deleted together with the offsets of open transactions",
    ),
    Protection(
        name="take_timeouts",
        bug="KAFKA-14009",
        breaks="LIVE",
        says="a returning static member has the time-outs that it names now, not those of its former process",
    ),
    Protection(
        name="expires_at_ms",
        bug="KAFKA-8069",
        breaks="OFFSET-SAFE",
        says="a committed offset without its own expiry time gets that of the retention",
    ),
    Protection(
        name="not_coordinator",
        bug="KAFKA-4362",
        breaks="OFFSET-SAFE",
        says="a broker answers for a group only while it leads the offsets partition and has loaded it",
    ),
    Protection(
        name="check",
        bug="KIP-98",
        breaks="IDEMP",
        says="a leader appends a numbered batch only after its predecessor, and never twice",
    ),
    Protection(
        name="may_be_written",
        bug="KIP-360",
        breaks="IDEMP",
        says="a batch whose earlier attempt may be in the log is not sent again under a new epoch",
    ),
    Protection(
        name="fenced_claim",
        bug="R10",
        breaks="IDEMP",
        says="a block of producer ids is claimed against the version of the last one",
    ),
    Protection(
        name="keep_producers",
        bug="KAFKA-7298",
        breaks="IDEMP",
        says="a log knows a producer until it expires, though all its batches are deleted",
    ),
    Protection(
        name="in_order",
        bug="KAFKA-8484",
        breaks="IDEMP",
        says="batches that get new numbers keep the order in which they were sent",
    ),
    Protection(
        name="update_producers",
        bug="KAFKA-6683",
        breaks="IDEMP",
        says="producers learn only of batches that are in the log",
    ),
    Protection(
        name="trust_the_leader",
        bug="KAFKA-6003",
        breaks="LIVE",
        says="a follower does not check sequence numbers: its leader did, and knows more",
    ),
    Protection(
        name="epoch_fencing",
        bug="T1",
        breaks="EXACTLY-ONCE",
        says="a transaction coordinator refuses a producer of another epoch than the last one given out",
    ),
    Protection(
        name="loaded",
        bug="T2",
        breaks="EXACTLY-ONCE",
        says="a transaction coordinator loads the last epoch that was given out",
    ),
    Protection(
        name="go_on_with_ends",
        bug="KAFKA-16352",
        breaks="LIVE",
        says="a coordinator that loads a transaction with a decided end sends its markers",
    ),
    Protection(
        name="to_mark",
        bug="T3",
        breaks="LIVE",
        says="every partition of a transaction gets its marker",
    ),
    Protection(
        name="is_written",
        bug="T4",
        breaks="LIVE",
        says="a marker is sent until every replica has it",
    ),
    Protection(
        name="last_stable_offset",
        bug="T5",
        breaks="TXN-ATOM",
        says="readers of committed records stop at the first record of the oldest open transaction",
    ),
    Protection(
        name="aborted_transactions",
        bug="T6",
        breaks="TXN-ATOM",
        says="a fetch of committed records names the aborted transactions among them",
    ),
    Protection(
        name="count",
        bug="T7",
        breaks="EXACTLY-ONCE",
        says="the offsets of a committed transaction count",
    ),
    Protection(
        name="ended",
        bug="T8",
        breaks="EXACTLY-ONCE",
        says="the offsets of an aborted transaction never were",
    ),
    Protection(
        name="group_fencing",
        bug="KIP-447",
        breaks="EXACTLY-ONCE",
        says="only a member of the present generation commits offsets in a transaction",
    ),
    Protection(
        name="stable_offsets_only",
        bug="T9",
        breaks="EXACTLY-ONCE",
        says="a consumer that goes on from committed offsets waits for transactions that commit some",
    ),
    Protection(
        name="answer_when_durable",
        bug="T13",
        breaks="LIVE",
        says="a marker is answered when every replica has it",
    ),
    Protection(
        name="next_epoch",
        bug="T14",
        breaks="EXACTLY-ONCE",
        says="a process that takes a transactional id over gets an epoch of its own",
    ),
    Protection(
        name="is_overdue",
        bug="T15",
        breaks="LIVE",
        says="a transaction that is open beyond its time-out is aborted",
    ),
    Protection(
        name="counts_when_durable",
        bug="T12",
        breaks="LIVE",
        says="a transition of a transaction counts when every replica has it",
    ),
    Protection(
        name="next_epoch",
        bug="T26",
        breaks="LIVE",
        says="a producer that has used up its epochs gets another producer id",
    ),
    Protection(
        name="still_member",
        bug="T11",
        breaks="EXACTLY-ONCE",
        says="who has lost its membership does not commit offsets in a transaction",
    ),
    Protection(
        name="check_marker",
        bug="KAFKA-5231",
        breaks="TXN-ATOM",
        says="a leader refuses a marker of an earlier producer epoch than it has seen",
    ),
    Protection(
        name="coordinator_fencing",
        bug="T16",
        breaks="TXN-ATOM",
        says="a log refuses markers of a coordinator that was replaced",
    ),
    Protection(
        name="is_needed",
        bug="KIP-890",
        breaks="LIVE",
        says="a leader asks the coordinator before it writes the first batch of a transaction",
    ),
    Protection(
        name="still_guarded",
        bug="T10",
        breaks="LIVE",
        says="the coordinator's answer counts for the transaction that it was asked about",
    ),
    Protection(
        name="settle",
        bug="KAFKA-8805",
        breaks="TXN-ATOM",
        says="after a batch that may still arrive, the next transaction has another producer epoch",
    ),
    Protection(
        name="fence",
        bug="KAFKA-6119",
        breaks="TXN-ATOM",
        says="a coordinator aborts by itself in a new producer epoch",
    ),
    Protection(
        name="abort_open_first",
        bug="T24",
        breaks="TXN-ATOM",
        says="a transaction that is open is aborted before InitProducerId gives out the next epoch",
    ),
    Protection(
        name="one_at_a_time",
        bug="T25",
        breaks="TXN-ATOM",
        says="no transaction begins before each partition has the marker of the last one",
    ),
    Protection(
        name="decide_durably",
        bug="T23",
        breaks="TXN-ATOM",
        says="markers are sent after every replica has the decision",
    ),
    Protection(
        name="no_late_end",
        bug="KAFKA-17754",
        breaks="TXN-ATOM",
        says="an assumption of the first version: no EndTxn arrives after it was answered",
    ),
    Protection(
        name="no_late_marker",
        bug="T22",
        breaks="TXN-ATOM",
        says="an assumption of the first version: no marker arrives after its leader has answered one",
    ),
    Protection(
        name="deposed_is_silent",
        bug="T21",
        breaks="TXN-ATOM",
        says="an assumption of the first version: a coordinator that was deposed answers nobody",
    ),
    Protection(
        name="marker_above_epoch",
        bug="KIP-1228",
        breaks="TXN-ATOM",
        says="in the second version a leader refuses a marker whose epoch its log has already",
    ),
    Protection(
        name="marker_again",
        bug="KAFKA-19999",
        breaks="LIVE",
        says="a marker of the epoch that the log has is taken for a repetition if no transaction is open",
    ),
)

BY_BUG: dict[str, Protection] = {protection.bug: protection for protection in PROTECTIONS}
BY_NAME: dict[str, Protection] = {protection.name: protection for protection in PROTECTIONS}
