-------------------------- MODULE ReplicationGuards --------------------------
(***************************************************************************)
(* When an action of replication is allowed, as operators on offsets,      *)
(* epochs and sets of replicas.  Replication.tla asks them of its own      *)
(* variables; ReplicationTrace.tla asks them of what a recorded run shows. *)
(* The same guards in Python are fencepost/model/replication/guards.py.  A guard that  *)
(* is a protection takes as an argument whether it is kept.                *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

NoLeader == -1

Least(S)    == CHOOSE n \in S : \A m \in S : n <= m
Greatest(S) == CHOOSE n \in S : \A m \in S : n >= m

\* A clean election takes a leader from the ISR and adds nobody to it; nobody may lead while
\* the last member is kept (KAFKA-708).  unclean: the topic allows a leader from outside, who
\* is then the whole ISR.
MayElect(leaderNow, isrBefore, isrAfter, unclean) ==
    /\ isrAfter # {}
    /\ leaderNow = NoLeader \/ leaderNow \in isrAfter
    /\ isrAfter \subseteq isrBefore \/ (unclean /\ isrAfter = {leaderNow})

\* leader_epoch_fencing (KAFKA-1188): LeaderAndIsr is applied only with a higher leader epoch.
\* A broker that restarted has forgotten its own.
MayTakeEpoch(known, epoch, sameIncarnation, fenced) ==
    epoch > known \/ ~sameIncarnation \/ ~fenced

\* fetch_fencing (KIP-320): a leader answers followers of its own epoch only.
MayServe(epochOfLeader, epochOfFollower, fenced) ==
    epochOfLeader = epochOfFollower \/ ~fenced

\* Records go to the log end, and epochs never decrease along a log.
MayAppend(logEnd, offset, lastEpoch, epoch) == offset = logEnd /\ epoch >= lastEpoch

\* A truncation by epoch cuts something, and nothing that both replicas hold (the first
\* `shared` records).
MayTruncate(shared, logEnd, newEnd) == shared <= newEnd /\ newEnd < logEnd

\* A log is opened where it was known to begin, or below (no checkpoint had told yet); or where
\* a step that a fault interrupted moved its start to, which is nowhere beyond what was shown.
MayBegin(known, start, logEnd, shown, interrupted) ==
    start <= logEnd /\ (start <= known \/ (interrupted /\ start <= shown))

\* R3: the high watermark follows the ISR, and never goes down.
MayAdvance(before, after, inSyncEnd) == before <= after /\ after <= inSyncEnd

\* below_high_watermark (KAFKA-5634): retention takes only what lies below the high watermark,
\* to its end.
MayDelete(end, watermark, committedOnly) == committedOnly => end <= watermark

\* isr_expand_after_epoch_start (KAFKA-7128): a follower joins at the high watermark AND at
\* the start of the leader's epoch, because a new leader's high watermark lags.
MayJoinIsr(end, watermark, epochStart, afterEpochStart) ==
    /\ end >= 0
    /\ end >= watermark
    /\ afterEpochStart => end >= epochStart

=============================================================================
