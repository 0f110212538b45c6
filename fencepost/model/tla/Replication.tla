---------------------------- MODULE Replication ----------------------------
(***************************************************************************)
(* How the replicas of one Kafka partition copy a log, as ZooKeeper-era    *)
(* Kafka does it, and what a committed record is promised.                 *)
(*                                                                         *)
(* One replica leads; the others follow it and fetch.  The controller      *)
(* names the leader and writes the in-sync replicas (ISR) to ZooKeeper;    *)
(* each such decision has a number, the leader epoch.  Brokers learn of it *)
(* by LeaderAndIsr requests, which may be late, overtaken or lost: here a  *)
(* replica may learn any epoch above its own at any time, or never.  So    *)
(* several replicas may believe that they lead.                            *)
(*                                                                         *)
(* A leader commits a record when every replica of the ISR holds it: it    *)
(* advances its high watermark, and clients may read up to there.  Both    *)
(* ends of a fetch lag: the leader learns where a follower's log ends from *)
(* the NEXT request, the follower learns the high watermark from the       *)
(* answer.  After a change of leader, logs may fork above the high         *)
(* watermark.  Most of Kafka's bugs here were about where to cut a fork:   *)
(*                                                                         *)
(*   KIP-101     a follower cut at its own high watermark, which lags      *)
(*   KIP-279     the answer to "where does epoch e end" did not say which  *)
(*               epoch it spoke of                                         *)
(*   KAFKA-7415  a new leader that had written nothing could not answer    *)
(*   KIP-320     a leader served followers of another epoch, which         *)
(*               therefore never cut                                       *)
(*   KAFKA-7128  a follower joined the ISR at a high watermark that a new  *)
(*               leader had not caught up with yet                         *)
(*   KAFKA-1188  a broker obeyed an old LeaderAndIsr                       *)
(*   KIP-380     a restarted broker obeyed a request to its former self    *)
(*   KIP-207     a new leader told clients its lagging high watermark as   *)
(*               the end of the log                                        *)
(*   KAFKA-6857  a leader without epochs answered its log end to a         *)
(*               follower without epochs                                   *)
(*   KAFKA-1647  a replica without a role was left out of the high         *)
(*               watermark checkpoint                                      *)
(*   KAFKA-5634  retention deleted records above the high watermark        *)
(*   KAFKA-3978  a high watermark outside the log was believed             *)
(*   KAFKA-9491  a follower that started over below its leader's log kept  *)
(*               its old high watermark                                    *)
(*                                                                         *)
(* Each of these has a protection, and each protection has a name.  The    *)
(* constant Drop is the set of protections to do without: the empty set is *)
(* Kafka as it should be, and every other set is a variant in which some   *)
(* property below should fall.                                             *)
(*                                                                         *)
(* What is one step here and more in Kafka: a fetch (request, answer and   *)
(* append), a round of OffsetsForLeaderEpoch, a change of the ISR by its   *)
(* leader (a compare-and-set that succeeds).  Offsets count from 0, as in  *)
(* Kafka; the record at offset o is log[r][o + 1].  What retention deleted *)
(* stays in it as Gone, so that offsets are places: a log starts after the *)
(* records that are gone.                                                  *)
(*                                                                         *)
(* The guards that a recorded run is held against, too, are operators of   *)
(* ReplicationGuards; see ReplicationTrace.                                *)
(*                                                                         *)
(* The same system, written in Python, is fencepost/model/replication/replication_system.py;  *)
(* the two have the same states, and a test compares them.                 *)
(***************************************************************************)
EXTENDS ReplicationGuards, Integers, Sequences, FiniteSets

CONSTANTS
    ReplicaCount,   \* Replicas are numbered from 0.  Use three: two hide KIP-320.
    LogSize,        \* Records in a log, at most.
    LastEpoch,      \* The highest leader epoch.
    ValueCount,     \* Records that are ever appended.
    CrashCount,     \* Crashes, of all replicas together.
    LossCount,      \* Records that crashes take from the ends of logs, together.
    ListCount,      \* Answers to ListOffsets that are remembered; 0: nobody asks.
    LastLogStart,   \* Where retention lets a log start, at most; 0: nothing is deleted.
    OldFormat,      \* Whether records carry no epoch, as before KIP-101: nobody has an epoch cache.
    Drop            \* The protections to do without, by name.

Replicas == 0 .. ReplicaCount - 1
Epochs   == 0 .. LastEpoch
Values   == 0 .. ValueCount - 1
Nobody   == -1      \* In leader[r]: the broker runs and has no role yet.
Down     == -2      \* In leader[r]: the broker does not run.

Protections ==
    { "truncate_by_epoch",              \* KIP-101
      "truncate_below_own_epoch",       \* KIP-279
      "assign_epoch_on_election",       \* KAFKA-7415
      "fetch_fencing",                  \* KIP-320
      "isr_expand_after_epoch_start",   \* KAFKA-7128
      "leader_epoch_fencing",           \* KAFKA-1188
      "broker_epoch_fencing",           \* KIP-380
      "offset_not_available",           \* KIP-207
      "undefined_has_no_end",           \* KAFKA-6857
      "keep_checkpointed",              \* KAFKA-1647
      "below_high_watermark",           \* KAFKA-5634
      "high_watermark_within_log",      \* KAFKA-3978
      "high_watermark_follows_log_start" } \* KAFKA-9491

ASSUME
    /\ ReplicaCount \in Nat \ {0}
    /\ LogSize \in Nat /\ LastEpoch \in Nat /\ ValueCount \in Nat
    /\ CrashCount \in Nat /\ LossCount \in Nat /\ ListCount \in Nat
    /\ LastLogStart \in Nat
    /\ OldFormat \in BOOLEAN
    /\ Drop \subseteq Protections

Keeps(protection) == protection \notin Drop

VARIABLES
    \* Per replica
    log,            \* Its records: a sequence of [epoch, value].
    cache,          \* Its leader epoch cache: a sequence of [epoch, start], both growing.
    highWatermark,  \* Records below this offset it believes to be committed.
    leaderEpoch,    \* The highest leader epoch that it has learned.
    leader,         \* Whom it follows; itself if it leads; Nobody; Down.
    truncating,     \* It follows, and has not yet agreed with its leader on a common end.
    ends,           \* Of a leader: the log ends of its followers as they last told in this epoch
                    \* (-1: not yet); its own slot is where its epoch began.  Else << >>.
    \* ZooKeeper
    quorum,         \* For each leader epoch so far its [leader, isr]; the last one is current.
    \* A ghost: what was ever exposed below a high watermark, and the lowest epoch that did.
    committed,      \* A sequence of [epoch, value, exposedIn].
    \* A ghost: what leaders told clients by ListOffsets(latest), in order.
    listed,         \* A sequence of [epoch, end].
    \* How much of the bounds is used
    appended, crashes, lost

replicaVars == << log, cache, highWatermark, leaderEpoch, leader, truncating, ends >>
boundVars   == << appended, crashes, lost, listed >>
vars        == << replicaVars, quorum, committed, boundVars >>

----------------------------------------------------------------------------
(* Small words *)

Min(a, b)      == IF a <= b THEN a ELSE b
Max(a, b)      == IF a >= b THEN a ELSE b
Last(s)        == s[Len(s)]
Prefix(s, n)   == SubSeq(s, 1, Min(n, Len(s)))
LogEnd(r)      == Len(log[r])
Gone           == [epoch |-> -1, value |-> -1]
StartOf(s)     == Cardinality({ i \in DOMAIN s : s[i] = Gone })
LogStart(r)    == StartOf(log[r])
CurrentEpoch   == Len(quorum) - 1
Current        == quorum[Len(quorum)]
QuorumOf(e)    == quorum[e + 1]
Leads(r)       == leader[r] = r
Follows(r)     == leader[r] \notin {r, Nobody, Down}

----------------------------------------------------------------------------
(* The leader epoch cache.  An entry says: from this offset on, records    *)
(* were written in this epoch.                                             *)

Undefined == [epoch |-> -1, end |-> -1]

\* Enter an epoch; entries that contradict it go (Kafka's truncateAndAppend).
Assign(entries, epoch, start) ==
    IF entries # << >> /\ Last(entries).epoch = epoch /\ start >= Last(entries).start
    THEN entries
    ELSE LET Fits(entry) == entry.epoch < epoch /\ entry.start < start
         IN  Append(SelectSeq(entries, Fits), [epoch |-> epoch, start |-> start])

\* Records of the old format have no epoch, so there is nothing to keep.
Enter(entries, epoch, start) == IF OldFormat THEN entries ELSE Assign(entries, epoch, start)

\* The cache of a log that starts later now: the epoch of its first record begins there
\* (Kafka's truncateFromStart).
CacheFrom(entries, start) ==
    LET Early(entry) == entry.start <= start
        Later(entry) == entry.start > start
        early == SelectSeq(entries, Early)
    IN  (IF early = << >> THEN << >> ELSE << [epoch |-> Last(early).epoch, start |-> start] >>)
            \o SelectSeq(entries, Later)

\* The cache of a log that was cut, also where the cut removed no record (KAFKA-10706).
CacheBelow(entries, end) ==
    LET Stays(entry) == entry.start < end IN SelectSeq(entries, Stays)

LatestEpoch(entries) == IF entries = << >> THEN -1 ELSE Last(entries).epoch

\* KIP-279: the largest epoch not above the one asked for, and where it ends.
\* Below the first entry: the epoch asked for and the first start (KAFKA-7415).
EndOffsetFor(entries, logEnd, asked) ==
    IF asked < 0 \/ entries = << >> THEN Undefined
    ELSE IF asked = Last(entries).epoch THEN [epoch |-> asked, end |-> logEnd]
    ELSE LET later == { i \in DOMAIN entries : entries[i].epoch > asked }
         IN  IF later = {} THEN Undefined
             ELSE LET first == Least(later)
                  IN  [epoch |-> IF first = 1 THEN asked ELSE entries[first - 1].epoch,
                       end   |-> entries[first].start]

\* KIP-101 alone: an end offset, and no word of the epoch that it belongs to.
EndOffsetForKip101(entries, logEnd, asked) ==
    IF asked < 0 \/ entries = << >> THEN Undefined
    ELSE IF asked < entries[1].epoch THEN Undefined
    ELSE [epoch |-> -1, end |-> EndOffsetFor(entries, logEnd, asked).end]

\* Where a follower cuts on this answer, and whether it is then done (else it asks again):
\* Kafka's getOffsetTruncationState.
NextTruncation(entries, logEnd, watermark, answer) ==
    IF answer.end < 0 THEN [end |-> Min(watermark, logEnd), done |-> TRUE]
    ELSE IF answer.epoch < 0 THEN [end |-> Min(answer.end, logEnd), done |-> TRUE]
    ELSE LET own == EndOffsetFor(entries, logEnd, answer.epoch)
         IN  IF own.end < 0 THEN [end |-> Min(answer.end, logEnd), done |-> TRUE]
             ELSE IF own.epoch # answer.epoch THEN [end |-> Min(own.end, logEnd), done |-> FALSE]
             ELSE [end |-> Min(Min(own.end, answer.end), logEnd), done |-> TRUE]

----------------------------------------------------------------------------
(* The beginning: replica 0 leads epoch 0, everybody is in sync and empty. *)

NoEnds(r, start) == [f \in Replicas |-> IF f = r THEN start ELSE -1]

Init ==
    /\ log = [r \in Replicas |-> << >>]
    /\ cache = [r \in Replicas |->
                   IF r = 0 /\ Keeps("assign_epoch_on_election")
                   THEN Enter(<< >>, 0, 0) ELSE << >>]
    /\ highWatermark = [r \in Replicas |-> 0]
    /\ leaderEpoch = [r \in Replicas |-> 0]
    /\ leader = [r \in Replicas |-> 0]
    /\ truncating = [r \in Replicas |-> FALSE]
    /\ ends = [r \in Replicas |-> IF r = 0 THEN NoEnds(0, 0) ELSE << >>]
    /\ quorum = << [leader |-> 0, isr |-> Replicas] >>
    /\ committed = << >>
    /\ appended = 0 /\ crashes = 0 /\ lost = 0 /\ listed = << >>

----------------------------------------------------------------------------
(* The controller (rule C8).  Each decision raises the leader epoch.       *)

\* A clean election: a replica of the ISR leads.  The old leader stays in the ISR
\* (it was moved) or leaves it (it failed); the ISR is never empty (KAFKA-708).
Elect(r) ==
    /\ Len(quorum) <= LastEpoch
    /\ r \in Current.isr
    /\ \E isr \in { Current.isr, Current.isr \ {Current.leader} } :
          /\ MayElect(r, Current.isr, isr, FALSE)
          /\ quorum' = Append(quorum, [leader |-> r, isr |-> isr])
    /\ UNCHANGED << replicaVars, committed, boundVars >>

\* A follower failed: the controller takes it out of the ISR.
ShrinkByController(r) ==
    /\ Len(quorum) <= LastEpoch
    /\ r \in Current.isr \ {Current.leader}
    /\ quorum' = Append(quorum, [leader |-> Current.leader, isr |-> Current.isr \ {r}])
    /\ UNCHANGED << replicaVars, committed, boundVars >>

----------------------------------------------------------------------------
(* LeaderAndIsr arrives (rule R1, R5).                                     *)

\* leader_epoch_fencing (KAFKA-1188): only a higher epoch is obeyed.
MayLearn(r, e) ==
    /\ leader[r] # Down
    /\ e \in 0 .. CurrentEpoch
    /\ e # leaderEpoch[r]
    /\ MayTakeEpoch(leaderEpoch[r], e, TRUE, Keeps("leader_epoch_fencing"))

\* assign_epoch_on_election (KAFKA-7415): the epoch enters the cache before any record.
\* A new leader knows nothing of its followers' logs.
BecomeLeader(r, e) ==
    /\ MayLearn(r, e)
    /\ QuorumOf(e).leader = r
    /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = e]
    /\ leader' = [leader EXCEPT ![r] = r]
    /\ truncating' = [truncating EXCEPT ![r] = FALSE]
    /\ ends' = [ends EXCEPT ![r] = NoEnds(r, LogEnd(r))]
    /\ cache' = IF Keeps("assign_epoch_on_election")
                THEN [cache EXCEPT ![r] = Enter(@, e, LogEnd(r))] ELSE cache
    /\ UNCHANGED << log, highWatermark, quorum, committed, boundVars >>

\* A follower with records first agrees with its leader where to cut.
BecomeFollower(r, e) ==
    /\ MayLearn(r, e)
    /\ QuorumOf(e).leader # r
    /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = e]
    /\ leader' = [leader EXCEPT ![r] = QuorumOf(e).leader]
    /\ truncating' = [truncating EXCEPT ![r] = LogEnd(r) > 0]
    /\ ends' = [ends EXCEPT ![r] = << >>]
    /\ UNCHANGED << log, cache, highWatermark, quorum, committed, boundVars >>

----------------------------------------------------------------------------
(* What any replica does with its log (rule L4).                           *)

\* high_watermark_within_log (KAFKA-3978): whatever a checkpoint or a leader says, it stays
\* within the log.
WithinLog(records, watermark) ==
    IF Keeps("high_watermark_within_log")
    THEN Max(StartOf(records), Min(watermark, Len(records)))
    ELSE watermark

\* Retention, of a leader and of a follower alike.
DeleteOldest(r) ==
    /\ leader[r] # Down
    /\ LET end == LogStart(r) + 1
       IN  /\ end <= LogEnd(r) /\ end <= LastLogStart
           /\ MayDelete(end, highWatermark[r], Keeps("below_high_watermark"))
           /\ log' = [log EXCEPT ![r][end] = Gone]
           /\ cache' = [cache EXCEPT ![r] = CacheFrom(@, end)]
    /\ UNCHANGED << highWatermark, leaderEpoch, leader, truncating, ends, quorum, committed,
                    boundVars >>

----------------------------------------------------------------------------
(* The leader (rule R2, R3).                                               *)

\* A producer's record, stamped with the leader's epoch (KIP-101).
AppendRecord(r) ==
    /\ Leads(r)
    /\ LogEnd(r) < LogSize
    /\ appended < ValueCount
    /\ log' = [log EXCEPT ![r] = Append(@, [epoch |-> leaderEpoch[r], value |-> appended])]
    /\ cache' = [cache EXCEPT ![r] = Enter(@, leaderEpoch[r], LogEnd(r))]
    /\ appended' = appended + 1
    /\ UNCHANGED << highWatermark, leaderEpoch, leader, truncating, ends, quorum, committed,
                    crashes, lost, listed >>

\* The least log end that the leader knows of in its ISR (-1: somebody has not fetched yet).
InSyncEnd(r) ==
    Least({ IF member = r THEN LogEnd(r) ELSE ends[r][member] :
               member \in QuorumOf(leaderEpoch[r]).isr \cup {r} })

\* R3: the high watermark follows the ISR, and never goes down.
AdvanceHighWatermark(r) ==
    /\ Leads(r)
    /\ InSyncEnd(r) > highWatermark[r]
    /\ MayAdvance(highWatermark[r], InSyncEnd(r), InSyncEnd(r))
    /\ LET end     == InSyncEnd(r)
           longest == IF Len(committed) > end THEN Len(committed) ELSE end
           epoch   == leaderEpoch[r]
       IN  /\ highWatermark' = [highWatermark EXCEPT ![r] = end]
           /\ committed' = [i \in 1 .. longest |->
                 IF i <= Len(committed)
                 THEN IF i <= end
                      THEN [committed[i] EXCEPT !.exposedIn = Min(@, epoch)]
                      ELSE committed[i]
                 ELSE [epoch |-> log[r][i].epoch, value |-> log[r][i].value, exposedIn |-> epoch]]
    /\ UNCHANGED << log, cache, leaderEpoch, leader, truncating, ends, quorum, boundVars >>

\* offset_not_available (KIP-207): a new leader's high watermark lags, so ListOffsets does not
\* tell it before it has reached the start of the leader's epoch.
ListOffsets(r) ==
    /\ Leads(r)
    /\ Len(listed) < ListCount
    /\ Keeps("offset_not_available") => highWatermark[r] >= ends[r][r]
    /\ listed' = Append(listed, [epoch |-> leaderEpoch[r], end |-> highWatermark[r]])
    /\ UNCHANGED << replicaVars, quorum, committed, appended, crashes, lost >>

\* A leader changes the ISR by compare-and-set on ZooKeeper's state: a deposed one meets a
\* bad version (R8), so only the leader of the current epoch succeeds.
ChangeIsr(r, isr) ==
    /\ quorum' = [quorum EXCEPT ![Len(quorum)].isr = isr]
    /\ UNCHANGED << replicaVars, committed, boundVars >>

\* A follower lags.
ShrinkIsr(r, f) ==
    /\ Leads(r) /\ leaderEpoch[r] = CurrentEpoch
    /\ f # r /\ f \in Current.isr
    /\ ChangeIsr(r, Current.isr \ {f})

\* isr_expand_after_epoch_start (KAFKA-7128): a follower joins at the high watermark AND at
\* the start of the leader's epoch, because a new leader's high watermark lags.
ExpandIsr(r, f) ==
    /\ Leads(r) /\ leaderEpoch[r] = CurrentEpoch
    /\ f # r /\ f \notin Current.isr
    /\ MayJoinIsr(ends[r][f], highWatermark[r], ends[r][r], Keeps("isr_expand_after_epoch_start"))
    /\ ChangeIsr(r, Current.isr \cup {f})

----------------------------------------------------------------------------
(* The follower (rule R3, R5, R6).                                         *)

\* fetch_fencing (KIP-320): a leader answers followers of its own epoch only.
Served(r) ==
    /\ Follows(r)
    /\ Leads(leader[r])
    /\ MayServe(leaderEpoch[leader[r]], leaderEpoch[r], Keeps("fetch_fencing"))

\* The leader learns where this log ends, the follower gets the next record, if there is
\* one, and the high watermark.
Fetch(r) ==
    /\ Served(r)
    /\ ~truncating[r]
    /\ LogEnd(r) \in LogStart(leader[r]) .. LogEnd(leader[r])
    /\ LET from   == leader[r]
           end    == LogEnd(r)
           record == log[from][end + 1]
           after  == IF end < LogEnd(from) THEN Append(log[r], record) ELSE log[r]
       IN  /\ ends' = [ends EXCEPT ![from] = [@ EXCEPT ![r] = end]]
           /\ log' = [log EXCEPT ![r] = after]
           /\ cache' = IF end < LogEnd(from)
                       THEN [cache EXCEPT ![r] = Enter(@, record.epoch, end)] ELSE cache
           /\ highWatermark' = [highWatermark EXCEPT ![r] =
                                  WithinLog(after, Min(highWatermark[from], Len(after)))]
    /\ UNCHANGED << leaderEpoch, leader, truncating, quorum, committed, boundVars >>

Cut(r, end, done) ==
    /\ log' = [log EXCEPT ![r] = SubSeq(@, 1, end)]
    /\ cache' = [cache EXCEPT ![r] = CacheBelow(@, end)]
    /\ highWatermark' = [highWatermark EXCEPT ![r] = Min(@, end)]
    /\ truncating' = [truncating EXCEPT ![r] = ~done /\ end > 0]
    /\ UNCHANGED << leaderEpoch, leader, ends, quorum, committed, boundVars >>

\* truncate_by_epoch (KIP-101): one round of OffsetsForLeaderEpoch.
\* truncate_below_own_epoch (KIP-279): the answer names its epoch, and rounds repeat.
\* undefined_has_no_end (KAFKA-6857): where neither has epochs, the leader knows no end, and
\* the follower cuts at its high watermark.
TruncateByEpoch(r) ==
    /\ Keeps("truncate_by_epoch")
    /\ truncating[r]
    /\ Served(r)
    /\ LET from   == leader[r]
           asked  == LatestEpoch(cache[r])
           answer == IF asked < 0 /\ cache[from] = << >> /\ ~Keeps("undefined_has_no_end")
                     THEN [epoch |-> -1, end |-> LogEnd(from)]
                     ELSE IF Keeps("truncate_below_own_epoch")
                     THEN EndOffsetFor(cache[from], LogEnd(from), asked)
                     ELSE EndOffsetForKip101(cache[from], LogEnd(from), asked)
           next   == NextTruncation(cache[r], LogEnd(r), highWatermark[r], answer)
       IN  Cut(r, next.end, next.done)

\* Before KIP-101: cut at the own high watermark, without asking anybody.
TruncateToHighWatermark(r) ==
    /\ ~Keeps("truncate_by_epoch")
    /\ truncating[r]
    /\ Follows(r)
    /\ Cut(r, Min(highWatermark[r], LogEnd(r)), TRUE)

\* A follower that is ahead of its leader is told OFFSET_OUT_OF_RANGE (KAFKA-2143, KAFKA-7414).
OutOfRange(r) ==
    /\ Served(r)
    /\ ~truncating[r]
    /\ LogEnd(r) > LogEnd(leader[r])
    /\ Cut(r, LogEnd(leader[r]), TRUE)

\* A follower that ends below its leader's log drops all that it has and goes on where that
\* starts.  high_watermark_follows_log_start (KAFKA-9491): its high watermark moves with it.
StartOver(r) ==
    /\ Served(r)
    /\ ~truncating[r]
    /\ LogEnd(r) < LogStart(leader[r])
    /\ LET start == LogStart(leader[r])
       IN  /\ log' = [log EXCEPT ![r] = [i \in 1 .. start |-> Gone]]
           /\ highWatermark' = IF Keeps("high_watermark_follows_log_start")
                               THEN [highWatermark EXCEPT ![r] = start] ELSE highWatermark
    /\ cache' = [cache EXCEPT ![r] = << >>]
    /\ UNCHANGED << leaderEpoch, leader, truncating, ends, quorum, committed, boundVars >>

----------------------------------------------------------------------------
(* The machine.                                                            *)

\* The process dies, and what was not yet synced with it: n records at the end of the log.
\* keep_checkpointed (KAFKA-1647): the high watermark that it had read is in its checkpoint,
\* though it has not had a role since; without, a start begins at 0.
Crash(r, n) ==
    /\ leader[r] # Down
    /\ crashes < CrashCount
    /\ n <= LogEnd(r) /\ n <= LossCount - lost
    /\ LET end == LogEnd(r) - n
           forgets == leader[r] = Nobody /\ ~Keeps("keep_checkpointed")
           checkpointed == IF forgets THEN 0 ELSE highWatermark[r]
       IN  /\ log' = [log EXCEPT ![r] = SubSeq(@, 1, end)]
           /\ cache' = IF n > 0 THEN [cache EXCEPT ![r] = CacheBelow(@, end)] ELSE cache
           /\ highWatermark' = [highWatermark EXCEPT ![r] = WithinLog(SubSeq(log[r], 1, end), checkpointed)]
    /\ leaderEpoch' = [leaderEpoch EXCEPT ![r] = -1]
    /\ leader' = [leader EXCEPT ![r] = Down]
    /\ truncating' = [truncating EXCEPT ![r] = FALSE]
    /\ ends' = [ends EXCEPT ![r] = << >>]
    /\ crashes' = crashes + 1
    /\ lost' = lost + n
    /\ UNCHANGED << quorum, committed, appended, listed >>

\* broker_epoch_fencing (KIP-380): only LeaderAndIsr that was made for this incarnation counts,
\* so nothing older than ZooKeeper's present epoch.
Restart(r) ==
    /\ leader[r] = Down
    /\ leader' = [leader EXCEPT ![r] = Nobody]
    /\ leaderEpoch' = [leaderEpoch EXCEPT
                          ![r] = IF Keeps("broker_epoch_fencing") THEN CurrentEpoch - 1 ELSE -1]
    /\ UNCHANGED << log, cache, highWatermark, truncating, ends, quorum, committed, boundVars >>

