---------------------------- MODULE Transaction ----------------------------
(***************************************************************************)
(* How a Kafka transaction becomes visible in several partitions at once,  *)
(* or in none.                                                             *)
(*                                                                         *)
(* One transactional id.  Its PRODUCERS are processes that follow each     *)
(* other; an earlier one may be a zombie.  Its COORDINATOR is the leader   *)
(* of a partition of __transaction_state, and writes there each state of   *)
(* the transaction:                                                        *)
(*                                                                         *)
(*   Empty -> Ongoing -> PrepareCommit -> CompleteCommit                   *)
(*                    -> PrepareAbort  -> CompleteAbort                    *)
(*                                                                         *)
(* A record counts when every replica has it.  After PrepareCommit or      *)
(* PrepareAbort the coordinator sends a MARKER to the leader of each       *)
(* partition, and sends it again until the leader has answered.  A marker  *)
(* decides all records before it.                                          *)
(*                                                                         *)
(* Version 1 (KIP-98): the producer adds partitions, and keeps its epoch   *)
(* from transaction to transaction.  Version 2 (KIP-890): the leader adds  *)
(* its partition when the first batch arrives, and each end has the next   *)
(* epoch, which is the producer's in the next transaction.                 *)
(*                                                                         *)
(* The network keeps each request that was sent: it may arrive any number  *)
(* of times, at any time.  An answer is what a coordinator has in memory:  *)
(* whoever asks again is answered again.                                   *)
(*                                                                         *)
(* The constant Drop is the set of protections to do without.  Three of    *)
(* them are what the first version assumes of the network, and nobody      *)
(* enforces: no_late_end (KAFKA-17754), no_late_marker, deposed_is_silent. *)
(*                                                                         *)
(* What is coarser than Kafka.  A leader's append is durable at once; the  *)
(* partitions' replication is Replication.tla's.  One producer id, with    *)
(* epochs that do not run out.  A producer sends one record to each        *)
(* partition in a transaction.  A marker that ends nothing leaves no       *)
(* record.                                                                 *)
(*                                                                         *)
(* The same system, written in Python, is fencepost/model/transaction; the *)
(* two have the same states, and a test compares them.                     *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Version,            \* transaction.version: 1 or 2.
    ProducerCount,      \* Processes with the transactional id, numbered from 0.
    PartitionCount,     \* Partitions, numbered from 0.
    TransactionCount,   \* Transactions of each producer.
    LastEpoch,          \* The highest coordinator epoch.
    ExtraCount,         \* Transactions that the coordinator begins beyond those.
    OffsetsCount,       \* 1 if the last partition is one of __consumer_offsets, else 0.
    LastProducerEpoch,  \* From this epoch on, none is given out and none times out.
    Drop                \* The protections to do without, by name.

Producers  == 0 .. ProducerCount - 1
Partitions == 0 .. PartitionCount - 1
Epochs     == 0 .. LastEpoch
MostBegun  == ProducerCount * TransactionCount + ExtraCount
None       == -1
MostCopies == 2       \* Of one batch, if nothing prevents them.

Protections ==
    { "epoch_fencing",         \* T1
      "loaded",                \* T2
      "go_on_with_ends",       \* KAFKA-16352
      "to_mark",               \* T3
      "is_written",            \* T4
      "last_stable_offset",    \* T5
      "aborted_transactions",  \* T6
      "count",                 \* T7
      "ended",                 \* T8
      "check",                 \* KIP-98
      "check_marker",          \* KAFKA-5231
      "coordinator_fencing",   \* T16
      "is_needed",             \* KIP-890
      "still_guarded",         \* T10
      "settle",                \* KAFKA-8805
      "fence",                 \* KAFKA-6119
      "abort_open_first",      \* T24
      "one_at_a_time",         \* T25
      "decide_durably",        \* T23
      "no_late_end",           \* KAFKA-17754
      "no_late_marker",        \* T22
      "deposed_is_silent",     \* T21
      "marker_above_epoch",    \* KIP-1228
      "marker_again" }         \* KAFKA-19999

ASSUME
    /\ Version \in 1 .. 2 /\ OffsetsCount \in 0 .. 1
    /\ ProducerCount \in Nat \ {0} /\ PartitionCount \in Nat \ {0} /\ TransactionCount \in Nat \ {0}
    /\ LastEpoch \in Nat /\ ExtraCount \in Nat /\ LastProducerEpoch \in Nat
    /\ Drop \subseteq Protections

Keeps(protection) == protection \notin Drop

VARIABLES
    \* The partition of __transaction_state
    elected,      \* Its leader epoch, which is the coordinator epoch.
    value,        \* The last record that every replica has.
    tail,         \* The record after it, as a sequence of at most one.
    \* The coordinator of each epoch, as a sequence of at most one: [value, marked, sending]
    held,
    \* Each producer: [state, epoch, transaction, added, sent, acked, sequences, requests]
    producer,
    \* The leader of each partition: [epoch, sequence, coordinatorEpoch, open, records, verified]
    partition,
    \* The markers that may arrive: [number, epoch, coordinatorEpoch, commit, partitions]
    markers,
    \* Ghosts
    asked,        \* Transactions whose commit was asked for.
    acknowledged, \* Transactions whose commit was answered.
    committed,    \* The coordinator's transactions with a durable commit, by number.
    aborted,      \* The same for aborts.
    answered      \* The highest epoch that was given out.

logVars   == << elected, value, tail >>
askVars   == << asked, acknowledged, answered >>
doneVars  == << committed, aborted >>
ghostVars == << askVars, doneVars >>
vars      == << logVars, held, producer, partition, markers, ghostVars >>

----------------------------------------------------------------------------
(* Small words *)

Ending  == {"PrepareCommit", "PrepareAbort"}
Between == {"Empty", "CompleteCommit", "CompleteAbort"}
NameOf(i, k)   == i * TransactionCount + k
Max(a, b)      == IF a > b THEN a ELSE b
Bump(yes)      == IF yes THEN 1 ELSE 0

Request(kind, k, e, what, sequence) ==
    [kind |-> kind, transaction |-> k, epoch |-> e, what |-> what, sequence |-> sequence]

\* The coordinator of epoch e may write the next record.
Writes(e)  == held[e] # << >> /\ elected = e /\ tail = << >>
Memory(e)  == held[e][1].value

\* deposed_is_silent (T21): a coordinator that was deposed answers nobody.
Answers(e) == held[e] # << >> /\ (elected = e \/ ~Keeps("deposed_is_silent"))

----------------------------------------------------------------------------
(* The coordinator's rules.                                                *)

\* epoch_fencing (T1)
IsOf(t, e) == e = t.epoch \/ ~Keeps("epoch_fencing")

Has(t, p)  == t.phase = "Ongoing" /\ p \in t.partitions

\* AddPartitionsToTxn.  one_at_a_time (T25): CONCURRENT_TRANSACTIONS while the last one ends.
MayAdd(t, p) ==
    IF t.phase = "Ongoing" THEN p \notin t.partitions
    ELSE /\ t.phase \in Ending => ~Keeps("one_at_a_time")
         /\ t.number < MostBegun
Added(t, p) ==
    IF t.phase = "Ongoing" THEN [t EXCEPT !.partitions = @ \cup {p}]
    ELSE [t EXCEPT !.phase = "Ongoing", !.partitions = {p}, !.number = @ + 1]

\* EndTxn.  In the second version an abort finds something to end though nothing was added.
MayEnd(t, commit) ==
    \/ t.phase = "Ongoing"
    \/ Version = 2 /\ ~commit /\ t.phase \in Between /\ t.number < MostBegun
Ended(t, commit) ==
    IF t.phase = "Ongoing"
    THEN [t EXCEPT !.phase = IF commit THEN "PrepareCommit" ELSE "PrepareAbort",
                   !.epoch = @ + Bump(Version = 2)]
    ELSE [t EXCEPT !.phase = "PrepareAbort", !.epoch = @ + 1, !.partitions = {}, !.number = @ + 1]

\* fence (KAFKA-6119): a coordinator that aborts by itself does so in a new epoch.
Aborted(t) == [t EXCEPT !.phase = "PrepareAbort", !.epoch = @ + Bump(Version = 2 \/ Keeps("fence"))]

Completed(t) ==
    [t EXCEPT !.phase = IF @ = "PrepareCommit" THEN "CompleteCommit" ELSE "CompleteAbort",
              !.partitions = {}]

\* abort_open_first (T24)
Initialised(t, i) ==
    IF t.phase = "Ongoing" /\ Keeps("abort_open_first") THEN Aborted(t)
    ELSE [t EXCEPT !.phase = "Empty", !.epoch = @ + 1, !.partitions = {}, !.owner = i]

\* to_mark (T3): without it the last one of several partitions gets no marker.
ToMark(t) ==
    IF Keeps("to_mark") \/ Cardinality(t.partitions) < 2 THEN t.partitions
    ELSE t.partitions \ {CHOOSE p \in t.partitions : \A q \in t.partitions : q <= p}

MarkerOf(t, e) ==
    [number |-> t.number, epoch |-> t.epoch, coordinatorEpoch |-> e,
     commit |-> t.phase = "PrepareCommit", partitions |-> ToMark(t)]

Sent(t, e) == IF ToMark(t) = {} THEN markers ELSE markers \cup {MarkerOf(t, e)}

\* The decision is durable.
Decide(t) ==
    /\ committed' = IF t.phase = "PrepareCommit" THEN committed \cup {t.number} ELSE committed
    /\ aborted' = IF t.phase = "PrepareAbort" THEN aborted \cup {t.number} ELSE aborted

----------------------------------------------------------------------------
(* A leader's rules.                                                       *)

\* check (KIP-98): no earlier epoch, no duplicate, no gap.
Follows(s, r) ==
    IF r.epoch # s.epoch THEN r.epoch > s.epoch /\ (r.sequence = 0 \/ s.epoch = None)
    ELSE s.sequence = None \/ r.sequence = s.sequence + 1

IsStale(s, r) == r.epoch < s.epoch \/ (r.epoch = s.epoch /\ r.sequence <= s.sequence)

\* is_needed (KIP-890): the coordinator has confirmed that the partition is part of it.
MayAppend(s, r, name) ==
    /\ \/ s.open /\ s.epoch = r.epoch
       \/ r \in s.verified
       \/ ~Keeps("is_needed")
    /\ IF Keeps("check") THEN Follows(s, r)
       ELSE Cardinality({ n \in DOMAIN s.records : s.records[n].transaction = name }) < MostCopies

Appended(s, r, record) ==
    [s EXCEPT !.epoch = r.epoch, !.sequence = r.sequence, !.open = TRUE,
              !.records = Append(@, record),
              !.verified = IF Keeps("still_guarded") THEN {} ELSE @ \ {r}]

\* check_marker (KAFKA-5231), coordinator_fencing (T16), marker_above_epoch (KIP-1228),
\* marker_again (KAFKA-19999)
IsRefused(s, m) ==
    \/ m.epoch < s.epoch /\ Keeps("check_marker")
    \/ m.coordinatorEpoch < s.coordinatorEpoch /\ Keeps("coordinator_fencing")
    \/ /\ Version = 2 /\ m.epoch = s.epoch /\ Keeps("marker_above_epoch")
       /\ s.open \/ ~Keeps("marker_again")

\* still_guarded (T10): a marker makes earlier verifications void.
Marked(s, m) ==
    LET Decided(r) == IF r.fate # "undecided" THEN r
                      ELSE [r EXCEPT !.fate = IF m.commit THEN "committed" ELSE "aborted",
                                     !.endedBy = m.number]
    IN  [s EXCEPT !.sequence = IF m.epoch = s.epoch THEN @ ELSE None,
                  !.epoch = m.epoch,
                  !.coordinatorEpoch = m.coordinatorEpoch,
                  !.open = FALSE,
                  !.records = [n \in DOMAIN @ |-> Decided(@[n])],
                  !.verified = IF Keeps("still_guarded") THEN {} ELSE @]

----------------------------------------------------------------------------
(* The beginning: producer 0 has epoch 0.                                  *)

NoTransaction == [phase |-> "Empty", epoch |-> 0, partitions |-> {}, number |-> 0, owner |-> 0]

Init ==
    /\ elected = 0 /\ value = NoTransaction /\ tail = << >>
    /\ held = [e \in Epochs |-> IF e > 0 THEN << >>
                                ELSE << [value |-> NoTransaction, marked |-> {}, sending |-> FALSE] >>]
    /\ producer = [i \in Producers |->
          [state |-> IF i = 0 THEN "Open" ELSE "New", epoch |-> IF i = 0 THEN 0 ELSE None,
           transaction |-> 0, added |-> {}, sent |-> {}, acked |-> {},
           sequences |-> [p \in Partitions |-> 0], requests |-> {}]]
    /\ partition = [p \in Partitions |->
          [epoch |-> None, sequence |-> None, coordinatorEpoch |-> None, open |-> FALSE,
           records |-> << >>, verified |-> {}]]
    /\ markers = {}
    /\ asked = {} /\ acknowledged = {} /\ committed = {} /\ aborted = {} /\ answered = 0

----------------------------------------------------------------------------
(* The log of transactions.                                                *)

\* The new leader has what was durable; it has the record after that, or not.
Elect ==
    /\ elected < LastEpoch
    /\ elected' = elected + 1
    /\ tail' = << >>
    /\ \/ UNCHANGED << value, doneVars >>
       \/ tail # << >> /\ value' = tail[1] /\ Decide(tail[1])
    /\ UNCHANGED << held, producer, partition, markers, askVars >>

\* loaded (T2), go_on_with_ends (KAFKA-16352)
Load(e) ==
    /\ held[e] = << >> /\ elected = e
    /\ LET t == IF Keeps("loaded") THEN value ELSE [value EXCEPT !.epoch = Max(0, @ - 1)]
           sends == t.phase \in Ending /\ Keeps("go_on_with_ends")
       IN  /\ held' = [held EXCEPT ![e] = << [value |-> t, marked |-> {}, sending |-> sends] >>]
           /\ markers' = IF sends THEN Sent(t, e) ELSE markers
    /\ UNCHANGED << logVars, producer, partition, ghostVars >>

Unload(e) ==
    /\ held[e] # << >> /\ elected > e
    /\ held' = [held EXCEPT ![e] = << >>]
    /\ UNCHANGED << logVars, producer, partition, markers, ghostVars >>

\* Every replica has the record.  The markers of a decision are sent from now on.
Replicate(e) ==
    /\ held[e] # << >> /\ elected = e /\ tail # << >>
    /\ LET t == tail[1]
       IN  /\ value' = t
           /\ held' = [held EXCEPT ![e] = << [value |-> t, marked |-> {},
                                              sending |-> t.phase \in Ending] >>]
           /\ markers' = IF t.phase \in Ending THEN Sent(t, e) ELSE markers
           /\ Decide(t)
    /\ tail' = << >>
    /\ UNCHANGED << elected, producer, partition, askVars >>

----------------------------------------------------------------------------
(* Requests at the coordinator.                                            *)

\* In the second version a batch that arrives makes the leader ask.
Add(i, e) ==
    /\ Writes(e)
    /\ \E r \in producer[i].requests :
          /\ r.kind = IF Version = 1 THEN "add" ELSE "produce"
          /\ IsOf(Memory(e), r.epoch)
          /\ MayAdd(Memory(e), r.what)
          /\ tail' = << Added(Memory(e), r.what) >>
    /\ UNCHANGED << elected, value, held, producer, partition, markers, ghostVars >>

\* decide_durably (T23): without it markers are sent before the decision is durable.
End(i, e) ==
    /\ Writes(e)
    /\ \E r \in producer[i].requests :
          /\ r.kind = "end"
          /\ IsOf(Memory(e), r.epoch)
          /\ MayEnd(Memory(e), r.what = 1)
          /\ LET t == Ended(Memory(e), r.what = 1)
             IN  /\ tail' = << t >>
                 /\ markers' = IF Keeps("decide_durably") THEN markers ELSE Sent(t, e)
    /\ UNCHANGED << elected, value, held, producer, partition, ghostVars >>

\* The coordinator has an epoch for this producer, which was not told yet.
IsGiven(i, t) == t.phase = "Empty" /\ t.owner = i /\ t.epoch > producer[i].epoch

\* InitProducerId of a new process, or of one that wants its next epoch (KIP-360).
InitProducerId(i, e) ==
    /\ Writes(e)
    /\ Memory(e).epoch < LastProducerEpoch
    /\ CASE producer[i].state = "Renewing" ->
              Memory(e).phase \in Between /\ Memory(e).epoch = producer[i].epoch
         [] producer[i].state = "New" -> ~IsGiven(i, Memory(e))
         [] OTHER -> FALSE
    /\ Memory(e).phase \notin Ending
    /\ tail' = << Initialised(Memory(e), i) >>
    /\ UNCHANGED << elected, value, held, producer, partition, markers, ghostVars >>

TimeOut(e) ==
    /\ Writes(e)
    /\ Memory(e).phase = "Ongoing" /\ Memory(e).epoch < LastProducerEpoch
    /\ tail' = << Aborted(Memory(e)) >>
    /\ UNCHANGED << elected, value, held, producer, partition, markers, ghostVars >>

----------------------------------------------------------------------------
(* Markers.                                                                *)

\* no_late_marker (T22): when the leader has answered, no copy is on its way to it.
MarkersAnswered(p, e) ==
    IF ~Keeps("no_late_marker") THEN markers
    ELSE { m \in { IF m.coordinatorEpoch = e THEN [m EXCEPT !.partitions = @ \ {p}] ELSE m
                   : m \in markers } : m.partitions # {} }

Unmarked(p, e) ==
    /\ held[e] # << >> /\ held[e][1].sending /\ elected = e
    /\ p \in ToMark(Memory(e)) \ held[e][1].marked

\* The leader writes the marker, and its answer arrives.
Mark(p, e) ==
    /\ Unmarked(p, e)
    /\ ~IsRefused(partition[p], MarkerOf(Memory(e), e))
    /\ partition' = [partition EXCEPT ![p] = Marked(@, MarkerOf(Memory(e), e))]
    /\ held' = [held EXCEPT ![e][1].marked = @ \cup {p}]
    /\ markers' = MarkersAnswered(p, e)
    /\ UNCHANGED << logVars, producer, ghostVars >>

\* The leader refuses it for good.
GiveUp(p, e) ==
    /\ Unmarked(p, e)
    /\ IsRefused(partition[p], MarkerOf(Memory(e), e))
    /\ held' = [held EXCEPT ![e][1].sending = FALSE]
    /\ UNCHANGED << logVars, producer, partition, markers, ghostVars >>

\* Without is_written (T4): whatever the leader answers, the marker counts as written.
CountAsWritten(p, e) ==
    /\ ~Keeps("is_written")
    /\ Unmarked(p, e)
    /\ held' = [held EXCEPT ![e][1].marked = @ \cup {p}]
    /\ UNCHANGED << logVars, producer, partition, markers, ghostVars >>

\* A marker arrives, and its answer does not.
Deliver(p) ==
    /\ \E m \in markers :
          /\ p \in m.partitions
          /\ ~IsRefused(partition[p], m)
          /\ Marked(partition[p], m) # partition[p]
          /\ partition' = [partition EXCEPT ![p] = Marked(@, m)]
    /\ UNCHANGED << logVars, held, producer, markers, ghostVars >>

Complete(e) ==
    /\ Writes(e)
    /\ held[e][1].sending
    /\ held[e][1].marked = ToMark(Memory(e))
    /\ tail' = << Completed(Memory(e)) >>
    /\ UNCHANGED << elected, value, held, producer, partition, markers, ghostVars >>

----------------------------------------------------------------------------
(* Producers.                                                              *)

AskToAdd(i, p) ==
    /\ Version = 1 /\ producer[i].state = "Open"
    /\ LET r == Request("add", producer[i].transaction, producer[i].epoch, p, 0)
       IN  /\ r \notin producer[i].requests
           /\ producer' = [producer EXCEPT ![i].requests = @ \cup {r}]
    /\ UNCHANGED << logVars, held, partition, markers, ghostVars >>

PartitionAdded(i, e, p) ==
    /\ Version = 1 /\ producer[i].state = "Open"
    /\ Answers(e)
    /\ IsOf(Memory(e), producer[i].epoch)
    /\ Request("add", producer[i].transaction, producer[i].epoch, p, 0) \in producer[i].requests
    /\ p \notin producer[i].added /\ Has(Memory(e), p)
    /\ producer' = [producer EXCEPT ![i].added = @ \cup {p}]
    /\ UNCHANGED << logVars, held, partition, markers, ghostVars >>

Send(i, p) ==
    /\ producer[i].state = "Open"
    /\ Version = 2 \/ p \in producer[i].added
    /\ p \notin producer[i].sent
    /\ LET me == producer[i]
           r  == Request("produce", me.transaction, me.epoch, p, me.sequences[p])
       IN  producer' = [producer EXCEPT ![i].sent = @ \cup {p}, ![i].sequences[p] = @ + 1,
                                        ![i].requests = @ \cup {r}]
    /\ UNCHANGED << logVars, held, partition, markers, ghostVars >>

\* A batch arrives that would begin a transaction here; the leader asks, and hears yes.
Verify(i, p, e) ==
    /\ Keeps("is_needed")
    /\ Answers(e)
    /\ Has(Memory(e), p)
    /\ \E r \in producer[i].requests :
          /\ r.kind = "produce" /\ r.what = p /\ r \notin partition[p].verified
          /\ ~(partition[p].open /\ partition[p].epoch = r.epoch)
          /\ ~(Keeps("check") /\ IsStale(partition[p], r))
          /\ IsOf(Memory(e), r.epoch)
          /\ partition' = [partition EXCEPT ![p].verified = @ \cup {r}]
    /\ UNCHANGED << logVars, held, producer, markers, ghostVars >>

AppendBatch(i, p) ==
    /\ \E r \in producer[i].requests :
          /\ r.kind = "produce" /\ r.what = p
          /\ MayAppend(partition[p], r, NameOf(i, r.transaction))
          /\ partition' = [partition EXCEPT ![p] = Appended(@, r,
                [transaction |-> NameOf(i, r.transaction),
                 under |-> IF Has(value, p) THEN value.number ELSE None,
                 fate |-> "undecided", endedBy |-> None, late |-> answered > r.epoch])]
    /\ UNCHANGED << logVars, held, producer, markers, ghostVars >>

Acked(i, p) ==
    /\ producer[i].state = "Open"
    /\ p \in producer[i].sent \ producer[i].acked
    /\ \E n \in DOMAIN partition[p].records :
          partition[p].records[n].transaction = NameOf(i, producer[i].transaction)
    /\ producer' = [producer EXCEPT ![i].acked = @ \cup {p}]
    /\ UNCHANGED << logVars, held, partition, markers, ghostVars >>

\* EndTxn is sent: a commit only after each record is acknowledged.
AskToEnd(i, commit) ==
    LET me == producer[i]
    IN  /\ me.state = "Open"
        /\ \/ me.sent # {}
           \/ \E r \in me.requests : r.kind = "add" /\ r.transaction = me.transaction
        /\ commit => me.sent # {} /\ me.sent = me.acked
        /\ producer' = [producer EXCEPT
              ![i].state = IF commit THEN "Committing" ELSE "Aborting",
              ![i].requests = @ \cup {Request("end", me.transaction, me.epoch, Bump(commit), 0)}]
        /\ asked' = IF commit THEN asked \cup {NameOf(i, me.transaction)} ELSE asked
        /\ UNCHANGED << logVars, held, partition, markers, acknowledged, answered, doneVars >>

