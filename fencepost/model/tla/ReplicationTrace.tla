-------------------------- MODULE ReplicationTrace --------------------------
(***************************************************************************)
(* Recorded runs, held against the guards of Replication.tla: is each      *)
(* event of a run a step that the protocol allows?                         *)
(*                                                                         *)
(* A generated module, RecordedRuns, gives Traces: for each partition of   *)
(* each run the events that the protocol speaks of, in order (the module   *)
(* that lies here is an example).  A behaviour is one of them: t says      *)
(* which, i is the cursor.  Whatever else was recorded is  *)
(* a stutter and was left out by the generator.  Object(event) is the      *)
(* guard that stands against an event, in words, and "" if none does: then *)
(* the step is taken.  When a behaviour ends, its verdict is printed:      *)
(* "explained t" or "unexplained t i guard".  A run of one behaviour can   *)
(* be asked in TLA+'s own way, too: it is explained if TLC finds NotDone   *)
(* violated.                                                               *)
(*                                                                         *)
(* The run is more concurrent than Replication.tla, so the guards are      *)
(* asked of what an observer remembers (the same, in Python, is            *)
(* fencepost/model/refinement):                                            *)
(*                                                                         *)
(*  - a follower's append is compared with what its leader's log held at   *)
(*    any time of that epoch (it only grows): terms[e].logs, one log for   *)
(*    each incarnation of the leader;                                      *)
(*  - a leader may use any log end that a follower had in this epoch:      *)
(*    reaches;                                                             *)
(*  - LeaderAndIsr may be late, so a role may be of any epoch above the    *)
(*    replica's own;                                                       *)
(*  - what a power loss left, or an interrupted step wrote, is unknown     *)
(*    until somebody copies it: a record with the epoch Unknown;           *)
(*  - below the start of either's log nothing is compared.                 *)
(***************************************************************************)
EXTENDS ReplicationGuards, Sequences, TLC, RecordedRuns

Unknown == -1           \* The epoch of a record that nobody named.
NoRole  == -9           \* The leader epoch of a broker that has learned none since its start.
Nowhere == -1           \* The log end of a follower that has not fetched.

VARIABLES
    t, i,
    quorum,     \* Leader epoch -> its [leader, isrs]: each ISR that it held, the last one current.
    epoch,      \* The current leader epoch; -1 before the first.
    version,    \* Of ZooKeeper's node.
    terms,      \* Leader epoch -> what its leader did: [leader, start, watermark, logStart, logs, reaches].
    replicas,   \* Broker -> [log, epoch, leader, watermark, logStart, highest, isCut, interrupted, before].
    reaches     \* << leader epoch, broker >> -> [settled, now]: log ends that its leader may know of.

memory == << quorum, epoch, version, terms, replicas, reaches >>
vars   == << t, i, memory >>

----------------------------------------------------------------------------
(* Logs: sequences of << epoch, value >>; the record at offset o is log[o + 1]. *)

Min(a, b) == IF a <= b THEN a ELSE b
Max(a, b) == IF a >= b THEN a ELSE b
Last(s)   == s[Len(s)]
Has(f, x) == x \in DOMAIN f
Put(f, x, y) == (x :> y) @@ f

Known(record) == record[1] # Unknown
LastEpoch(log) == IF log = << >> THEN Unknown ELSE Last(log)[1]

Resized(log, end) ==
    IF end <= Len(log) THEN SubSeq(log, 1, Max(end, 0))
    ELSE log \o [k \in 1 .. end - Len(log) |-> << Unknown, 0 >>]

Appended(log, offset, records) == Resized(log, offset) \o records

\* How many records at the beginning certainly are the same.
Shared(a, b) ==
    LET both == Min(Len(a), Len(b))
        Parts(k) == ~Known(a[k]) \/ a[k] # b[k]
        parted == { k \in 1 .. both : Parts(k) }
    IN  IF parted = {} THEN both ELSE Least(parted) - 1

SharedWithAll(log, logs) == Least({ Shared(log, logs[k]) : k \in DOMAIN logs })

\* What a leader surely holds of a log; nothing where that ends at its log start, for it has
\* none of it any more, nor the epochs below it, whatever a crash took back.
HeldBy(term, log) ==
    LET both == SharedWithAll(log, term.logs)
        begin == Max(term.logStart, replicas[term.leader].highest)
    IN  IF both <= begin THEN 0 ELSE both

\* The log may hold these records from `offset` on.
MayHold(log, offset, records) ==
    \A k \in DOMAIN records :
        /\ offset + k \in DOMAIN log
        /\ \/ ~Known(log[offset + k]) \/ ~Known(records[k])
           \/ log[offset + k] = records[k]

\* Unknown records are what another replica copied from here.
Learned(log, offset, records) ==
    [k \in DOMAIN log |->
        IF k > offset /\ k <= offset + Len(records) /\ ~Known(log[k]) THEN records[k - offset] ELSE log[k]]

----------------------------------------------------------------------------
(* What is remembered *)

NewReplica == [log |-> << >>, epoch |-> NoRole, leader |-> NoLeader, watermark |-> 0, logStart |-> 0,
               highest |-> 0, isCut |-> FALSE, interrupted |-> "", before |-> << >>]

Reach(e, r)    == IF Has(reaches, << e, r >>) THEN reaches[<< e, r >>] ELSE [settled |-> Nowhere, now |-> Nowhere]
ReachEnd(e, r) == Max(Reach(e, r).settled, Reach(e, r).now)
End(r)         == Len(replicas[r].log)

\* The log end that the leader of an epoch may take a member to have.
KnownEnd(e, r) ==
    IF r = terms[e].leader THEN Len(Last(terms[e].logs))
    ELSE Max(terms[e].reaches[r], ReachEnd(e, r))

\* Whether r follows a leader that took over, and its term.
Follows(r) ==
    LET view == replicas[r]
    IN  view.epoch # NoRole /\ view.leader \notin {r, NoLeader} /\ Has(terms, view.epoch)
Followed(r) == terms[replicas[r].epoch]

Leads(r, e) == Has(terms, e) /\ terms[e].leader = r

\* The highest high watermark that any leader showed.
Shown == Greatest({0} \cup { terms[e].watermark : e \in DOMAIN terms })

----------------------------------------------------------------------------
(* The guards: why an event is no step of the protocol; "" if it is one.   *)

Says(guard, allowed) == IF allowed THEN "" ELSE guard

\* elect, shrink_by_controller
ControllerWrites(event) ==
    LET previous == Last(quorum[epoch].isrs)
    IN  IF event.epoch # epoch + 1 THEN "each election raises the leader epoch by one"
        ELSE Says("a leader from the ISR, nobody added to it, and never an empty one",
                  MayElect(event.leader, previous, event.isr, Traces[t].unclean))

\* shrink_isr, expand_isr
LeaderWrites(event) ==
    LET now == quorum[epoch]
        added == event.isr \ Last(now.isrs)
    IN  IF event.leader # now.leader \/ event.node # now.leader \/ event.leader \notin event.isr
        THEN "within a leader epoch its leader alone writes, and stays in the ISR"
        ELSE IF version >= 0 /\ event.version \notin {-1, version + 1}
        THEN "a compare-and-set on the version that stood there"
        ELSE IF ~Has(terms, epoch) THEN "the leader took over before it writes"
        ELSE Says("a follower joins at the high watermark and the start of the leader epoch (KAFKA-7128)",
                  \A member \in added :
                      MayJoinIsr(KnownEnd(epoch, member), terms[epoch].watermark, terms[epoch].start, TRUE))

PartitionState(event) ==
    IF ~Has(quorum, epoch) THEN ""
    ELSE IF event.epoch = epoch THEN LeaderWrites(event) ELSE ControllerWrites(event)

\* Both roles: the leader that ZooKeeper named, a higher epoch, and a log that is as it was.
TakesRole(event, leads) ==
    LET view == replicas[event.node]
        leader == IF leads THEN event.node ELSE event.leader
    IN  IF \/ ~Has(quorum, event.epoch)
           \/ quorum[event.epoch].leader # leader
           \/ ~leads /\ leader = event.node
        THEN "the leader that ZooKeeper named in that leader epoch"
        ELSE IF ~MayTakeEpoch(view.epoch, event.epoch, view.epoch # NoRole, TRUE)
        THEN "a higher leader epoch than was learned since the start (KAFKA-1188)"
        ELSE IF event.watermark > End(event.node) THEN "a high watermark within the log"
        ELSE Says("the log to end where appends and truncations left it",
                  event.offset \in {End(event.node), -1})

BecameLeader(event) ==
    LET role == TakesRole(event, TRUE)
    IN  IF role # "" THEN role
        ELSE Says("an ISR that ZooKeeper held in that leader epoch",
                  \/ event.isr = {}
                  \/ \E k \in DOMAIN quorum[event.epoch].isrs : quorum[event.epoch].isrs[k] = event.isr)

IsrUpdated(event) ==
    LET view == replicas[event.node]
    IN  IF view.leader # event.node \/ view.epoch # event.epoch THEN "a broker that leads in that epoch"
        ELSE Says("an ISR that ZooKeeper held in that leader epoch",
                  /\ Has(quorum, event.epoch)
                  /\ \E k \in DOMAIN quorum[event.epoch].isrs : quorum[event.epoch].isrs[k] = event.isr)

\* Where an append must go.  A follower's leader may begin inside a batch (KAFKA-6975), and
\* compaction leaves gaps.
AppendEnd(event) ==
    LET view == replicas[event.node]
        end  == Len(view.log)
        low  == IF end = view.logStart /\ event.offset >= 0 THEN Min(end, event.offset) ELSE end
    IN  IF event.leads THEN end ELSE IF Traces[t].compacted THEN Max(low, event.offset) ELSE low

\* The leader's logs that may hold what a follower appends, and the record before it.
Sources(event) ==
    LET view == replicas[event.node]
        term == Followed(event.node)
        before == Max(event.offset - 1, 0)
        own == SubSeq(view.log, before + 1, Min(event.offset, Len(view.log)))
        Fits(log) ==
            /\ MayHold(log, event.offset, event.records)
            /\ before >= Max(term.logStart, view.logStart) => MayHold(log, before, own)
    IN  { k \in DOMAIN term.logs : Fits(term.logs[k]) }

AppendedEvent(event) ==
    LET view == replicas[event.node]
    IN  IF ~MayAppend(AppendEnd(event), event.offset, LastEpoch(view.log), event.epoch)
        THEN "an append at the log end, of the last leader epoch or a later one"
        ELSE IF event.leads
        THEN Says("a broker that leads in that epoch", view.leader = event.node /\ view.epoch = event.epoch)
        ELSE IF ~Follows(event.node) THEN "a broker that follows a leader that took over"
        ELSE Says("a log that is a prefix of what its leader holds", Sources(event) # {})

Truncated(event) ==
    LET view == replicas[event.node]
        end  == Len(view.log)
        term == Followed(event.node)
    IN  IF event.cause = "high_watermark" THEN "a truncation by leader epoch (KIP-101)"
        ELSE IF ~Follows(event.node) \/ event.epoch # view.epoch THEN "a broker that follows a leader that took over"
        ELSE IF event.end # end THEN Says("the log to end where appends and truncations left it", event.end = -1)
        ELSE IF event.cause = "full"
        THEN Says("a log that ends at or below its leader's start to start over (KAFKA-7414)",
                  end <= event.offset /\ event.offset <= term.logStart)
        ELSE Says("no record to be cut that its leader holds too",
                  MayTruncate(HeldBy(term, view.log), end, event.offset))

LeaderAdvances(event) ==
    LET isr == IF Has(quorum, event.epoch) THEN Last(quorum[event.epoch].isrs) ELSE {event.node}
    IN  IF ~Leads(event.node, event.epoch) THEN "a broker that leads in that epoch"
        ELSE Says("a high watermark that does not go down, up to what every member of the ISR holds",
                  MayAdvance(replicas[event.node].watermark, event.watermark,
                             Least({ KnownEnd(event.epoch, member) : member \in isr })))

FollowerAdvances(event) ==
    LET view == replicas[event.node]
        term == Followed(event.node)
        begin == Max(view.watermark, term.logStart)
    IN  IF event.watermark <= view.watermark THEN ""
        ELSE IF ~Follows(event.node) THEN "a broker that follows a leader that took over"
        ELSE IF event.watermark > term.watermark THEN "at most the high watermark that its leader reached"
        ELSE Says("a log that is a prefix of what its leader holds",
                  \E k \in DOMAIN term.logs :
                      MayHold(term.logs[k], begin, SubSeq(view.log, begin + 1, Len(view.log))))

HighWatermark(event) ==
    IF replicas[event.node].epoch # event.epoch THEN "the leader epoch that the broker has learned"
    ELSE IF event.watermark > End(event.node) THEN "a high watermark within the log"
    ELSE IF event.leads THEN LeaderAdvances(event) ELSE FollowerAdvances(event)

\* A power loss takes what was not synced; a compacted log that was cut may end lower.  A step that
\* a fault interrupted after its file calls left no event: an append lengthens, a truncation shortens.
LogRecovered(event) ==
    LET view == replicas[event.node]
        end  == Len(view.log)
        cut  == view.before # << >> /\ Has(terms, view.before[1]) /\ view.before[2] # event.node
        asItWas ==
             \/ event.offset \in {end, -1}
             \/ view.interrupted = "power_loss"
             \/ Traces[t].compacted /\ view.isCut /\ event.offset < end
             \/ view.interrupted # "" /\ event.offset > end
             \/ /\ view.interrupted # "" /\ cut
                /\ MayTruncate(HeldBy(terms[view.before[1]], view.log), end, event.offset)
    IN  IF ~asItWas THEN "the log to end where appends and truncations left it"
        ELSE Says("the log to begin where it did, or where retention may have moved it to",
                  \/ event.logStart < 0
                  \/ MayBegin(view.logStart, event.logStart, event.offset, Shown, view.interrupted # ""))

\* The dump at the end of a run.  The step under way then left no event; or the log was not
\* opened since its disk lost something.
FinalOf(view, event) ==
    Resized(view.log, IF view.interrupted = "power_loss" THEN event.end ELSE Max(event.end, Len(view.log)))

FinalLog(event) ==
    LET log == FinalOf(replicas[event.node], event)
    IN  IF event.end # Len(log) THEN Says("the log to end where appends and truncations left it", event.end = -1)
        ELSE Says("the records that were appended and not truncated since",
                  MayHold(log, event.offset, event.records))

Object(event) ==
    CASE event.name = "partition_state" -> PartitionState(event)
      [] event.name = "became_leader"   -> BecameLeader(event)
      [] event.name = "became_follower" -> TakesRole(event, FALSE)
      [] event.name = "appended"        -> AppendedEvent(event)
      [] event.name = "truncated"       -> Truncated(event)
      [] event.name = "high_watermark"  -> HighWatermark(event)
      [] event.name = "isr_updated"     -> IsrUpdated(event)
      [] event.name = "log_recovered"   -> LogRecovered(event)
      [] event.name = "replica_log"     -> FinalLog(event)
      [] OTHER                          -> ""    \* log_start, started, interrupted, deleted: always possible

----------------------------------------------------------------------------
(* What the observer remembers of a step.                                  *)

Sees(r, view)   == replicas' = [replicas EXCEPT ![r] = view]
SeesOnly(r, view) == Sees(r, view) /\ UNCHANGED << quorum, epoch, version, terms, reaches >>

TakePartitionState(event) ==
    LET before == IF Has(quorum, epoch) /\ event.epoch = epoch THEN quorum[epoch].isrs ELSE << >>
        leader == IF before = << >> THEN event.leader ELSE quorum[epoch].leader
    IN  /\ quorum' = Put(quorum, event.epoch, [leader |-> leader, isrs |-> Append(before, event.isr)])
        /\ epoch' = event.epoch
        /\ version' = event.version
        /\ UNCHANGED << terms, replicas, reaches >>

\* A leader whose epoch grows while it leads keeps what it knows of its followers, if nobody
\* else led in between.
Carried(event) ==
    LET view == replicas[event.node]
        kept == /\ view.epoch # NoRole /\ Leads(event.node, view.epoch)
                /\ view.leader = event.node
                /\ \A e \in DOMAIN quorum :
                      (view.epoch <= e /\ e < event.epoch) => quorum[e].leader = event.node
    IN  [r \in Brokers |-> IF kept THEN KnownEnd(view.epoch, r) ELSE Nowhere]

TakeBecameLeader(event) ==
    LET view == replicas[event.node]
        again == Leads(event.node, event.epoch)
        term == terms[event.epoch]
        new == [leader |-> event.node, start |-> Len(view.log), watermark |-> event.watermark,
                logStart |-> view.logStart, logs |-> << view.log >>, reaches |-> Carried(event)]
        same == [term EXCEPT
                    !.start = Min(@, Len(view.log)),
                    !.logStart = Max(@, view.logStart),
                    !.logs = IF Len(Last(@)) # Len(view.log) THEN Append(@, view.log) ELSE @]
    IN  /\ terms' = Put(terms, event.epoch, IF again THEN same ELSE new)
        /\ Sees(event.node, [view EXCEPT !.epoch = event.epoch, !.leader = event.node,
                                         !.watermark = event.watermark])
        /\ UNCHANGED << quorum, epoch, version, reaches >>

TakeBecameFollower(event) ==
    LET view == replicas[event.node]
    IN  /\ reaches' = Put(reaches, << event.epoch, event.node >>,
                          [settled |-> ReachEnd(event.epoch, event.node), now |-> Len(view.log)])
        /\ Sees(event.node, [view EXCEPT !.epoch = event.epoch, !.leader = event.leader,
                                         !.watermark = event.watermark])
        /\ UNCHANGED << quorum, epoch, version, terms >>

TakeAppended(event) ==
    LET view == replicas[event.node]
        grown == Appended(view.log, event.offset, event.records)
        log == Resized(grown, Max(event.end, Len(grown)))
        reach == Reach(view.epoch, event.node)
        source == Least(Sources(event))
    IN  /\ Sees(event.node, [view EXCEPT !.log = log, !.isCut = FALSE])
        /\ terms' =
              IF event.leads
              THEN IF Leads(event.node, event.epoch)
                   THEN [terms EXCEPT ![event.epoch].logs =
                            [@ EXCEPT ![Len(@)] = Appended(@, event.offset, event.records)]]
                   ELSE terms
              ELSE [terms EXCEPT ![view.epoch].logs[source] = Learned(@, event.offset, event.records)]
        /\ reaches' =
              IF event.leads THEN reaches
              ELSE Put(reaches, << view.epoch, event.node >>, [reach EXCEPT !.now = Max(@, Len(log))])
        /\ UNCHANGED << quorum, epoch, version >>

TakeTruncated(event) ==
    LET view == replicas[event.node]
        log == Resized(IF event.cause = "full" THEN << >> ELSE view.log, event.offset)
    IN  /\ Sees(event.node, [view EXCEPT !.log = log, !.isCut = TRUE, !.watermark = Min(@, event.offset)])
        /\ reaches' = Put(reaches, << view.epoch, event.node >>,
                          [Reach(view.epoch, event.node) EXCEPT !.now = event.offset])
        /\ UNCHANGED << quorum, epoch, version, terms >>

TakeHighWatermark(event) ==
    /\ Sees(event.node, [replicas[event.node] EXCEPT !.watermark = event.watermark])
    /\ terms' = IF event.leads
                THEN [terms EXCEPT ![event.epoch].watermark = Max(@, event.watermark)] ELSE terms
    /\ UNCHANGED << quorum, epoch, version, reaches >>

TakeLogStart(event) ==
    /\ Sees(event.node, [replicas[event.node] EXCEPT !.logStart = event.logStart,
                                                  !.highest = Max(@, event.logStart)])
    /\ terms' = IF Leads(event.node, event.epoch)
                THEN [terms EXCEPT ![event.epoch].logStart = Max(@, event.logStart)] ELSE terms
    /\ UNCHANGED << quorum, epoch, version, reaches >>

Recovered(event) ==
    [replicas[event.node] EXCEPT !.log = Resized(@, event.offset), !.interrupted = "",
                                 !.logStart = IF event.logStart < 0 THEN @ ELSE event.logStart,
                                 !.watermark = Min(Max(event.watermark, 0), event.offset)]

Started(view) ==
    [view EXCEPT !.before = IF view.epoch # NoRole THEN << view.epoch, view.leader >> ELSE @,
                 !.epoch = NoRole, !.leader = NoLeader]

Interrupted(view, fault) == [view EXCEPT !.interrupted = IF @ = "power_loss" THEN @ ELSE fault]

Take(event) ==
    LET view == replicas[event.node]
    IN  CASE event.name = "partition_state" -> TakePartitionState(event)
          [] event.name = "became_leader"   -> TakeBecameLeader(event)
          [] event.name = "became_follower" -> TakeBecameFollower(event)
          [] event.name = "appended"        -> TakeAppended(event)
          [] event.name = "truncated"       -> TakeTruncated(event)
          [] event.name = "high_watermark"  -> TakeHighWatermark(event)
          [] event.name = "log_start"       -> TakeLogStart(event)
          [] event.name = "log_recovered"   -> SeesOnly(event.node, Recovered(event))
          [] event.name = "replica_log"     ->
                SeesOnly(event.node, [view EXCEPT !.log = FinalOf(view, event)])
          [] event.name = "started"         -> SeesOnly(event.node, Started(view))
          [] event.name = "interrupted"     -> SeesOnly(event.node, Interrupted(view, event.cause))
          [] event.name = "deleted"         -> SeesOnly(event.node, NewReplica)
          [] event.name = "isr_updated"     -> UNCHANGED memory

----------------------------------------------------------------------------

Init ==
    /\ t \in DOMAIN Traces
    /\ i = 1
    /\ quorum = << >> /\ terms = << >> /\ reaches = << >>
    /\ epoch = -1 /\ version = -1
    /\ replicas = [r \in Brokers |-> NewReplica]

\* A text: TLC breaks the lines of other values.
Tell(text) == PrintT(text)

NotDone == i <= Len(Traces[t].events)

Next ==
    IF NotDone
    THEN LET event == Traces[t].events[i]
             objection == Object(event)
         IN  IF objection = ""
             THEN Take(event) /\ i' = i + 1 /\ t' = t
             ELSE Tell("unexplained " \o ToString(t) \o " " \o ToString(i) \o " " \o objection) /\ FALSE /\ UNCHANGED vars
    ELSE Tell("explained " \o ToString(t)) /\ FALSE /\ UNCHANGED vars

Spec == Init /\ [][Next]_vars

=============================================================================