----------------------------------------------------------------------------

Next ==
    \E r \in Replicas :
        \/ Elect(r)
        \/ ShrinkByController(r)
        \/ \E e \in Epochs : BecomeLeader(r, e)
        \/ \E e \in Epochs : BecomeFollower(r, e)
        \/ AppendRecord(r)
        \/ Fetch(r)
        \/ TruncateByEpoch(r)
        \/ TruncateToHighWatermark(r)
        \/ OutOfRange(r)
        \/ AdvanceHighWatermark(r)
        \/ \E f \in Replicas : ShrinkIsr(r, f)
        \/ \E f \in Replicas : ExpandIsr(r, f)
        \/ \E n \in 0 .. LossCount : Crash(r, n)
        \/ Restart(r)
        \/ ListOffsets(r)
        \/ DeleteOldest(r)
        \/ StartOver(r)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What must hold, named as in the table of invariants (COMMIT-SAFE,       *)
(* LOG-MATCH, EPOCH-MONO).                                                 *)

Offsets == 0 .. LogSize

TypeOK ==
    /\ \A r \in Replicas :
          /\ Len(log[r]) <= LogSize
          /\ \A i \in DOMAIN log[r] : log[r][i] \in [epoch : Epochs, value : Values] \cup {Gone}
          /\ \A i \in DOMAIN cache[r] : cache[r][i] \in [epoch : Epochs, start : Offsets]
          /\ highWatermark[r] \in Offsets
          /\ leaderEpoch[r] \in -1 .. LastEpoch
          /\ leader[r] \in Replicas \cup {Nobody, Down}
          /\ truncating[r] \in BOOLEAN
          /\ IF Leads(r) THEN ends[r] \in [Replicas -> -1 .. LogSize] ELSE ends[r] = << >>
    /\ Len(quorum) \in 1 .. LastEpoch + 1
    /\ \A i \in DOMAIN quorum :
          /\ quorum[i].isr \subseteq Replicas
          /\ quorum[i].leader \in quorum[i].isr
    /\ Len(committed) <= LogSize
    /\ \A i \in DOMAIN committed :
          committed[i] \in [epoch : Epochs \cup {-1}, value : Values \cup {-1}, exposedIn : Epochs]
    /\ appended \in 0 .. ValueCount
    /\ crashes \in 0 .. CrashCount
    /\ lost \in 0 .. LossCount
    /\ Len(listed) <= ListCount
    /\ \A i \in DOMAIN listed : listed[i] \in [epoch : Epochs, end : Offsets]