\* The second version names the next epoch.  INVALID_TXN_STATE says that there is nothing to
\* abort.
IsEnded(me, t) ==
    /\ t.epoch = me.epoch + Bump(Version = 2)
    /\ \/ me.state = "Committing" /\ t.phase \in {"PrepareCommit", "CompleteCommit"}
       \/ me.state = "Aborting" /\ t.phase \in {"PrepareAbort", "CompleteAbort"}
       \/ me.state = "Aborting" /\ Version = 1 /\ me.added = {} /\ t.phase \in Between

\* no_late_end (KAFKA-17754): when EndTxn is answered, no copy of it is on its way.
\* settle (KAFKA-8805): where a batch may still arrive, the producer asks for another epoch.
EndAnswered(i, e) ==
    LET me      == producer[i]
        over    == me.transaction + 1 = TransactionCount
        unknown == me.sent # me.acked /\ Version = 1 /\ Keeps("settle")
    IN  /\ me.state \in {"Committing", "Aborting"}
        /\ Answers(e)
        /\ IsEnded(me, Memory(e))
        /\ producer' = [producer EXCEPT ![i] =
              [state |-> IF over THEN "Done" ELSE IF unknown THEN "Renewing" ELSE "Open",
               epoch |-> IF Version = 2 THEN Memory(e).epoch ELSE me.epoch,
               transaction |-> me.transaction + 1,
               added |-> {}, sent |-> {}, acked |-> {},
               sequences |-> IF Version = 2 THEN [p \in Partitions |-> 0] ELSE me.sequences,
               requests |-> IF Keeps("no_late_end") THEN { r \in me.requests : r.kind # "end" }
                            ELSE me.requests]]
        /\ answered' = IF Version = 2 THEN Max(answered, Memory(e).epoch) ELSE answered
        /\ acknowledged' = IF me.state = "Committing"
                           THEN acknowledged \cup {NameOf(i, me.transaction)} ELSE acknowledged
        /\ UNCHANGED << logVars, held, partition, markers, asked, doneVars >>

Given(i, e) ==
    /\ producer[i].state \in {"New", "Renewing"}
    /\ Answers(e)
    /\ IsGiven(i, Memory(e))
    /\ producer' = [producer EXCEPT ![i].state = "Open", ![i].epoch = Memory(e).epoch,
                                    ![i].sequences = [p \in Partitions |-> 0]]
    /\ answered' = Max(answered, Memory(e).epoch)
    /\ UNCHANGED << logVars, held, partition, markers, asked, acknowledged, doneVars >>

----------------------------------------------------------------------------

Next ==
    \/ Elect
    \/ \E e \in Epochs :
          \/ Load(e) \/ Unload(e) \/ Replicate(e) \/ TimeOut(e) \/ Complete(e)
          \/ \E p \in Partitions : Mark(p, e) \/ GiveUp(p, e) \/ CountAsWritten(p, e)
          \/ \E i \in Producers :
                \/ Add(i, e) \/ End(i, e) \/ InitProducerId(i, e)
                \/ EndAnswered(i, e) \/ Given(i, e)
                \/ \E p \in Partitions : PartitionAdded(i, e, p) \/ Verify(i, p, e)
    \/ \E p \in Partitions : Deliver(p)
    \/ \E i \in Producers :
          \/ \E p \in Partitions : AskToAdd(i, p) \/ Send(i, p) \/ AppendBatch(i, p) \/ Acked(i, p)
          \/ \E commit \in BOOLEAN : AskToEnd(i, commit)

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What must hold.                                                         *)