\* What retention deleted counts as held: HwBounds says that it was committed.
Holds(r, i, record) ==
    /\ i <= LogEnd(r)
    /\ \/ log[r][i] = Gone
       \/ log[r][i].epoch = record.epoch /\ log[r][i].value = record.value

\* COMMIT-SAFE: each leader holds every record that an exposed high watermark of its epoch
\* or an earlier one covered.
CommitSafe ==
    \A r \in Replicas : Leads(r) =>
        \A i \in DOMAIN committed :
            committed[i].exposedIn <= leaderEpoch[r] => Holds(r, i, committed[i])

\* COMMIT-SAFE of a step: a leader's high watermark never covers a record other than the one
\* that an earlier high watermark covered.
CommitSafeStep ==
    \A r \in Replicas :
        (Leads(r) /\ highWatermark'[r] > highWatermark[r]) =>
            \A i \in DOMAIN committed :
                i <= highWatermark'[r] => Holds(r, i, committed[i])
CommitSafeSteps == [][CommitSafeStep]_vars

\* LOG-MATCH: (offset, epoch) names one value, and two logs agree below the lower of their
\* high watermarks, from where both start.
LogMatch ==
    \A r, s \in Replicas : r < s =>
        LET lower == Min(highWatermark[r], highWatermark[s])
            start == Max(LogStart(r), LogStart(s))
        IN  /\ SubSeq(log[r], start + 1, Min(lower, LogEnd(r)))
                  = SubSeq(log[s], start + 1, Min(lower, LogEnd(s)))
            /\ \A i \in 1 .. Min(LogEnd(r), LogEnd(s)) :
                  log[r][i].epoch = log[s][i].epoch => log[r][i].value = log[s][i].value

\* EPOCH-MONO of a state: leader epochs never decrease along a log.
EpochMono ==
    \A r \in Replicas : \A i \in 1 .. LogEnd(r) - 1 : log[r][i].epoch <= log[r][i + 1].epoch

\* EPOCH-MONO of a step: a running broker's leader epoch never goes back.
EpochMonoStep ==
    \A r \in Replicas :
        \/ leaderEpoch[r] <= leaderEpoch'[r]
        \/ leader[r] = Down
        \/ leader'[r] = Down
EpochMonoSteps == [][EpochMonoStep]_vars

\* No two replicas lead in one epoch.
OneLeader ==
    \A r, s \in Replicas :
        (Leads(r) /\ Leads(s) /\ leaderEpoch[r] = leaderEpoch[s]) => r = s

\* HW-MONO: ListOffsets never tells less than an earlier answer of the same leader epoch or
\* one before.  (A deposed leader that has not heard may: Kafka accepts that.)
HwMono ==
    \A i, j \in DOMAIN listed :
        (i < j /\ listed[i].epoch <= listed[j].epoch) => listed[i].end <= listed[j].end

\* HW-BOUNDS: log start offset <= high watermark <= log end offset, at each replica that runs.
HwBounds ==
    \A r \in Replicas :
        leader[r] # Down => LogStart(r) <= highWatermark[r] /\ highWatermark[r] <= LogEnd(r)

=============================================================================