Records(p) == { partition[p].records[n] : n \in DOMAIN partition[p].records }

TypeOK ==
    /\ elected \in Epochs /\ Len(tail) <= 1
    /\ value.phase \in Ending \cup Between \cup {"Ongoing"}
    /\ \A e \in Epochs : Len(held[e]) <= 1
    /\ \A i \in Producers :
          /\ producer[i].state \in {"New", "Open", "Committing", "Aborting", "Renewing", "Done"}
          /\ producer[i].acked \subseteq producer[i].sent
          /\ producer[i].transaction \in 0 .. TransactionCount
    /\ \A p \in Partitions :
          /\ partition[p].epoch \in None .. LastProducerEpoch + 1
          /\ \A r \in Records(p) : r.fate \in {"undecided", "committed", "aborted"}
    /\ \A m \in markers : m.partitions \subseteq Partitions

\* TXN-ATOM: committed everywhere or nowhere; only if the producer asked; and never aborted
\* after the commit was acknowledged.
TxnAtom ==
    /\ \A p, q \in Partitions : \A r \in Records(p), s \in Records(q) :
          ~(p # q /\ r.transaction = s.transaction /\ r.fate = "committed" /\ s.fate = "aborted")
    /\ \A p \in Partitions : \A r \in Records(p) :
          /\ r.fate = "committed" => r.transaction \in asked
          /\ r.fate = "aborted" => r.transaction \notin acknowledged

\* ONE-DECISION: no transaction has two, and markers say what the coordinator decided.
OneDecision ==
    /\ committed \cap aborted = {}
    /\ \A p \in Partitions : \A r \in Records(p) :
          /\ r.fate = "committed" => r.endedBy \in committed
          /\ r.fate = "aborted" => r.endedBy \in aborted

\* MARKER-MATCH: a marker ends the transaction in which the records were written.
MarkerMatch ==
    \A p \in Partitions : \A r \in Records(p) :
        r.fate # "undecided" => r.under \in {None, r.endedBy}

\* TXN-FENCE: what was written after a later epoch had been given out is never committed.
TxnFence == \A p \in Partitions : \A r \in Records(p) : ~(r.late /\ r.fate = "committed")

\* What a reader of committed records is shown.  last_stable_offset (T5),
\* aborted_transactions (T6); of a group's offsets count (T7), ended (T8).
IsOffsets(p) == OffsetsCount = 1 /\ p = PartitionCount - 1
Stable(p) == { n \in DOMAIN partition[p].records :
                  \A m \in 1 .. n : partition[p].records[m].fate # "undecided" }
Shown(p) ==
    { n \in (IF Keeps("last_stable_offset") THEN Stable(p) ELSE DOMAIN partition[p].records) :
        LET fate == partition[p].records[n].fate
        IN  /\ fate = "aborted" => ~Keeps(IF IsOffsets(p) THEN "ended" ELSE "aborted_transactions")
            /\ fate = "committed" => Keeps("count") \/ ~IsOffsets(p) }

\* READ-COMMITTED: readers are shown the committed records and no others.
ReadCommitted ==
    \A p \in Partitions :
        Shown(p) = { n \in Stable(p) : partition[p].records[n].fate = "committed" }

\* NO-HANGING: a transaction that is open in a partition is open at the coordinator.
NoHanging ==
    \A p \in Partitions : partition[p].open =>
        value.phase \in Ending \cup {"Ongoing"} /\ p \in value.partitions

\* TXN-END: with fair brokers each transaction is decided and complete in the end.
Settled ==
    /\ value.phase \in Between /\ tail = << >>
    /\ \A p \in Partitions : ~partition[p].open

=============================================================================
